/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hit.c - the data path, from a call that passes a place to a record in each session's ring.
 *
 *	state of the thread	not ready: joining, nested, ended		thread.c, below
 *	wants_call		nobody wants calls of this tracee: done, two loads
 *	read section		from here on nothing that is reached is freed
 *	active index		which generation
 *	sessions & wants	who wants this call of this tracee
 *	special			match programs, counters, strict stamps:	special.c
 *	clock			read once
 *	each session		lane, room, 16 bytes and the words, one release store
 *
 * Neither allocates, locks nor calls the system, but to join (once a thread) and to wait for room
 * where `block` was asked for.  Keeps errno.  Compiled without vector registers, as is everything it
 * calls but what thread.c wraps: trampolines keep the integer registers only.
 */
#include "pipeline/hit.h"
#include "base/clock.h"
#include "base/export.h"
#include "progress/read_side.h"
#include "tracewheel/function.h"

__thread struct tw_hit_tls tw_hit_tls;
struct tw_tracee tw_hit_nobody;
struct tw_hit_session tw_hit_sessions[TW_SESSIONS_MAX];
struct tw_hit_host tw_hit_host;

/* A call's words: in registers as long as there are at most two, else in memory. */
struct words {
	unsigned count; /* to record */
	uint64_t a, b;
	const uint64_t *more;
	unsigned more_count; /* to look at: match programs see argument registers that are not recorded */
};

static inline __attribute__((always_inline)) uint32_t bytes_of(unsigned count)
{
	return (uint32_t)sizeof(struct tw_rb_record) + (count + 1) / 2 * 16;
}

static inline __attribute__((always_inline)) void fill(struct tw_rb_record *record, struct words w)
{
	uint64_t *payload = (uint64_t *)(record + 1);

	if (w.more) {
		for (unsigned i = 0; i < w.count; i++)
			payload[i] = w.more[i];
		return;
	}
	if (w.count > 0)
		payload[0] = w.a;
	if (w.count > 1)
		payload[1] = w.b;
}

/* One record for each session of todo. */
static inline __attribute__((always_inline)) void record_all(struct tw_hit_tls *t, struct tw_place *place,
							      uint64_t todo, struct words w)
{
	uint64_t ticks = tw_clock_ticks();
	uint32_t bytes = bytes_of(w.count);
	unsigned half = w.count % 2 ? TW_EVENT_FLAG_HALF : 0;

	do {
		unsigned session = (unsigned)__builtin_ctzll(todo);
		struct tw_lane *lane = &t->thread->lanes[session];
		/* RELAXED hit.record_flags: one byte; a change is seen by this call or by the next. */
		unsigned flags = half | tw_load_relaxed(&t->tracee->record_flags[session]);
		struct tw_rb_record *record;
		enum tw_rb_outcome outcome;

		todo &= todo - 1;
		if (tw_unlikely(lane->run_stamp != t->run_stamp) && !tw_lane_catch_up(t, place, session, ticks, &todo))
			continue;
		outcome = tw_rb_reserve(&lane->producer, bytes, ticks, (void **)&record);
		if (tw_unlikely(outcome != TW_RB_OK)) {
			if (outcome != TW_RB_WAIT || !tw_lane_wait(t, place, session, bytes, ticks, &todo) ||
			    tw_rb_reserve(&lane->producer, bytes, ticks, (void **)&record) != TW_RB_OK)
				continue;
		}
		record->ticks = ticks;
		record->head = TW_RB_HEAD(TW_EVENT_CALL, flags, bytes, place->place_id);
		fill(record, w);
		tw_rb_commit(&lane->producer, bytes);
	} while (todo);
}

static void hit_unready(struct tw_place *place, struct words w, void *frame);

/* One session with a match program and nothing else, the common case of a guard; NULL: anything more. */
static inline const struct tw_bp_part *only_part(const struct tw_bp_generation *generation, uint64_t special,
						 uint64_t tracee_special)
{
	const struct tw_bp_part *part;

	if ((special & (special - 1)) || (special & (tracee_special | generation->counting)))
		return NULL;
	part = tw_bp_part_of(generation, special);
	return part->actions == TW_ACTION_CALL && part->program && !part->slot_words ? part : NULL;
}

/* What is left to record when everything special is done.  A fused range test makes the call plain, or nothing. */
static inline __attribute__((always_inline)) uint64_t hit_special(struct tw_hit_tls *t, struct tw_place *place,
								   const struct tw_bp_generation *generation,
								   uint64_t todo, struct words w)
{
	/* RELAXED hit.special: a change is seen by this call or by the next. */
	uint64_t tracee_special = tw_load_relaxed(&t->tracee->special);
	uint64_t special = (todo & (generation->special | tracee_special)) | generation->counting;
	uint64_t pair[2] = { w.a, w.b };
	const uint64_t *words = w.more ? w.more : pair;
	unsigned count = w.more ? w.more_count : w.count;
	uint64_t fused = special & generation->fused & ~tracee_special;

	if (fused) {
		int quick = tw_bp_quick_test(&generation->quick, words, count);

		if (quick >= 0)
			special &= ~fused;
		if (quick == 0)
			todo &= ~fused;
	}
	if (special) {
		struct tw_hit_call call = { words, count, w.count };
		const struct tw_bp_part *part = only_part(generation, special, tracee_special);

		if (!part)
			return todo & ~special & tw_hit_special(t, place, special, &call);
		switch (tw_hit_run(t, part, &call)) {
		case TW_HIT_UNWANTED: return todo & ~special;
		case TW_HIT_PLAIN: return todo;
		default: return todo & ~special & tw_hit_decided(t, place, part, &call);
		}
	}
	return todo;
}

static inline __attribute__((always_inline)) void hit(struct tw_place *place, struct words w)
{
	struct tw_hit_tls *t = &tw_hit_tls;
	uint32_t active;

	if (tw_unlikely(t->state != TW_THREAD_READY)) {
		hit_unready(place, w, __builtin_frame_address(0));
		return;
	}
	/* RELAXED hit.wants: a first look; the one that counts is inside the read section. */
	if (!(tw_load_relaxed(&t->tracee->wants_call) | tw_load_relaxed(&place->counting)))
		return;
	t->state = (uintptr_t)__builtin_frame_address(0);
	tw_compiler_barrier();
	tw_progress_enter();
	/* PAIR bp.active: acquire; release in tw_bp_commit().  The generation is seen as it was staged. */
	active = tw_load_acquire(&tw_bp_gate.active);
	if (tw_likely(active)) {
		const struct tw_bp_generation *generation = &place->gen[active - 1];
		/* PROGRESS hit.wants: who takes a flag away waits for this read section to end. */
		uint64_t todo = generation->sessions & tw_load_relaxed(&t->tracee->wants_call);
		/* RELAXED hit.special: a change is seen by this call or by the next. */
		uint64_t special = todo & (generation->special | tw_load_relaxed(&t->tracee->special));

		if (tw_unlikely(special | generation->counting))
			todo = hit_special(t, place, generation, todo, w);
		if (todo)
			record_all(t, place, todo, w);
	}
	tw_progress_exit();
	tw_compiler_barrier();
	t->state = TW_THREAD_READY;
	if (tw_unlikely(!active) && tw_hit_host.forked)
		tw_hit_host.forked();
}

/* Inside another hit of this thread (a signal handler): counted for all who would have had a record. */
static void count_nested(struct tw_hit_tls *t, struct tw_place *place)
{
	uint64_t ticks = tw_clock_ticks();
	uint32_t active;

	tw_progress_enter();
	/* PAIR bp.active: acquire; as in hit(). */
	active = tw_load_acquire(&tw_bp_gate.active);
	/* PROGRESS hit.wants: as in hit(). */
	for (uint64_t todo = active ? place->gen[active - 1].sessions & tw_load_relaxed(&t->tracee->wants_call) : 0;
	     todo; todo &= todo - 1) {
		unsigned session = (unsigned)__builtin_ctzll(todo);
		struct tw_lane *lane = &t->thread->lanes[session];

		if (lane->producer.shared)
			tw_rb_refuse(&lane->producer, TW_RB_LOST_NESTED, ticks);
		else
			tw_rs_count_no_ring(tw_hit_sessions[session].rs, tw_hit_sessions[session].image, ticks);
	}
	tw_progress_exit();
}

/*
 * After its last destructor a thread has no ring and no read side; only what is never freed is used.  A change
 * that is under way may be seen half: then a call is counted, or not, for one that comes or goes.
 */
static void count_late(struct tw_place *place)
{
	/* PAIR bp.active: acquire; as in hit(). */
	uint32_t active = tw_load_acquire(&tw_bp_gate.active);

	if (active && tw_hit_host.pinned_rs && (place->gen[active - 1].sessions >> tw_hit_host.pinned_session & 1))
		tw_rs_count_no_ring(tw_hit_host.pinned_rs, tw_hit_host.pinned_image, tw_clock_ticks());
}

/* A handler jumped out of a hit, at any instruction of it: perhaps inside its read section, perhaps waiting. */
static void leave_abandoned(struct tw_hit_tls *t)
{
	/* PAIR hit.waiting: seq_cst; who destroys the session waits for this. */
	tw_store_seq_cst(&t->thread->waiting_session, 0);
	while (tw_progress_is_inside())
		tw_progress_exit();
	t->state = TW_THREAD_READY;
}

static __attribute__((noinline, cold)) void hit_unready(struct tw_place *place, struct words w, void *frame)
{
	struct tw_hit_tls *t = &tw_hit_tls;

	if (tw_hit_is_under_way()) {
		if (!tw_hit_was_abandoned(t, frame)) {
			count_nested(t, place);
			return;
		}
		leave_abandoned(t);
	} else if (t->state == TW_THREAD_ENDED) {
		count_late(place);
		return;
	} else if (t->state == TW_THREAD_JOINING || !tw_hit_join()) {
		/* A call of our own; or a thread that cannot join. */
		return;
	}
	hit(place, w);
}

/* PAIR bp.place: acquire; release in tw_function_declare().  The place is filled in before it is shown. */
#define PLACE_OF(function) tw_load_plain_acquire(&(function)->place)

TW_API void tw_hit0(struct tw_declared_function *function)
{
	hit(PLACE_OF(function), (struct words){ 0, 0, 0, NULL, 0 });
}

TW_API void tw_hit1(struct tw_declared_function *function, uint64_t a)
{
	hit(PLACE_OF(function), (struct words){ 1, a, 0, NULL, 0 });
}

TW_API void tw_hit2(struct tw_declared_function *function, uint64_t a, uint64_t b)
{
	hit(PLACE_OF(function), (struct words){ 2, a, b, NULL, 0 });
}

TW_API void tw_hit_words(struct tw_declared_function *function, const uint64_t *words, unsigned count)
{
	if (count > TW_ARGS_MAX)
		count = TW_ARGS_MAX;
	hit(PLACE_OF(function), (struct words){ count, 0, 0, words, count });
}

void tw_hit_slot(struct tw_place *place, const uint64_t *words)
{
	hit(place, (struct words){ 0, 0, 0, words, TW_ARGS_MAX });
}
