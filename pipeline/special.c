/* SPDX-License-Identifier: Apache-2.0 */
/*
 * special.c - hits that are more than a plain call event.
 *
 * Out of line, so that the plain case of hit.c needs no callee-saved registers.  Called inside the
 * read section.
 */
#include "pipeline/hit.h"
#include "base/clock.h"

static _Atomic uint64_t unique_integer;

uint64_t tw_hit_unique_integer(void)
{
	/* RELAXED hit.unique: a read-modify-write hands out each number once, in one order for all. */
	return tw_fetch_add_relaxed(&unique_integer, 1) + 1;
}

static bool is_in_range(const struct tw_bp_quick *quick, const struct tw_hit_call *call)
{
	return quick->argument < call->count && call->words[quick->argument] - quick->low <= quick->span;
}

/* One call record, with the unique integer before the words where the stamp is strict. */
static void record(struct tw_hit_tls *t, struct tw_place *place, unsigned session, const struct tw_hit_call *call,
		   uint64_t *todo)
{
	struct tw_lane *lane = &t->thread->lanes[session];
	/* RELAXED hit.record_flags: one byte; a change is seen by this call or by the next. */
	unsigned flags = tw_load_relaxed(&t->tracee->record_flags[session]);
	bool is_strict = (flags & TW_EVENT_FLAG_STAMP_MASK) == TW_STAMP_STRICT_MONOTONIC;
	unsigned count = call->recorded_count + is_strict;
	uint32_t bytes = (uint32_t)sizeof(struct tw_rb_record) + (count + 1) / 2 * 16;
	uint64_t ticks = tw_clock_ticks();
	struct tw_rb_record *r;
	uint64_t *payload;
	enum tw_rb_outcome outcome;

	if (lane->run_stamp != t->run_stamp && !tw_lane_catch_up(t, place, session, ticks, todo))
		return;
	outcome = tw_rb_reserve(&lane->producer, bytes, ticks, (void **)&r);
	if (outcome == TW_RB_WAIT && tw_lane_wait(t, place, session, bytes, ticks, todo))
		outcome = tw_rb_reserve(&lane->producer, bytes, ticks, (void **)&r);
	if (outcome != TW_RB_OK)
		return;
	payload = (uint64_t *)(r + 1);
	r->ticks = ticks;
	r->head = TW_RB_HEAD(TW_EVENT_CALL, flags | (count % 2 ? TW_EVENT_FLAG_HALF : 0), bytes, place->place_id);
	if (is_strict)
		*payload++ = tw_hit_unique_integer();
	for (unsigned i = 0; i < call->recorded_count; i++)
		payload[i] = call->words[i];
	tw_rb_commit(&lane->producer, bytes);
}

/*
 * A record may have to wait for room, outside of the read section: then the generation that this hit
 * began with is gone, and each session is looked up in the one that is active now.
 */
uint64_t tw_hit_special(struct tw_hit_tls *t, struct tw_place *place, uint64_t todo, const struct tw_hit_call *call)
{
	uint64_t wanted = ~UINT64_C(0);

	for (; todo; todo &= todo - 1) {
		unsigned session = (unsigned)__builtin_ctzll(todo);
		uint64_t bit = UINT64_C(1) << session;
		/* PAIR bp.active: acquire; as in hit(). */
		uint32_t active = tw_load_acquire(&tw_bp_gate.active);
		const struct tw_bp_generation *generation = &place->gen[(active - 1) & 1];
		const struct tw_bp_part *part = NULL;

		if (!active || !(generation->sessions & bit))
			continue;
		if (generation->special & bit)
			part = &generation->parts[__builtin_popcountll(generation->special & (bit - 1))];
		if (part && part->quick.is_set && !is_in_range(&part->quick, call))
			continue;
		if (part && (part->actions & TW_ACTION_COUNT)) {
			/* RELAXED hit.count: a count, summed when somebody asks. */
			tw_fetch_add_relaxed(part->counter, 1);
		}
		/* PROGRESS hit.wants: as in hit(). */
		if ((!part || (part->actions & TW_ACTION_CALL)) &&
		    (tw_load_relaxed(&t->tracee->wants_call) & bit))
			record(t, place, session, call, &wanted);
	}
	return wanted;
}
