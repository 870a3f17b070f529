/* SPDX-License-Identifier: Apache-2.0 */
/* stacks_states.c - how long the thread of a stack ran, was preempted and was off in each of its open calls. */
#include "views/folds/stacks_foresee.h"
#include "base/grow.h"

bool tw_stack_states_begin(struct tw_stack *stack, uint32_t depth, uint64_t ns)
{
	if (!tw_grow_to(stack->states, stack->state_capacity, depth))
		return false;
	stack->states[depth] =
		(struct tw_stack_states){.before = tw_state_clock_until(&stack->state_clock, &stack->own, ns)};
	return true;
}

/* Threads only: which process of a run-time a thread runs while its state changes is not looked at. */
bool tw_stack_states_event(struct tw_stacks *stacks, struct tw_stack *stack, const struct tw_capture_event *event)
{
	if (!stack->is_bound)
		return true;
	struct tw_state_clock *clock = &stack->state_clock;
	bool misses = tw_state_clock_misses(clock, event);
	/* Calls that began since the last one were given a state that was not known. */
	for (uint32_t depth = stack->depth; misses && depth-- > 0 && depth < stack->state_capacity;)
		if (stack->frames[depth].start_ns > clock->since_ns)
			stack->states[depth] = (struct tw_stack_states){.before = clock->before};
	tw_state_clock_event(clock, stacks->capture, event, &stack->own);
	stacks->has_states = stack->has_states = true;
	/* Calls that are open already were not known before: their time until now is in no sum. */
	return !stack->depth || tw_grow_to(stack->states, stack->state_capacity, stack->depth - 1);
}

/* Clocks of two processors may differ by some nanoseconds. */
static void limit(struct tw_state_sums *sums, uint64_t most_ns)
{
	for (unsigned i = TW_STATE_SUMS; i-- > 0;) {
		uint64_t all_ns = tw_state_sums_all(sums), over_ns = all_ns > most_ns ? all_ns - most_ns : 0;
		sums->ns[i] -= over_ns < sums->ns[i] ? over_ns : sums->ns[i];
	}
}

const struct tw_frame_states *tw_stack_states_until(struct tw_stack *stack, const struct tw_stack_frame *frame,
						    uint64_t end_ns, const struct tw_frame_time *time)
{
	const struct tw_stack_states *states = &stack->states[frame - stack->frames];
	struct tw_frame_states *out = &stack->frame_states;
	out->total = states->inner;
	/* A call that was cut has the time of what returned within it. */
	if (end_ns) {
		out->total = tw_state_clock_until(&stack->state_clock, &stack->own, end_ns);
		tw_state_sums_take(&out->total, &states->before);
	}
	limit(&out->total, time->total_ns);
	out->self = out->total;
	tw_state_sums_take(&out->self, &states->inner);
	return out;
}
