/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aggregate_bench.c - what does a call cost that the program sums up, by caller, argument, result or duration?
 *
 * Unit	nanoseconds a call, loop and callee included, as in sled_bench.c, whose sled_call_count is the same without a row.
 * Peers	bpftrace's maps behind a uprobe: 1,500 ns and more a call, most of it the trap.
 * Method	A leaf function of two words with an entry sled; its rows are read in shared memory, and all calls must be there.
 */
#include "bench/bed.h"
#include "bench/bench.h"
#include "pipeline/hit/aggregate.h"
#include "pipeline/hit/native.h"
#include "ringbuf/ringset.h"
#include "session/change.h"
#include "session/places.h"
#include "session/session.h"

#include <stdlib.h>
#include <string.h>

static __attribute__((noinline, patchable_function_entry(9, 0))) uint64_t leaf(uint64_t a, uint64_t b)
{
	__asm__ volatile("" : "+r"(a));
	return a + b;
}

static int add_rows(void *sum, const struct tw_rs_seen_counts *row, const struct tw_rs_aggregate *seen, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		/* RELAXED count.add: this thread's. */
		*(uint64_t *)sum += tw_load_relaxed(&seen[i].count);
	}
	return 0;
}

/* The calls in the rows of an aggregation. */
static uint64_t aggregated(struct tw_rs *rs)
{
	static struct tw_rs_count_choice choice;
	uint64_t sum = 0;

	tw_rs_scan(rs);
	tw_rs_counts_choose(rs, 0, false, &choice);
	TW_BENCH_MUST(!tw_rs_aggregates_each(rs, 0, &choice, add_rows, &sum));
	return sum;
}

static struct bed bed;
static struct tw_place *place;

static void remove_files(void)
{
	tw_rs_unlink(&bed.rs);
}

/* Once: threads keep their rows for as long as the ring set of their process, which is one. */
static void open_once(void)
{
	const struct tw_bp_part part = {.actions = TW_ACTION_COUNT};
	struct tw_permit *permit;

	if (place)
		return;
	open_bed(&bed, false);
	TW_BENCH_MUST(!atexit(remove_files));
	tw_hit_host.pinned_rs = &bed.rs;
	tw_hit_host.pinned_session = bed.session->slot;
	permit = begin_change();
	place = add_sled(permit, "aggregate_bench", sled_of((uintptr_t)leaf));
	end_change(permit, tw_session_stage(bed.session, permit, place, &part));
	tw_hit_host.pinned_rs = NULL;
}

/* Rows of other files find the process as they left it: not traced, and nothing is summed up. */
static void trace_self(bool on)
{
	TW_BENCH_MUST(tw_trace_process(bed.session, tw_process_self(), on, TW_FLAG_CALL) == 1);
	tw_aggregating.is_wanted = on;
}

/* Calls that the program sums up, in the shared memory of a ring set as `tracewheel record` has them. */
static void run_aggregated(struct tw_bench *bench, const struct tw_aggregation *what)
{
	uint64_t before, sum, n;

	tw_bench_pin(1);
	open_once();
	tw_aggregate_begin(what);
	trace_self(true);
	place->by = (struct tw_bp_source){.word = what->by_number ? what->by_number - 1 : 0};
	place->of = (struct tw_bp_source){.word = what->of_number ? what->of_number - 1 : 0};
	before = aggregated(&bed.rs);
	n = tw_bench_start(bench);
	sum = 0;
	for (uint64_t i = 0; i < n; i++)
		sum += leaf(i & 511, i);
	tw_bench_stop(bench);
	TW_BENCH_MUST(sum == sum_of_calls(n));
	tw_bench_happened(bench, "calls in rows", aggregated(&bed.rs) - before, 1);
	tw_bench_happened(bench, "events", events_of(bed.session), 0);
	trace_self(false);
}

TW_BENCH(aggregate_by_caller)
{
	run_aggregated(bench, &(struct tw_aggregation){.by = TW_AGGREGATE_CALLER});
}

/* 512 keys. */
TW_BENCH(aggregate_by_argument)
{
	run_aggregated(bench, &(struct tw_aggregation){.by = TW_AGGREGATE_ARGUMENT, .by_number = 1});
}

/* 10 ranges. */
TW_BENCH(aggregate_histogram)
{
	run_aggregated(bench, &(struct tw_aggregation){.of = TW_AGGREGATE_ARGUMENT,
						       .of_number = 1,
						       .form = TW_AGGREGATE_POWERS});
}

/* 257 ranges. */
TW_BENCH(aggregate_quantiles)
{
	run_aggregated(bench, &(struct tw_aggregation){.of = TW_AGGREGATE_ARGUMENT,
						       .of_number = 1,
						       .form = TW_AGGREGATE_PARTS});
}

/* With a watched return. */
TW_BENCH(aggregate_result)
{
	run_aggregated(bench, &(struct tw_aggregation){.of = TW_AGGREGATE_RESULT, .form = TW_AGGREGATE_POWERS});
}

TW_BENCH(aggregate_duration)
{
	run_aggregated(bench, &(struct tw_aggregation){.of = TW_AGGREGATE_DURATION, .form = TW_AGGREGATE_POWERS});
}
