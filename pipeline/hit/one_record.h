/* SPDX-License-Identifier: Apache-2.0 */
/*
 * one_record.h - the records of the one session that the command has in the program, on as little of the program's stack as possible.
 *
 * Included by the files that write them, each with functions of its own: a function that only its own file calls needs no aligned
 * stack, nor do those that call it, and each frame counts.  In a hit, in a read section.
 */
#ifndef TW_PIPELINE_ONE_RECORD_H
#define TW_PIPELINE_ONE_RECORD_H

#include "breakpoints/own_stack.h"
#include "breakpoints/returns.h"
#include "pipeline/hit/described.h"
#include "pipeline/hit/record.h"

#define INLINE inline __attribute__((always_inline))

static __attribute__((noinline)) bool wait(struct tw_hit_tls *t)
{
	struct tw_one_hit *one = &t->thread->one;

	return tw_thread_ring_wait(t, &one->recheck, tw_hit_host.pinned_session, one->bytes, one->ticks, &one->wanted);
}

static __attribute__((noinline)) bool catch_up(struct tw_hit_tls *t)
{
	struct tw_one_hit *one = &t->thread->one;

	return tw_thread_ring_catch_up(t, &one->recheck, tw_hit_host.pinned_session, one->ticks, &one->wanted);
}

/* Of the record that thread->one describes. */
static INLINE uint32_t record_bytes(const struct tw_one_hit *one)
{
	return (uint32_t)sizeof(struct tw_rb_record) + (one->count + 1) / 2 * 16;
}

/* Writes that record, for which space is reserved. */
static INLINE void fill(struct tw_hit_tls *t, uint32_t place_id, enum tw_event_kind kind)
{
	struct tw_one_hit *one = &t->thread->one;
	struct tw_rb_record *record = one->record;
	unsigned flags;

	/* RELAXED hit.record_flags: one byte; a change is seen by this call or by the next. */
	flags = one->flags | tw_load_relaxed(&t->tracee->record_flags[tw_hit_host.pinned_session]);
	flags |= one->count % 2 ? TW_EVENT_FLAG_HALF : 0;
	record->ticks = one->stamp ? one->stamp : one->ticks;
	record->head = TW_RB_HEAD(kind, flags, one->bytes, place_id);
	tw_record_copy((uint64_t *)(record + 1), one->words, one->count);
	tw_rb_commit(&t->thread->rings[tw_hit_host.pinned_session].producer, one->bytes);
}

/* ---- results ---- */

static void describe_there(void *arg)
{
	struct tw_thread *thread = arg;
	struct tw_one_hit *one = &thread->one;
	const struct tw_arg_plan *plan = one->wants.place->function->arguments;

	one->count =
		tw_described_return(plan->describes, one->result[0],
				    tw_open_calls_take(&thread->open_calls, plan, tw_hit_tls.state), thread->arguments);
}

/* Descriptors that the call has made, and memory that it has filled.  Descriptions take more stack than the program's may have left. */
static __attribute__((noinline)) void take_more(struct tw_thread *thread, const struct tw_arg_plan *plan)
{
	struct tw_one_hit *one = &thread->one;

	if (plan->describes)
		tw_own_stack_call(describe_there, thread);
	else
		one->count = tw_arg_capture_filled(plan, one->result[0],
						   tw_open_calls_take(&thread->open_calls, plan, tw_hit_tls.state),
						   *thread->errno_at, &thread->copying, thread->arguments);
	one->words = thread->arguments;
}

/* The value is in rax, unless debug information said otherwise. */
static INLINE void take_result(struct tw_thread *thread, const struct tw_place *place, const uint64_t *slot,
			       uint64_t value)
{
	struct tw_one_hit *one = &thread->one;

	one->result[0] = value;
	one->words = one->result;
	one->count = 1;
	if (tw_likely(!place->gives))
		return;
	one->wants.place = (struct tw_place *)(uintptr_t)place;
	if (place->gives != TW_BP_GIVES_MORE)
		one->count = tw_arg_read_result(place->gives, value, tw_returns_second(slot), one->result);
	else if (place->function->arguments)
		take_more(thread, place->function->arguments);
}

/* Describes the return of a call as the next record. */
static INLINE void describe_return(struct tw_hit_tls *t, const struct tw_place *place, const uint64_t *slot,
				   uint64_t value)
{
	t->thread->one.flags = 0;
	take_result(t->thread, place, slot, value);
	t->thread->one.ticks = tw_clock_ticks();
}

#endif
