/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stacks_find.c - the table of stacks, by the process that an event belongs to.
 *
 * Not map.h: views end open calls in the order of tw_stacks_next(), so the order of the slots is output.
 */
#include "views/folds/stacks_foresee.h"

#include <stdlib.h>

static uint32_t slot_of(const struct tw_stacks *stacks, uint32_t image, uint32_t session, uint32_t id)
{
	uint64_t hash = ((uint64_t)id << 20 ^ (uint64_t)image << 8 ^ session) * 0x9e3779b97f4a7c15;
	return (uint32_t)(hash >> 32) & stacks->mask;
}

static void grow_slots(struct tw_stacks *stacks)
{
	uint32_t old = stacks->mask;
	struct tw_stack **from = stacks->slots, **to = calloc(((size_t)old + 1) * 2, sizeof *to);
	if (!to)
		return; /* no memory: chains get longer, nothing worse */
	stacks->mask = old * 2 + 1;
	stacks->slots = to;
	for (uint32_t i = 0; i <= old; i++) {
		struct tw_stack *next;
		for (struct tw_stack *stack = from[i]; stack; stack = next) {
			uint32_t at = slot_of(stacks, stack->image, stack->session_index, stack->tracee_id);
			next = stack->next;
			stack->next = to[at];
			to[at] = stack;
		}
	}
	free(from);
}

static struct tw_stack *make_stack(struct tw_stacks *stacks, const struct tw_capture_event *event, uint32_t session,
				   bool has_tracee, uint32_t id)
{
	struct tw_stack *stack = calloc(1, sizeof *stack);
	if (!stack)
		return NULL;
	const struct tw_capture_tracee *tracee =
		has_tracee ? tw_capture_tracee(stacks->capture, event->image, id) : NULL;
	stack->image = event->image;
	stack->session_index = session;
	stack->tracee_id = id;
	stack->has_tracee = has_tracee;
	stack->is_bound = !has_tracee || (tracee && tracee->thread_id);
	stack->number = stacks->count++;
	stack->loss_epoch = stacks->loss_epoch;
	if (stacks->count > stacks->mask)
		grow_slots(stacks);
	uint32_t at = slot_of(stacks, event->image, session, id);
	stack->next = stacks->slots[at];
	stacks->slots[at] = stack;
	return stack;
}

struct tw_stack *tw_stacks_next(const struct tw_stacks *stacks, const struct tw_stack *stack)
{
	uint32_t slot = stack ? slot_of(stacks, stack->image, stack->session_index, stack->tracee_id) + 1 : 0;
	struct tw_stack *next = stack ? stack->next : NULL;
	while (!next && stacks->slots && slot <= stacks->mask)
		next = stacks->slots[slot++];
	return next;
}

struct tw_stack *tw_stacks_look_up(const struct tw_stacks *stacks, uint32_t image, uint32_t session, bool has_tracee,
				   uint32_t id)
{
	struct tw_stack *stack = stacks->slots[slot_of(stacks, image, session, id)];
	while (stack && (stack->tracee_id != id || stack->has_tracee != has_tracee || stack->image != image ||
			 stack->session_index != session))
		stack = stack->next;
	return stack;
}

struct tw_stack *tw_stacks_find(struct tw_stacks *stacks, const struct tw_capture_event *event)
{
	bool has_tracee = event->tracee_id != 0;
	uint32_t id = has_tracee ? event->tracee_id : event->stream;
	struct tw_stack **last = event->stream < stacks->stream_count ? &stacks->streams[event->stream] : NULL;
	const struct tw_capture_stream *stream = tw_capture_stream(stacks->capture, event->stream);
	uint32_t session = stream ? stream->session_index : 0;
	struct tw_stack *stack = tw_stacks_look_up(stacks, event->image, session, has_tracee, id);
	if (!stack)
		stack = make_stack(stacks, event, session, has_tracee, id);
	if (last)
		*last = stack;
	return stack;
}
