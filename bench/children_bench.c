/* SPDX-License-Identifier: Apache-2.0 */
/*
 * children_bench.c - what does a call cost that its thread keeps because the call around it may be recorded (record --children)?
 *
 * Unit	nanoseconds a call with its return, loop and callee included.
 * Peers	sled_longer, which is counted; sled_call_and_return, which is recorded.
 * Method	One call that decides has all others in it, and ends too soon to be recorded. The ring of kept calls is full most of the time.
 */
#include "bench/bed.h"
#include "bench/bench.h"
#include "pipeline/hit/hit.h"
#include "session/places.h"
#include "session/session.h"
#include "session/setting.h"

#define NAME	       "children_bench"
#define CHILDREN_BYTES (UINT64_C(4) << 20)

static __attribute__((noinline, patchable_function_entry(9, 0))) uint64_t leaf(uint64_t a, uint64_t b)
{
	__asm__ volatile("" : "+r"(a));
	return a + b;
}

struct kept {
	uint64_t calls, words;
};

static __attribute__((noinline, patchable_function_entry(9, 0))) uint64_t root(struct tw_bench *bench,
									       struct kept *kept)
{
	uint64_t before = tw_hit_tls.thread ? tw_hit_tls.thread->children.head : 0, sum = 0, n = tw_bench_start(bench);

	for (uint64_t i = 0; i < n; i++)
		sum += leaf(i & 511, i);
	tw_bench_stop(bench);
	*kept = (struct kept){n, tw_hit_tls.thread->children.head - before};
	return sum;
}

/* A call of two words, and its return of three and a value. */
#define KEPT_WORDS 6

TW_BENCH(sled_longer_child)
{
	const struct tw_session_longer decides = {.least_ns = UINT64_C(100000000000), .has_children = true},
				       is_child = {.has_children = true, .is_child = true};
	struct kept kept = {0};
	uint64_t before, sum;
	struct tw_permit *permit;
	struct bed bed;

	tw_bench_pin(1);
	open_bed(&bed, true);
	permit = begin_change();
	TW_BENCH_MUST(!tw_session_stage_longer(bed.session, permit, add_sled(permit, NAME, sled_of((uintptr_t)root)),
					       &decides, 0));
	end_change(permit, tw_session_stage_longer(bed.session, permit,
						   add_sled(permit, NAME, sled_of((uintptr_t)leaf)), &is_child, 0));
	tw_hit_host.pinned_rs = bed.session->rs;
	tw_hit_host.pinned_session = bed.session->slot;
	tw_hit_host.children_words = CHILDREN_BYTES / sizeof(uint64_t);
	before = events_of(bed.session);
	sum = root(bench, &kept);
	TW_BENCH_MUST(sum == sum_of_calls(kept.calls));
	tw_bench_happened(bench, "kept words", kept.words, KEPT_WORDS);
	tw_bench_happened_in_all(bench, "events", events_of(bed.session) - before, 0);
	tw_hit_host.pinned_rs = NULL;
	close_bed(&bed);
}
