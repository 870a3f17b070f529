/* SPDX-License-Identifier: Apache-2.0 */
/* longer.c - calls that are recorded by how they end.  Compiled without vector registers, as hit.c. */
#include "pipeline/hit/longer.h"
#include "base/filter.h"
#include "pipeline/hit/children.h"
#include "pipeline/hit/longer_frame.h"
#include "pipeline/hit/one.h"

_Static_assert(sizeof(struct tw_longer_frame) == TW_RETURNS_WORDS * sizeof(uint64_t), "fits an entry");
_Static_assert(sizeof(struct tw_longer_long_frame) <= TW_RETURNS_LONG_WORDS * sizeof(uint64_t), "fits a block");
_Static_assert(offsetof(struct tw_longer_frame, place) == offsetof(struct tw_frame_wants, place), "as any frame");
_Static_assert(offsetof(struct tw_longer_frame, more) == offsetof(struct tw_frame_wants, more), "as any frame");

uint64_t tw_longer_forks;

/*
 * Records the call and those around it, the outermost first: turns their links inwards, and back on the way in.  In a hit, so that
 * nothing else follows the links; if a handler leaves it by a jump, open_from() finds fewer of them.  In place: what it calls may wait.
 */
static INLINE void record_calls(struct tw_hit_tls *t, struct tw_longer_frame *innermost)
{
	struct tw_longer_frame *around, *inner;

	for (struct tw_longer_frame *frame = turn(t, innermost, &around); frame; frame = inner) {
		if (describe_call(t, frame))
			count_recorded(t, frame, put(t, frame->place->place_id, TW_EVENT_CALL));
		inner = frame->above;
		frame->above = around;
		around = frame;
	}
}

/* ---- calls ---- */

/* Drops calls that were left by jumps, and records those around that are long by now.  May wait. */
static __attribute__((noinline)) void settle(struct tw_hit_tls *t)
{
	uint64_t ticks = tw_clock_ticks();
	struct tw_longer_frame *above = t->longer = open_from(t, t->longer, ticks);

	while (above && !is_due(above, ticks) && !(above->more & TW_LONGER_RECORDED))
		above = open_from(t, above->above, above->ticks);
	if (!above || above->more & TW_LONGER_RECORDED)
		return;
	begin_records(t);
	record_calls(t, above);
	tw_thread_ring_tell_behind(t);
}

/* A hit of its own, beside what other sessions want of the call. */
static __attribute__((noinline)) const char *enter_here(struct tw_place *place, const uint64_t *words, uint64_t *slot,
							const char *resume_at)
{
	struct tw_hit_tls *t = &tw_hit_tls;
	const struct tw_bp_part *part;

	if (!begin_beside(t, place, slot, &part))
		return resume_at;
	if (part) {
		bool is_of_all = count(t, part->counter);

		settle(t);
		if (is_end_seen(place, slot))
			open_frame(t, place, words, slot, is_of_all, &resume_at);
		if (more_of(place) & TW_LONGER_AT_ONCE)
			settle(t);
	}
	end_beside(t);
	return resume_at;
}

static INLINE const char *enter_beside(struct tw_place *place, const uint64_t *words, uint64_t *slot,
				       const char *resume_at)
{
	return more_of(place) & TW_LONGER_CHILDREN ? tw_children_enter_beside(place, words, slot, resume_at)
						   : enter_here(place, words, slot, resume_at);
}

static __attribute__((noinline)) const char *enter_behind_others(struct tw_place *place, const uint64_t *words,
								 uint64_t *slot)
{
	return enter_beside(place, words, slot, tw_native_hit_whole(place, words, slot));
}

/* Nothing was done in the hit and its read section.  All calls here are the last thing that is done. */
static __attribute__((noinline)) const char *leave_undone(struct tw_place *place, const uint64_t *words, uint64_t *slot)
{
	/* PAIR bp.active: acquire; as in hit_inside(). */
	uint32_t active = tw_load_acquire(&tw_bp_gate.active);
	const struct tw_bp_generation *generation = &place->gen[(active - 1) & 1];
	bool is_only = active && generation->sessions == own_bit();

	if (is_only && !tw_bp_longer_part(generation, own_bit()))
		return tw_one_call_of(generation, place, words, slot);
	tw_progress_exit(&tw_hit_tls.thread->reader);
	tw_hit_end(&tw_hit_tls);
	return is_only ? enter_beside(place, words, slot, NULL) : enter_behind_others(place, words, slot);
}

/* Called as a tail call. */
static __attribute__((noinline)) const char *wake(const char *resume_at)
{
	tw_progress_wake_waiter();
	return resume_at;
}

/* The word in which the thread counts its calls; NULL: that and the one of recorded calls are not both there. */
static INLINE _Atomic uint64_t *ready_word(const struct tw_thread_counts *own, uint32_t number)
{
	return tw_count_word(own, number + TW_COUNT_RECORDED) ? tw_count_word(own, number) : NULL;
}

const char *tw_longer_enter(struct tw_place *place, const uint64_t *words, uint64_t *slot)
{
	struct tw_hit_tls *t = &tw_hit_tls;
	const struct tw_bp_generation *generation;
	const struct tw_longer_frame *above;
	const struct tw_bp_part *part;
	_Atomic uint64_t *word;
	struct tw_longer_frame frame;
	const char *resume_at;
	uint32_t active;
	bool has_waiter;

	if (tw_unlikely(!tw_hit_begin(t, FRAME(slot))))
		return tw_native_hit_whole(place, words, slot); /* comes back here when the thread is ready */
	tw_progress_enter(&t->thread->reader);
	/* PAIR bp.active: acquire; as in hit_inside(). */
	active = tw_load_acquire(&tw_bp_gate.active);
	generation = &place->gen[(active - 1) & 1];
	part = active && generation->sessions == own_bit() ? tw_bp_longer_part(generation, own_bit()) : NULL;
	word = part && t->own_counts ? ready_word(t->own_counts, (uint32_t)(part->counter - tw_counters)) : NULL;
	if (tw_unlikely(!word || !is_traced(t) || place->is_unwatched || !tw_native_is_watching() ||
			!tw_returns_is_fast(slot)))
		return leave_undone(place, words, slot);
	if (tw_unlikely(more_of(place) & TW_LONGER_CHILDREN)) {
		tw_count_add(word, 1);
		return tw_children_enter(place, words, slot);
	}
	above = t->longer;
	frame = frame_of(t, place, slot, tw_clock_ticks());
	if (tw_unlikely((frame.more & (TW_LONGER_KEEPS | TW_LONGER_AT_ONCE)) ||
			(above && (above->slot <= slot || is_due(above, frame.ticks)))))
		return leave_undone(place, words, slot);
	tw_count_add(word, 1);
	t->longer = (struct tw_longer_frame *)tw_returns_entry(slot)->words;
	resume_at = tw_returns_open_fast(slot, (const tw_return_word *)&frame, tw_unwind_is_known());
	has_waiter = tw_progress_exit_quietly(&t->thread->reader);
	tw_hit_end(t);
	return tw_unlikely(has_waiter) ? wake(resume_at) : resume_at;
}

/* ---- ends ---- */

/*
 * Enters a hit for the records of a call that is to be recorded, and records the call.  False: there are none.  The time is that in the hit: a
 * signal handler may have recorded calls just before it.
 */
static INLINE bool begin_end(struct tw_longer_frame *frame, uint64_t *slot, uint64_t *out, uint64_t value,
			     bool is_exception)
{
	struct tw_hit_tls *t = &tw_hit_tls;
	uint64_t ticks = tw_clock_ticks();
	bool is_decided = frame->more & TW_LONGER_RECORDED || is_due(frame, ticks);

	if (!t->thread || !is_own(t, frame) || !(is_decided || frame->more & TW_LONGER_OF_END) ||
	    !tw_frame_begin(FRAME(slot), frame->more & TW_LONGER_RECORDED ? own_bit() : 0))
		return false;
	*out = ticks = tw_clock_ticks();
	is_decided = is_traced(t) && (is_decided || is_fulfilled(frame, ticks, value, is_exception));
	begin_records(t);
	if (is_decided)
		record_calls(t, frame);
	if (is_traced(t) && frame->more & TW_LONGER_RECORDED && is_wanted(t))
		return true;
	tw_frame_end();
	return false;
}

static INLINE void end(struct tw_longer_frame *frame, uint64_t *slot, uint64_t value)
{
	struct tw_hit_tls *t = &tw_hit_tls;
	uint64_t ticks;

	if (begin_end(frame, slot, &ticks, value, false)) {
		if (frame->more & TW_LONGER_KEEPS)
			keep_registers(t, frame);
		describe_return(t, frame->place, slot, value);
		t->thread->one.stamp = ticks;
		put(t, frame->place->place_id, TW_EVENT_RETURN_FROM);
		t->thread->one.stamp = 0;
		tw_thread_ring_tell_behind(t);
		tw_frame_end();
	}
	close_frame(frame);
}

void tw_longer_end(struct tw_longer_frame *frame, uint64_t *slot, uint64_t value)
{
	if (tw_unlikely(frame->more & TW_LONGER_CHILDREN))
		tw_children_end(frame, slot, value);
	else
		end(frame, slot, value);
}

void tw_longer_throw(struct tw_longer_frame *frame, uint64_t *slot, enum tw_frame_class exception_class,
		     const char *name)
{
	/* PAIR hit.epoch: acquire; as in begin_frame(). */
	const struct tw_frame_wants wants = {.place = (struct tw_place *)(uintptr_t)frame->place,
					     .returns = own_bit(),
					     .exceptions = own_bit(),
					     .epoch = tw_load_acquire(&tw_hit_epoch)};
	struct tw_frame_back back = {.frame = FRAME(slot)};
	uint64_t ticks;
	bool is_recorded;

	if (frame->more & TW_LONGER_CHILDREN) {
		is_recorded = tw_children_throw(frame, slot, tw_frame_class_name(exception_class), name ? name : "");
		if (is_recorded)
			tw_frame_exception(&wants, exception_class, (struct tw_term){0}, name, &back);
		tw_children_close(frame);
		return;
	}
	if (begin_end(frame, slot, &ticks, 0, true)) {
		tw_thread_ring_tell_behind(&tw_hit_tls);
		tw_frame_end();
		tw_frame_exception(&wants, exception_class, (struct tw_term){0}, name, &back);
	}
	close_frame(frame);
}

/* Those of one session are alike. */
static INLINE bool has_children(const struct tw_return_entry *entry)
{
	for (unsigned number = tw_returns_count(entry); number-- > 0;)
		if (longer_at(entry, number))
			return longer_at(entry, number)->more & TW_LONGER_CHILDREN;
	return false;
}

uintptr_t tw_longer_return_all(struct tw_return_entry *entry, uint64_t *slot, uint64_t value)
{
	struct tw_longer_frame *frame;

	if (tw_unlikely(has_children(entry)))
		return tw_children_return(entry, slot, value);
	for (unsigned number = tw_returns_count(entry); number-- > 0;) {
		frame = longer_at(entry, number);
		if (frame)
			end(frame, slot, value);
	}
	tw_returns_close(entry);
	return entry->return_address;
}

/* Is it certain at once that the end does not fulfil the condition?  Memory that the condition points to is never freed. */
static INLINE bool is_refused(const struct tw_longer_frame *frame, uint64_t value)
{
	/* PAIR bp.condition: acquire; as in is_fulfilled(). */
	const struct tw_call_condition *condition = tw_load_acquire(&frame->place->condition);

	return condition && tw_condition_refuses(condition, value);
}

/* No read section: the short way uses memory of the process and of the thread that is never freed. */
uintptr_t tw_longer_return(struct tw_return_entry *entry, uint64_t *slot, uint64_t value)
{
	struct tw_longer_frame *frame = (struct tw_longer_frame *)entry->words;
	struct tw_hit_tls *t = &tw_hit_tls;

	if (tw_unlikely(t->state != TW_THREAD_READY || !is_own(t, frame) ||
			frame->more & (TW_LONGER_RECORDED | TW_LONGER_CHILDREN) ||
			!(frame->more & TW_LONGER_OF_END ? is_refused(frame, value)
							 : tw_clock_ticks() - frame->ticks < limit_of(frame->place))))
		return tw_longer_return_all(entry, slot, value);
	t->longer = frame->above;
	frame->more = 0;
	tw_returns_close(entry);
	return entry->return_address;
}

/* ---- ends of programs ---- */

void tw_longer_record_open(void)
{
	uint64_t *slot = (uint64_t *)__builtin_frame_address(0) + 1;

	struct tw_hit_tls *t = &tw_hit_tls;

	if (!t->thread || !t->longer || !tw_thread_may_call_system() || !tw_thread_is_own_process() ||
	    !tw_frame_begin(FRAME(slot), 0))
		return;
	if (is_traced(t) && t->thread->children.root)
		tw_children_settle();
	else if (is_traced(t))
		settle(t);
	tw_frame_end();
}

void tw_longer_after_fork_in_child(void)
{
	tw_longer_forks++;
	tw_hit_tls.longer = NULL;
	if (tw_hit_tls.thread)
		tw_hit_tls.thread->children.root = NULL; /* what is kept goes with the next one */
}
