/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	A thread finds the stack on which it was started, whatever stack it runs on, without a system call.
 * Method	Compared with pthread_getattr_np(): the first thread, threads of several sizes, one on memory of the
 *	program's own, one that runs on another stack, and the only thread of a child forked by such a thread.
 */
#include "base/sys.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <cmocka.h>

static ucontext_t here, there;
static int found_there;

/* 0: correct. */
static int compare(void)
{
	uintptr_t low, high, at = (uintptr_t)__builtin_frame_address(0);
	pthread_attr_t attributes;
	void *stack;
	size_t bytes;

	if (!tw_sys_own_stack(&low, &high))
		return 1;
	if (pthread_getattr_np(pthread_self(), &attributes) || pthread_attr_getstack(&attributes, &stack, &bytes))
		return 2;
	pthread_attr_destroy(&attributes);
	if (at < (uintptr_t)stack || at >= (uintptr_t)stack + bytes)
		return 3;
	/* The first stack may grow beyond its current limit, and libc leaves out its last page. */
	if (getpid() == tw_sys_thread_id() && low < (uintptr_t)stack)
		return high <= (uintptr_t)stack + bytes && at >= low && at < high ? 0 : 4;
	/* With or without its guard pages. */
	return high == (uintptr_t)stack + bytes && low <= (uintptr_t)stack && (uintptr_t)stack - low <= 65536 ? 0 : 5;
}

static void *compare_on_thread(void *unused)
{
	return (void *)(intptr_t)compare();
}

static int on_thread(void *(*run)(void *), const pthread_attr_t *attributes)
{
	pthread_t thread;
	void *result;

	assert_int_equal(pthread_create(&thread, attributes, run, NULL), 0);
	pthread_join(thread, &result);
	return (int)(intptr_t)result;
}

static void the_first_thread(void **state)
{
	assert_int_equal(compare(), 0);
}

static void threads_of_all_sizes(void **state)
{
	for (size_t bytes = 65536; bytes <= 64 << 20; bytes *= 4) {
		pthread_attr_t attributes;

		pthread_attr_init(&attributes);
		pthread_attr_setstacksize(&attributes, bytes);
		assert_int_equal(on_thread(compare_on_thread, &attributes), 0);
		pthread_attr_destroy(&attributes);
	}
}

static void a_stack_of_the_programs_own(void **state)
{
	size_t bytes = 1 << 20;
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t attributes;

	pthread_attr_init(&attributes);
	assert_int_equal(pthread_attr_setstack(&attributes, memory, bytes), 0);
	assert_int_equal(on_thread(compare_on_thread, &attributes), 0);
	pthread_attr_destroy(&attributes);
	munmap(memory, bytes);
}

static void look_there(void)
{
	uintptr_t low, high, at = (uintptr_t)__builtin_frame_address(0);

	found_there = tw_sys_own_stack(&low, &high) && (at < low || at >= high);
}

static void *switch_stacks(void *unused)
{
	size_t bytes = 1 << 18;
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	getcontext(&there);
	there.uc_stack.ss_sp = memory;
	there.uc_stack.ss_size = bytes;
	there.uc_link = &here;
	makecontext(&there, look_there, 0);
	swapcontext(&here, &there);
	munmap(memory, bytes);
	return (void *)(intptr_t)compare();
}

static void a_coroutine_runs_on_another(void **state)
{
	assert_int_equal(on_thread(switch_stacks, NULL), 0);
	assert_true(found_there);
}

static void *fork_and_look(void *unused)
{
	pid_t child = fork();
	int status = -1;

	if (child == 0)
		_exit(compare());
	waitpid(child, &status, 0);
	return (void *)(intptr_t)status;
}

static void a_forked_childs_thread_has_the_same_stack(void **state)
{
	assert_int_equal(on_thread(fork_and_look, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_thread),
		cmocka_unit_test(threads_of_all_sizes),
		cmocka_unit_test(a_stack_of_the_programs_own),
		cmocka_unit_test(a_coroutine_runs_on_another),
		cmocka_unit_test(a_forked_childs_thread_has_the_same_stack),
	};

	tw_sys_own_stack_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
