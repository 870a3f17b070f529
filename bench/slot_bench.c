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
#include "bench/bed.h"
#include "bench/bench.h"
#include "ringbuf/ringset.h"
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
	TW_BENCH_MUST(slot != MAP_FAILED);
	*slot = leaf;
}

static void arm(struct bed *bed, struct tw_bp_part *part, struct tw_match_program *when)
{
	const struct tw_place_options options = {.kind = TW_BP_SLOT, .where = slot, .target = leaf};
	struct tw_permit *permit = begin_change();
	struct tw_place *place = add_place(permit, "slot_bench", &options);

	if (when)
		tw_session_use_program(part, place, when);
	end_change(permit, tw_session_stage(bed->session, permit, place, part));
}

/* Calls as code without PLT makes them: the slot is loaded for each. */
static void call_slot(struct tw_bench *bench)
{
	uint64_t sum = 0, n = tw_bench_start(bench);

	for (uint64_t i = 0; i < n; i++)
		sum += (*slot)(i & 511, i);
	tw_bench_stop(bench);
	TW_BENCH_MUST(sum == sum_of_calls(n));
}

static void run(struct tw_bench *bench, struct tw_bp_part part, bool is_traced, uint64_t events, const char *when)
{
	struct tw_match_program *program = NULL;
	struct bed bed;
	uint64_t before;

	make_slot();
	tw_bench_pin(1);
	open_bed(&bed, is_traced);
	if (when)
		TW_BENCH_MUST(!tw_match_compile_when(when, strlen(when), NULL, &program, NULL));
	arm(&bed, &part, program);
	for (uint64_t i = 0; events && i < fill(bench); i++)
		(*slot)(i & 511, i);
	before = events_of(bed.session);
	call_slot(bench);
	tw_bench_happened(bench, "events", events_of(bed.session) - before, events);
	TW_BENCH_MUST(!refused_of(bed.session));
	close_bed(&bed);
	tw_match_destroy(program);
}

TW_BENCH(slot_plain)
{
	make_slot();
	tw_bench_pin(1);
	call_slot(bench);
	tw_bench_is_alone(bench);
}

TW_BENCH(slot_not_traced)
{
	run(bench, (struct tw_bp_part){.actions = TW_ACTION_CALL}, false, 0, NULL);
}

TW_BENCH(slot_recorded)
{
	run(bench, (struct tw_bp_part){.actions = TW_ACTION_CALL}, true, 1, NULL);
}

TW_BENCH(slot_recorded_two_words)
{
	run(bench, (struct tw_bp_part){.actions = TW_ACTION_CALL, .slot_words = 2}, true, 1, NULL);
}

TW_BENCH(slot_recorded_six_words)
{
	run(bench, (struct tw_bp_part){.actions = TW_ACTION_CALL, .slot_words = 6}, true, 1, NULL);
}

/* The ring is full, and drops. */
TW_BENCH(slot_lost)
{
	struct tw_bp_part part = {.actions = TW_ACTION_CALL};
	struct bed bed;
	uint64_t before;

	make_slot();
	tw_bench_pin(1);
	open_bed_as(&bed, true, TW_RB_DROP);
	arm(&bed, &part, NULL);
	while (!refused_of(bed.session))
		(*slot)(1, 2);
	before = refused_of(bed.session);
	call_slot(bench);
	tw_bench_happened(bench, "lost", refused_of(bed.session) - before, 1);
	close_bed(&bed);
}

TW_BENCH(slot_call_and_return)
{
	run(bench, (struct tw_bp_part){.actions = TW_ACTION_CALL | TW_ACTION_RETURN}, true, 2, NULL);
}

TW_BENCH(slot_guard_rejects)
{
	run(bench, (struct tw_bp_part){.actions = TW_ACTION_CALL}, true, 0, "$1 > 1000");
}
