/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	A queue keeps the order of every process and of causally related events, while actors move at every message and
 *		threads come and go; marks come soon; receivers, destroyers, forks and the end of the tracer race
 *		without harm.  Threads that start at once all find a ring; a thread that waits for a slow receiver loses
 *		nothing.
 * Method	The message of an actor's call is a number that a lock counts: the order in which the calls happened.
 *		Marks are timed with threads that stop after one event.
 */
#include "sanitized_help.h"
#include "tracewheel/consumer.h"
#include "tracewheel/tracewheel.h"
#include "tests/common/clock.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)
#define MS     UINT64_C(1000000)
#define ACTORS 16

static struct tw_declared_function step = TW_DECLARED_FUNCTION("race", "step", 2);
static struct tw_session *session;
static struct tw_arena arena;

static void open_queue(enum tw_on_full on_full)
{
	struct tw_tracer tracer = {.kind = TW_TRACER_QUEUE, .ring_bytes = 64 << 10, .on_full = on_full};

	tw_function_declare(&step);
	assert_int_equal(tw_session_create("race", &tracer, &session), 0);
	assert_int_equal(tw_trace_function(session, "race", "step", 2, TW_MATCH_TRUE, TW_FUNCTION_LOCAL), 1);
}

static void close_queue(void)
{
	tw_session_destroy(session);
	tw_session_put(session);
}

/* ---- threads that begin at once ---- */

enum { BEGINNERS = 4, BEGINNINGS = 400 };

static _Atomic unsigned beginning, begun;

static void *begin_at_once(void *arg)
{
	for (unsigned round = 1; round <= BEGINNINGS; round++) {
		while (atomic_load(&beginning) < round)
			sched_yield();
		tw_call2(&step, round, (uint64_t)(uintptr_t)arg);
		atomic_fetch_add(&begun, 1);
	}
	return NULL;
}

static void threads_that_begin_at_once_all_find_a_ring(void **state)
{
	pthread_t threads[BEGINNERS];

	tw_function_declare(&step);
	for (uintptr_t i = 0; i < BEGINNERS; i++)
		pthread_create(&threads[i], NULL, begin_at_once, (void *)i);
	for (unsigned round = 1; round <= BEGINNINGS; round++) {
		struct tw_queue_stats stats;

		open_queue(TW_ON_FULL_DROP);
		tw_trace_process(session, TW_PID_ALL, true, TW_FLAG_CALL);
		atomic_store(&beginning, round);
		while (atomic_load(&begun) < round * BEGINNERS)
			sched_yield();
		for (unsigned i = 0; i < BEGINNERS; i++) {
			struct tw_term message;

			assert_int_equal(tw_queue_receive(session, 60 * SECOND, &arena, &message), 0);
		}
		assert_int_equal(tw_queue_stats(session, &stats), 0);
		assert_int_equal(stats.received, BEGINNERS);
		tw_arena_reset(&arena);
		close_queue();
	}
	for (unsigned i = 0; i < BEGINNERS; i++)
		pthread_join(threads[i], NULL);
}

/* ---- actors that move at every message ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tw_process *actors[ACTORS];
static bool is_running[ACTORS];
static uint64_t own_count[ACTORS], all_count;
static uint64_t wanted;

static struct tw_process *take(unsigned *which)
{
	for (unsigned i = 0; i < ACTORS; i++) {
		*which = (*which + 1) % ACTORS;
		if (!is_running[*which]) {
			is_running[*which] = true;
			return actors[*which];
		}
	}
	return NULL;
}

/* Half of the calls are made under the lock: their order is that of the count. */
static void *schedule(void *arg)
{
	unsigned which = (unsigned)(uintptr_t)arg * 5;
	struct tw_process *actor;

	tw_scheduler_declare();
	pthread_mutex_lock(&lock);
	while (all_count < wanted) {
		actor = take(&which);
		pthread_mutex_unlock(&lock);
		tw_process_in(actor);
		pthread_mutex_lock(&lock);
		tw_call2(&step, ++all_count, ++own_count[which]);
		pthread_mutex_unlock(&lock);
		tw_process_out();
		pthread_mutex_lock(&lock);
		is_running[which] = false;
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

static uint64_t number_of(struct tw_term message, unsigned which)
{
	struct tw_term args = tw_term_element(tw_term_element(message, 3), 2);
	uint64_t number;

	if (tw_term_is_none(args)) {
		char text[300];

		tw_term_format(message, TW_PRINT_WRITE, text, sizeof text);
		fail_msg("not a call: %s", text);
	}
	if (which)
		args = tw_term_tail(args);
	assert_int_equal(tw_term_get_uint64(tw_term_head(args), &number), 0);
	return number;
}

static unsigned actor_of(struct tw_term message)
{
	struct tw_identifier pid;

	assert_int_equal(tw_term_get_identifier(tw_term_element(message, 1), &pid), 0);
	for (unsigned i = 0; i < ACTORS; i++)
		if (tw_process_pid(actors[i]) == pid.words[0])
			return i;
	fail_msg("an event of nobody");
	return 0;
}

/* ---- a slow receiver ---- */

static void *call_often(void *arg)
{
	for (uint64_t i = 1; i <= (uint64_t)(uintptr_t)arg; i++)
		tw_call2(&step, i, i);
	return NULL;
}

/* One poll of the rings gives more than a second's work. */
static void waiting_for_a_slow_receiver_loses_nothing(void **state)
{
	enum { CALLS = 6000, SLOW = 1000 };
	struct tw_queue_stats stats;
	pthread_t thread;

	open_queue(TW_ON_FULL_BLOCK);
	tw_trace_process(session, TW_PID_ALL, true, TW_FLAG_CALL);
	pthread_create(&thread, NULL, call_often, (void *)(uintptr_t)CALLS);
	for (unsigned i = 1; i <= CALLS; i++) {
		struct tw_term message;

		assert_int_equal(tw_queue_receive(session, 60 * SECOND, &arena, &message), 0);
		assert_int_equal(number_of(message, 0), i);
		tw_arena_reset(&arena);
		if (i < SLOW)
			usleep(1500);
	}
	pthread_join(thread, NULL);
	assert_int_equal(tw_queue_stats(session, &stats), 0);
	assert_int_equal(stats.received, CALLS);
	close_queue();
}

static void order_is_kept_while_actors_move(void **state)
{
	enum { THREADS = 4 };
	pthread_t threads[THREADS];
	uint64_t seen[ACTORS] = {0}, last = 0, backwards = 0;

	wanted = test_rounds(100000, 5);
	all_count = 0;
	memset(own_count, 0, sizeof own_count);
	open_queue(TW_ON_FULL_BLOCK);
	for (unsigned i = 0; i < ACTORS; i++) {
		assert_int_equal(tw_process_create("actor", &actors[i]), 0);
		tw_trace_process(session, tw_process_pid(actors[i]), true, TW_FLAG_CALL);
	}
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, schedule, (void *)i);
	for (uint64_t left = wanted; left;) {
		struct tw_term messages[64];
		int64_t count = tw_queue_receive_batch(session, 100 * SECOND, &arena, messages, 64);

		assert_true(count > 0);
		for (int64_t i = 0; i < count; i++) {
			unsigned actor = actor_of(messages[i]);
			uint64_t number = number_of(messages[i], 0);

			assert_int_equal(number_of(messages[i], 1), ++seen[actor]);
			backwards += number < last;
			last = number;
			if (left)
				left--;
		}
		tw_arena_reset(&arena);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	/* Clocks of processors agree to some ten nanoseconds, and a lock is handed over in more. */
	if (backwards)
		printf("%llu of %llu came after what happened later\n", (unsigned long long)backwards,
		       (unsigned long long)wanted);
	assert_true(backwards <= wanted / 1000);
	for (unsigned i = 0; i < ACTORS; i++)
		tw_process_exit(actors[i]);
	close_queue();
}

/* ---- marks ---- */

static tw_pid last_pid;

static void *call_once(void *arg)
{
	last_pid = tw_process_self();
	tw_call2(&step, 1, 1);
	return NULL;
}

static int compare(const void *a, const void *b)
{
	return *(const uint64_t *)a < *(const uint64_t *)b ? -1 : *(const uint64_t *)a > *(const uint64_t *)b;
}

#define MARKS 51

/* Rounds, of which one must be good: a machine that stands still delays some marks, a defect delays all. */
#define ROUNDS_AT_MOST 20

static bool are_soon(uint64_t times[MARKS])
{
	qsort(times, MARKS, sizeof *times, compare);
	printf("marks: median %.2f ms, longest %.2f ms\n", (double)times[MARKS / 2] / 1e6,
	       (double)times[MARKS - 1] / 1e6);
	return times[MARKS / 2] < 10 * MS && times[MARKS - 1] < 2 * SECOND;
}

static void expect_soon(void (*make)(uint64_t times[MARKS]))
{
	uint64_t times[MARKS];

	for (int round = 0; round < ROUNDS_AT_MOST; round++) {
		make(times);
		if (are_soon(times))
			return;
	}
	fail_msg("marks come late in every round");
}

/* 181: the event of a thread that has ended comes before its mark. */
static void make_marks(uint64_t times[MARKS])
{
	open_queue(TW_ON_FULL_DROP);
	tw_trace_process(session, TW_PID_ALL, true, TW_FLAG_CALL);
	for (unsigned i = 0; i < MARKS; i++) {
		struct tw_term message, event = {0};
		uint64_t reference, before;
		pthread_t thread;

		pthread_create(&thread, NULL, call_once, NULL);
		pthread_join(thread, NULL);
		before = now_ns();
		assert_int_equal(tw_delivered(session, last_pid, &reference), 0);
		for (;;) {
			assert_int_equal(tw_queue_receive(session, 100 * SECOND, &arena, &message), 0);
			if (tw_term_tuple_count(message) == 3)
				break;
			event = message;
		}
		times[i] = now_ns() - before;
		assert_false(tw_term_is_none(event));
		assert_true(tw_term_is_equal(tw_term_element(event, 1), tw_term_element(message, 1)));
		assert_int_equal(tw_delivered_wait(session, reference, 0), 0);
		tw_arena_reset(&arena);
	}
	close_queue();
}

static void marks_come_soon(void **state)
{
	expect_soon(make_marks);
}

static void make_answers(uint64_t times[MARKS])
{
	char path[] = "/tmp/queue_race-XXXXXX", capture[64];
	struct tw_tracer tracer = {.kind = TW_TRACER_CAPTURE, .capture_path = capture};
	char command[128];

	/* Linked in, and so found by the session. */
	assert_int_not_equal((uintptr_t)tw_recorder_create, 0);
	assert_non_null(mkdtemp(path));
	snprintf(capture, sizeof capture, "%s/c.tw", path);
	tw_function_declare(&step);
	assert_int_equal(tw_session_create("capture", &tracer, &session), 0);
	tw_trace_function(session, "race", "step", 2, TW_MATCH_TRUE, TW_FUNCTION_LOCAL);
	tw_trace_process(session, TW_PID_ALL, true, TW_FLAG_CALL);
	for (unsigned i = 0; i < MARKS; i++) {
		uint64_t reference, before;
		pthread_t thread;

		pthread_create(&thread, NULL, call_once, NULL);
		pthread_join(thread, NULL);
		before = now_ns();
		assert_int_equal(tw_delivered(session, last_pid, &reference), 0);
		assert_int_equal(tw_delivered_wait(session, reference, 100 * SECOND), 0);
		times[i] = now_ns() - before;
	}
	close_queue();
	snprintf(command, sizeof command, "rm -rf %s", path);
	assert_int_equal(system(command), 0);
}

static void captures_answer_soon(void **state)
{
	expect_soon(make_answers);
}

/* ---- races ---- */

static _Atomic bool is_over;

static void *call_on(void *arg)
{
	while (!atomic_load(&is_over))
		for (uint64_t i = 0; i < 100; i++)
			tw_call2(&step, i, i);
	return NULL;
}

static void *receive_on(void *arg)
{
	struct tw_session *own = arg;
	struct tw_arena mine;
	uint64_t until = now_ns() + 20 * MS;
	int64_t result;

	tw_arena_init(&mine, SIZE_MAX);
	do {
		struct tw_term messages[16];

		result = tw_queue_receive_batch(own, MS, &mine, messages, 16);
		tw_arena_reset(&mine);
	} while ((result > 0 || result == TW_ETIMEDOUT) && now_ns() < until);
	tw_arena_fini(&mine);
	tw_session_put(own);
	return (void *)(intptr_t)result;
}

/* In turn: the receiver ends, the session is destroyed, closed, dropped, a child is forked, marks are requested. */
static void receivers_and_destroyers_race(void **state)
{
	pthread_t caller, receiver;

	atomic_store(&is_over, false);
	open_queue(TW_ON_FULL_BLOCK);
	close_queue();
	pthread_create(&caller, NULL, call_on, NULL);
	for (unsigned i = 0; i < 60; i++) {
		uint64_t reference = 0;
		int asked;

		open_queue(i % 2 ? TW_ON_FULL_BLOCK : TW_ON_FULL_DROP);
		tw_trace_process(session, TW_PID_ALL, true, TW_FLAG_CALL);
		pthread_create(&receiver, NULL, receive_on, tw_session_get(session));
		asked = tw_delivered(session, TW_PID_ALL, &reference);
		assert_true(asked == 0 || asked == TW_EPIPE);
		if (!asked)
			tw_delivered_wait(session, reference, 2 * MS);
		if (i % 6 == 1)
			tw_queue_close(session);
		if (i % 6 == 2)
			tw_session_destroy(session);
		if (i % 6 == 3) {
			pid_t child = fork();

			if (!child)
				_exit(0);
			waitpid(child, NULL, 0);
		}
		if (i % 6 == 4)
			pthread_join(receiver, NULL);
		if (i % 6 != 5)
			tw_session_destroy(session);
		tw_session_put(session);
		if (i % 6 != 4)
			pthread_join(receiver, NULL);
		tw_progress();
	}
	atomic_store(&is_over, true);
	pthread_join(caller, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_that_begin_at_once_all_find_a_ring),
		cmocka_unit_test(order_is_kept_while_actors_move),
		cmocka_unit_test(waiting_for_a_slow_receiver_loses_nothing),
		cmocka_unit_test(marks_come_soon),
		cmocka_unit_test(captures_answer_soon),
		cmocka_unit_test(receivers_and_destroyers_race),
	};
	int result;

	tw_arena_init(&arena, SIZE_MAX);
	result = cmocka_run_group_tests(tests, NULL, NULL);
	tw_arena_fini(&arena);
	return result;
}
