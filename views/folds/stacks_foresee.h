/* SPDX-License-Identifier: Apache-2.0 */
/* stacks_foresee.h - what the files of stacks.h share. */
#ifndef TW_VIEWS_STACKS_FORESEE_H
#define TW_VIEWS_STACKS_FORESEE_H

#include "views/folds/stacks.h"

/* Notes that this call continued after every loss since it was last known to be open. False: no memory. */
bool tw_stacks_keep(struct tw_stacks *stacks, const struct tw_stack *stack, const struct tw_stack_frame *frame);

/* Finds the calls that are selected, if their ends decide; the verdicts about losses are known. Returns 0 or an error. */
int tw_stacks_find_selected(struct tw_stacks *stacks, const struct tw_capture_filter *filter);

/* Is the next call of the stack left out? Else stack->is_call_chosen says whether its condition is true. @has_end: its return is recorded. */
bool tw_stacks_hides_next(struct tw_stacks *stacks, struct tw_stack *stack, bool has_end);
/* Leaves the call out. False: no memory. */
bool tw_stacks_hide(struct tw_stacks *stacks, struct tw_step *step);
/* The serial of the innermost call of a function that was left out; 0: none is open. */
uint64_t tw_stacks_find_hidden(const struct tw_stack *stack, uint32_t function);
/* Ends the calls that were left out and began after this one: they have no return. */
void tw_stacks_end_hidden(struct tw_stack *stack, uint64_t serial);

/* The stack of an event, made if it is new. NULL: no memory. */
struct tw_stack *tw_stacks_find(struct tw_stacks *stacks, const struct tw_capture_event *event);
/* The same, fast where it is that of the stream's last event. */
static inline struct tw_stack *tw_stacks_of(struct tw_stacks *stacks, const struct tw_capture_event *event)
{
	bool has_tracee = event->tracee_id != 0;
	uint32_t id = has_tracee ? event->tracee_id : event->stream;
	struct tw_stack *last = event->stream < stacks->stream_count ? stacks->streams[event->stream] : NULL;
	return last && last->tracee_id == id && last->has_tracee == has_tracee ? last : tw_stacks_find(stacks, event);
}
/* NULL: it has no events yet. */
struct tw_stack *tw_stacks_look_up(const struct tw_stacks *stacks, uint32_t image, uint32_t session, bool has_tracee,
				   uint32_t id);
/* Takes in a state of the thread. False: no memory. */
bool tw_stack_states_event(struct tw_stacks *stacks, struct tw_stack *stack, const struct tw_capture_event *event);
/* A frame begins, or begins again. False: no memory. */
bool tw_stack_states_begin(struct tw_stack *stack, uint32_t depth, uint64_t ns);
/* The time of the innermost frame up to then, of which `time` has the sums; end_ns 0: it is cut. Lends until the next call. */
const struct tw_frame_states *tw_stack_states_until(struct tw_stack *stack, const struct tw_stack_frame *frame,
						    uint64_t end_ns, const struct tw_frame_time *time);
/* A thread's calls are open until it ends, or its process does. Other processes may have ended unseen. */
void tw_stacks_find_ends(struct tw_stacks *stacks);
/* Behind it: was a call of this stack open until the recording ended, and not its process? */
bool tw_stacks_outlives(const struct tw_stacks *stacks, const struct tw_stack *stack);

#endif
