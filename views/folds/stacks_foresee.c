/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stacks_foresee.c - reads the events once in advance, and finds the calls that continued after each loss.
 *
 *	call main  call parse  call c  | loss 0 |  call c  return c  | loss 1 |  return parse  ...
 *	1          2           3                   4                            proves 2, and so 1, for both
 *
 *	verdicts of this stack: loss 0: 2; loss 1: 2.  The second reading ends call 3 at loss 0.
 *
 * Calls are identified by their number on their stack: both readings count alike, and the frames of a stack have
 * increasing numbers, so that one number stands for all calls up to it.
 */
#include "views/folds/stacks_foresee.h"
#include "views/folds/pass.h"
#include "base/grow.h"

#include "tracewheel/error.h"

#include <stdlib.h>
#include <string.h>

bool tw_stacks_keep(struct tw_stacks *stacks, const struct tw_stack *stack, const struct tw_stack_frame *frame)
{
	if (!tw_grow_to(stacks->verdicts, stacks->verdict_count, stack->number))
		return false;
	struct tw_stack_verdicts *verdicts = &stacks->verdicts[stack->number];
	if (stack->losses > verdicts->count && !tw_grow_to(verdicts->kept, verdicts->count, stack->losses))
		return false;
	for (uint32_t loss = frame->sure_losses; loss < stack->losses; loss++) {
		if (frame->serial > verdicts->kept[loss])
			verdicts->kept[loss] = frame->serial;
	}
	return true;
}

/*
 * A program that is killed, or calls exit(), leaves its outermost call open on each thread: if that is the only call
 * of its function, it is taken to be open to the end.
 */
static bool keep_outermost(struct tw_stacks *stacks)
{
	for (const struct tw_stack *stack = NULL; (stack = tw_stacks_next(stacks, stack));) {
		const struct tw_stack_frame *frame = stack->depth ? &stack->frames[0] : NULL;
		if (frame && frame->function < stacks->places->calls_count &&
		    stacks->places->whole_calls[frame->function] == 1 && !tw_stacks_keep(stacks, stack, frame))
			return false;
	}
	return true;
}

static int see(void *self, const struct tw_capture_event *event)
{
	struct tw_step step;
	return tw_stacks_event(self, event, &step) ? 0 : TW_ENOMEM;
}

int tw_stacks_foresee(struct tw_stacks *stacks, const struct tw_capture_filter *filter)
{
	struct tw_stacks first;
	struct tw_fold fold = {.self = &first, .filter = *filter, .see = see};
	if (!stacks->places->kinds[TW_CAPTURE_LOSS] || !tw_places_have_returns(stacks->places))
		return tw_stacks_find_selected(stacks, filter);
	int error = tw_stacks_init(&first, stacks->capture, stacks->places);
	first.is_foreseeing = true;
	if (error == 0)
		error = tw_pass_one((struct tw_capture *)stacks->capture, &fold, NULL);
	if (error == 0 && !keep_outermost(&first))
		error = TW_ENOMEM;
	if (error == 0) {
		stacks->verdicts = first.verdicts;
		stacks->verdict_count = first.verdict_count;
		first.verdicts = NULL;
		first.verdict_count = 0;
	}
	tw_stacks_free(&first);
	return error ? error : tw_stacks_find_selected(stacks, filter);
}
