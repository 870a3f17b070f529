/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	call_count is exact whatever threads count and end; call_time and call_memory go to the function that a process
 *	is in, by process, and not while it is scheduled out, for as many sessions as there can be.
 * Method	Declared functions that spend a known number of words, or at least a known time; values as the control
 *	path reads them.
 */
#include "pipeline/hit/count.h"
#include "session/places.h"
#include "tests/unit/sanitized_help.h"
#include "tests/unit/session_bed.h"
#include "tracewheel/info.h"
#include "tracewheel/runtime.h"

#include <pthread.h>
#include <stdio.h>

enum { OUTER, MIDDLE, INNER, FUNCTIONS, THREADS = 4 };

#define CALLS ((int)test_rounds(100000, 5))

static struct tw_declared_function functions[FUNCTIONS] = {
	TW_DECLARED_FUNCTION("c", "outer", 0),
	TW_DECLARED_FUNCTION("c", "middle", 0),
	TW_DECLARED_FUNCTION("c", "inner", 0),
};

static void set(struct tw_session *session, int function, enum tw_match match, uint32_t flags)
{
	assert_int_equal(tw_trace_function(session, "c", functions[function].name, 0, match, flags), 1);
}

static uint64_t count_of(struct tw_session *session, int function)
{
	uint64_t count = UINT64_MAX;

	assert_int_equal(tw_trace_call_count(session, "c", functions[function].name, 0, &count), 1);
	return count;
}

/* ---- call_count ---- */

static void *call_often(void *arg)
{
	for (int i = 0; i < CALLS; i++)
		tw_call0(&functions[OUTER]);
	return NULL;
}

static void call_on_threads(void)
{
	pthread_t thread[THREADS];

	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, call_often, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
}

static void every_thread_counts_and_none_is_forgotten(void **state)
{
	struct tw_session *a, *b;

	tw_session_create("a", NULL, &a);
	tw_session_create("b", NULL, &b);
	set(a, OUTER, TW_MATCH_TRUE, TW_FUNCTION_CALL_COUNT);
	call_on_threads();
	assert_int_equal(count_of(a, OUTER), THREADS * CALLS);
	/* 157: another session has its own count, and threads are created again. */
	set(b, OUTER, TW_MATCH_TRUE, TW_FUNCTION_CALL_COUNT);
	call_on_threads();
	assert_int_equal(count_of(a, OUTER), 2 * THREADS * CALLS);
	assert_int_equal(count_of(b, OUTER), THREADS * CALLS);
	/* 150 */
	set(a, OUTER, TW_MATCH_PAUSE, TW_FUNCTION_CALL_COUNT);
	tw_call0(&functions[OUTER]);
	assert_int_equal(count_of(a, OUTER), 2 * THREADS * CALLS);
	assert_int_equal(count_of(b, OUTER), THREADS * CALLS + 1);
	set(a, OUTER, TW_MATCH_RESTART, TW_FUNCTION_CALL_COUNT);
	assert_int_equal(count_of(a, OUTER), 0);
	tw_call0(&functions[OUTER]);
	assert_int_equal(count_of(a, OUTER), 1);
	tw_session_destroy(b);
	tw_call0(&functions[OUTER]);
	assert_int_equal(count_of(a, OUTER), 2);
	tw_session_destroy(a);
	tw_session_put(a);
	tw_session_put(b);
	/* The counters are reused, and begin at 0. */
	tw_session_create("c", NULL, &a);
	for (int i = 0; i < FUNCTIONS; i++) {
		set(a, i, TW_MATCH_TRUE, TW_FUNCTION_CALL_COUNT);
		assert_int_equal(count_of(a, i), 0);
	}
	tw_session_destroy(a);
	tw_session_put(a);
}

/* ---- call_time, call_memory ---- */

struct row {
	uint64_t pid, count, value;
};

/* As many functions as a large program has, node for one; in OTP there is no limit. */
static void many_functions_are_counted(void **state)
{
	enum { MANY = 70000 };
	const unsigned called = test_rounds(1000, 5);
	static struct tw_declared_function many[MANY];
	static char names[MANY][12];
	struct tw_session *session;
	uint64_t count;

	assert_int_equal(tw_trace_begin(), 0);
	for (unsigned i = 0; i < MANY; i++) {
		snprintf(names[i], sizeof names[i], "g%u", i);
		many[i] = (struct tw_declared_function)TW_DECLARED_FUNCTION("many", names[i], 0);
		assert_int_equal(tw_function_declare(&many[i]), 0);
	}
	assert_int_equal(tw_trace_commit(), 0);
	assert_int_equal(tw_session_create("many", NULL, &session), 0);
	assert_int_equal(tw_trace_function(session, "many", "_", TW_ARITY_ANY, TW_MATCH_TRUE, TW_FUNCTION_CALL_COUNT),
			 MANY);
	assert_int_equal(tw_trace_function(session, "many", "_", TW_ARITY_ANY, TW_MATCH_TRUE, TW_FUNCTION_CALL_TIME),
			 MANY);
	/* The last ones, each in a number of its own: none of them shares a counter with another. */
	for (unsigned i = MANY - called; i < MANY; i++)
		for (unsigned k = i; k < MANY; k++)
			tw_call0(&many[k]);
	for (unsigned i = 0; i < MANY; i++) {
		assert_int_equal(tw_trace_call_count(session, "many", names[i], 0, &count), 1);
		assert_int_equal(count, i < MANY - called ? 0 : i - (MANY - called) + 1);
	}
	assert_int_equal(tw_session_destroy(session), 1);
	tw_session_put(session);
}

/* The last counters: an error that names the limit, and nothing is changed; a counter that is free is found again. */
static void the_limit_of_counters_is_told(void **state)
{
	static struct tw_counter *taken[TW_COUNTERS_MAX + 1];
	struct tw_session *session;
	uint64_t count;
	unsigned n = 0;

	assert_int_equal(tw_session_create("last", NULL, &session), 0);
	/* No other thread changes anything. */
	while ((taken[n] = tw_counter_create()))
		n++;
	assert_int_equal(n, TW_COUNTERS_MAX);
	assert_int_equal(tw_trace_function(session, "c", "_", TW_ARITY_ANY, TW_MATCH_TRUE, TW_FUNCTION_CALL_COUNT),
			 TW_ELIMIT);
	assert_int_equal(tw_trace_call_count(session, "c", "outer", 0, &count), 0);
	tw_counter_destroy(taken[777]);
	assert_ptr_equal(tw_counter_create(), taken[777]);
	while (n)
		tw_counter_destroy(taken[--n]);
	assert_int_equal(tw_trace_function(session, "c", "_", TW_ARITY_ANY, TW_MATCH_TRUE, TW_FUNCTION_CALL_COUNT),
			 FUNCTIONS);
	tw_call0(&functions[INNER]);
	assert_int_equal(count_of(session, INNER), 1);
	assert_int_equal(tw_session_destroy(session), 1);
	tw_session_put(session);
}

static void take_row(void *arg, uint64_t pid, uint64_t count, uint64_t value)
{
	struct row *row = arg;

	if (row->pid == pid)
		*row = (struct row){pid, count, value};
}

static struct row row_of(struct tw_session *session, int function, uint64_t pid, bool is_time)
{
	struct tw_session_place *set = tw_session_find(session, functions[function].place);
	struct row row = {pid, 0, 0};

	assert_non_null(set);
	tw_counts_each(is_time ? set->times.now : set->memories.now, is_time, take_row, &row);
	return row;
}

/* outer, middle and inner, each with this many words of its own, before and after it calls the next. */
static void spend_words(uint64_t words)
{
	struct tw_frame frame[FUNCTIONS];

	for (int i = 0; i < FUNCTIONS; i++) {
		tw_enter0(&functions[i], &frame[i]);
		tw_process_allocated(words - 1);
	}
	for (int i = FUNCTIONS - 1; i >= 0; i--) {
		tw_process_allocated(1);
		tw_leave(&frame[i], 0);
	}
	/* Belongs to no function. */
	tw_process_allocated(1000);
}

static void words_go_to_the_function_that_is_running(void **state)
{
	uint64_t self = tw_process_self();
	struct tw_session *a, *b;

	tw_session_create("a", NULL, &a);
	tw_session_create("b", NULL, &b);
	tw_trace_process(a, self, true, TW_FLAG_CALL);
	tw_trace_process(b, self, true, TW_FLAG_CALL);
	/* 155: 9; 6 and 3, side by side. */
	set(a, OUTER, TW_MATCH_TRUE, TW_FUNCTION_CALL_MEMORY);
	set(b, OUTER, TW_MATCH_TRUE, TW_FUNCTION_CALL_MEMORY);
	set(b, INNER, TW_MATCH_TRUE, TW_FUNCTION_CALL_MEMORY);
	spend_words(3);
	assert_int_equal(row_of(a, OUTER, self, false).value, 9);
	assert_int_equal(row_of(b, OUTER, self, false).value, 6);
	assert_int_equal(row_of(b, INNER, self, false).value, 3);
	assert_int_equal(row_of(b, INNER, self, false).count, 1);
	set(a, OUTER, TW_MATCH_PAUSE, TW_FUNCTION_CALL_MEMORY);
	spend_words(3);
	assert_int_equal(row_of(a, OUTER, self, false).value, 9);
	assert_int_equal(row_of(b, OUTER, self, false).value, 12);
	set(a, OUTER, TW_MATCH_RESTART, TW_FUNCTION_CALL_MEMORY);
	assert_int_equal(row_of(a, OUTER, self, false).count, 0);
	/* 152: only processes with `call`. */
	tw_trace_process(b, self, false, TW_FLAG_CALL);
	spend_words(3);
	assert_int_equal(row_of(a, OUTER, self, false).value, 9);
	assert_int_equal(row_of(b, OUTER, self, false).value, 12);
	tw_session_destroy(a);
	tw_session_destroy(b);
	tw_session_put(a);
	tw_session_put(b);
}

/* 154, 157: one after the other, so that the sessions' words and times differ. */
static void any_number_of_sessions_have_accounts(void **state)
{
	enum { SESSIONS = 60, DEPTH = 40 };
	struct tw_session *sessions[SESSIONS];
	struct tw_frame frame[DEPTH], tails;
	struct tw_process *process;
	uint64_t pid, refused = tw_counts_refused(), start, us;

	tw_process_create("many", &process);
	pid = tw_process_pid(process);
	for (int i = 0; i < SESSIONS; i++) {
		tw_session_create("many", NULL, &sessions[i]);
		tw_trace_process(sessions[i], pid, true, TW_FLAG_CALL);
		set(sessions[i], OUTER, TW_MATCH_TRUE, TW_FUNCTION_CALL_TIME | TW_FUNCTION_CALL_MEMORY);
		/* In half of the sessions only, the inner function has words of its own. */
		if (i % 2)
			set(sessions[i], INNER, TW_MATCH_TRUE, TW_FUNCTION_CALL_TIME | TW_FUNCTION_CALL_MEMORY);
	}
	tw_process_in(process);
	start = tw_clock_ticks();
	spend_words(3);
	tw_process_out();
	tw_process_in(process);
	/* 153: recursion. */
	for (int i = 0; i < DEPTH; i++) {
		tw_enter0(&functions[i % 2 ? INNER : OUTER], &frame[i]);
		tw_process_allocated(1);
	}
	for (int i = DEPTH; i-- > 0;) {
		tw_process_allocated(1);
		tw_leave(&frame[i], 0);
	}
	/* Tail calls: the frame returns to no traced function, and each function has its own words until then. */
	tw_enter0(&functions[INNER], &tails);
	tw_process_allocated(5);
	tw_tail(&functions[OUTER], &tails, &(struct tw_frame_call){.count = 0});
	tw_process_allocated(7);
	tw_leave(&tails, 0);
	tw_process_allocated(1000);
	us = (tw_clock_ticks() - start) * 1000000 / tw_clock_ticks_per_second();
	for (int i = 0; i < SESSIONS; i++) {
		struct row outer = row_of(sessions[i], OUTER, pid, false), inner = {0};

		if (i % 2)
			inner = row_of(sessions[i], INNER, pid, false);

		assert_int_equal(outer.count, 1 + DEPTH / 2 + 1);
		assert_int_equal(outer.value, i % 2 ? 6 + DEPTH + 7 : 9 + 2 * DEPTH + 7);
		assert_int_equal(inner.count, i % 2 ? 1 + DEPTH / 2 + 1 : 0);
		assert_int_equal(inner.value, i % 2 ? 3 + DEPTH + 5 : 0);
		assert_in_range(row_of(sessions[i], OUTER, pid, true).value, 1, us * 1000);
	}
	assert_int_equal(tw_counts_refused(), refused);
	tw_process_out();
	for (int i = 0; i < SESSIONS; i++) {
		tw_session_destroy(sessions[i]);
		tw_session_put(sessions[i]);
	}
	tw_process_exit(process);
	assert_int_equal(tw_blocks_in_use(), 0);
}

static void spin(uint64_t us)
{
	for (uint64_t until = tw_clock_ticks() + us * tw_clock_ticks_per_second() / 1000000; tw_clock_ticks() < until;)
		tw_cpu_relax();
}

static void *go_on(void *arg)
{
	struct tw_frame *frame = ((void **)arg)[1];

	tw_scheduler_declare();
	tw_process_in(((void **)arg)[0]);
	spin(4000);
	tw_leave(frame, 0);
	spin(4000);
	tw_process_out();
	return NULL;
}

/* In the last of many sessions: the accounts of the first few are in the process itself. */
static void measure_time(unsigned count)
{
	struct tw_frame outer, inner;
	struct tw_process *process;
	struct tw_session *sessions[12], *session = NULL;
	struct row row;
	pthread_t thread;
	uint64_t start, us;
	void *arg[2];

	tw_process_create("timed", &process);
	for (unsigned i = 0; i < count; i++) {
		tw_session_create("time", NULL, &session);
		sessions[i] = session;
		tw_trace_process(session, tw_process_pid(process), true, TW_FLAG_CALL);
		set(session, OUTER, TW_MATCH_TRUE, TW_FUNCTION_CALL_TIME);
		set(session, INNER, TW_MATCH_TRUE, TW_FUNCTION_CALL_TIME);
	}
	start = tw_clock_ticks();
	tw_process_in(process);
	tw_enter0(&functions[OUTER], &outer);
	spin(3000);
	tw_enter0(&functions[INNER], &inner);
	spin(1000);
	tw_leave(&inner, 0);
	spin(2000);
	tw_process_out();
	us = (tw_clock_ticks() - start) * 1000000 / tw_clock_ticks_per_second();
	row = row_of(session, INNER, tw_process_pid(process), true);
	assert_in_range(row.value, 1000000, (us - 5000) * 1000 + 1000);
	assert_int_equal(row.count, 1);
	row = row_of(session, OUTER, tw_process_pid(process), true);
	assert_in_range(row.value, 5000000, (us - 1000) * 1000 + 1000);
	/* Out for 20 ms; it ends on another thread, whose time after the return belongs to no function. */
	spin(20000);
	arg[0] = process;
	arg[1] = &outer;
	start = tw_clock_ticks();
	pthread_create(&thread, NULL, go_on, arg);
	pthread_join(thread, NULL);
	us = (tw_clock_ticks() - start) * 1000000 / tw_clock_ticks_per_second() + us;
	row = row_of(session, OUTER, tw_process_pid(process), true);
	assert_in_range(row.value, 9000000, (us - 5000) * 1000 + 2000000);
	assert_int_equal(row.count, 1);
	/* 159: reading changes nothing. */
	assert_int_equal(row_of(session, OUTER, tw_process_pid(process), true).value, row.value);
	for (unsigned i = 0; i < count; i++) {
		tw_session_destroy(sessions[i]);
		tw_session_put(sessions[i]);
	}
	tw_process_exit(process);
}

static void time_goes_to_the_function_and_not_to_who_waits(void **state)
{
	measure_time(1);
	measure_time(TW_ACCOUNTS + 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_thread_counts_and_none_is_forgotten),
		cmocka_unit_test(many_functions_are_counted),
		cmocka_unit_test(the_limit_of_counters_is_told),
		cmocka_unit_test(words_go_to_the_function_that_is_running),
		cmocka_unit_test(any_number_of_sessions_have_accounts),
		cmocka_unit_test(time_goes_to_the_function_and_not_to_who_waits),
	};

	for (int i = 0; i < FUNCTIONS; i++)
		assert_int_equal(tw_function_declare(&functions[i]), 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
