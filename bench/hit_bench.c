/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hit_bench.c - what does a traced call cost the calling thread?
 *
 * Unit	nanoseconds a call, the loop included; `hit_loop` is the loop alone, `hit_clock` the loop with a read of the
 *	clock, the lower bound of any event with a time.
 * Peers	the clock itself (rdtsc); LTTng-UST 64 to 88 ns and NanoLog 9.7 ns for two values on a machine
 *	of that kind.
 * Method	16 declared functions in turn with two 64-bit values, as a program calls them; rings overwritten by their
 *	producer, or drained by a consumer on the other core, as the recorder does.
 */
#include "base/clock.h"
#include "bench/bench.h"
#include "bench/recorded.h"
#include "pipeline/hit/count.h"
#include "ringbuf/ringset.h"
#include "session/change.h"
#include "session/places.h"
#include "session/session.h"
#include "tracewheel/match.h"
#include "tracewheel/tracewheel.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FUNCTIONS = 16 };
/* Of these functions alone: a pattern finds no place of another file. */
#define MODULE "hit_bench"

static struct tw_declared_function functions[FUNCTIONS];
static char names[FUNCTIONS][8];

static void declare_once(void)
{
	if (functions[0].place)
		return;
	for (int i = 0; i < FUNCTIONS; i++) {
		snprintf(names[i], sizeof names[i], "f%d", i);
		functions[i] = (struct tw_declared_function)TW_DECLARED_FUNCTION(MODULE, names[i], 2);
		TW_BENCH_MUST(!tw_function_declare(&functions[i]));
	}
}

/* Sessions over rings of this process, with a consumer for them on request. */
struct bed {
	struct tw_rs rs[4];
	struct tw_session *session[4];
	unsigned count;
	pthread_t consumer;
	_Atomic int is_stopping;
	bool has_consumer;
	uint64_t taken;
};

/* Like the recorder: takes 32 KiB or more, polls every 20 us, reads every line. */
static void *consume(void *arg)
{
	struct bed *bed = arg;
	uint64_t pos[4] = {0}, sum = 0;

	tw_bench_pin(0);
	/* RELAXED bench.stop: a flag. */
	while (!tw_load_relaxed(&bed->is_stopping)) {
		for (unsigned s = 0; s < bed->count; s++) {
			struct tw_rb_shared *ring = tw_rs_ring(&bed->rs[s], 0);
			const uint8_t *at;
			uint64_t end;
			int64_t bytes;

			if (tw_rs_ring_state(&bed->rs[s], 0) != TW_RB_LIVE)
				continue;
			while (tw_rb_committed(ring) - pos[s] >= 32768 &&
			       (bytes = tw_rb_peek(ring, pos[s], TW_BLOCK_RAW_BYTES_MAX, &at, &end)) >= 0) {
				for (int64_t i = 0; i < bytes; i += 64)
					sum += at[i];
				pos[s] = end;
				tw_rb_consume(ring, end);
				bed->taken += (uint64_t)bytes;
			}
			tw_rs_heartbeat(&bed->rs[s]);
		}
		for (uint64_t until = tw_clock_ticks() + 20 * tw_clock_ticks_per_second() / 1000000;
		     tw_clock_ticks() < until;)
			tw_cpu_relax();
	}
	tw_bench_keep(&sum);
	return NULL;
}

static void trace_functions(struct tw_session *session, uint32_t kinds)
{
	TW_BENCH_MUST(tw_trace_function(session, MODULE, "_", TW_ARITY_ANY, TW_MATCH_TRUE, kinds) == FUNCTIONS);
}

static void trace_by(struct tw_session *session, const struct tw_match_program *program)
{
	TW_BENCH_MUST(tw_trace_function_match(session, MODULE, "_", TW_ARITY_ANY, program, TW_FUNCTION_LOCAL) ==
		      FUNCTIONS);
}

static void open_bed(struct bed *bed, unsigned sessions, enum tw_rb_policy policy, bool has_consumer, uint32_t flags)
{
	struct tw_rs_options options = {.policy = policy, .has_fixed_rings = true};

	memset(bed, 0, sizeof *bed);
	declare_once();
	tw_bench_pin(1);
	bed->count = sessions;
	for (unsigned s = 0; s < sessions; s++) {
		uint32_t image;

		TW_BENCH_MUST(!tw_rs_create(&bed->rs[s], &options));
		TW_BENCH_MUST(!tw_rs_image_claim(&bed->rs[s], &image));
		TW_BENCH_MUST(!tw_session_make("bench", &bed->rs[s], &bed->session[s]));
		if (flags)
			TW_BENCH_MUST(tw_trace_process(bed->session[s], tw_process_self(), true, flags) == 1);
		trace_functions(bed->session[s], TW_FUNCTION_LOCAL);
	}
	/* The first call takes a ring, which the owner finds then. */
	tw_call2(&functions[0], 0, 0);
	for (unsigned s = 0; s < sessions; s++)
		tw_rs_scan(&bed->rs[s]);
	bed->has_consumer = has_consumer;
	if (has_consumer)
		TW_BENCH_MUST(!pthread_create(&bed->consumer, NULL, consume, bed));
	/* A ring gets its memory while it fills for the first time, which is not measured. */
	for (unsigned i = 0; flags && i < TW_RB_BYTES_DEFAULT / 32; i++)
		tw_call2(&functions[0], i, i);
}

static void close_bed(struct bed *bed, struct tw_bench *bench)
{
	uint64_t lost = 0;

	if (bed->has_consumer) {
		/* RELAXED bench.stop: a flag. */
		tw_store_relaxed(&bed->is_stopping, 1);
		pthread_join(bed->consumer, NULL);
		for (unsigned s = 0; s < bed->count; s++)
			lost += tw_rs_ring(&bed->rs[s], 0)->lost[TW_RB_LOST_FULL];
		tw_bench_counter(bench, "lost", (double)lost);
	}
	for (unsigned s = 0; s < bed->count; s++) {
		TW_BENCH_MUST(tw_session_destroy(bed->session[s]) == 1);
		tw_session_put(bed->session[s]);
		tw_rs_destroy(&bed->rs[s]);
	}
}

static void run_calls(struct tw_bench *bench)
{
	for (uint64_t i = 0, n = tw_bench_start(bench); i < n; i++)
		tw_call2(&functions[i % FUNCTIONS], i & 511, i);
	tw_bench_stop(bench);
}

static void run_frames(struct tw_bench *bench)
{
	for (uint64_t i = 0, n = tw_bench_start(bench); i < n; i++) {
		struct tw_frame frame;

		tw_enter2(&functions[i % FUNCTIONS], &frame, i & 511, i);
		tw_leave(&frame, i);
	}
	tw_bench_stop(bench);
}

/* The loop, and the events that each of its iterations makes in each session. */
static void run_in(struct bed *bed, struct tw_bench *bench, void (*loop)(struct tw_bench *bench), uint64_t events)
{
	uint64_t before[4], refused[4];

	for (unsigned s = 0; s < bed->count; s++) {
		before[s] = events_of(bed->session[s]);
		refused[s] = refused_of(bed->session[s]);
	}
	loop(bench);
	for (unsigned s = 0; s < bed->count; s++) {
		/* Where a consumer was too slow, the column says so; elsewhere nothing is refused. */
		uint64_t lost = refused_of(bed->session[s]) - refused[s];

		TW_BENCH_MUST(!lost || bed->has_consumer);
		tw_bench_happened(bench, "events", events_of(bed->session[s]) - before[s] + lost, events);
	}
}

TW_BENCH(hit_loop)
{
	declare_once();
	tw_bench_pin(1);
	for (uint64_t i = 0, n = tw_bench_start(bench); i < n; i++) {
		uint64_t a = i & 511;

		__asm__ volatile("" : : "r"(&functions[i % FUNCTIONS]), "r"(a), "r"(i));
	}
	tw_bench_stop(bench);
	tw_bench_is_alone(bench);
}

TW_BENCH(hit_clock)
{
	uint64_t sum = 0;

	tw_clock_init();
	tw_bench_pin(1);
	for (uint64_t i = 0, n = tw_bench_start(bench); i < n; i++)
		sum += tw_clock_ticks();
	tw_bench_stop(bench);
	tw_bench_keep(&sum);
	tw_bench_is_alone(bench);
}

TW_BENCH(hit_off)
{
	declare_once();
	tw_bench_pin(1);
	run_calls(bench);
	tw_bench_is_alone(bench);
}

TW_BENCH(hit_not_traced)
{
	struct bed bed;

	open_bed(&bed, 1, TW_RB_OVERWRITE, false, 0);
	run_in(&bed, bench, run_calls, 0);
	close_bed(&bed, bench);
}

TW_BENCH(hit_recorded, .values = {1, 2, 4})
{
	struct bed bed;

	open_bed(&bed, (unsigned)bench->value, TW_RB_OVERWRITE, false, TW_FLAG_CALL);
	run_in(&bed, bench, run_calls, 1);
	close_bed(&bed, bench);
}

TW_BENCH(hit_recorded_consumed, .is_cross_core = true, .values = {1, 2})
{
	struct bed bed;

	open_bed(&bed, (unsigned)bench->value, TW_RB_BLOCK, true, TW_FLAG_CALL);
	run_in(&bed, bench, run_calls, 1);
	close_bed(&bed, bench);
}

TW_BENCH(hit_strict_stamp)
{
	struct bed bed;

	open_bed(&bed, 1, TW_RB_OVERWRITE, false, TW_FLAG_CALL | TW_FLAG_STRICT_MONOTONIC_TIMESTAMP);
	run_in(&bed, bench, run_calls, 1);
	close_bed(&bed, bench);
}

TW_BENCH(hit_cpu_stamp)
{
	struct bed bed;

	open_bed(&bed, 1, TW_RB_OVERWRITE, false, TW_FLAG_CALL | TW_FLAG_TIMESTAMP);
	TW_BENCH_MUST(tw_trace_process(bed.session[0], TW_PID_ALL, true, TW_FLAG_CPU_TIMESTAMP) == 0);
	run_in(&bed, bench, run_calls, 1);
	close_bed(&bed, bench);
}

static struct tw_match_program *compile(const char *text)
{
	struct tw_match_program *program;

	TW_BENCH_MUST(!tw_match_compile_text(text, strlen(text), NULL, &program, NULL));
	return program;
}

/* A guard on one integer argument: 1 rejects, 2 accepts; fused, or by byte code. */
static void run_guard(struct tw_bench *bench, const char *rejecting, const char *accepting)
{
	const char *text = bench->value == 1 ? rejecting : accepting;
	struct tw_match_program *program = compile(text);
	struct bed bed;

	open_bed(&bed, 1, TW_RB_OVERWRITE, false, TW_FLAG_CALL);
	trace_by(bed.session[0], program);
	run_in(&bed, bench, run_calls, bench->value != 1);
	close_bed(&bed, bench);
	tw_match_destroy(program);
}

TW_BENCH(hit_guard_fused, .values = {1, 2})
{
	run_guard(bench, "[{['$1','_'],[{'>','$1',1000}],[]}]", "[{['$1','_'],[{'<','$1',1000}],[]}]");
}

/* The same condition where it is no range, so that the interpreter decides. */
TW_BENCH(hit_guard_byte_code, .values = {1, 2})
{
	run_guard(bench, "[{['$1','_'],[{'=:=',{'band','$1',512},512}],[]}]",
		  "[{['$1','_'],[{'=:=',{'band','$1',512},0}],[]}]");
}

/* Sixteen clauses, of which the last accepts. */
TW_BENCH(hit_sixteen_clauses)
{
	char text[2048] = "[", clause[80];

	for (int i = 0; i < 15; i++) {
		snprintf(clause, sizeof clause, "{['$1','_'],[{'>','$1',%d}],[]},", 1000 + i);
		strcat(text, clause);
	}
	strcat(text, "{['$1','_'],[{'<','$1',1000}],[]}]");
	run_guard(bench, text, text);
}

/* Returns of every call, without a match program: the setting of the agent. */
static void set_returns(struct bed *bed)
{
	const struct tw_bp_part part = {.actions = TW_ACTION_CALL | TW_ACTION_RETURN};
	struct tw_permit *permit;

	TW_BENCH_MUST(!tw_change_begin(&permit));
	for (int i = 0; i < FUNCTIONS; i++)
		TW_BENCH_MUST(!tw_session_stage(bed->session[0], permit, functions[i].place, &part));
	TW_BENCH_MUST(!tw_change_end(permit, 0));
}

/* Enter and leave while no session traces. */
TW_BENCH(hit_frame_off)
{
	declare_once();
	tw_bench_pin(1);
	run_frames(bench);
	tw_bench_is_alone(bench);
}

/* A call with two words and its return with one: two reads of the clock. */
/* 1: with the plain setting, 2: by {return_trace}. */
TW_BENCH(hit_frame_recorded, .values = {1, 2})
{
	static const char text[] = "[{'_',[],[{return_trace}]}]";
	struct tw_match_program *program = compile(text);
	struct bed bed;

	open_bed(&bed, 1, TW_RB_OVERWRITE, false, TW_FLAG_CALL);
	if (bench->value == 2)
		trace_by(bed.session[0], program);
	else
		set_returns(&bed);
	run_in(&bed, bench, run_frames, 2);
	close_bed(&bed, bench);
	tw_match_destroy(program);
}

static void add_count(void *sum, uint64_t pid, uint64_t count, uint64_t value)
{
	*(uint64_t *)sum += count;
}

/* The calls that the session has counted, of all functions. */
static uint64_t counted(struct tw_session *session, uint32_t kind)
{
	uint64_t sum = 0;

	for (int i = 0; i < FUNCTIONS; i++) {
		uint64_t count = 0;

		if (kind == TW_FUNCTION_CALL_COUNT)
			TW_BENCH_MUST(tw_trace_call_count(session, MODULE, names[i], 2, &count) == 1);
		else
			tw_counts_each(tw_session_remember(session, functions[i].place)->times.now, true, add_count,
				       &count);
		sum += count;
	}
	return sum;
}

/* A session that only counts, by process or not: each iteration is one count, and makes no event. */
static void run_counted(struct tw_bench *bench, uint32_t kind, void (*loop)(struct tw_bench *bench))
{
	struct tw_session *session;

	declare_once();
	tw_bench_pin(1);
	TW_BENCH_MUST(!tw_session_create("count", NULL, &session));
	TW_BENCH_MUST(tw_trace_process(session, tw_process_self(), true, TW_FLAG_CALL) == 1);
	trace_functions(session, kind);
	loop(bench);
	tw_bench_happened(bench, "counts", counted(session, kind), 1);
	TW_BENCH_MUST(tw_session_destroy(session) == 1);
	tw_session_put(session);
}

TW_BENCH(hit_call_time)
{
	run_counted(bench, TW_FUNCTION_CALL_TIME, run_frames);
}

TW_BENCH(hit_call_count)
{
	run_counted(bench, TW_FUNCTION_CALL_COUNT, run_calls);
}

/* ---- sessions that do not want this call: idle, or tracing another function ---- */

static void run_beside(struct tw_bench *bench, bool is_busy_elsewhere)
{
	static struct tw_declared_function elsewhere = TW_DECLARED_FUNCTION("elsewhere", "f", 0);
	struct tw_session *others[TW_BENCH_VALUES_MAX * 100];
	struct bed bed;

	TW_BENCH_MUST(!tw_function_declare(&elsewhere));
	open_bed(&bed, 1, TW_RB_OVERWRITE, false, TW_FLAG_CALL);
	for (int64_t i = 0; i < bench->value; i++) {
		TW_BENCH_MUST(!tw_session_create("beside", NULL, &others[i]));
		if (is_busy_elsewhere)
			TW_BENCH_MUST(tw_trace_function(others[i], "elsewhere", "f", 0, TW_MATCH_TRUE,
							TW_FUNCTION_CALL_COUNT) == 1);
	}
	run_in(&bed, bench, run_calls, 1);
	for (int64_t i = 0; i < bench->value; i++)
		tw_session_put(others[i]);
	tw_progress();
	close_bed(&bed, bench);
}

TW_BENCH(hit_idle_sessions, .values = {1, 100})
{
	run_beside(bench, false);
}

TW_BENCH(hit_other_sessions, .values = {1, 50})
{
	run_beside(bench, true);
}
