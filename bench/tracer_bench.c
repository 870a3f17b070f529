/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracer_bench.c - what does a call cost when the tracer is a module?
 *
 * Unit	nanoseconds a call with two 64-bit values, the loop included.  `tracer_armed` is the armed place alone: the
 *	function is traced, the calling process is not.
 * Method 16 declared functions in turn, as in hit_bench.c.  The callbacks only count, so that the path to them is
 *	measured; they are not inlined.  A discarded call asks for the status and for the call.
 */
#include "bench/bench.h"
#include "session/session.h"
#include "tracewheel/tracewheel.h"

#include <stdio.h>

enum { FUNCTIONS = 16 };

static struct tw_declared_function functions[FUNCTIONS];
static char names[FUNCTIONS][8];
static struct tw_session *session;
static uint64_t asked, traced;

static enum tw_tracer_answer enabled(enum tw_tracer_tag tag, struct tw_term state, struct tw_term tracee)
{
	asked++;
	return TW_TRACER_TRACE;
}

static enum tw_tracer_answer discard(enum tw_tracer_tag tag, struct tw_term state, struct tw_term tracee)
{
	asked++;
	return TW_TRACER_DISCARD;
}

static void trace(enum tw_tracer_tag tag, struct tw_term state, struct tw_term tracee, struct tw_term term,
		  const struct tw_tracer_options *options)
{
	traced++;
}

static const struct tw_tracer_module traces = {.bytes = sizeof traces,
					       .name = "traces",
					       .enabled = enabled,
					       .trace = trace};
static const struct tw_tracer_module discards = {.bytes = sizeof discards,
						 .name = "discards",
						 .enabled = discard,
						 .trace = trace};

/* Each call asks the module and gives it events so often. */
static void run(struct tw_bench *bench, const struct tw_tracer_module *module, uint32_t flags, unsigned asks,
		unsigned events)
{
	struct tw_tracer tracer = {.kind = TW_TRACER_MODULE, .module = module};

	for (int i = 0; i < FUNCTIONS && !functions[i].place; i++) {
		snprintf(names[i], sizeof names[i], "t%d", i);
		functions[i] = (struct tw_declared_function)TW_DECLARED_FUNCTION("tracer_bench", names[i], 2);
		TW_BENCH_MUST(!tw_function_declare(&functions[i]));
	}
	tw_bench_pin(1);
	TW_BENCH_MUST(!tw_session_create("bench", &tracer, &session));
	TW_BENCH_MUST(tw_trace_function(session, "tracer_bench", "_", TW_ARITY_ANY, TW_MATCH_TRUE, TW_FUNCTION_LOCAL) ==
		      FUNCTIONS);
	TW_BENCH_MUST(tw_trace_process(session, tw_process_self(), true, flags) == 1);
	asked = traced = 0;
	for (uint64_t i = 0, n = tw_bench_start(bench); i < n; i++)
		tw_call2(&functions[i % FUNCTIONS], i & 511, i);
	tw_bench_stop(bench);
	tw_bench_happened(bench, "questions", asked, asks);
	tw_bench_happened(bench, "events", traced, events);
	TW_BENCH_MUST(tw_session_destroy(session) == 1);
	tw_session_put(session);
}

TW_BENCH(tracer_armed)
{
	run(bench, &traces, TW_FLAG_SEND, 0, 0);
}

TW_BENCH(tracer_discarded)
{
	run(bench, &discards, TW_FLAG_CALL, 2, 0);
}

TW_BENCH(tracer_empty)
{
	run(bench, &traces, TW_FLAG_CALL, 2, 1);
}
