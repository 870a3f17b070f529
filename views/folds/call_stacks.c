/* SPDX-License-Identifier: Apache-2.0 */
/* call_stacks.c - which call a recorded call stack belongs to. */
#include "views/folds/call_stacks.h"

#include <stdlib.h>

bool tw_call_stacks_init(struct tw_call_stacks *stacks, const struct tw_capture *capture)
{
	struct tw_capture_info info;
	tw_capture_info(capture, &info);
	stacks->stream_count = info.streams;
	stacks->pending = calloc(info.streams + (size_t)1, sizeof *stacks->pending);
	return stacks->pending != NULL;
}

void tw_call_stacks_free(struct tw_call_stacks *stacks)
{
	free(stacks->pending);
}

enum tw_call_stack_found tw_call_stacks_event(struct tw_call_stacks *stacks, const struct tw_capture_event *event,
					      const struct tw_step *step, bool is_call, struct tw_call_pending *call)
{
	if (event->stream >= stacks->stream_count || event->kind == TW_CAPTURE_OWN_TIME ||
	    event->kind == TW_CAPTURE_LOSS)
		return TW_CALL_STACK_NONE;
	struct tw_call_pending *pending = &stacks->pending[event->stream];
	*call = *pending;
	pending->stack = NULL;
	if (is_call)
		*pending = (struct tw_call_pending){step->stack, step->function, event->id};
	return !call->stack						     ? TW_CALL_STACK_NONE
	       : event->kind == TW_CAPTURE_STACK && call->place == event->id ? TW_CALL_STACK_HERE
									     : TW_CALL_STACK_MISSING;
}
