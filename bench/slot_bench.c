/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slot_bench.c - what does a call through a traced GOT slot cost above the plain call?
 *
 * Unit	nanoseconds a call, loop and callee included; `slot_plain` is the same call with nothing armed.
 * Peers	uftrace 71 to 96 ns and XRay 168 ns for entry and exit on a similar machine; no other tracer records a
 *	single GOT call.
 * Method	a word in a page of its own serves as the slot; calls are `call *slot`, as in code without PLT; a leaf
 *	function of two words is called.
 */
#include "base/clock.h"
#include "bench/bench.h"
#include "ringbuf/ringset.h"
#include "session/change.h"
#include "session/places.h"
#include "session/session.h"
#include "session/setting.h"
#include "tracewheel/match.h"
#include "tracewheel/tracewheel.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef uint64_t (*leaf_fn)(uint64_t a, uint64_t b);

static leaf_fn *slot;

static __attribute__((noinline)) uint64_t leaf(uint64_t a, uint64_t b)
{
	return a + b;
}

static void make_slot(void)
{
	if (slot)
		return;
	slot = mmap(NULL, TW_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	*slot = leaf;
}

struct bed {
	struct tw_rs rs;
	struct tw_session *session;
	struct tw_match_program *program;
};

static void arm(struct bed *bed, const char *when, uint32_t actions, uint8_t words)
{
	struct tw_module_options module_options = {.name = "bench", .path = "bench"};
	struct tw_place_options place_options = {.kind = TW_BP_SLOT, .where = slot, .target = leaf};
	struct tw_bp_part part = {.actions = TW_ACTION_CALL | actions, .slot_words = words};
	struct tw_permit *permit;
	struct tw_module *module;
	struct tw_function *function;
	struct tw_place *place;

	if (tw_change_begin(&permit) || tw_bp_module_add(permit, &module_options, &module) ||
	    tw_bp_function_add(permit, module, "leaf", UINT32_MAX, 0, &function) ||
	    tw_bp_place_add(permit, function, &place_options, &place))
		abort();
	if (when) {
		if (tw_match_compile_when(when, strlen(when), NULL, &bed->program, NULL))
			abort();
		tw_session_use_program(&part, place, bed->program);
	}
	if (tw_change_end(permit, tw_session_stage(bed->session, permit, place, &part)))
		abort();
}

static void run(struct tw_bench *bench, bool is_traced, const char *when, uint32_t actions, uint8_t words)
{
	struct tw_rs_options options = {.policy = TW_RB_OVERWRITE, .has_fixed_rings = true};
	struct bed bed = {0};
	uint64_t sum = 0;
	uint32_t image;

	make_slot();
	tw_bench_pin(1);
	if (tw_rs_create(&bed.rs, &options) || tw_rs_image_claim(&bed.rs, &image) ||
	    tw_session_make("bench", &bed.rs, &bed.session))
		abort();
	if (is_traced)
		tw_trace_process(bed.session, tw_process_self(), true, TW_FLAG_CALL);
	arm(&bed, when, actions, words);
	for (uint64_t i = 0, n = tw_bench_start(bench); i < n; i++)
		sum += (*slot)(i & 511, i);
	tw_bench_stop(bench);
	tw_bench_keep(&sum);
	tw_session_destroy(bed.session);
	tw_session_put(bed.session);
	tw_rs_destroy(&bed.rs);
	tw_match_destroy(bed.program);
}

TW_BENCH(slot_plain)
{
	uint64_t sum = 0;

	make_slot();
	tw_bench_pin(1);
	for (uint64_t i = 0, n = tw_bench_start(bench); i < n; i++)
		sum += (*slot)(i & 511, i);
	tw_bench_stop(bench);
	tw_bench_keep(&sum);
}

TW_BENCH(slot_not_traced)
{
	run(bench, false, NULL, 0, 0);
}

TW_BENCH(slot_recorded)
{
	run(bench, true, NULL, 0, 0);
}

TW_BENCH(slot_recorded_two_words)
{
	run(bench, true, NULL, 0, 2);
}

TW_BENCH(slot_call_and_return)
{
	run(bench, true, NULL, TW_ACTION_RETURN, 0);
}

TW_BENCH(slot_guard_rejects)
{
	run(bench, true, "$1 > 1000", 0, 0);
}
