/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stacks_plain.h - the steps of stacks.c that nearly every event is, inline: a call begins, and the innermost call returns.
 *
 * A stack is plain if nothing else can be the matter: no call of it is left out or beyond the limit, no state of its thread is known, it
 * is not scheduled out, and no loss is to be noted. An event of any other kind may change that.
 */
#ifndef TW_VIEWS_STACKS_PLAIN_H
#define TW_VIEWS_STACKS_PLAIN_H

#include "views/folds/stacks_foresee.h"

/* The part of a duration that was not the tracer's own. */
static inline uint64_t tw_stack_net(uint64_t from_ns, uint64_t to_ns, uint64_t own_ns)
{
	uint64_t ns = to_ns > from_ns ? to_ns - from_ns : 0;
	return ns > own_ns ? ns - own_ns : 0;
}

static inline struct tw_frame_time tw_stack_frame_time(struct tw_stack *stack, const struct tw_stack_frame *frame,
						       uint64_t end_ns)
{
	uint64_t own_ns = tw_own_sum_until(&stack->own, end_ns) - frame->own_before_ns;
	struct tw_frame_time time = {.total_ns = tw_stack_net(frame->start_ns, end_ns, own_ns),
				     .gross_ns = tw_stack_net(frame->start_ns, end_ns, 0),
				     .lost_ns = stack->loss_ns - frame->lost_before_ns,
				     .is_lossy = frame->losses_before != stack->losses};
	/* Clocks of two processors may differ by some nanoseconds. */
	if (time.total_ns < frame->inner_ns + frame->out_ns)
		time.total_ns = frame->inner_ns + frame->out_ns;
	time.self_ns = time.total_ns - frame->inner_ns - frame->out_ns;
	if (time.gross_ns < time.total_ns)
		time.gross_ns = time.total_ns;
	time.states = stack->states ? tw_stack_states_until(stack, frame, end_ns, &time) : NULL;
	return time;
}

/* Adds a frame; there is space. */
static inline void tw_stack_push(struct tw_stack *stack, uint32_t function, uint64_t ns)
{
	/* Field by field: gcc would clear the whole by `rep stos`, which takes longer than all the rest. */
	struct tw_stack_frame *frame = &stack->frames[stack->depth++];
	frame->start_ns = ns;
	frame->before_ns = frame->inner_ns = frame->out_ns = 0;
	frame->split_self_ns = frame->split_out_ns = 0;
	frame->own_before_ns = tw_own_sum_until(&stack->own, ns);
	frame->lost_before_ns = stack->loss_ns;
	frame->serial = ++stack->serials;
	frame->sure_lost = stack->lost_events;
	frame->sure_losses = frame->losses_before = stack->losses;
	frame->function = function;
	frame->node = frame->mark = 0;
	frame->is_chosen = stack->is_call_chosen;
}

static inline bool tw_stack_is_plain(const struct tw_stacks *stacks, const struct tw_stack *stack)
{
	return !stacks->when && !stacks->is_foreseeing && !stack->out_since_ns && !stack->has_states &&
	       !stack->states && !stack->hidden_count && !stack->too_deep &&
	       (stack->is_bound || stack->loss_epoch == stacks->loss_epoch);
}

/* Can a call of a plain stack begin? */
static inline bool tw_stack_has_space(const struct tw_stack *stack)
{
	return stack->depth < stack->capacity && stack->depth < TW_STACK_FRAMES_MAX;
}

/* Does a return of this function end the innermost call of a plain stack, with no loss within? */
static inline bool tw_stack_returns(const struct tw_stack *stack, uint32_t function)
{
	if (!stack->depth)
		return false;
	const struct tw_stack_frame *frame = &stack->frames[stack->depth - 1];
	return frame->function == function && frame->losses_before == stack->losses;
}

#endif
