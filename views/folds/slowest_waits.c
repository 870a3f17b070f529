/* SPDX-License-Identifier: Apache-2.0 */
/* slowest_waits.c - the waits for locks within the slowest calls, and the calls in which other threads held the locks. */
#include "views/folds/slowest.h"

#include "base/grow.h"

#include "tracewheel/error.h"

#include <stdlib.h>

/* The open calls of the thread of an event, as before it. NULL: not known. */
static struct tw_stack *stack_of(const struct tw_stacks *stacks, const struct tw_capture_event *event)
{
	return event->stream < stacks->stream_count ? stacks->streams[event->stream] : NULL;
}

static void on_took(void *context, const struct tw_lock_row *lock, uint32_t thread)
{
	struct tw_slowest *slowest = context;
	struct tw_slowest_waits *waits = &slowest->waits;
	const struct tw_capture_event *event = waits->locks.event;
	const struct tw_stack *stack = stack_of(&slowest->stacks, event);
	uint32_t depth = stack ? stack->depth : 0;
	if (!tw_grow_to(waits->holders, waits->holder_count, lock->number)) {
		waits->has_no_memory = true;
		return;
	}
	/* Readers of a lock may be several: the first is the one for whom others wait. */
	if (lock->reader_count && waits->holders[lock->number].took_ns)
		return;
	/* The function of the lock is still open where it returns: its caller is meant. */
	if (depth && stack->frames[depth - 1].function == tw_places_function(&slowest->places, event->image, event->id))
		depth--;
	const struct tw_stack_frame *frame = depth ? &stack->frames[depth - 1] : NULL;
	waits->holders[lock->number] =
		(struct tw_slow_holder){.thread = thread,
					.function = frame ? frame->function : TW_PLACES_UNKNOWN,
					.took_ns = event->time_ns,
					.call_ns = frame ? frame->start_ns - frame->before_ns : 0};
}

static struct tw_slow_holder holder_of(const struct tw_slowest_waits *waits, const struct tw_lock_waited *wait)
{
	uint32_t lock = wait->lock->number;
	if (lock < waits->holder_count && waits->holders[lock].took_ns && waits->holders[lock].thread == wait->by)
		return waits->holders[lock];
	return (struct tw_slow_holder){.thread = wait->by, .function = TW_PLACES_UNKNOWN};
}

static void on_held(void *context, const struct tw_lock_waited *wait)
{
	struct tw_slowest *slowest = context;
	struct tw_slow_part *part = &slowest->waits.parts[wait->waiter];
	const struct tw_slow_holder by = holder_of(&slowest->waits, wait);
	bool is_same_wait = part->ns && part->begin_ns == wait->begin_ns;
	if (is_same_wait && part->by.thread == by.thread && part->by.took_ns == by.took_ns)
		part->ns += wait->ns;
	else if (!is_same_wait || wait->ns > part->ns)
		*part = (struct tw_slow_part){.by = by, .begin_ns = wait->begin_ns, .ns = wait->ns};
}

static void keep(struct tw_slow_call *call, const struct tw_slow_wait *wait)
{
	uint32_t at = call->wait_count < TW_SLOW_WAITS_MAX ? (uint32_t)call->wait_count : TW_SLOW_WAITS_MAX;
	call->wait_count++;
	call->wait_ns += wait->ns;
	if (at == TW_SLOW_WAITS_MAX && wait->ns <= call->waits[--at].ns)
		return;
	for (; at > 0 && call->waits[at - 1].ns < wait->ns; at--)
		call->waits[at] = call->waits[at - 1];
	call->waits[at] = *wait;
}

/* The innermost of the found calls that are open. NULL: none is. */
static struct tw_slow_call *call_around(const struct tw_slowest *slowest, const struct tw_stack *stack,
					uint64_t *start_ns)
{
	for (uint32_t depth = stack ? stack->depth : 0; depth; depth--) {
		const struct tw_stack_frame *frame = &stack->frames[depth - 1];
		*start_ns = frame->start_ns;
		if (frame->node && slowest->nodes[frame->node].call)
			return &slowest->calls[slowest->nodes[frame->node].call - 1];
	}
	return NULL;
}

static void on_waited(void *context, const struct tw_lock_waited *wait)
{
	struct tw_slowest *slowest = context;
	struct tw_slow_part *part = &slowest->waits.parts[wait->waiter];
	const struct tw_capture_event *event = slowest->waits.locks.event;
	uint64_t start_ns;
	struct tw_slow_call *call = call_around(slowest, stack_of(&slowest->stacks, event), &start_ns);
	struct tw_slow_wait slow = {.lock = wait->lock->number,
				    .begin_ns = wait->begin_ns,
				    .ns = wait->ns,
				    .by = {.thread = TW_LOCK_NONE, .function = TW_PLACES_UNKNOWN}};
	if (wait->lock->kind == TW_LOCK_CONDITION)
		slow.by = holder_of(&slowest->waits, wait);
	else if (part->ns && part->begin_ns == wait->begin_ns)
		slow.by = part->by;
	part->ns = 0;
	if (!call)
		return;
	/* Of a call that began before the selection, the part in it. */
	if (slow.begin_ns < start_ns && event->time_ns - start_ns < slow.ns) {
		slow.ns = event->time_ns - start_ns;
		slow.begin_ns = start_ns;
	}
	keep(call, &slow);
}

int tw_slowest_waits_begin(struct tw_slowest *slowest, const struct tw_capture_filter *filter, struct tw_fold *fold)
{
	struct tw_slowest_waits *waits = &slowest->waits;
	struct tw_capture_filter all = *filter;
	/* Holders may be other threads than those selected, and have taken their locks before. */
	all.from_ns = 0;
	all.wants_stream = NULL;
	all.wants_thread_states = false;
	int error = tw_locks_begin(&waits->locks, slowest->capture, &all, fold);
	waits->parts = calloc(waits->locks.thread_count + (size_t)1, sizeof *waits->parts);
	waits->locks.on = (struct tw_locks_calls){on_took, on_held, on_waited, slowest};
	return error || waits->parts ? error : TW_ENOMEM;
}

void tw_slowest_waits_free(struct tw_slowest_waits *waits)
{
	free(waits->holders);
	free(waits->parts);
	tw_locks_free(&waits->locks);
}
