/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	Changes of a session or of code during watched native calls do no harm, and later ends are reported only to
 *	sessions that requested them.
 * Method	Functions of a library with sleds call back; there the session is destroyed, and another takes its slot,
 *	on the same thread and on others; the library's code is unmapped while it is armed.
 */
#include "tests/unit/session_bed.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>

#define DEPTH	5
#define THREADS 4

int frames_call(int (*function)(void *arg), void *arg);
int frames_call_deep(int depth, int (*function)(void *arg), void *arg);

static struct bed bed;
/* [{'_',[],[{return_trace}]}] */
static struct tw_match_program *program;

/* Traces all functions of a library, with their results. */
static void trace_returns(const char *library)
{
	open_bed(&bed, "frames");
	assert_true(tw_trace_process(bed.session, TW_PID_ALL, true, TW_FLAG_CALL) >= 0);
	assert_int_equal(tw_trace_function_match(bed.session, library, "_", TW_ARITY_ANY, program, TW_FUNCTION_LOCAL),
			 2);
	count_events(&bed);
}

static int nothing(void *arg)
{
	return 0;
}

/* The events of a call among others: itself and its return. */
static void expect_one_pair(void)
{
	count_events(&bed);
	assert_int_equal(frames_call(nothing, NULL), 1);
	assert_int_equal(count_events(&bed), 2);
}

static int end_session(void *arg)
{
	close_bed(&bed);
	return 0;
}

static int replace_session(void *arg)
{
	close_bed(&bed);
	trace_returns("libnativeframes");
	expect_one_pair();
	return 0;
}

static void a_session_ends_inside_its_calls(void **state)
{
	for (int i = 0; i < 100; i++) {
		trace_returns("libnativeframes");
		assert_int_equal(frames_call_deep(DEPTH, end_session, NULL), 1 + 10 * (DEPTH + 1));
	}
}

static void another_session_hears_nothing_of_them(void **state)
{
	trace_returns("libnativeframes");
	for (int i = 0; i < 100; i++) {
		assert_int_equal(frames_call_deep(DEPTH, replace_session, NULL), 1 + 10 * (DEPTH + 1));
		assert_int_equal(count_events(&bed), 0);
		/* And their own session gets them as always. */
		assert_int_equal(frames_call_deep(DEPTH, nothing, NULL), 1 + 10 * (DEPTH + 1));
		assert_int_equal(count_events(&bed), 2 * (DEPTH + 2));
	}
	close_bed(&bed);
}

static pthread_barrier_t inside, go_on;

static int wait_inside(void *arg)
{
	pthread_barrier_wait(&inside);
	pthread_barrier_wait(&go_on);
	return 0;
}

static void *call_on_thread(void *arg)
{
	return (void *)(intptr_t)frames_call_deep(DEPTH, wait_inside, NULL);
}

static void other_threads_are_inside(void **state)
{
	pthread_t threads[THREADS];
	void *value;

	for (int round = 0; round < 20; round++) {
		trace_returns("libnativeframes");
		pthread_barrier_init(&inside, NULL, THREADS + 1);
		pthread_barrier_init(&go_on, NULL, THREADS + 1);
		for (int i = 0; i < THREADS; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, call_on_thread, NULL), 0);
		pthread_barrier_wait(&inside);
		close_bed(&bed);
		if (round % 2)
			trace_returns("libnativeframes");
		pthread_barrier_wait(&go_on);
		for (int i = 0; i < THREADS; i++) {
			pthread_join(threads[i], &value);
			assert_int_equal((intptr_t)value, 1 + 10 * (DEPTH + 1));
		}
		if (round % 2) {
			assert_int_equal(count_events(&bed), 0);
			close_bed(&bed);
		}
		pthread_barrier_destroy(&inside);
		pthread_barrier_destroy(&go_on);
	}
}

static int unmap_code(struct dl_phdr_info *object, size_t bytes, void *arg)
{
	if (!strstr(object->dlpi_name, "libnativegone"))
		return 0;
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &object->dlpi_phdr[i];
		uintptr_t low = (object->dlpi_addr + header->p_vaddr) & ~(uintptr_t)4095;

		if (header->p_type == PT_LOAD && (header->p_flags & PF_X))
			return munmap((void *)low, object->dlpi_addr + header->p_vaddr + header->p_memsz - low) ? -1
														: 1;
	}
	return -1;
}

/* A program that unmaps its own code calls none of it any more; the fact that it was armed must not end the program. */
static void code_is_unmapped_while_it_is_armed(void **state)
{
	int (*call)(int (*)(void *), void *);
	void *handle = dlopen(GONE, RTLD_NOW | RTLD_LOCAL);

	assert_non_null(handle);
	call = (int (*)(int (*)(void *), void *))dlsym(handle, "frames_call");
	trace_returns("libnativegone");
	assert_int_equal(call(nothing, NULL), 1);
	assert_int_equal(count_events(&bed), 2);
	assert_int_equal(dl_iterate_phdr(unmap_code, NULL), 1);
	close_bed(&bed);
	/* Others continue. */
	trace_returns("libnativeframes");
	expect_one_pair();
	close_bed(&bed);
}

static int compile(void **state)
{
	static const char text[] = "[{'_',[],[{return_trace}]}]";
	struct tw_match_error error;

	return tw_match_compile_text(text, strlen(text), NULL, &program, &error);
}

static int destroy(void **state)
{
	tw_match_destroy(program);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_session_ends_inside_its_calls),
		cmocka_unit_test(another_session_hears_nothing_of_them),
		cmocka_unit_test(other_threads_are_inside),
		cmocka_unit_test(code_is_unmapped_while_it_is_armed),
	};

	return cmocka_run_group_tests(tests, compile, destroy);
}
