/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bed.h - a session with rings that overwrite, and places of functions, for benchmarks of sleds and entries.
 *
 * Threads  the benchmark's own.  Errors end the benchmark.
 */
#ifndef TW_BENCH_BED_H
#define TW_BENCH_BED_H

#include "bench/recorded.h"
#include "breakpoints/breakpoints.h"
#include "pipeline/hit/condition.h"
#include "pipeline/hit/native.h"
#include "ringbuf/ringset.h"
#include "session/session.h"
#include "session/change.h"
#include "tracewheel/match.h"
#include "tracewheel/tracewheel.h"

#include <string.h>

struct bed {
	struct tw_rs rs;
	struct tw_session *session;
};

static inline void open_bed_as(struct bed *bed, bool is_traced, enum tw_rb_policy policy)
{
	struct tw_rs_options options = {.policy = policy, .has_fixed_rings = true};
	uint32_t image;

	*bed = (struct bed){0};
	TW_BENCH_MUST(!tw_rs_create(&bed->rs, &options));
	TW_BENCH_MUST(!tw_rs_image_claim(&bed->rs, &image));
	TW_BENCH_MUST(!tw_session_make("bench", &bed->rs, &bed->session));
	if (is_traced)
		TW_BENCH_MUST(tw_trace_process(bed->session, tw_process_self(), true, TW_FLAG_CALL) == 1);
	tw_native_init();
}

static inline void open_bed(struct bed *bed, bool is_traced)
{
	open_bed_as(bed, is_traced, TW_RB_OVERWRITE);
}

static inline void close_bed(struct bed *bed)
{
	TW_BENCH_MUST(tw_session_destroy(bed->session) == 1);
	tw_session_put(bed->session);
	tw_rs_destroy(&bed->rs);
}

/* @name: of the module; each file has its own, so that no pattern of another file finds the place. */
static inline struct tw_place *add_place(struct tw_permit *permit, const char *name,
					 const struct tw_place_options *options)
{
	const struct tw_module_options module_options = {.name = name, .path = name};
	struct tw_function *function;
	struct tw_module *module;
	struct tw_place *place;

	TW_BENCH_MUST(!tw_bp_module_add(permit, &module_options, &module));
	TW_BENCH_MUST(!tw_bp_function_add(permit, module, "small", UINT32_MAX, 0, &function));
	TW_BENCH_MUST(!tw_bp_place_add(permit, function, options, &place));
	return place;
}

/* Of functions with `patchable_function_entry(SLED_BYTES, 0)`: their NOPs are behind endbr64, if there is one. */
#define SLED_BYTES 9u
static inline void *sled_of(uintptr_t function)
{
	uint8_t *at = (uint8_t *)function;

	return memcmp(at, "\xf3\x0f\x1e\xfa", 4) ? at : at + 4;
}

static inline struct tw_place *add_sled(struct tw_permit *permit, const char *name, void *where)
{
	const struct tw_place_options options = {.kind = TW_BP_SLED, .where = where, .sled_bytes = SLED_BYTES};

	return add_place(permit, name, &options);
}

static inline struct tw_permit *begin_change(void)
{
	struct tw_permit *permit;

	TW_BENCH_MUST(!tw_change_begin(&permit));
	return permit;
}

static inline void end_change(struct tw_permit *permit, int error)
{
	TW_BENCH_MUST(!tw_change_end(permit, error));
}

/* Calls a leaf that returns the sum of both; each call has made so many events of the session. NULL: there is none. */
static inline __attribute__((always_inline)) void run_leaf(struct tw_bench *bench, uint64_t (*leaf)(uint64_t, uint64_t),
							   const struct tw_session *session, uint64_t events)
{
	uint64_t sum = 0, before, n;

	for (uint64_t i = 0; events && i < fill(bench); i++)
		leaf(i & 511, i);
	before = session ? events_of(session) : 0;
	n = tw_bench_start(bench);
	for (uint64_t i = 0; i < n; i++)
		sum += leaf(i & 511, i);
	tw_bench_stop(bench);
	TW_BENCH_MUST(sum == sum_of_calls(n));
	if (!session) {
		tw_bench_is_alone(bench);
		return;
	}
	tw_bench_happened(bench, "events", events_of(session) - before, events);
	TW_BENCH_MUST(!refused_of(session));
}

/* Calls are recorded of which the text is true, in words of condition.h: one of them at a time. */
static inline const struct tw_session_longer *made_by_end(const char *text)
{
	static struct tw_call_condition condition;
	static struct tw_session_longer longer;
	struct tw_match_program *program;

	TW_BENCH_MUST(!tw_match_compile_when(text, strlen(text), NULL, &program, NULL));
	condition = (struct tw_call_condition){.program = program, .quick = program->quick, .is_of_end = true};
	longer = (struct tw_session_longer){.condition = &condition, .text = text};
	return &longer;
}

#endif
