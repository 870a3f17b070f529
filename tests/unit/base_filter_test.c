/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	A thread knows without a system call whether it may make system calls: threads checked before a filter may,
 *	those that may have inherited one may not, a filter for all threads applies to all, a refused one to none; and a
 *	filter seen from outside applies at once.
 * Method	Filters are announced, and one is set in a child, whose filters are counted from outside.
 */
#include "base/atomic.h"
#include "base/filter.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static void *ask(void *unused)
{
	return (void *)(intptr_t)tw_thread_may_call_system();
}

static bool may_new_thread(void)
{
	pthread_t thread;
	void *answer;

	assert_int_equal(pthread_create(&thread, NULL, ask, NULL), 0);
	pthread_join(thread, &answer);
	return answer != NULL;
}

/* A thread checked before the filter; it checks again after the other thread has set its filter. */
static _Atomic int step;

static void *ask_twice(void *unused)
{
	bool is_free = tw_thread_may_call_system();

	tw_store_release(&step, 1);
	while (tw_load_acquire(&step) != 2)
		;
	return (void *)(intptr_t)(is_free && tw_thread_may_call_system());
}

static void a_filter_holds_for_its_thread_and_later_ones(void **state)
{
	struct tw_filter_change change;
	pthread_t thread;
	void *answer;

	tw_store_relaxed(&step, 0);
	assert_true(tw_thread_may_call_system() && may_new_thread());
	pthread_create(&thread, NULL, ask_twice, NULL);
	while (tw_load_acquire(&step) != 1)
		;
	change = tw_filter_begin(TW_FILTER_THREAD);
	assert_false(tw_thread_may_call_system());
	assert_false(may_new_thread());
	tw_store_release(&step, 2);
	pthread_join(thread, &answer);
	assert_non_null(answer);
	/* The system refused the filter. */
	tw_filter_end(change, false);
	assert_true(tw_thread_may_call_system() && may_new_thread());
}

static void a_filter_for_all_holds_for_all(void **state)
{
	struct tw_filter_change change;
	pthread_t thread;
	void *answer;

	tw_store_relaxed(&step, 0);
	pthread_create(&thread, NULL, ask_twice, NULL);
	while (tw_load_acquire(&step) != 1)
		;
	change = tw_filter_begin(TW_FILTER_ALL_THREADS);
	tw_store_release(&step, 2);
	pthread_join(thread, &answer);
	assert_null(answer);
	tw_filter_end(change, false);
	assert_true(tw_thread_may_call_system());
}

static void a_filter_seen_from_outside_holds(void **state)
{
	static _Atomic uint32_t seen;

	tw_filter_watch(&seen);
	assert_true(tw_thread_may_call_system());
	tw_store_relaxed(&seen, 1);
	assert_false(tw_thread_may_call_system());
	assert_false(may_new_thread());
	tw_store_relaxed(&seen, 0);
	assert_true(tw_thread_may_call_system());
}

static void a_dispatched_thread_may_call_while_its_selector_says_so(void **state)
{
	static volatile uint8_t selector = 1;
	struct tw_dispatch none = {0}, before;

	before = tw_dispatch_set((struct tw_dispatch){&selector, true});
	assert_false(before.is_on);
	assert_false(tw_thread_may_call_system());
	assert_true(may_new_thread());
	selector = 0;
	assert_true(tw_thread_may_call_system());
	before = tw_dispatch_set((struct tw_dispatch){NULL, true});
	assert_true(before.is_on && before.selector == &selector);
	assert_false(tw_thread_may_call_system());
	tw_dispatch_set(none);
	assert_true(tw_thread_may_call_system());
}

static void filters_are_counted(void **state)
{
	struct sock_filter code[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_fprog program = {1, code};
	int own = tw_filter_count("self"), status;
	pid_t child;

	if (own < 0)
		skip();
	child = fork();
	if (child == 0) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
			_exit(77);
		_exit(tw_filter_count("self") > own ? 0 : 1);
	}
	waitpid(child, &status, 0);
	assert_true(WIFEXITED(status));
	assert_in_set(WEXITSTATUS(status), ((const unsigned long[]){0, 77}), 2);
	assert_int_equal(tw_filter_count("none"), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_filter_holds_for_its_thread_and_later_ones),
		cmocka_unit_test(a_filter_for_all_holds_for_all),
		cmocka_unit_test(a_filter_seen_from_outside_holds),
		cmocka_unit_test(a_dispatched_thread_may_call_while_its_selector_says_so),
		cmocka_unit_test(filters_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
