/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_bench.c - what does a change of settings cost its caller, while other threads run the changed functions?
 *
 * Unit	nanoseconds a change, until it has returned and every thread sees it.
 * Peers	OTP: 1 us to create a session, 196 us to set one function on a busy system; 2.9 ms to set 30,000 again.
 * Method	one or two threads call the functions all the time; on two processors, two leave none for the change.
 */
#include "base/clock.h"
#include "bench/bench.h"
#include "session/session.h"
#include "tracewheel/tracewheel.h"

#include <pthread.h>
#include <stdio.h>

enum { MANY = 10000, PROCESSES = 1000 };

/* The result of a change, of which none fails. */
static uint64_t changed_by(int changed)
{
	TW_BENCH_MUST(changed >= 0);
	return (uint64_t)changed;
}

/* Threads that call all of them. */
struct callers {
	struct tw_declared_function *many;
	pthread_t thread[2];
	int count;
	_Atomic int is_stopping;
};

static void *call_many(void *arg)
{
	struct callers *callers = arg;

	/* RELAXED bench.stop: a flag. */
	while (!tw_load_relaxed(&callers->is_stopping))
		for (int i = 0; i < MANY; i++)
			tw_call2(&callers->many[i], 1, 2);
	return NULL;
}

static struct tw_declared_function *declare_many(void)
{
	static struct tw_declared_function many[MANY];
	static char many_names[MANY][12];

	if (many[0].place)
		return many;
	TW_BENCH_MUST(!tw_trace_begin());
	for (int i = 0; i < MANY; i++) {
		snprintf(many_names[i], sizeof many_names[i], "g%d", i);
		many[i] = (struct tw_declared_function)TW_DECLARED_FUNCTION("many", many_names[i], 2);
		TW_BENCH_MUST(!tw_function_declare(&many[i]));
	}
	TW_BENCH_MUST(tw_trace_commit() == 0);
	return many;
}

static void start_callers(struct callers *callers, int count)
{
	*callers = (struct callers){.many = declare_many(), .count = count};
	for (int i = 0; i < count; i++)
		TW_BENCH_MUST(!pthread_create(&callers->thread[i], NULL, call_many, callers));
}

static void stop_callers(struct callers *callers)
{
	/* RELAXED bench.stop: a flag. */
	tw_store_relaxed(&callers->is_stopping, 1);
	for (int i = 0; i < callers->count; i++)
		pthread_join(callers->thread[i], NULL);
}

TW_BENCH(change_10000_functions, .values = {1, 2}, .iterations = 20)
{
	struct callers callers;
	struct tw_session *session;
	uint64_t spent = 0, most = 0, set = 0, cleared = 0, n;

	TW_BENCH_MUST(!tw_session_create("many", NULL, &session));
	start_callers(&callers, (int)bench->value);
	n = tw_bench_start(bench);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t before = tw_clock_monotonic_ns(), took;

		set += changed_by(
			tw_trace_function(session, "many", "_", TW_ARITY_ANY, TW_MATCH_TRUE, TW_FUNCTION_LOCAL));
		took = tw_clock_monotonic_ns() - before;
		spent += took;
		most = took > most ? took : most;
		cleared += changed_by(
			tw_trace_function(session, "many", "_", TW_ARITY_ANY, TW_MATCH_FALSE, TW_FUNCTION_LOCAL));
	}
	tw_bench_stop(bench);
	tw_bench_happened(bench, "functions set", set, MANY);
	tw_bench_happened(bench, "cleared", cleared, MANY);
	tw_bench_counter(bench, "set_us", (double)spent / (double)n / 1000);
	tw_bench_counter(bench, "worst_us", (double)most / 1000);
	stop_callers(&callers);
	TW_BENCH_MUST(tw_session_destroy(session) == 1);
	tw_session_put(session);
}

/* Ten thousand calls by name, one switch. */
TW_BENCH(change_10000_by_name, .values = {1, 2}, .iterations = 20)
{
	struct callers callers;
	struct tw_session *session;
	uint64_t changed = 0;

	TW_BENCH_MUST(!tw_session_create("many", NULL, &session));
	start_callers(&callers, (int)bench->value);
	for (uint64_t i = 0, n = tw_bench_start(bench); i < n; i++) {
		TW_BENCH_MUST(!tw_trace_begin());
		for (int f = 0; f < MANY; f++)
			changed += changed_by(tw_trace_function(session, "many", callers.many[f].name, 2,
								i % 2 ? TW_MATCH_FALSE : TW_MATCH_TRUE,
								TW_FUNCTION_LOCAL));
		TW_BENCH_MUST(tw_trace_commit() == MANY);
	}
	tw_bench_stop(bench);
	tw_bench_happened(bench, "functions", changed, MANY);
	stop_callers(&callers);
	TW_BENCH_MUST(tw_session_destroy(session) == 1);
	tw_session_put(session);
}

/* Each iteration sets or clears one. */
TW_BENCH(change_one_function, .values = {1, 2})
{
	struct callers callers;
	struct tw_session *session;
	uint64_t changed = 0;

	TW_BENCH_MUST(!tw_session_create("one", NULL, &session));
	start_callers(&callers, (int)bench->value);
	for (uint64_t i = 0, n = tw_bench_start(bench); i < n; i++)
		changed += changed_by(tw_trace_function(session, "many", "g7", 2,
							i % 2 ? TW_MATCH_FALSE : TW_MATCH_TRUE, TW_FUNCTION_LOCAL));
	tw_bench_stop(bench);
	tw_bench_happened(bench, "functions", changed, 1);
	stop_callers(&callers);
	TW_BENCH_MUST(tw_session_destroy(session) == 1);
	tw_session_put(session);
}

/* Each iteration sets or clears two flags of a thousand processes. */
TW_BENCH(change_flags_1000)
{
	struct tw_process *processes[PROCESSES];
	struct tw_session *session;
	uint64_t changed = 0;

	TW_BENCH_MUST(!tw_session_create("flags", NULL, &session));
	for (int i = 0; i < PROCESSES; i++)
		TW_BENCH_MUST(!tw_process_create("p", &processes[i]));
	for (uint64_t i = 0, n = tw_bench_start(bench); i < n; i++)
		changed += changed_by(tw_trace_process(session, TW_PID_EXISTING, i % 2 == 0,
						       TW_FLAG_CALL | TW_FLAG_MONOTONIC_TIMESTAMP));
	tw_bench_stop(bench);
	/* This thread is a process too. */
	tw_bench_happened(bench, "processes", changed, PROCESSES + 1);
	for (int i = 0; i < PROCESSES; i++)
		tw_process_exit(processes[i]);
	TW_BENCH_MUST(tw_session_destroy(session) == 1);
	tw_session_put(session);
}

TW_BENCH(change_session)
{
	uint64_t ended = 0;

	for (uint64_t i = 0, n = tw_bench_start(bench); i < n; i++) {
		struct tw_session *session;

		TW_BENCH_MUST(!tw_session_create("empty", NULL, &session));
		ended += changed_by(tw_session_destroy(session));
		tw_session_put(session);
	}
	tw_bench_stop(bench);
	tw_bench_happened(bench, "sessions", ended, 1);
}
