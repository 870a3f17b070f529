/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aggregate.h - counted calls summed up by keys and ranges of numbers, by thread: the hit side of struct tw_aggregation.
 *
 *	hash of place, key, number --> slot of the thread's table --> row in shared memory (ringbuf/counts.h)
 *
 * A row is taken at the first call with its key, and stays for as long as the thread.  Each call adds to one row, and to the counter of its
 * place: whatever has no row is the difference, exactly.
 *
 * Threads  in a hit, the thread's own, but tw_aggregate_begin().  Compiled without vector registers.
 */
#ifndef TW_PIPELINE_AGGREGATE_H
#define TW_PIPELINE_AGGREGATE_H

#include "base/range.h"
#include "breakpoints/returns.h"
#include "pipeline/hit/account.h"
#include "pipeline/hit/walk.h"
#include "tracewheel/counts.h"

/* Written before the first place is counted, never changed: PAIR bp.active. */
struct tw_aggregating {
	bool is_wanted;
	bool needs_return; /* the key or the number is known only when the call has returned */
	struct tw_aggregation what;
	uint64_t ns_per_tick; /* 32 bits of it are behind the point */
};
extern struct tw_aggregating tw_aggregating;

/* Control, once, before anything is counted: calls that are counted are also aggregated. */
void tw_aggregate_begin(const struct tw_aggregation *what);

/* A number of so many bits as 64. */
static inline uint64_t tw_aggregate_extend(const struct tw_bp_source *source, uint64_t word)
{
	word <<= source->shift;
	return source->is_unsigned ? word >> source->shift : (uint64_t)((int64_t)word >> source->shift);
}

/* The duration of a call, in ns. */
static inline uint64_t tw_aggregate_ns(uint64_t ticks)
{
	return (uint64_t)((unsigned __int128)ticks * tw_aggregating.ns_per_tick >> 32);
}

#define TW_INLINE inline __attribute__((always_inline))

/* The value of a call that begins: 0 if it is known later. */
static TW_INLINE uint64_t tw_aggregate_value(unsigned value, const struct tw_bp_source *source, const uint64_t *words,
					     const uint64_t *slot)
{
	uint64_t caller;

	if (value == TW_AGGREGATE_ARGUMENT)
		return tw_aggregate_extend(source, words[source->word]);
	if (value != TW_AGGREGATE_CALLER)
		return 0;
	caller = tw_unlikely(tw_returns_is_stub(*slot)) ? tw_walk_caller(slot) : 0;
	return caller ? caller : *slot;
}

static TW_INLINE uint64_t tw_aggregate_range(uint64_t number)
{
	switch (tw_aggregating.what.form) {
	case TW_AGGREGATE_POWERS: return (uint64_t)tw_range_power((int64_t)number);
	case TW_AGGREGATE_STEPS: return (uint64_t)tw_range_step((int64_t)number, tw_aggregating.what.step);
	case TW_AGGREGATE_PARTS: return (uint64_t)tw_range_part((int64_t)number);
	default: return 0;
	}
}

static TW_INLINE uint32_t tw_aggregate_home(const struct tw_aggregate_key *wanted)
{
	uint64_t hash = (wanted->key ^ (uint64_t)wanted->place_id << 40) * UINT64_C(0x9e3779b97f4a7c15);

	hash = (hash ^ hash >> 32 ^ wanted->number ^ (uint64_t)wanted->is_rest << 63) * UINT64_C(0xbf58476d1ce4e5b9);
	return (uint32_t)(hash >> 40) % TW_AGGREGATE_SLOTS;
}

static TW_INLINE bool tw_aggregate_is(const struct tw_rs_aggregate *row, const struct tw_aggregate_key *wanted)
{
	return row->key == wanted->key && row->number == wanted->number && row->place_id == wanted->place_id &&
	       row->is_rest == wanted->is_rest;
}

/* The slot of the row, or the free one where it belongs. */
static TW_INLINE struct tw_rs_aggregate **tw_aggregate_slot(struct tw_aggregates *own,
							    const struct tw_aggregate_key *wanted)
{
	uint32_t at = tw_aggregate_home(wanted);

	while (own->slots[at] && !tw_aggregate_is(own->slots[at], wanted))
		at = (at + 1) % TW_AGGREGATE_SLOTS;
	return &own->slots[at];
}

static TW_INLINE void tw_aggregate_count(struct tw_rs_aggregate *row, uint64_t sum)
{
	tw_count_add(&row->sum, sum);
	tw_count_add(&row->count, 1);
}

/*
 * A row that the thread does not have yet: that of thread->aggregate.  Beyond TW_AGGREGATE_KEYS_MAX calls of a place share one; without
 * memory they have none.
 */
void tw_aggregate_add_first(struct tw_hit_tls *t);

/*
 * Adds a call to the row of its key, and of the range that contains its number.  False: the thread has no such row, and
 * tw_aggregate_add_first() adds the call.
 */
static TW_INLINE bool tw_aggregate_add(struct tw_thread *thread, struct tw_thread_counts *own,
				       const struct tw_place *place, uint64_t key, uint64_t number)
{
	const struct tw_aggregate_key wanted = {.place_id = place->place_id,
						.key = key,
						.number = tw_aggregate_range(number)};
	struct tw_rs_aggregate *row = tw_likely(own) ? *tw_aggregate_slot(&own->aggregates, &wanted) : NULL;

	if (tw_likely(row)) {
		tw_aggregate_count(row, number);
		return true;
	}
	thread->aggregate = wanted;
	thread->aggregate_number = number;
	return false;
}

#undef TW_INLINE

#endif
