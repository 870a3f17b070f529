/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	call_memory of native functions is their requests to the C library's allocators, in words, by thread; allocators
 *	are not watched while no session counts. call_count and call_time of sleds, by thread.
 * Method	A library whose functions request known numbers of bytes in several ways; rows as info/3 returns them.
 */
#include "breakpoints/unwind.h"
#include "tests/unit/session_bed.h"
#include "tracewheel/info.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

void outer(void);
void grow(void);
void around(void (*function)(void));

static struct tw_session *a, *b;

static int set(struct tw_session *session, const char *function, enum tw_match match, uint32_t flags)
{
	return tw_trace_function(session, "libnativememory", function, TW_ARITY_ANY, match, flags);
}

static const char *info(struct tw_session *session, const char *function, const char *item)
{
	static char text[1024];
	char buffer[4096], what[64];
	struct tw_arena arena;
	struct tw_term term, out = {0};

	tw_arena_init_fixed(&arena, buffer, sizeof buffer);
	snprintf(what, sizeof what, "{libnativememory,%s,'_'}", function);
	assert_int_equal(tw_term_parse(&arena, what, strlen(what), &term, NULL), 0);
	assert_int_equal(tw_trace_info(session, term, tw_term_atom_z(item), &arena, &out), 0);
	tw_term_format(out, TW_PRINT_PRETTY, text, sizeof text);
	return text;
}

/* Is this the process' row: this number of calls and words? */
static bool has_row(struct tw_session *session, const char *function, tw_pid pid, unsigned calls, unsigned words)
{
	char row[64];

	snprintf(row, sizeof row, "{<0.%u.0>,%u,%u}", (unsigned)pid, calls, words);
	if (strstr(info(session, function, "call_memory"), row))
		return true;
	print_message("%s: no %s in %s\n", function, row, info(session, function, "call_memory"));
	return false;
}

static int open_sessions(void **state)
{
	assert_int_equal(tw_session_create("a", NULL, &a), 0);
	assert_int_equal(tw_session_create("b", NULL, &b), 0);
	return tw_trace_process(a, TW_PID_ALL, true, TW_FLAG_CALL) < 0 ||
	       tw_trace_process(b, TW_PID_ALL, true, TW_FLAG_CALL) < 0;
}

static int close_sessions(void **state)
{
	tw_session_destroy(a);
	tw_session_destroy(b);
	tw_session_put(a);
	tw_session_put(b);
	return 0;
}

/* The number of words that this thread has requested. */
static uint64_t words_spent(void)
{
	uint64_t before = tw_hit_tls.tracee->allocated_words;

	outer();
	return tw_hit_tls.tracee->allocated_words - before;
}

static void words_go_to_the_function_that_is_running(void **state)
{
	tw_pid self = tw_process_self();

	assert_int_equal(words_spent(), 0);
	assert_int_equal(set(a, "outer", TW_MATCH_TRUE, TW_FUNCTION_CALL_MEMORY), 1);
	assert_int_equal(set(b, "outer", TW_MATCH_TRUE, TW_FUNCTION_CALL_MEMORY), 1);
	assert_int_equal(set(b, "inner", TW_MATCH_TRUE, TW_FUNCTION_CALL_MEMORY), 1);
	outer();
	assert_true(has_row(a, "outer", self, 1, 9));
	assert_true(has_row(b, "outer", self, 1, 6));
	assert_true(has_row(b, "inner", self, 1, 3));
	assert_int_equal(set(a, "outer", TW_MATCH_PAUSE, TW_FUNCTION_CALL_MEMORY), 1);
	outer();
	assert_true(has_row(a, "outer", self, 1, 9));
	assert_true(has_row(b, "outer", self, 2, 12));
	assert_int_equal(set(a, "outer", TW_MATCH_RESTART, TW_FUNCTION_CALL_MEMORY), 1);
	assert_string_equal(info(a, "outer", "call_memory"), "{call_memory,[]}");
	assert_int_equal(set(a, "grow", TW_MATCH_TRUE, TW_FUNCTION_CALL_MEMORY), 1);
	grow();
	outer();
	assert_true(has_row(a, "grow", self, 1, 7));
	assert_true(has_row(a, "outer", self, 1, 9));
}

enum { CALLS = 1000 };

static void *call_often(void *arg)
{
	outer();
	for (int i = 1; i < CALLS; i++)
		outer();
	*(tw_pid *)arg = tw_process_self();
	return NULL;
}

static void by_thread(void **state)
{
	pthread_t thread[2];
	tw_pid pid[2];

	assert_int_equal(set(a, "outer", TW_MATCH_TRUE,
			     TW_FUNCTION_CALL_MEMORY | TW_FUNCTION_CALL_COUNT | TW_FUNCTION_CALL_TIME),
			 1);
	assert_int_equal(set(a, "inner", TW_MATCH_TRUE, TW_FUNCTION_CALL_MEMORY), 1);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, call_often, &pid[i]), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < 2; i++) {
		char row[32];

		assert_true(has_row(a, "outer", pid[i], CALLS, 6 * CALLS));
		assert_true(has_row(a, "inner", pid[i], CALLS, 3 * CALLS));
		snprintf(row, sizeof row, "{<0.%u.0>,%u,0,", (unsigned)pid[i], CALLS);
		assert_non_null(strstr(info(a, "outer", "call_time"), row));
	}
	assert_string_equal(info(a, "outer", "call_count"), "{call_count,2000}");
	assert_int_equal(tw_counts_refused(), 0);
}

/* Another setting of the running function, or none any more. */
static void others_come(void)
{
	assert_int_equal(set(b, "around", TW_MATCH_TRUE, TW_FUNCTION_CALL_MEMORY), 1);
	assert_int_equal(set(b, "inner", TW_MATCH_TRUE, TW_FUNCTION_CALL_MEMORY), 1);
	outer();
}

static void others_go(void)
{
	assert_int_equal(tw_session_destroy(b), 1);
	outer();
}

static void starts_anew(void)
{
	assert_int_equal(set(a, "around", TW_MATCH_RESTART, TW_FUNCTION_CALL_MEMORY), 1);
	outer();
}

/* The words of one more call, which are its own only if the previous one has ended. */
static unsigned words_of_next(const char *function, tw_pid pid)
{
	unsigned before[3] = {0}, after[3] = {0};

	sscanf(info(a, function, "call_memory"), "{call_memory,[{<0.%u.0>,%u,%u}]}", &before[0], &before[1],
	       &before[2]);
	outer();
	around(outer);
	sscanf(info(a, function, "call_memory"), "{call_memory,[{<0.%u.0>,%u,%u}]}", &after[0], &after[1], &after[2]);
	assert_int_equal(after[0], pid);
	assert_int_equal(after[1], before[1] + 1);
	return after[2] - before[2];
}

/* A call traced only by counters ends correctly, whatever the function's settings are by then. */
static void settings_change_under_a_call(void **state)
{
	tw_pid self = tw_process_self();

	assert_int_equal(set(a, "around", TW_MATCH_TRUE, TW_FUNCTION_CALL_MEMORY), 1);
	around(outer);
	assert_true(has_row(a, "around", self, 1, 15));
	around(others_come);
	assert_int_equal(words_of_next("around", self), 15);
	assert_true(has_row(b, "inner", self, 3, 9));
	assert_true(has_row(b, "around", self, 1, 12));
	around(others_go);
	assert_int_equal(words_of_next("around", self), 15);
	assert_int_equal(set(a, "inner", TW_MATCH_TRUE, TW_FUNCTION_CALL_MEMORY | TW_FUNCTION_CALL_TIME), 1);
	assert_int_equal(words_of_next("around", self), 12);
	assert_true(has_row(a, "inner", self, 2, 6));
	around(starts_anew);
	assert_int_equal(words_of_next("around", self), 12);
	assert_true(has_row(a, "around", self, 1, 12));
	assert_true(has_row(a, "inner", self, 5, 15));
}

static void leave_thread(void)
{
	pthread_exit(NULL);
}

static void *end_inside(void *arg)
{
	*(tw_pid *)arg = tw_process_self();
	around(leave_thread);
	return NULL;
}

static void threads_end_inside(void **state)
{
	pthread_t thread;
	tw_pid pid;

	assert_null(tw_unwind_find());
	assert_int_equal(set(a, "around", TW_MATCH_TRUE, TW_FUNCTION_CALL_MEMORY | TW_FUNCTION_CALL_TIME), 1);
	assert_int_equal(pthread_create(&thread, NULL, end_inside, &pid), 0);
	pthread_join(thread, NULL);
	assert_true(has_row(a, "around", pid, 1, 3));
}

static void nothing_is_read_without_need(void **state)
{
	/* Other counters need none of it. */
	assert_int_equal(set(a, "outer", TW_MATCH_TRUE, TW_FUNCTION_CALL_TIME), 1);
	assert_int_equal(words_spent(), 0);
	assert_int_equal(set(a, "outer", TW_MATCH_TRUE, TW_FUNCTION_CALL_MEMORY), 1);
	assert_int_equal(set(b, "outer", TW_MATCH_TRUE, TW_FUNCTION_CALL_MEMORY), 1);
	assert_int_equal(words_spent(), 9);
	assert_int_equal(set(a, "outer", TW_MATCH_FALSE, TW_FUNCTION_CALL_MEMORY), 1);
	assert_int_equal(words_spent(), 9);
	assert_int_equal(set(b, "outer", TW_MATCH_PAUSE, TW_FUNCTION_CALL_MEMORY), 1);
	assert_int_equal(words_spent(), 0);
	assert_int_equal(set(b, "outer", TW_MATCH_RESTART, TW_FUNCTION_CALL_MEMORY), 1);
	assert_int_equal(words_spent(), 9);
	assert_int_equal(tw_session_destroy(b), 1);
	assert_int_equal(words_spent(), 0);
	/* In a transaction the loader is asked at its end. */
	assert_int_equal(tw_trace_begin(), 0);
	assert_int_equal(set(a, "inner", TW_MATCH_TRUE, TW_FUNCTION_CALL_MEMORY), 1);
	assert_int_equal(words_spent(), 0);
	assert_true(tw_trace_commit() >= 1);
	assert_int_equal(words_spent(), 9);
	/* A session that traces the calls themselves keeps them. */
	assert_true(tw_trace_function(a, "libc", "malloc", TW_ARITY_ANY, TW_MATCH_TRUE, 0) >= 1);
	assert_int_equal(set(a, "inner", TW_MATCH_FALSE, TW_FUNCTION_CALL_MEMORY), 1);
	assert_int_equal(words_spent(), 3);
	assert_int_equal(tw_session_destroy(a), 1);
	assert_int_equal(words_spent(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(words_go_to_the_function_that_is_running, open_sessions,
						close_sessions),
		cmocka_unit_test_setup_teardown(by_thread, open_sessions, close_sessions),
		cmocka_unit_test_setup_teardown(settings_change_under_a_call, open_sessions, close_sessions),
		cmocka_unit_test_setup_teardown(threads_end_inside, open_sessions, close_sessions),
		cmocka_unit_test_setup_teardown(nothing_is_read_without_need, open_sessions, close_sessions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
