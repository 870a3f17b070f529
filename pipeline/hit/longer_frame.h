/* SPDX-License-Identifier: Apache-2.0 */
/*
 * longer_frame.h - frames of calls that are recorded by how they end, and their records.
 *
 * For longer.c and children.c, each with functions of its own, as one_record.h is for the same reason.  In a hit, in a read section.
 */
#ifndef TW_PIPELINE_LONGER_FRAME_H
#define TW_PIPELINE_LONGER_FRAME_H

#include "breakpoints/returns.h"
#include "breakpoints/unwind.h"
#include "pipeline/hit/account.h"
#include "pipeline/hit/condition.h"
#include "pipeline/hit/longer.h"
#include "pipeline/hit/native.h"
#include "pipeline/hit/one_record.h"
#include "pipeline/hit/special.h"
#include "pipeline/thread/thread.h"
#include "progress/read_side.h"

/* As in native.c: identifies a call during its hits. */
#define FRAME(slot) ((const void *)((slot)-1))

/* Frames of the parent are of no use in a forked child. */
extern uint64_t tw_longer_forks __attribute__((visibility("hidden")));

static INLINE uint64_t own_bit(void)
{
	return UINT64_C(1) << tw_hit_host.pinned_session;
}

static INLINE uint64_t limit_of(const struct tw_place *place)
{
	/* RELAXED longer.limit: set before the first call whose length decides; a change is seen by this call or by the next. */
	return tw_load_relaxed(&place->longer_ticks);
}

/* The bits that a place adds to `more` of its frames. */
static INLINE uint64_t more_of(const struct tw_place *place)
{
	/* RELAXED longer.limit: as above. */
	return (uint64_t)tw_load_relaxed(&place->longer_flags) << TW_LONGER_FLAGS_SHIFT;
}

static INLINE const uint64_t *registers_of(const struct tw_longer_frame *frame)
{
	return ((const struct tw_longer_long_frame *)(const void *)frame)->registers;
}

/* Is it a frame that this thread has opened, in this process, and not ended? */
static INLINE bool is_own(const struct tw_hit_tls *t, const struct tw_longer_frame *frame)
{
	return frame->more & TW_LONGER_FRAME && frame->more >> TW_LONGER_FORK_SHIFT == tw_longer_forks &&
	       frame->owner == t->thread && frame->ticks >= t->thread->start_ticks;
}

/* Is the call to be recorded by now, which it is not yet? */
static INLINE bool is_due(const struct tw_longer_frame *frame, uint64_t ticks)
{
	return (frame->more & (TW_LONGER_FRAME | TW_LONGER_RECORDED)) == TW_LONGER_FRAME &&
	       ticks - frame->ticks >= limit_of(frame->place);
}

/* ---- the calls around ---- */

/* Was the call left by a jump?  Only known on the stack that the thread began with.  @slot: of the hit. */
static INLINE bool is_left(const struct tw_thread *thread, const struct tw_longer_frame *frame, const uint64_t *slot)
{
	uintptr_t at = (uintptr_t)frame->slot, here = (uintptr_t)slot;

	if (at < thread->stack_low || at >= thread->stack_high || here < thread->stack_low ||
	    here >= thread->stack_high)
		return false;
	return at < here || !tw_returns_is_stub(*frame->slot);
}

/* The innermost of this thread's open calls from @frame outwards, of those that began before @ticks; NULL: none. */
static struct tw_longer_frame *open_from(const struct tw_hit_tls *t, struct tw_longer_frame *frame, uint64_t ticks)
{
	/* In a hit the state is the address of its frame. */
	const uint64_t *slot = (const uint64_t *)t->state + 1;

	/* Times that fall without end: whatever has become of the frames, there is no circle. */
	for (; frame && is_own(t, frame) && frame->ticks < ticks; frame = frame->above) {
		if (!is_left(t->thread, frame, slot))
			return frame;
		ticks = frame->ticks;
	}
	return NULL;
}

/* ---- records ---- */

static void begin_records(struct tw_hit_tls *t)
{
	struct tw_one_hit *one = &t->thread->one;

	one->recheck.place = NULL;
	one->recheck.wants = &t->tracee->wants_call;
	one->wanted = ~UINT64_C(0);
}

static bool is_wanted(const struct tw_hit_tls *t)
{
	return t->thread->one.wanted & own_bit();
}

/* Writes the record that thread->one describes, if nothing has to be waited for. */
static __attribute__((noinline)) enum tw_rb_outcome put_now(struct tw_hit_tls *t, uint32_t place_id,
							    enum tw_event_kind kind)
{
	struct tw_one_hit *one = &t->thread->one;
	struct tw_thread_ring *ring = &t->thread->rings[tw_hit_host.pinned_session];
	enum tw_rb_outcome outcome = TW_RB_WAIT;

	one->bytes = record_bytes(one);
	if (tw_likely(ring->run_stamp == t->run_stamp))
		outcome = tw_rb_reserve(&ring->producer, one->bytes, one->ticks, (void **)&one->record);
	if (outcome == TW_RB_OK)
		fill(t, place_id, kind);
	return outcome;
}

/* For a ring, or for space in it.  Apart, so that what it needs takes none of its caller's stack. */
static __attribute__((noinline)) bool wait_for_space(struct tw_hit_tls *t)
{
	const struct tw_thread_ring *ring = &t->thread->rings[tw_hit_host.pinned_session];

	return ring->run_stamp != t->run_stamp ? catch_up(t) : wait(t);
}

/* The same, waiting where that is needed; false: it is lost, or not wanted any more.  Part of a function that is not called deeply. */
static INLINE bool put(struct tw_hit_tls *t, uint32_t place_id, enum tw_event_kind kind)
{
	enum tw_rb_outcome outcome = put_now(t, place_id, kind);

	/* A ring, and then space in it. */
	for (unsigned steps = 0; outcome == TW_RB_WAIT && steps < 2; steps++) {
		if (!wait_for_space(t))
			return false;
		outcome = put_now(t, place_id, kind);
	}
	return outcome == TW_RB_OK;
}

/* The word that counts recorded calls.  NULL: the thread has given its words back, and the call stays counted. */
static INLINE _Atomic uint64_t *recorded_word_of(const struct tw_hit_tls *t, uint32_t place_id, bool is_of_all)
{
	uint32_t number = place_id + TW_COUNT_RECORDED;

	if (is_of_all)
		return tw_counter_word_of_all(number);
	return t->own_counts ? tw_count_word(t->own_counts, number) : NULL;
}

static INLINE _Atomic uint64_t *recorded_word(const struct tw_hit_tls *t, const struct tw_longer_frame *frame)
{
	return recorded_word_of(t, frame->place->place_id, frame->more & TW_LONGER_OF_ALL);
}

/* The part of the call's arguments that is recorded; @may_have_text: also of what they point to. */
static INLINE void take_arguments(const struct tw_longer_frame *frame, bool may_have_text)
{
	struct tw_hit_tls *t = &tw_hit_tls;
	struct tw_one_hit *one = &t->thread->one;
	/* PAIR bp.active: acquire; as in hit_inside(). */
	uint32_t active = tw_load_acquire(&tw_bp_gate.active);
	const struct tw_bp_part *part = active ? tw_bp_longer_part(&frame->place->gen[active - 1], own_bit()) : NULL;

	one->words = registers_of(frame);
	if (part)
		tw_hit_take_arguments(t, frame->place, part, &one->words, &one->count, &one->flags, may_have_text);
}

static void take_text_there(void *frame)
{
	take_arguments(frame, true);
}

static __attribute__((noinline)) void take_words(const struct tw_longer_frame *frame)
{
	take_arguments(frame, false);
}

/* Strings take more stack than the program may have left. */
static INLINE void take_arguments_of(const struct tw_longer_frame *frame)
{
	const struct tw_arg_plan *plan = frame->place->function->arguments;

	if (plan && plan->string_count)
		tw_own_stack_call(take_text_there, (void *)(uintptr_t)frame);
	else
		take_words(frame);
}

/* Describes the call as the next record; false: it is not to be recorded. */
static __attribute__((noinline)) bool describe_call(struct tw_hit_tls *t, const struct tw_longer_frame *frame)
{
	struct tw_one_hit *one = &t->thread->one;

	if (!is_wanted(t) || tw_unlikely(!recorded_word(t, frame)))
		return false;
	one->ticks = tw_clock_ticks();
	one->stamp = frame->ticks;
	one->count = 0;
	one->flags = 0;
	if (frame->more & TW_LONGER_KEEPS)
		take_arguments_of(frame);
	return true;
}

/* A call that found no space is lost, and counted there. */
static __attribute__((noinline)) void count_recorded(struct tw_hit_tls *t, struct tw_longer_frame *frame,
						     bool is_recorded)
{
	t->thread->one.stamp = 0;
	if (!is_recorded && !is_wanted(t))
		return;
	/* RELAXED count.add: as for calls.  Behind the record: a program that is killed in between leaves the call in both. */
	tw_fetch_add_relaxed(recorded_word(t, frame), 1);
	frame->more |= TW_LONGER_RECORDED;
}

/* Turns the links of the calls that are not recorded yet, from @frame outwards, and returns the outermost; *around is beyond it. */
static __attribute__((noinline)) struct tw_longer_frame *turn(struct tw_hit_tls *t, struct tw_longer_frame *frame,
							      struct tw_longer_frame **around)
{
	struct tw_longer_frame *inner = NULL, *outer = frame;

	while (outer && !(outer->more & TW_LONGER_RECORDED)) {
		frame = outer;
		outer = open_from(t, frame->above, frame->ticks);
		frame->above = inner;
		inner = frame;
	}
	*around = outer;
	return inner;
}

/* ---- calls ---- */

static INLINE struct tw_longer_frame frame_of(const struct tw_hit_tls *t, const struct tw_place *place, uint64_t *slot,
					      uint64_t ticks)
{
	return (struct tw_longer_frame){.place = place,
					.ticks = ticks,
					.above = t->longer,
					.slot = slot,
					.owner = t->thread,
					.more = TW_LONGER_FRAME | more_of(place) |
						tw_longer_forks << TW_LONGER_FORK_SHIFT};
}

/* Counts the call; true: with those of all threads, as are then those that are recorded. */
static INLINE bool count(struct tw_hit_tls *t, struct tw_counter *counter)
{
	uint32_t number = (uint32_t)(counter - tw_counters);
	_Atomic uint64_t *word = tw_counter_word(t->thread, number);
	bool is_of_all = !word || !tw_counter_word(t->thread, number + TW_COUNT_RECORDED);

	if (tw_likely(!is_of_all))
		tw_count_add(word, 1);
	else
		tw_counter_add(counter, 1);
	return is_of_all;
}

_Static_assert(sizeof(struct tw_longer_long_frame) <= sizeof((struct tw_thread *)0)->callers, "made there");

/*
 * The shadow of the slot is mapped.  Apart, so that its frame takes no stack while settle() waits, and with the words to keep in the
 * thread's memory for callers, which such calls do not record.
 */
static __attribute__((noinline)) void open_frame(struct tw_hit_tls *t, struct tw_place *place, const uint64_t *words,
						 uint64_t *slot, bool is_of_all, const char **resume_at)
{
	tw_return_word *kept = (tw_return_word *)t->thread->callers;
	struct tw_longer_long_frame *frame = (void *)kept;
	struct tw_return_entry *entry;
	bool is_long;

	frame->frame = frame_of(t, place, slot, tw_clock_ticks());
	frame->frame.more |= is_of_all ? TW_LONGER_OF_ALL : 0;
	is_long = frame->frame.more & TW_LONGER_KEEPS;
	for (unsigned i = 0; is_long && i < TW_ARGS_MAX; i++)
		frame->registers[i] = words[i];
	if (!tw_returns_open_mapped(slot, kept, is_long, tw_unwind_is_known(), resume_at))
		return;
	entry = tw_returns_find(slot);
	t->longer = (struct tw_longer_frame *)tw_returns_frame(entry, tw_returns_count(entry) - 1);
}

/* The shadow is mapped then. */
static INLINE bool is_end_seen(const struct tw_place *place, uint64_t *slot)
{
	return !place->is_unwatched && tw_native_is_watching() && (tw_returns_has_shadow(slot) || tw_returns_map(slot));
}

static bool is_traced(const struct tw_hit_tls *t)
{
	/* PROGRESS hit.wants: as in hit(). */
	return tw_load_relaxed(&t->tracee->wants_call) & own_bit();
}

/*
 * Begins a hit of its own, beside what other sessions want of the call, and a read section.  False: there is none.
 *
 * @part	what is wanted of the call; NULL: nothing.
 */
static INLINE bool begin_beside(struct tw_hit_tls *t, const struct tw_place *place, uint64_t *slot,
				const struct tw_bp_part **part)
{
	uint32_t active;

	while (tw_unlikely(!tw_hit_begin(t, FRAME(slot))))
		if (tw_hit_make_ready(t, FRAME(slot)) != TW_THREAD_NEW)
			return false;
	tw_progress_enter(&t->thread->reader);
	/* PAIR bp.active: acquire; as in hit_inside(). */
	active = tw_load_acquire(&tw_bp_gate.active);
	*part = active && is_traced(t) ? tw_bp_longer_part(&place->gen[active - 1], own_bit()) : NULL;
	return true;
}

static INLINE void end_beside(struct tw_hit_tls *t)
{
	tw_progress_exit(&t->thread->reader);
	tw_hit_end(t);
	tw_hit_go_back(t);
}

/* ---- ends ---- */

/* A frame of an entry; NULL: it is empty, because the others are in blocks, or that of a trigger. */
static INLINE struct tw_longer_frame *longer_at(const struct tw_return_entry *entry, unsigned number)
{
	struct tw_longer_frame *frame = (struct tw_longer_frame *)(uintptr_t)tw_returns_frame(entry, number);

	return frame->more & TW_LONGER_FRAME ? frame : NULL;
}

/* Does its end fulfil the condition of the place?  In a hit, in a read section. */
static __attribute__((noinline)) bool is_fulfilled(const struct tw_longer_frame *frame, uint64_t ticks, uint64_t value,
						   bool is_exception)
{
	/* PAIR bp.condition: acquire; release in tw_session_stage_longer(). */
	const struct tw_call_condition *condition = tw_load_acquire(&frame->place->condition);

	/* The call may have begun while the place had another condition. */
	if (!condition || (condition->kept_count && !(frame->more & TW_LONGER_KEEPS)))
		return false;
	return tw_condition_is_met_by_end(condition, frame->place,
					  &(struct tw_condition_end){.registers = registers_of(frame),
								     .ticks = ticks - frame->ticks,
								     .value = value,
								     .is_exception = is_exception});
}

/* After its records: the frame tells which call was around it. */
static void close_frame(struct tw_longer_frame *frame)
{
	struct tw_hit_tls *t = &tw_hit_tls;

	if (t->thread && is_own(t, frame))
		t->longer = frame->above;
	frame->more = 0;
}

/* Its return needs what its registers held. */
static __attribute__((noinline)) void keep_registers(struct tw_hit_tls *t, const struct tw_longer_frame *frame)
{
	const struct tw_arg_plan *plan = frame->place->function->arguments;

	if (plan && plan->keeps)
		tw_open_calls_add(&t->thread->open_calls, plan, t->state, registers_of(frame));
}

#endif
