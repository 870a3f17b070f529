/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call_stacks.h - which call a recorded call stack belongs to.
 *
 * The stack of a call is the next event of its thread; only an event of the tracer's own time or a loss may lie between the
 * two, where a ring has grown or a handler has lost an event.
 */
#ifndef TW_VIEWS_CALL_STACKS_H
#define TW_VIEWS_CALL_STACKS_H

#include "views/folds/stacks.h"

/* A call on one thread whose stack may follow. */
struct tw_call_pending {
	struct tw_stack *stack; /* NULL: none */
	uint32_t function, place;
};

struct tw_call_stacks {
	struct tw_call_pending *pending; /* by stream; NULL: not begun */
	uint32_t stream_count;
};

enum tw_call_stack_found {
	TW_CALL_STACK_NONE,    /* the event says nothing of an earlier call */
	TW_CALL_STACK_HERE,    /* the event is the stack of *call */
	TW_CALL_STACK_MISSING, /* *call has no stack */
};

/* @stacks: zeroed. False: no memory. */
bool tw_call_stacks_init(struct tw_call_stacks *stacks, const struct tw_capture *capture);
void tw_call_stacks_free(struct tw_call_stacks *stacks);

/*
 * tw_call_stacks_event - look at the next event.
 *
 * @step	what the event was for struct tw_stacks.
 * @is_call	the event is a call whose stack is of interest.
 * @call	written unless TW_CALL_STACK_NONE is returned.
 */
enum tw_call_stack_found tw_call_stacks_event(struct tw_call_stacks *stacks, const struct tw_capture_event *event,
					      const struct tw_step *step, bool is_call, struct tw_call_pending *call);

#endif
