/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	A queue gives the events of a session as OTP's messages, in order; its tracer makes none, and when it ends its
 *		flags are removed; losses are reported; marks come after everything.
 * Method	A thread that calls declared functions and plays processes, while the test's own thread receives; the
 *		numbers in the names are those of docs/semantics.md.
 */
#include "session/session.h"
#include "tracewheel/function.h"
#include "tracewheel/match.h"
#include "tracewheel/tracewheel.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)

static struct tw_declared_function step = TW_DECLARED_FUNCTION("vm", "step", 1),
				   stop = TW_DECLARED_FUNCTION("vm", "stop", 0);
static struct tw_arena arena;
static struct tw_session *session;

/* ---- a thread that follows instructions ---- */

struct worker {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t change;
	void (*job)(void *arg);
	void *arg;
	bool is_over, is_busy;
	tw_pid pid;
};

static void *run_worker(void *arg)
{
	struct worker *worker = arg;

	pthread_mutex_lock(&worker->lock);
	worker->pid = tw_process_self();
	for (;;) {
		worker->is_busy = false;
		pthread_cond_broadcast(&worker->change);
		while (!worker->job && !worker->is_over)
			pthread_cond_wait(&worker->change, &worker->lock);
		if (!worker->job)
			break;
		worker->is_busy = true;
		worker->job(worker->arg);
		worker->job = NULL;
	}
	pthread_mutex_unlock(&worker->lock);
	return NULL;
}

static void start(struct worker *worker)
{
	memset(worker, 0, sizeof *worker);
	pthread_mutex_init(&worker->lock, NULL);
	pthread_cond_init(&worker->change, NULL);
	worker->is_busy = true;
	assert_int_equal(pthread_create(&worker->thread, NULL, run_worker, worker), 0);
	pthread_mutex_lock(&worker->lock);
	while (worker->is_busy)
		pthread_cond_wait(&worker->change, &worker->lock);
	pthread_mutex_unlock(&worker->lock);
}

static void have(struct worker *worker, void (*job)(void *), void *arg)
{
	pthread_mutex_lock(&worker->lock);
	worker->job = job;
	worker->arg = arg;
	worker->is_busy = true;
	pthread_cond_broadcast(&worker->change);
	while (worker->is_busy)
		pthread_cond_wait(&worker->change, &worker->lock);
	pthread_mutex_unlock(&worker->lock);
}

static void finish(struct worker *worker)
{
	pthread_mutex_lock(&worker->lock);
	worker->is_over = true;
	pthread_cond_broadcast(&worker->change);
	pthread_mutex_unlock(&worker->lock);
	pthread_join(worker->thread, NULL);
}

static void call_steps(void *arg)
{
	uint64_t count = (uint64_t)(uintptr_t)arg;

	for (uint64_t i = 1; i <= count; i++)
		tw_call1(&step, i);
}

static void call_stop(void *arg)
{
	tw_call0(&stop);
}

/* ---- helpers ---- */

static int open_queue(void **state)
{
	struct tw_tracer tracer = {.kind = TW_TRACER_QUEUE, .ring_bytes = 64 << 10};

	tw_arena_init(&arena, SIZE_MAX);
	tw_function_declare(&step);
	tw_function_declare(&stop);
	assert_int_equal(tw_session_create("queue", &tracer, &session), 0);
	return 0;
}

static int close_queue(void **state)
{
	tw_session_destroy(session);
	tw_session_put(session);
	tw_arena_fini(&arena);
	return 0;
}

static const char *text_of(struct tw_term term)
{
	static char text[4096];

	tw_term_format(term, TW_PRINT_WRITE, text, sizeof text);
	return text;
}

/* The next message, as text; pids of the worker are written <P>. */
static const char *next(const struct worker *worker)
{
	static char out[4096];
	char pid[32];
	struct tw_term message;
	const char *text, *at;

	assert_int_equal(tw_queue_receive(session, 5 * SECOND, &arena, &message), 0);
	text = text_of(message);
	snprintf(pid, sizeof pid, "<0.%u.0>", (unsigned)worker->pid);
	at = strstr(text, pid);
	if (!at)
		return strcpy(out, text);
	snprintf(out, sizeof out, "%.*s<P>%s", (int)(at - text), text, at + strlen(pid));
	return out;
}

static void expect_nothing(void)
{
	struct tw_term message;

	assert_int_equal(tw_queue_receive(session, 0, &arena, &message), TW_ETIMEDOUT);
}

static void trace_calls(void)
{
	assert_int_equal(tw_trace_function(session, "vm", "_", TW_ARITY_ANY, TW_MATCH_TRUE, TW_FUNCTION_LOCAL), 2);
}

/* ---- tests ---- */

static void f107_calls_come_as_messages(void **state)
{
	struct worker worker;

	start(&worker);
	trace_calls();
	assert_int_equal(tw_trace_process(session, worker.pid, true, TW_FLAG_CALL), 1);
	expect_nothing();
	have(&worker, call_steps, (void *)2);
	have(&worker, call_stop, NULL);
	assert_string_equal(next(&worker), "{trace,<P>,call,{vm,step,[1]}}");
	assert_string_equal(next(&worker), "{trace,<P>,call,{vm,step,[2]}}");
	assert_string_equal(next(&worker), "{trace,<P>,call,{vm,stop,[]}}");
	expect_nothing();
	assert_int_equal(tw_trace_process(session, worker.pid, true, TW_FLAG_ARITY), 1);
	have(&worker, call_steps, (void *)1);
	assert_string_equal(next(&worker), "{trace,<P>,call,{vm,step,1}}");
	finish(&worker);
}

/* 46, 47: an event's time lies between the program's own before and after. */
static void f47_stamps_are_the_programs_own_clocks(void **state)
{
	struct worker worker;
	struct tw_term message, stamp;
	int64_t before, after, ns, number = tw_unique_integer_monotonic();

	start(&worker);
	trace_calls();
	tw_trace_process(session, worker.pid, true, TW_FLAG_CALL | TW_FLAG_STRICT_MONOTONIC_TIMESTAMP);
	before = tw_monotonic_time_ns();
	have(&worker, call_steps, (void *)1);
	after = tw_monotonic_time_ns();
	assert_int_equal(tw_queue_receive(session, SECOND, &arena, &message), 0);
	stamp = tw_term_element(message, 4);
	assert_int_equal(tw_term_get_int64(tw_term_element(stamp, 0), &ns), 0);
	assert_in_range(ns, before, after);
	assert_int_equal(tw_term_get_int64(tw_term_element(stamp, 1), &ns), 0);
	assert_in_range(ns, number + 1, tw_unique_integer_monotonic() - 1);
	tw_trace_process(session, worker.pid, true, TW_FLAG_TIMESTAMP);
	have(&worker, call_steps, (void *)1);
	assert_int_equal(tw_queue_receive(session, SECOND, &arena, &message), 0);
	stamp = tw_term_element(message, 4);
	assert_int_equal(tw_term_tuple_count(stamp), 3);
	assert_int_equal(tw_term_get_int64(tw_term_element(stamp, 0), &ns), 0);
	assert_in_range(ns, time(NULL) / 1000000, time(NULL) / 1000000);
	finish(&worker);
}

/* 43: flags are kept and counted, but no events are made; another thread that receives becomes the tracer. */
static void f43_the_tracer_makes_no_events(void **state)
{
	uint32_t flags;
	struct worker worker;
	struct tw_queue_stats stats;

	start(&worker);
	trace_calls();
	expect_nothing();
	assert_true(tw_trace_process(session, TW_PID_ALL, true, TW_FLAG_CALL) >= 2);
	assert_int_equal(tw_trace_process_flags(session, tw_process_self(), &flags), 0);
	assert_int_equal(flags, TW_FLAG_CALL);
	call_steps((void *)3);
	expect_nothing();
	have(&worker, call_steps, (void *)1);
	assert_string_equal(next(&worker), "{trace,<P>,call,{vm,step,[1]}}");
	assert_int_equal(tw_queue_stats(session, &stats), 0);
	assert_int_equal(stats.received, 1);
	/* 146: meta events as well, which need no flags. */
	tw_trace_function(session, "vm", "step", 1, TW_MATCH_TRUE, TW_FUNCTION_META);
	call_steps((void *)1);
	expect_nothing();
	finish(&worker);
}

static struct tw_session *session_of_tracer(tw_pid pid)
{
	struct tw_tracer tracer = {.kind = TW_TRACER_QUEUE, .ring_bytes = 64 << 10, .tracer_pid = pid};
	struct tw_session *own;

	assert_int_equal(tw_session_create("own", &tracer, &own), 0);
	return own;
}

/* 146: a tracer without flags makes no meta events; once its session has ended, other sessions trace it. */
static void f146_tracers_of_before_and_of_now(void **state)
{
	struct worker worker;
	struct tw_session *own;
	struct tw_term message;

	start(&worker);
	for (unsigned has_flags = 0; has_flags < 2; has_flags++) {
		own = session_of_tracer(worker.pid);
		if (has_flags)
			assert_int_equal(tw_trace_process(own, worker.pid, true, TW_FLAG_CALL), 1);
		assert_int_equal(tw_trace_function(own, "vm", "step", 1, TW_MATCH_TRUE, TW_FUNCTION_META), 1);
		have(&worker, call_steps, (void *)1);
		assert_int_equal(tw_queue_receive(own, 0, &arena, &message), TW_ETIMEDOUT);
		assert_int_equal(tw_session_destroy(own), 1);
		tw_session_put(own);
	}
	/* It has the slot of the previous one. */
	assert_int_equal(tw_trace_function(session, "vm", "step", 1, TW_MATCH_TRUE, TW_FUNCTION_META), 1);
	have(&worker, call_steps, (void *)1);
	assert_non_null(strstr(next(&worker), "{trace_ts,<P>,call,{vm,step,[1]},"));
	finish(&worker);
}

static void receive_once(void *arg)
{
	struct tw_term message;
	struct tw_arena own;

	tw_arena_init(&own, SIZE_MAX);
	*(int *)arg = tw_queue_receive(session, 0, &own, &message);
	tw_arena_fini(&own);
}

static void expect_gone(tw_pid pid)
{
	struct tw_term message;
	uint32_t flags = 1;
	uint64_t reference;

	assert_int_equal(tw_trace_process_flags(session, pid, &flags), 0);
	assert_int_equal(flags, 0);
	assert_int_equal(tw_trace_process_flags(session, TW_PID_NEW, &flags), 0);
	assert_int_equal(flags, 0);
	assert_int_equal(tw_trace_process(session, pid, true, TW_FLAG_CALL), 1);
	assert_int_equal(tw_trace_process_flags(session, pid, &flags), 0);
	assert_int_equal(flags, 0);
	assert_true(tw_trace_process(session, TW_PID_ALL, true, TW_FLAG_CALL) >= 1);
	assert_int_equal(tw_trace_process_flags(session, TW_PID_NEW, &flags), 0);
	assert_int_equal(flags, 0);
	assert_int_equal(tw_queue_receive(session, SECOND, &arena, &message), TW_EPIPE);
	assert_int_equal(tw_delivered(session, pid, &reference), TW_EPIPE);
}

/* 135, 136, 137, 138, 139, 141 */
static void f135_flags_go_with_the_tracer(void **state)
{
	struct worker worker, receiver;
	struct tw_queue_stats stats;
	struct tw_term traced;
	int result;

	start(&worker);
	start(&receiver);
	trace_calls();
	have(&receiver, receive_once, &result);
	assert_int_equal(result, TW_ETIMEDOUT);
	tw_trace_process(session, TW_PID_ALL, true, TW_FLAG_CALL);
	have(&worker, call_steps, (void *)5);
	finish(&receiver);
	expect_gone(worker.pid);
	have(&worker, call_steps, (void *)100000);
	assert_int_equal(tw_queue_stats(session, &stats), 0);
	assert_int_equal(stats.dropped, 5);
	assert_int_equal(tw_trace_info(session,
				       tw_term_tuple(&arena,
						     (struct tw_term[]){tw_term_atom_z("vm"), tw_term_atom_z("step"),
									tw_term_integer(&arena, 1)},
						     3),
				       tw_term_atom_z("traced"), &arena, &traced),
			 0);
	assert_string_equal(text_of(traced), "{traced,local}");
	finish(&worker);
	assert_int_equal(tw_session_destroy(session), 1);
	assert_int_equal(tw_session_destroy(session), 0);
}

static void f135_close_is_the_end_of_a_tracer(void **state)
{
	struct worker worker;

	start(&worker);
	trace_calls();
	tw_trace_process(session, TW_PID_ALL, true, TW_FLAG_CALL);
	assert_int_equal(tw_queue_close(session), 0);
	assert_int_equal(tw_queue_close(session), 0);
	expect_gone(worker.pid);
	finish(&worker);
}

/* A session that was destroyed has no slot any more: what is in it belongs to another session. */
static void closing_a_dead_session_changes_no_other(void **state)
{
	const struct tw_tracer tracer = {.kind = TW_TRACER_QUEUE};
	struct tw_session *dead, *other;
	uint32_t flags;

	assert_int_equal(tw_session_create("dead", &tracer, &dead), 0);
	assert_int_equal(tw_trace_process(dead, tw_process_self(), true, TW_FLAG_CALL), 1);
	assert_int_equal(tw_session_destroy(dead), 1);
	assert_int_equal(tw_session_create("other", &tracer, &other), 0);
	assert_int_equal(tw_trace_process(other, tw_process_self(), true, TW_FLAG_CALL), 1);
	assert_int_equal(other->slot, dead->slot);
	assert_int_equal(tw_queue_close(dead), 0);
	assert_int_equal(tw_trace_process_flags(other, tw_process_self(), &flags), 0);
	assert_int_equal(flags, TW_FLAG_CALL);
	tw_session_put(dead);
	tw_session_destroy(other);
	tw_session_put(other);
}

/* 4: a tracer that is dead already; and one that a run-time names. */
static void f4_a_run_times_process_is_the_tracer(void **state)
{
	struct tw_tracer tracer = {.kind = TW_TRACER_QUEUE, .tracer_pid = 999999};
	struct tw_process *owner;
	struct worker worker;
	struct tw_term message;

	start(&worker);
	assert_int_equal(tw_queue_close(session), 0);
	tw_session_put(session);
	assert_int_equal(tw_session_create("dead", &tracer, &session), 0);
	expect_gone(worker.pid);
	tw_session_destroy(session);
	tw_session_put(session);
	assert_int_equal(tw_process_create("owner", &owner), 0);
	tracer.tracer_pid = tw_process_pid(owner);
	assert_int_equal(tw_session_create("owned", &tracer, &session), 0);
	trace_calls();
	tw_trace_process(session, TW_PID_ALL, true, TW_FLAG_CALL);
	call_steps((void *)1);
	assert_int_equal(tw_queue_receive(session, SECOND, &arena, &message), 0);
	tw_process_in(owner);
	call_steps((void *)1);
	tw_process_out();
	expect_nothing();
	tw_process_exit(owner);
	expect_gone(worker.pid);
	finish(&worker);
}

/* Lost events are reported where they are missing, and the sum is exact. */
static void losses_are_told(void **state)
{
	enum { COUNT = 20000 };
	struct worker worker;
	uint64_t received = 0, lost = 0;
	struct tw_queue_stats stats;
	struct tw_term message;

	start(&worker);
	trace_calls();
	tw_trace_process(session, worker.pid, true, TW_FLAG_CALL);
	for (int round = 0; round < 3; round++) {
		have(&worker, call_steps, (void *)COUNT);
		while (tw_queue_receive(session, 0, &arena, &message) == 0) {
			if (!strncmp(text_of(tw_term_element(message, 2)), "lost", 4)) {
				struct tw_term full = tw_term_head(tw_term_element(message, 3));
				uint64_t some;

				assert_int_equal(tw_term_get_uint64(tw_term_element(full, 1), &some), 0);
				lost += some;
			} else {
				received++;
			}
			tw_arena_reset(&arena);
		}
		assert_int_equal(received + lost, (uint64_t)COUNT * (unsigned)(round + 1));
	}
	assert_true(lost > 0 && received > 1000);
	assert_int_equal(tw_queue_stats(session, &stats), 0);
	assert_int_equal(stats.received, received);
	assert_int_equal(stats.lost[0], lost);
	finish(&worker);
}

/* 19: events made before a destroy are received after it. */
static void f19_messages_outlive_the_session(void **state)
{
	struct worker worker;
	struct tw_term message;
	uint64_t reference;

	start(&worker);
	trace_calls();
	tw_trace_process(session, worker.pid, true, TW_FLAG_CALL);
	have(&worker, call_steps, (void *)1);
	assert_int_equal(tw_session_destroy(session), 1);
	assert_string_equal(next(&worker), "{trace,<P>,call,{vm,step,[1]}}");
	assert_int_equal(tw_queue_receive(session, SECOND, &arena, &message), TW_EDEAD);
	assert_int_equal(tw_delivered(session, worker.pid, &reference), TW_EDEAD);
	finish(&worker);
}

/* 180, 181, 182 */
static void f181_the_mark_comes_behind_everything(void **state)
{
	struct worker worker;
	struct tw_term message;
	uint64_t reference, all;
	char expected[4200];

	start(&worker);
	trace_calls();
	tw_trace_process(session, worker.pid, true, TW_FLAG_CALL);
	have(&worker, call_steps, (void *)1000);
	assert_int_equal(tw_delivered(session, worker.pid, &reference), 0);
	assert_int_equal(tw_delivered(session, TW_PID_ALL, &all), 0);
	have(&worker, call_stop, NULL);
	assert_int_equal(tw_delivered_wait(session, reference, 0), TW_ETIMEDOUT);
	for (unsigned i = 1; i <= 1000; i++) {
		snprintf(expected, sizeof expected, "{trace,<P>,call,{vm,step,[%u]}}", i);
		assert_string_equal(next(&worker), expected);
	}
	assert_string_equal(next(&worker), "{trace,<P>,call,{vm,stop,[]}}");
	snprintf(expected, sizeof expected, "{trace_delivered,<P>,%s}", text_of(tw_delivered_term(&arena, reference)));
	assert_string_equal(next(&worker), expected);
	assert_int_equal(tw_queue_receive(session, SECOND, &arena, &message), 0);
	snprintf(expected, sizeof expected, "{trace_delivered,all,%s}", text_of(tw_delivered_term(&arena, all)));
	assert_string_equal(text_of(message), expected);
	assert_int_equal(tw_delivered_wait(session, all, 0), 0);
	finish(&worker);
	/* A process that has exited is answered; one that never existed is an error. */
	assert_int_equal(tw_delivered(session, worker.pid, &reference), 0);
	snprintf(expected, sizeof expected, "{trace_delivered,<P>,%s}", text_of(tw_delivered_term(&arena, reference)));
	assert_string_equal(next(&worker), expected);
	assert_int_equal(tw_delivered(session, 999999, &reference), TW_EBADARG);
	assert_int_equal(tw_delivered(session, 0, &reference), TW_EBADARG);
	assert_int_equal(tw_delivered(session, TW_PID_NEW, &reference), TW_EBADARG);
	assert_int_equal(tw_delivered_wait(session, reference ^ UINT64_C(1) << 60, 0), TW_EBADARG);
}

static void bad_arguments_change_nothing(void **state)
{
	struct tw_tracer tracer = {.kind = TW_TRACER_QUEUE, .on_full = TW_ON_FULL_OVERWRITE};
	struct tw_session *other;
	struct tw_term message;
	struct tw_queue_stats stats;

	assert_int_equal(tw_session_create("x", &tracer, &other), TW_EBADARG);
	tracer = (struct tw_tracer){.kind = TW_TRACER_QUEUE, .ring_bytes = 1000};
	assert_int_equal(tw_session_create("x", &tracer, &other), TW_EBADARG);
	assert_int_equal(tw_session_create("x", NULL, &other), 0);
	assert_int_equal(tw_queue_receive(other, 0, &arena, &message), TW_EBADARG);
	assert_int_equal(tw_queue_close(other), TW_EBADARG);
	assert_int_equal(tw_queue_stats(other, &stats), TW_EBADARG);
	tw_session_put(other);
	assert_int_equal(tw_queue_receive(NULL, 0, &arena, &message), TW_EBADARG);
}

/* The child is silent, and its tracer gone; the parent continues. */
static void a_forked_child_is_silent(void **state)
{
	struct worker worker;
	struct tw_term message;
	int status;
	pid_t child;

	start(&worker);
	trace_calls();
	tw_trace_process(session, TW_PID_ALL, true, TW_FLAG_CALL);
	expect_nothing();
	child = fork();
	if (!child) {
		call_steps((void *)10);
		if (tw_queue_receive(session, 0, &arena, &message) != TW_EPIPE)
			_exit(1);
		_exit(tw_session_destroy(session) == 1 ? 0 : 2);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	expect_nothing();
	have(&worker, call_steps, (void *)1);
	assert_string_equal(next(&worker), "{trace,<P>,call,{vm,step,[1]}}");
	finish(&worker);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_queue, close_queue)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(f107_calls_come_as_messages),
		TEST(f47_stamps_are_the_programs_own_clocks),
		TEST(f43_the_tracer_makes_no_events),
		TEST(f146_tracers_of_before_and_of_now),
		TEST(f135_flags_go_with_the_tracer),
		TEST(f135_close_is_the_end_of_a_tracer),
		TEST(closing_a_dead_session_changes_no_other),
		TEST(f4_a_run_times_process_is_the_tracer),
		TEST(losses_are_told),
		TEST(f19_messages_outlive_the_session),
		TEST(f181_the_mark_comes_behind_everything),
		TEST(bad_arguments_change_nothing),
		TEST(a_forked_child_is_silent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
