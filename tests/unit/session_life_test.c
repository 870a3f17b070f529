/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	A session ends once, for all callers, whichever comes first: concurrent destroyers, last handles dropped while
 *	others clear, writers whose own session is dropped, children of fork().
 * Method	Captures without disk: a recorder of the test in place of libtracewheel-capture's, whose steps the test
 *	holds where two threads must meet.  An alarm ends a test that would wait forever.
 */
#include "base/clock.h"
#include "base/error.h"
#include "session/session.h"
#include "tracewheel/consumer.h"
#include "tracewheel/tracewheel.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static struct tw_declared_function f = TW_DECLARED_FUNCTION("life", "f", 0);

/* ---- a recorder that stores nothing ---- */

struct tw_recorder {
	struct tw_rs rs;
};

static _Atomic int polls_held; /* polls do not return while this is not 0 */
static _Atomic int polling;    /* threads inside a poll */
static _Atomic int finish_held;
static _Atomic int finished;
static _Atomic int woken_late;	 /* recorders that were finished while a thread woke them */
static _Atomic bool is_attached; /* a recorder was made, whose thread starts now */
static _Atomic int polled;	 /* polls since */

static void nap(void)
{
	usleep(200);
}

int tw_recorder_create(const struct tw_recorder_options *options, struct tw_recorder **out)
{
	const struct tw_rs_options set = {.ring_bytes = 1 << 16, .cap_bytes = 1 << 20};
	int error;

	*out = calloc(1, sizeof **out);
	error = tw_rs_create(&(*out)->rs, &set);
	if (error)
		free(*out);
	return error;
}

const char *tw_recorder_ring_set_path(const struct tw_recorder *recorder)
{
	polled = 0;
	is_attached = true;
	return recorder->rs.path;
}

void tw_recorder_stats(const struct tw_recorder *recorder, struct tw_recorder_stats *stats)
{
	/* Nothing reads the stream. */
	*stats = (struct tw_recorder_stats){.last_error = TW_EIO};
}

int tw_recorder_poll(struct tw_recorder *recorder, uint64_t timeout_ns)
{
	polling++;
	polled++;
	do
		nap();
	while (polls_held);
	polling--;
	tw_rs_heartbeat(&recorder->rs);
	return 0;
}

void tw_recorder_wake(struct tw_recorder *recorder)
{
	int before = finished;

	usleep(20000);
	woken_late += finished != before;
}

int tw_recorder_finish(struct tw_recorder *recorder, struct tw_recorder_stats *stats)
{
	while (finish_held)
		nap();
	tw_rs_destroy(&recorder->rs);
	free(recorder);
	finished++;
	return 0;
}

void tw_recorder_abort(struct tw_recorder *recorder)
{
	tw_rs_destroy(&recorder->rs);
	free(recorder);
}

static struct tw_session *create_capture(const char *name)
{
	const struct tw_tracer tracer = {.kind = TW_TRACER_CAPTURE, .capture_path = "unused"};
	struct tw_session *session;

	assert_int_equal(tw_session_create(name, &tracer, &session), 0);
	return session;
}

/* ---- tests ---- */

static void two_writers_do_not_wait_for_each_other(void **state)
{
	struct tw_session *a, *b;
	tw_session_weak weak_a, weak_b;

	alarm(120);
	finished = 0;
	polls_held = 1;
	a = create_capture("a");
	b = create_capture("b");
	weak_a = tw_session_weak_of(a);
	weak_b = tw_session_weak_of(b);
	while (polling < 2)
		nap();
	tw_session_put(a);
	tw_session_put(b);
	polls_held = 0;
	while (finished < 2)
		nap();
	assert_int_equal(tw_session_lock(weak_a, &a), TW_EDEAD);
	assert_int_equal(tw_session_lock(weak_b, &b), TW_EDEAD);
	/* The writers that cleared themselves free their memory. */
	usleep(20000);
	alarm(0);
}

static void a_recorder_is_woken_while_it_exists(void **state)
{
	struct tw_session *session = create_capture("woken");

	assert_int_equal(tw_session_destroy(session), 1);
	tw_session_put(session);
	assert_int_equal(woken_late, 0);
}

static void *destroy(void *session)
{
	assert_int_equal(tw_session_destroy(session), 1);
	return NULL;
}

static void *let_finish(void *unused)
{
	usleep(50000);
	finish_held = 0;
	return NULL;
}

static void the_second_destroyer_waits_for_the_end(void **state)
{
	struct tw_session *session;
	pthread_t first, helper;

	alarm(120);
	finished = 0;
	finish_held = 1;
	session = create_capture("two destroyers");
	pthread_create(&first, NULL, destroy, session);
	while (tw_session_is_alive(session))
		nap();
	pthread_create(&helper, NULL, let_finish, NULL);
	assert_int_equal(tw_session_destroy(session), 0);
	assert_int_equal(finished, 1);
	pthread_join(first, NULL);
	pthread_join(helper, NULL);
	assert_int_equal(tw_session_destroy(session), 0);
	tw_session_put(session);
	alarm(0);
}

static void a_holder_of_the_permit_is_refused(void **state)
{
	struct tw_session *session, *dropped;
	tw_session_weak weak;

	session = create_capture("in a transaction");
	assert_int_equal(tw_session_create("dropped", NULL, &dropped), 0);
	weak = tw_session_weak_of(dropped);
	assert_int_equal(tw_trace_begin(), 0);
	tw_session_put(dropped);
	assert_int_equal(tw_session_destroy(session), TW_EDEADLK);
	assert_true(tw_session_is_alive(session));
	assert_int_equal(tw_progress(), 0);
	assert_int_equal(tw_trace_abort(), 0);
	assert_int_equal(tw_progress(), 1);
	assert_int_equal(tw_session_lock(weak, &dropped), TW_EDEAD);
	assert_int_equal(tw_session_destroy(session), 1);
	tw_session_put(session);
}

/* Handles of several sessions are dropped while others clear: the last one dropped is cleared too. */
static void *create_and_put(void *arg)
{
	for (int i = 0; i < 300; i++) {
		struct tw_session *session;

		if (tw_session_create("short", NULL, &session) == 0)
			tw_session_put(session);
	}
	return NULL;
}

static void no_dropped_session_is_forgotten(void **state)
{
	struct tw_session *all[TW_SESSIONS_MAX];
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, create_and_put, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	tw_progress();
	for (int i = 0; i < TW_SESSIONS_MAX; i++)
		assert_int_equal(tw_session_create("all", NULL, &all[i]), 0);
	for (int i = 0; i < TW_SESSIONS_MAX; i++)
		tw_session_put(all[i]);
	assert_int_equal(tw_progress(), TW_SESSIONS_MAX);
}

static void a_session_without_tracer_makes_no_events(void **state)
{
	struct tw_session *session;
	uint64_t count;

	assert_int_equal(tw_session_create("none", NULL, &session), 0);
	assert_true(tw_trace_process(session, TW_PID_ALL, true, TW_FLAG_CALL) >= 1);
	assert_int_equal(tw_trace_function(session, "life", "f", 0, TW_MATCH_TRUE,
					   TW_FUNCTION_LOCAL | TW_FUNCTION_CALL_COUNT),
			 1);
	tw_call0(&f);
	assert_int_equal(tw_trace_call_count(session, "life", "f", 0, &count), 1);
	assert_int_equal(count, 1);
	tw_session_destroy(session);
	tw_session_put(session);
}

/* Operations of a child on inherited handles stay in the child. */
static void a_child_does_not_disturb_its_parents_capture(void **state)
{
	struct tw_session *session = create_capture("inherited");
	uint64_t defined;
	int status;
	pid_t child;

	assert_true(tw_trace_process(session, TW_PID_ALL, true, TW_FLAG_CALL) >= 1);
	tw_call0(&f);
	defined = session->rs->own.head->defs_committed_bytes;
	child = fork();
	if (child == 0) {
		alarm(120);
		if (tw_trace_function(session, "life", "_", TW_ARITY_ANY, TW_MATCH_TRUE, TW_FUNCTION_LOCAL) != 1)
			_exit(1);
		tw_call0(&f);
		if (tw_session_destroy(session) != 1)
			_exit(2);
		tw_session_put(session);
		_exit(0);
	}
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
	assert_int_equal(session->rs->control->is_closed, 0);
	assert_int_equal(session->rs->own.head->defs_committed_bytes, defined);
	assert_true(tw_session_is_alive(session));
	assert_int_equal(tw_session_destroy(session), 1);
	tw_session_put(session);
}

static _Atomic int transaction_step;

static void *hold_a_transaction(void *session)
{
	assert_int_equal(tw_trace_begin(), 0);
	assert_int_equal(tw_trace_function(session, "life", "f", 0, TW_MATCH_TRUE, TW_FUNCTION_CALL_COUNT), 1);
	transaction_step = 1;
	while (transaction_step < 2)
		nap();
	assert_int_equal(tw_trace_commit(), 1);
	return NULL;
}

/* Exit code 0: the parent's change has left nothing, and the child can make one of its own. */
static void change_in_child(struct tw_session *session)
{
	uint64_t count;

	alarm(120);
	if (tw_trace_call_count(session, "life", "f", 0, &count) != 0)
		_exit(1);
	if (tw_trace_function(session, "life", "f", 0, TW_MATCH_TRUE, TW_FUNCTION_CALL_COUNT) != 1)
		_exit(2);
	if (tw_trace_begin() != 0 || tw_trace_commit() != 0)
		_exit(3);
	_exit(0);
}

static void a_child_drops_changes_in_progress(void **state)
{
	struct tw_session *session;
	pthread_t other;
	uint64_t count;
	int status;
	pid_t child;

	assert_int_equal(tw_session_create("forked", NULL, &session), 0);
	transaction_step = 0;
	pthread_create(&other, NULL, hold_a_transaction, session);
	while (!transaction_step)
		nap();
	child = fork();
	if (child == 0)
		change_in_child(session);
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
	transaction_step = 2;
	pthread_join(other, NULL);
	assert_int_equal(tw_trace_call_count(session, "life", "f", 0, &count), 1);
	assert_int_equal(tw_trace_function(session, "life", "f", 0, TW_MATCH_FALSE, TW_FUNCTION_CALL_COUNT), 1);
	/* The same within a transaction of the forking thread. */
	assert_int_equal(tw_trace_begin(), 0);
	assert_int_equal(tw_trace_function(session, "life", "f", 0, TW_MATCH_TRUE, TW_FUNCTION_CALL_COUNT), 1);
	child = fork();
	if (child == 0)
		change_in_child(session);
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
	assert_int_equal(tw_trace_commit(), 1);
	tw_session_destroy(session);
	tw_session_put(session);
}

/* `block` turns into `drop` when the consumer is stuck: it does not slow the program to a crawl. */
static void a_consumer_without_progress_is_not_waited_for(void **state)
{
	const struct tw_rs_options options = {.ring_bytes = 1 << 16,
					      .cap_bytes = 1 << 18,
					      .policy = TW_RB_BLOCK,
					      .has_fixed_rings = true};
	struct tw_session *session;
	struct tw_rs rs;
	uint32_t image;
	uint64_t before;

	tw_call0(&f);
	assert_int_equal(tw_rs_create(&rs, &options), 0);
	assert_int_equal(tw_rs_image_claim(&rs, &image), 0);
	assert_int_equal(tw_session_make("stuck", &rs, &session), 0);
	assert_int_equal(tw_trace_process(session, tw_process_self(), true, TW_FLAG_CALL), 1);
	assert_int_equal(tw_trace_function(session, "life", "f", 0, TW_MATCH_TRUE, TW_FUNCTION_LOCAL), 1);
	for (int i = 0; i < (1 << 16) / 16 - 64; i++)
		tw_call0(&f);
	tw_store_relaxed(&rs.control->heartbeat_ns, 1);
	before = tw_clock_monotonic_ns();
	for (int i = 0; i < 200; i++)
		tw_call0(&f);
	/* One second for each would be 200. */
	assert_true(tw_clock_monotonic_ns() - before < UINT64_C(100000000000));
	tw_rs_scan(&rs);
	assert_true(tw_rs_ring(&rs, 0)->lost[TW_RB_LOST_FULL] > 100);
	tw_session_destroy(session);
	tw_session_put(session);
	tw_rs_destroy(&rs);
}

/* ---- `block`, and an owner of rings that has not run for long ---- */

static struct tw_rs block_set;
static uint32_t block_image;
static _Atomic bool is_drained;

static struct tw_session *block_session(uint64_t cap_bytes)
{
	const struct tw_rs_options options = {.ring_bytes = 1 << 16,
					      .cap_bytes = cap_bytes,
					      .policy = TW_RB_BLOCK,
					      .has_fixed_rings = true};
	struct tw_session *session;

	assert_int_equal(tw_rs_create(&block_set, &options), 0);
	assert_int_equal(tw_rs_image_claim(&block_set, &block_image), 0);
	assert_int_equal(tw_session_make("block", &block_set, &session), 0);
	assert_int_equal(tw_trace_process(session, TW_PID_ALL, true, TW_FLAG_CALL), 1);
	assert_int_equal(tw_trace_function(session, "life", "f", 0, TW_MATCH_TRUE, TW_FUNCTION_LOCAL), 1);
	return session;
}

static void end_block_session(struct tw_session *session)
{
	tw_session_destroy(session);
	tw_session_put(session);
	tw_rs_destroy(&block_set);
}

/* Takes everything once a thread sleeps for space; its last heartbeat is an hour old. */
static void *drain_late(void *arg)
{
	struct tw_rb_shared *ring;

	tw_rs_scan(&block_set);
	ring = tw_rs_ring(&block_set, 0);
	while (!atomic_load(&is_drained)) {
		if (atomic_load(&ring->waiting)) {
			usleep(20000);
			tw_rb_consume(ring, tw_rb_committed(ring));
			atomic_fetch_add(&block_set.control->heartbeat_ns, 1);
		}
		nap();
	}
	return NULL;
}

/* The machine or the program stood still: the last heartbeat is old, which proves nothing. */
static void a_standstill_is_not_a_stall(void **state)
{
	struct tw_session *session = block_session(1 << 18);
	pthread_t drainer;

	/* Its ring comes before the wait is counted as an hour. */
	tw_call0(&f);
	tw_store_relaxed(&block_set.control->heartbeat_ns, tw_clock_monotonic_ns() - UINT64_C(3600000000000));
	atomic_store(&is_drained, false);
	pthread_create(&drainer, NULL, drain_late, NULL);
	for (int i = 0; i < 5 * (1 << 16) / 16; i++)
		tw_call0(&f);
	atomic_store(&is_drained, true);
	pthread_join(drainer, NULL);
	assert_int_equal(atomic_load(&tw_rs_ring(&block_set, 0)->lost[TW_RB_LOST_FULL]), 0);
	end_block_session(session);
}

static void *call_f(void *arg)
{
	tw_call0(&f);
	return NULL;
}

static _Atomic bool may_end;

static void *call_f_and_stay(void *arg)
{
	tw_call0(&f);
	while (!atomic_load(&may_end))
		nap();
	return NULL;
}

/* A thread that finds no ring waits until one is given back, however late. */
static void a_late_ring_is_waited_for(void **state)
{
	struct tw_session *session = block_session((1 << 16) + TW_PAGE_BYTES);
	pthread_t holder, thread;

	/* The only ring. */
	atomic_store(&may_end, false);
	pthread_create(&holder, NULL, call_f_and_stay, NULL);
	while (!atomic_load(&block_set.own.head->ring_count))
		nap();
	pthread_create(&thread, NULL, call_f, NULL);
	while (!atomic_load(&block_set.control->wanted_count))
		nap();
	usleep(500000);
	atomic_store(&may_end, true);
	pthread_join(holder, NULL);
	tw_rs_scan(&block_set);
	assert_int_equal(tw_rs_ring_state(&block_set, 0), TW_RB_ENDED);
	tw_rs_ring_recycle(&block_set, 0);
	tw_rs_heartbeat(&block_set);
	pthread_join(thread, NULL);
	assert_int_equal(atomic_load(&block_set.own.head->ring_count), 1);
	assert_int_equal(atomic_load(&block_set.own.head->no_ring_lost), 0);
	end_block_session(session);
}

/* ---- a session that is not complete ---- */

/*
 * Signals are blocked while a thread is started: at the end of that, the thread that makes a session waits here until the writer has
 * met what there is of it.
 */
static void wait_for_the_writer(int number)
{
	const struct itimerval soon = {.it_value = {0, 50}};

	for (int naps = 0; is_attached && naps < 25; naps++) {
		if (polled > 1)
			is_attached = false;
		else
			nap();
	}
	setitimer(ITIMER_REAL, &soon, NULL);
}

static void begin_waits(void)
{
	struct sigaction action = {.sa_handler = wait_for_the_writer, .sa_flags = SA_RESTART};

	is_attached = false;
	assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
	raise(SIGALRM);
}

static void end_waits(void)
{
	const struct itimerval off = {0};

	signal(SIGALRM, SIG_IGN);
	assert_int_equal(setitimer(ITIMER_REAL, &off, NULL), 0);
	signal(SIGALRM, SIG_DFL);
}

/* The writer of a stream without reader ends its session's flags, and no other session's, however early it is. */
static void a_stream_without_reader_ends_alone(void **state)
{
	const struct tw_tracer tracer = {.kind = TW_TRACER_STREAM, .stream_fd = 1};
	struct tw_session *first, *stream;
	uint32_t flags;

	assert_int_equal(tw_session_create("first", NULL, &first), 0);
	assert_int_equal(tw_trace_process(first, tw_process_self(), true, TW_FLAG_CALL), 1);
	assert_int_equal(first->slot, 0);
	for (int i = 0; i < 5; i++) {
		begin_waits();
		assert_int_equal(tw_session_create("stream", &tracer, &stream), 0);
		end_waits();
		while (polled < 2)
			nap();
		assert_int_equal(tw_trace_process_flags(first, tw_process_self(), &flags), 0);
		assert_int_equal(flags, TW_FLAG_CALL);
		assert_false(tw_session_takes_flags(stream));
		assert_int_equal(tw_session_destroy(stream), 1);
		tw_session_put(stream);
	}
	assert_int_equal(tw_session_destroy(first), 1);
	tw_session_put(first);
}

static _Atomic uint64_t newest,
	destroyed; /* ids: of the last complete session, and of the last that was destroyed by its id */
static _Atomic bool is_waited_for, is_found_early;

/* Called while a session's first definitions are written: it waits for a thread that destroys the session. */
int gethostname(char *name, size_t bytes)
{
	for (int naps = 0; is_waited_for && destroyed != newest + 1 && naps < 250; naps++)
		nap();
	is_found_early |= is_waited_for && destroyed == newest + 1;
	snprintf(name, bytes, "here");
	return 0;
}

/* As a program that has the ids of session_info(all). */
static void *destroy_what_comes(void *arg)
{
	uint64_t id;

	while ((id = newest))
		if (tw_session_destroy_weak(id + 1) == 1)
			destroyed = id + 1;
	return NULL;
}

static void a_session_is_found_when_it_is_complete(void **state)
{
	struct tw_session *session = create_capture("before");
	pthread_t thread;

	newest = tw_session_weak_of(session);
	tw_session_destroy(session);
	tw_session_put(session);
	assert_int_equal(pthread_create(&thread, NULL, destroy_what_comes, NULL), 0);
	for (int i = 0; i < 5; i++) {
		is_waited_for = true;
		session = create_capture("found");
		is_waited_for = false;
		assert_false(is_found_early);
		assert_int_equal(tw_session_weak_of(session), newest + 1);
		tw_session_destroy(session);
		newest++;
		tw_session_put(session);
	}
	newest = 0;
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_writers_do_not_wait_for_each_other),
		cmocka_unit_test(a_recorder_is_woken_while_it_exists),
		cmocka_unit_test(the_second_destroyer_waits_for_the_end),
		cmocka_unit_test(a_holder_of_the_permit_is_refused),
		cmocka_unit_test(no_dropped_session_is_forgotten),
		cmocka_unit_test(a_session_without_tracer_makes_no_events),
		cmocka_unit_test(a_child_does_not_disturb_its_parents_capture),
		cmocka_unit_test(a_child_drops_changes_in_progress),
		cmocka_unit_test(a_consumer_without_progress_is_not_waited_for),
		cmocka_unit_test(a_standstill_is_not_a_stall),
		cmocka_unit_test(a_late_ring_is_waited_for),
		cmocka_unit_test(a_stream_without_reader_ends_alone),
		cmocka_unit_test(a_session_is_found_when_it_is_complete),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	assert_int_equal(tw_function_declare(&f), 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
