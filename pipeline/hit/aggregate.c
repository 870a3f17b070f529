/* SPDX-License-Identifier: Apache-2.0 */
/* aggregate.c - finds the row of a call, or makes it.  Compiled without vector registers, as hit.c. */
#include "pipeline/hit/aggregate.h"
#include "breakpoints/breakpoints.h"

#include <string.h>

struct tw_aggregating tw_aggregating;

_Static_assert(sizeof(struct tw_aggregation) == sizeof(((struct tw_rs_aggregate *)0)->aggregation), "its words");
_Static_assert(sizeof(struct tw_rs_aggregate) * TW_RS_AGGREGATES == sizeof(struct tw_rs_count_words),
	       "they fill a block");

void tw_aggregate_begin(const struct tw_aggregation *what)
{
	tw_aggregating.what = *what;
	tw_aggregating.needs_return =
		what->by == TW_AGGREGATE_RESULT || what->of == TW_AGGREGATE_RESULT || what->of == TW_AGGREGATE_DURATION;
	tw_aggregating.ns_per_tick = (uint64_t)(((unsigned __int128)1000000000 << 32) / tw_clock_ticks_per_second());
	tw_aggregating.is_wanted = true;
}

/* An unused row in the thread's memory; NULL: there is none. */
static struct tw_rs_aggregate *take_row(struct tw_thread *thread, struct tw_thread_counts *own)
{
	struct tw_aggregates *aggregates = &own->aggregates;

	if (!aggregates->free_count) {
		void *block = tw_counts_take_block(thread, own, TW_RS_AGGREGATE_GROUP);

		if (!block)
			return NULL;
		aggregates->block = block;
		aggregates->free_count = TW_RS_AGGREGATES;
	}
	return &aggregates->block[TW_RS_AGGREGATES - aggregates->free_count--];
}

/* The first call of a row, which gets the slot. */
static void make(struct tw_rs_aggregate **slot, struct tw_rs_aggregate *row, const struct tw_aggregate_key *wanted,
		 uint64_t sum)
{
	row->place_id = wanted->place_id;
	row->is_rest = wanted->is_rest;
	memcpy(row->aggregation, &tw_aggregating.what, sizeof row->aggregation);
	row->key = wanted->key;
	row->number = wanted->number;
	/* RELAXED count.add: before the first count. */
	tw_store_relaxed(&row->sum, sum);
	/* PAIR rs.aggregate: release; acquire in read_aggregates().  The key is there. */
	tw_store_release(&row->count, 1);
	*slot = row;
}

__attribute__((noinline)) void tw_aggregate_add_first(struct tw_hit_tls *t)
{
	struct tw_thread_counts *own = tw_counts_of_thread(t->thread);
	struct tw_aggregate_key *wanted = &t->thread->aggregate;
	struct tw_rs_aggregate **slot, *row;

	if (!own)
		return;
	if (own->aggregates.count >= TW_AGGREGATE_KEYS_MAX)
		*wanted = (struct tw_aggregate_key){.place_id = wanted->place_id, .is_rest = 1};
	slot = tw_aggregate_slot(&own->aggregates, wanted);
	if (*slot) {
		tw_aggregate_count(*slot, t->thread->aggregate_number);
		return;
	}
	row = own->aggregates.count < TW_AGGREGATES_MAX ? take_row(t->thread, own) : NULL;
	if (!row)
		return;
	make(slot, row, wanted, t->thread->aggregate_number);
	own->aggregates.count++;
}
