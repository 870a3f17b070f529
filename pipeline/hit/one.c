/* SPDX-License-Identifier: Apache-2.0 */
/*
 * one.c - native calls of the one session that the command has in the program.
 *
 * Functions here have few variables, and most calls are the last thing that a function does: each frame counts, because the
 * program's stack may have little left.  Compiled without vector registers, as hit.c.
 */
#include "pipeline/hit/one.h"
#include "breakpoints/own_stack.h"
#include "breakpoints/returns.h"
#include "breakpoints/unwind.h"
#include "pipeline/hit/native.h"
#include "pipeline/hit/one_record.h"
#include "pipeline/hit/special.h"
#include "pipeline/hit/walk.h"
#include "progress/read_side.h"
#include "tracewheel/session.h"

/* As in native.c: identifies a call during its hits. */
#define FRAME(slot) ((void *)((slot)-1))

/* Claims the space for a record, as thread->one says; as tw_thread_ring_reserve(), in fewer words of stack. */
static __attribute__((noinline)) bool reserve(struct tw_hit_tls *t)
{
	struct tw_one_hit *one = &t->thread->one;
	struct tw_thread_ring *ring = &t->thread->rings[tw_hit_host.pinned_session];
	enum tw_rb_outcome outcome;

	if (tw_unlikely(ring->run_stamp != t->run_stamp) && !catch_up(t))
		return false;
	outcome = tw_rb_reserve(&ring->producer, one->bytes, one->ticks, (void **)&one->record);
	if (tw_unlikely(outcome == TW_RB_WAIT) && wait(t))
		outcome = tw_rb_reserve(&ring->producer, one->bytes, one->ticks, (void **)&one->record);
	return outcome == TW_RB_OK;
}

/* Writes one record, as thread->one says; false: it is lost, or not wanted any more. */
static __attribute__((noinline)) bool put(struct tw_hit_tls *t, const struct tw_place *place, enum tw_event_kind kind)
{
	t->thread->one.bytes = record_bytes(&t->thread->one);
	if (!reserve(t))
		return false;
	fill(t, place->place_id, kind);
	return true;
}

/* ---- calls ---- */

/* Does the generation want the call for this session only, and no more than is done here? */
static INLINE bool is_simple(const struct tw_hit_tls *t, const struct tw_bp_generation *generation, uint64_t bit,
			     uint64_t todo)
{
	const uint32_t known = TW_ACTION_CALL | TW_ACTION_GLOBAL | TW_ACTION_RETURN | TW_ACTION_EXCEPTION;

	/* RELAXED hit.special: a change is seen by this call or by the next. */
	if (todo != bit || generation->counting || (todo & tw_load_relaxed(&t->tracee->special)))
		return false;
	return !(generation->special & bit) || ((tw_bp_part_of(generation, bit)->actions & (known | TW_ACTION_META)) |
						TW_ACTION_GLOBAL | TW_ACTION_RETURN | TW_ACTION_EXCEPTION) == known;
}

/* The callers follow the call, with the same time. */
static __attribute__((noinline)) void put_with_callers(struct tw_hit_tls *t, const struct tw_place *place,
						       uint64_t frame, unsigned depth)
{
	struct tw_thread *thread = t->thread;
	/* Before the first record, which may have to wait: then the part is gone. */
	unsigned count = tw_walk_callers(thread, (const uint64_t *)t->state + 1, frame, thread->callers, depth);

	if (!put(t, place, TW_EVENT_CALL) || !count || !(thread->one.wanted >> tw_hit_host.pinned_session & 1))
		return;
	thread->one.words = thread->callers;
	thread->one.count = count;
	thread->one.flags = 0;
	put(t, place, TW_EVENT_STACK);
}

/*
 * Leaves the hit.  The call's end is watched before, because what is wanted of it lies in the thread's structure; a call that
 * cannot be watched is counted where that is found.
 */
static __attribute__((noinline)) const char *leave(struct tw_hit_tls *t, struct tw_place *place, uint64_t *slot)
{
	const struct tw_frame_wants *wants = &t->thread->one.wants;
	const char *resume_at = NULL;

	tw_progress_exit(&t->thread->reader);
	if ((wants->returns | wants->return_tos) && !place->is_unwatched && tw_native_is_watching())
		tw_returns_open(slot, (const tw_return_word *)wants, false,
				(wants->exceptions | wants->return_tos) && tw_unwind_is_known(), &resume_at);
	tw_hit_end(t);
	return resume_at;
}

static const char *leave_unwanted(struct tw_hit_tls *t, struct tw_place *place, uint64_t *slot)
{
	t->thread->one.wants.returns = t->thread->one.wants.return_tos = 0;
	return leave(t, place, slot);
}

static __attribute__((noinline)) void put_as_part(struct tw_hit_tls *t, struct tw_place *place,
						  const struct tw_bp_part *part)
{
	struct tw_one_hit *one = &t->thread->one;
	unsigned depth = part->stack_depth;
	uint64_t frame = one->words[TW_WALK_FRAME_WORD];

	if (part->slot_words)
		tw_hit_take_arguments(t, place, part, &one->words, &one->count, &one->flags, true);
	one->ticks = tw_clock_ticks();
	if (depth)
		put_with_callers(t, place, frame, depth);
	else
		put(t, place, TW_EVENT_CALL);
}

static __attribute__((noinline)) const char *put_and_leave(struct tw_hit_tls *t, struct tw_place *place, uint64_t *slot,
							   const struct tw_bp_part *part)
{
	put_as_part(t, place, part);
	return leave(t, place, slot);
}

static void do_there(void *arg)
{
	struct tw_hit_tls *t = arg;
	struct tw_one_hit *one = &t->thread->one;

	tw_hit_do(t, one->wants.place, one->part, &one->call, &one->decided);
}

/*
 * Actions, an extra element, or no event.  The record, whose size is not known yet, must not wait on our own stack: so there is space for
 * the largest before.
 */
static __attribute__((noinline)) void do_more(struct tw_hit_tls *t)
{
	struct tw_one_hit *one = &t->thread->one;

	/* A copy: acting and recording may overwrite the thread's run. */
	one->decided = t->thread->run.result;
	tw_hit_act(t);
	one->ticks = tw_clock_ticks();
	one->bytes = TW_RB_RECORD_BYTES_MAX;
	if (one->decided.verdict == TW_MATCH_SUPPRESS || reserve(t))
		tw_own_stack_call(do_there, t);
}

static __attribute__((noinline)) const char *decide(struct tw_hit_tls *t, struct tw_place *place, uint64_t *slot,
						    const struct tw_bp_part *part)
{
	struct tw_one_hit *one = &t->thread->one;
	enum tw_hit_verdict verdict;

	one->part = part;
	one->call = (struct tw_hit_call){.words = one->words, .count = TW_ARGS_MAX, .frame = &one->wants};
	verdict = tw_hit_run(t, part, &one->call);
	if (verdict == TW_HIT_UNWANTED)
		return leave_unwanted(t, place, slot);
	if (verdict == TW_HIT_PLAIN)
		return put_and_leave(t, place, slot, part);
	do_more(t);
	return leave(t, place, slot);
}

static __attribute__((noinline)) const char *call_as_part(struct tw_hit_tls *t, struct tw_place *place, uint64_t *slot,
							  const struct tw_bp_part *part)
{
	int quick = part->program ? tw_bp_quick_test(&part->quick, t->thread->one.words, TW_ARGS_MAX) : 1;

	if (quick < 0)
		return decide(t, place, slot, part);
	return quick ? put_and_leave(t, place, slot, part) : leave_unwanted(t, place, slot);
}

static __attribute__((noinline)) const char *call_plainly(struct tw_hit_tls *t, struct tw_place *place, uint64_t *slot)
{
	t->thread->one.ticks = tw_clock_ticks();
	put(t, place, TW_EVENT_CALL);
	return leave(t, place, slot);
}

/* The wishes for the call and its end, as the general case finds it. */
static INLINE void begin(struct tw_hit_tls *t, struct tw_place *place, const struct tw_bp_generation *generation,
			 const uint64_t *words, uint64_t bit)
{
	struct tw_one_hit *one = &t->thread->one;

	one->wants.place = place;
	one->wants.exceptions = bit & generation->exceptions;
	one->wants.returns = bit & (generation->returns | generation->exceptions);
	/* RELAXED hit.return_to: a change is seen by this call or by the next. */
	one->wants.return_tos = place->kind == TW_BP_SLOT
					? 0
					: bit & ~generation->global & tw_load_relaxed(&t->tracee->wants_return_to);
	one->wants.more = 0;
	/* PAIR hit.epoch: acquire; as in begin_frame(). */
	one->wants.epoch = tw_load_acquire(&tw_hit_epoch);
	one->recheck.place = place;
	one->recheck.wants = &t->tracee->wants_call;
	one->wanted = ~UINT64_C(0);
	one->words = words;
	one->count = 0;
	one->flags = 0;
}

/* No session wants the call any more, or the process is a child that is not recorded. */
static INLINE const char *leave_unwanted_by_all(struct tw_hit_tls *t)
{
	tw_progress_exit(&t->thread->reader);
	tw_hit_end(t);
	return NULL;
}

static INLINE const char *call_of(const struct tw_bp_generation *generation, struct tw_place *place,
				  const uint64_t *words, uint64_t *slot)
{
	struct tw_hit_tls *t = &tw_hit_tls;
	uint64_t bit = UINT64_C(1) << tw_hit_host.pinned_session;
	/* PROGRESS hit.wants: as in hit(). */
	uint64_t todo = generation->sessions & tw_load_relaxed(&t->tracee->wants_call);

	if (tw_unlikely(!tw_hit_host.pinned_rs || !is_simple(t, generation, bit, todo)))
		return todo | generation->counting || generation->only_counter
			       ? tw_native_hit_generally(place, words, slot)
			       : leave_unwanted_by_all(t);
	begin(t, place, generation, words, bit);
	if (generation->special & bit)
		return call_as_part(t, place, slot, tw_bp_part_of(generation, bit));
	return call_plainly(t, place, slot);
}

const char *tw_one_call_of(const struct tw_bp_generation *generation, struct tw_place *place, const uint64_t *words,
			   uint64_t *slot)
{
	return call_of(generation, place, words, slot);
}

const char *tw_one_call(struct tw_place *place, const uint64_t *words, uint64_t *slot)
{
	/* PAIR bp.active: acquire; as in hit_inside(). */
	uint32_t active = tw_load_acquire(&tw_bp_gate.active);

	return tw_likely(active) ? call_of(&place->gen[active - 1], place, words, slot)
				 : leave_unwanted_by_all(&tw_hit_tls);
}

/* ---- returns ---- */

void tw_one_return(const struct tw_frame_wants *wants, uint64_t *slot, uint64_t value)
{
	struct tw_hit_tls *t = &tw_hit_tls;
	struct tw_one_hit *one;

	/* RELAXED hit.wants: an early test; the decisive one is inside the read section. */
	if ((t->state == TW_THREAD_READY && !tw_load_relaxed(&t->tracee->wants_call)) ||
	    !tw_frame_begin(FRAME(slot), wants->returns))
		return;
	/* PAIR hit.epoch: acquire; a session that got another's bit comes with its own epoch. */
	if (tw_load_acquire(&t->tracee->wants_call) & wants->returns & ~tw_hit_newer_than(wants->epoch)) {
		one = &t->thread->one;
		one->recheck.place = NULL;
		one->recheck.wants = &t->tracee->wants_call;
		one->wanted = ~UINT64_C(0);
		describe_return(t, wants->place, slot, value);
		put(t, wants->place, TW_EVENT_RETURN_FROM);
	}
	tw_frame_end();
}
