/* SPDX-License-Identifier: Apache-2.0 */
/* stacks.c - keeps the open calls of each process. */
#include "views/folds/stacks.h"
#include "base/grow.h"
#include "views/folds/stacks_foresee.h"
#include "views/folds/stacks_plain.h"
#include "views/names/missing.h"
#include "views/names/threads.h"
#include "views/names/waits.h"
#include "views/output/output.h"

#include "tracewheel/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The most frames that are searched for the call of a return. */
#define SEARCH_FRAMES 4096

int tw_stacks_init(struct tw_stacks *stacks, struct tw_capture *capture, const struct tw_places *places)
{
	struct tw_capture_info info;
	tw_capture_info(capture, &info);
	*stacks = (struct tw_stacks){.capture = capture, .places = places, .mask = 255, .stream_count = info.streams};
	for (unsigned kind = TW_CAPTURE_CALL; kind < 64; kind++)
		stacks->events += places->kinds[kind];
	stacks->slots = calloc(stacks->mask + (size_t)1, sizeof(struct tw_stack *));
	stacks->streams = calloc(info.streams + (size_t)1, sizeof(struct tw_stack *));
	stacks->running = calloc(info.streams + (size_t)1, sizeof(struct tw_stack *));
	return stacks->slots && stacks->streams && stacks->running ? 0 : TW_ENOMEM;
}

void tw_stacks_free(struct tw_stacks *stacks)
{
	struct tw_stack *next;
	for (struct tw_stack *stack = tw_stacks_next(stacks, NULL); stack; stack = next) {
		next = tw_stacks_next(stacks, stack);
		free(stack->frames);
		free(stack->states);
		free(stack->hidden);
		free(stack->name);
		free(stack);
	}
	for (uint32_t i = 0; i < stacks->verdict_count; i++)
		free(stacks->verdicts[i].kept);
	for (uint32_t i = 0; i < stacks->selected_count; i++)
		free(stacks->selected[i].bits);
	free(stacks->selected);
	free(stacks->verdicts);
	free(stacks->slots);
	free(stacks->streams);
	free(stacks->running);
	*stacks = (struct tw_stacks){0};
}

/* ---- frames ---- */

/* A process that was scheduled out runs again: the time between belongs to no call. */
static void runs_again(struct tw_stack *stack, uint64_t ns)
{
	if (!stack->out_since_ns)
		return;
	if (stack->depth && ns > stack->out_since_ns)
		stack->frames[stack->depth - 1].out_ns +=
			tw_stack_net(stack->out_since_ns, ns,
				     tw_own_sum_until(&stack->own, ns) -
					     tw_own_sum_until(&stack->own, stack->out_since_ns));
	stack->out_since_ns = 0;
}

/* The innermost frame ends. */
static void end_frame(struct tw_stacks *stacks, struct tw_stack *stack, enum tw_frame_end how,
		      const struct tw_frame_time *time)
{
	if (stacks->calls.end)
		stacks->calls.end(stacks->calls.context, stack, how, time);
	stack->depth--;
	if (stack->depth)
		stack->frames[stack->depth - 1].inner_ns += time->total_ns;
	if (stack->depth && time->states)
		tw_state_sums_add(&stack->states[stack->depth - 1].inner, &time->states->total);
	stacks->lost += how == TW_FRAME_LOST;
	stacks->cut += how == TW_FRAME_CUT;
	stacks->open += how == TW_FRAME_OPEN;
}

static void cut_to(struct tw_stacks *stacks, struct tw_stack *stack, uint32_t depth)
{
	while (stack->depth > depth) {
		const struct tw_stack_frame *frame = &stack->frames[stack->depth - 1];
		struct tw_frame_time time = tw_stack_frame_time(stack, frame, 0);
		end_frame(stacks, stack, TW_FRAME_CUT, &time);
	}
}

static void end_process(struct tw_stacks *stacks, struct tw_stack *stack)
{
	stack->too_deep = 0;
	runs_again(stack, stack->last_ns);
	while (stack->depth) {
		const struct tw_frame_time time =
			tw_stack_frame_time(stack, &stack->frames[stack->depth - 1], stack->last_ns);
		end_frame(stacks, stack, TW_FRAME_OPEN, &time);
	}
	free(stack->frames);
	free(stack->states);
	stack->frames = NULL;
	stack->states = NULL;
	stack->capacity = stack->state_capacity = 0;
	stack->hidden_count = 0;
}

/* ---- calls and returns ---- */

static inline __attribute__((always_inline)) bool push(struct tw_stacks *stacks, struct tw_stack *stack,
						       uint32_t function, uint64_t ns)
{
	if (stack->depth == TW_STACK_FRAMES_MAX) {
		stack->serials++;
		stack->too_deep++;
		stacks->too_deep++;
		return true;
	}
	if (!tw_grow(stack->frames, stack->depth, stack->capacity))
		return false;
	tw_stack_push(stack, function, ns);
	if (stack->has_states && !tw_stack_states_begin(stack, stack->depth - 1, ns))
		return false;
	if (stacks->calls.begin)
		stacks->calls.begin(stacks->calls.context, stack);
	return true;
}

/* Without conditions no call is left out. */
static inline bool hides_next(struct tw_stacks *stacks, struct tw_stack *stack, bool has_end)
{
	stack->is_call_chosen = true;
	return stacks->when && tw_stacks_hides_next(stacks, stack, has_end);
}

static inline __attribute__((always_inline)) bool step_call(struct tw_stacks *stacks, struct tw_step *step, uint64_t ns)
{
	struct tw_stack *stack = step->stack;
	stack->is_call_hidden = hides_next(stacks, stack, true);
	if (stack->is_call_hidden)
		return tw_stacks_hide(stacks, step);
	step->kind = TW_STEP_CALL;
	step->depth = stack->depth;
	return push(stacks, stack, step->function, ns);
}

static void step_moment(struct tw_stacks *stacks, struct tw_step *step)
{
	step->stack->is_call_hidden = hides_next(stacks, step->stack, false);
	step->kind = step->stack->is_call_hidden ? TW_STEP_HIDDEN : TW_STEP_MOMENT;
	stacks->hidden += step->kind == TW_STEP_HIDDEN;
	if (step->kind == TW_STEP_MOMENT && stacks->calls.moment)
		stacks->calls.moment(stacks->calls.context, step->stack, step->function);
}

/* Another call counts as likely from an expectation of one in ten on. */
#define LIKELY 10.0

/*
 * Does this return belong to the given call, which was open before a loss? Not if another call of the function is
 * likely among the events lost since the call was known to be open: at least one return and one call.
 */
static inline bool is_its_return(const struct tw_stacks *stacks, const struct tw_stack *stack,
				 const struct tw_stack_frame *frame)
{
	if (frame->sure_losses == stack->losses)
		return true;
	uint64_t lost = stack->lost_events - frame->sure_lost;
	uint64_t calls =
		frame->function < stacks->places->calls_count ? stacks->places->whole_calls[frame->function] : 0;
	if (lost < 2 || calls < 2 || !stacks->events)
		return true;
	return LIKELY * (double)lost * (double)(calls - 1) < (double)stacks->events;
}

/* The call at this index returns now, so it and all calls outside it were open all the time. */
static bool confirm(struct tw_stacks *stacks, struct tw_stack *stack, uint32_t place)
{
	const struct tw_stack_frame *frame = &stack->frames[place];
	if (frame->sure_losses == stack->losses)
		return true;
	if (stacks->is_foreseeing && !tw_stacks_keep(stacks, stack, frame))
		return false;
	for (uint32_t i = place + 1; i-- > 0 && stack->frames[i].sure_losses != stack->losses;) {
		stack->frames[i].sure_losses = stack->losses;
		stack->frames[i].sure_lost = stack->lost_events;
	}
	return true;
}

/* The return of a call that was left out; frames within it have no return. */
static void return_hidden(struct tw_stacks *stacks, struct tw_step *step, uint64_t serial)
{
	struct tw_stack *stack = step->stack;
	uint32_t depth = stack->depth;
	while (depth && stack->frames[depth - 1].serial > serial)
		depth--;
	step->kind = TW_STEP_HIDDEN;
	step->cut_count = stack->depth - depth;
	step->depth = depth;
	cut_to(stacks, stack, depth);
	tw_stacks_end_hidden(stack, serial - 1);
}

static inline __attribute__((always_inline)) bool step_return(struct tw_stacks *stacks, struct tw_step *step,
							      enum tw_frame_end how, uint64_t ns)
{
	struct tw_stack *stack = step->stack;
	uint32_t at = stack->depth, last = at > SEARCH_FRAMES ? at - SEARCH_FRAMES : 0;
	uint64_t hidden = stack->hidden_count ? tw_stacks_find_hidden(stack, step->function) : 0;
	if (stack->too_deep && !hidden) {
		stack->too_deep--;
		return true;
	}
	while (at > last && (stack->frames[at - 1].function != step->function ||
			     !is_its_return(stacks, stack, &stack->frames[at - 1])))
		at--;
	step->depth = stack->depth;
	if (hidden && (at == last || stack->frames[at - 1].serial < hidden)) {
		return_hidden(stacks, step, hidden);
		return true;
	}
	if (at == last) {
		step->kind = TW_STEP_UNMATCHED;
		step->is_of_parent = !stack->serials && tw_function_forks(stacks->places->functions[step->function]);
		stacks->unmatched += !step->is_of_parent;
		if (stacks->calls.unmatched && !step->is_of_parent)
			stacks->calls.unmatched(stacks->calls.context, stack, step->function, how, ns);
		return true;
	}
	if (!confirm(stacks, stack, at - 1))
		return false;
	step->cut_count = stack->depth - at;
	if (stack->hidden_count)
		tw_stacks_end_hidden(stack, stack->frames[at - 1].serial);
	cut_to(stacks, stack, at);
	step->kind = TW_STEP_RETURN;
	step->depth = at - 1;
	step->frame = &stack->frames[at - 1];
	step->time = tw_stack_frame_time(stack, step->frame, ns);
	step->time.is_exact = !step->time.is_lossy && !step->frame->before_ns;
	end_frame(stacks, stack, how, &step->time);
	return true;
}

/* ---- losses, scheduling, exits ---- */

/* Ends the calls that are not proved to have continued. */
static uint32_t lose_calls(struct tw_stacks *stacks, struct tw_stack *stack, uint64_t ns)
{
	const struct tw_stack_verdicts *verdicts =
		stack->number < stacks->verdict_count ? &stacks->verdicts[stack->number] : NULL;
	uint64_t kept = verdicts && stack->losses < verdicts->count ? verdicts->kept[stack->losses] : 0;
	uint32_t before = stack->depth;
	tw_stacks_end_hidden(stack, kept);
	while (stack->depth && stack->frames[stack->depth - 1].serial > kept) {
		struct tw_frame_time time = tw_stack_frame_time(stack, &stack->frames[stack->depth - 1], ns);
		time.is_lossy = true;
		end_frame(stacks, stack, TW_FRAME_LOST, &time);
	}
	return before - stack->depth;
}

/*
 * This number of events of the stack is lost, from `ns` on. Losses of signal handlers that interrupted a hit (nested)
 * leave the calls open that the handler found.
 */
static uint32_t note_loss(struct tw_stacks *stacks, struct tw_stack *stack, uint64_t ns, uint64_t lost, bool is_nested)
{
	uint32_t ended = 0;
	if (is_nested || stacks->is_foreseeing) {
		for (uint32_t i = stack->depth; is_nested && i-- > 0 && stack->frames[i].sure_losses == stack->losses;)
			stack->frames[i].sure_losses++;
	} else {
		ended = lose_calls(stacks, stack, ns);
	}
	stack->losses++;
	stack->lost_events += is_nested ? 0 : lost;
	return ended;
}

static void step_loss(struct tw_stacks *stacks, struct tw_step *step, const struct tw_capture_event *event)
{
	struct tw_stack *stack = step->stack;
	const struct tw_capture_loss *loss = tw_capture_event_loss(event);
	struct tw_missing_loss missing;
	tw_missing_loss(stacks->capture, event, &missing);
	uint64_t first_ns = tw_capture_ns(stacks->capture, loss->first_ticks), lost = missing.sum + missing.overwritten;
	bool is_nested = lost == loss->lost[TW_LOST_NESTED];
	step->kind = TW_STEP_LOSS;
	stacks->losses++;
	stacks->replaced += missing.overwritten && !missing.sum;
	/* Other processes may have run there too. */
	if ((!stack->is_bound || event->stream >= stacks->stream_count) && !is_nested) {
		stacks->loss_epoch++;
		stacks->epoch_lost = lost;
	}
	stack->loss_epoch = stacks->loss_epoch;
	if (first_ns < stack->last_ns)
		first_ns = stack->last_ns;
	step->cut_count = note_loss(stacks, stack, first_ns, lost, is_nested);
	step->depth = stack->depth;
	if (event->time_ns <= first_ns)
		return;
	uint64_t ns =
		tw_stack_net(first_ns, event->time_ns,
			     tw_own_sum_until(&stack->own, event->time_ns) - tw_own_sum_until(&stack->own, first_ns));
	stack->loss_ns += ns;
	if (stack->depth && !stack->out_since_ns)
		stack->frames[stack->depth - 1].out_ns += ns;
}

/* The tracer delayed the thread: this time is subtracted from the calls that were open. */
static void step_own_time(struct tw_stacks *stacks, struct tw_step *step, const struct tw_capture_event *event)
{
	step->kind = TW_STEP_OWN_TIME;
	tw_own_sum_add(&step->stack->own, stacks->capture, event);
}

/* Follows which process runs on a stream. */
static void step_run(struct tw_stacks *stacks, struct tw_stack *stack, const struct tw_capture_event *event)
{
	bool begins = event->kind == TW_CAPTURE_IN || event->kind == TW_CAPTURE_IN_EXITING;
	if (begins)
		runs_again(stack, event->time_ns);
	else if (!stack->out_since_ns)
		stack->out_since_ns = event->time_ns;
	if (event->stream < stacks->stream_count)
		stacks->running[event->stream] = begins ? stack : NULL;
}

static bool step_other(struct tw_stacks *stacks, struct tw_step *step, const struct tw_capture_event *event)
{
	struct tw_stack *stack = step->stack;
	switch (event->kind) {
	case TW_CAPTURE_STACK: step->kind = stack->is_call_hidden ? TW_STEP_HIDDEN : TW_STEP_OTHER; break;
	case TW_CAPTURE_LOSS: step_loss(stacks, step, event); break;
	case TW_CAPTURE_OWN_TIME: step_own_time(stacks, step, event); break;
	case TW_CAPTURE_THREAD_STATE: return tw_stack_states_event(stacks, stack, event);
	case TW_CAPTURE_GC_MINOR_START:
	case TW_CAPTURE_GC_MAJOR_START:
		step->function = event->kind == TW_CAPTURE_GC_MINOR_START ? TW_PLACES_GC_MINOR : TW_PLACES_GC_MAJOR;
		return step_call(stacks, step, event->time_ns);
	case TW_CAPTURE_GC_MINOR_END:
	case TW_CAPTURE_GC_MAJOR_END:
		step->function = event->kind == TW_CAPTURE_GC_MINOR_END ? TW_PLACES_GC_MINOR : TW_PLACES_GC_MAJOR;
		return step_return(stacks, step, TW_FRAME_RETURNED, event->time_ns);
	case TW_CAPTURE_IN:
	case TW_CAPTURE_IN_EXITING:
	case TW_CAPTURE_OUT:
	case TW_CAPTURE_OUT_EXITING: step_run(stacks, stack, event); break;
	case TW_CAPTURE_OUT_EXITED:
		if (event->stream < stacks->stream_count)
			stacks->running[event->stream] = NULL;
		/* fall through */
	case TW_CAPTURE_EXIT:
		step->cut_count = stack->depth;
		if (stack->last_ns < event->time_ns)
			stack->last_ns = event->time_ns;
		end_process(stacks, stack);
		break;
	default: break;
	}
	return true;
}

bool tw_stacks_event(struct tw_stacks *stacks, const struct tw_capture_event *event, struct tw_step *step)
{
	bool is_of_thread = event->kind == TW_CAPTURE_OWN_TIME && event->stream < stacks->stream_count &&
			    stacks->running[event->stream];
	struct tw_stack *stack = is_of_thread ? stacks->running[event->stream] : tw_stacks_of(stacks, event);
	bool is_done = true;
	stacks->event = event;
	step->kind = TW_STEP_OTHER;
	step->stack = stack;
	step->cut_count = 0;
	if (!stack)
		return false;
	step->depth = stack->depth;
	if (stack->loss_epoch != stacks->loss_epoch && !stack->is_bound) {
		stack->loss_epoch = stacks->loss_epoch;
		step->cut_count = note_loss(stacks, stack, stack->last_ns, stacks->epoch_lost, false);
		step->depth = stack->depth;
	}
	if (event->kind >= TW_CAPTURE_CALL && event->kind <= TW_CAPTURE_EXCEPTION_FROM) {
		runs_again(stack, event->time_ns);
		step->function = tw_places_function(stacks->places, event->image, event->id);
		if (event->kind != TW_CAPTURE_CALL) {
			is_done = step_return(stacks, step,
					      event->kind == TW_CAPTURE_RETURN_FROM ? TW_FRAME_RETURNED
										    : TW_FRAME_EXCEPTION,
					      event->time_ns);
		} else if (tw_places_is_moment(stacks->places, event->image, event->id)) {
			step_moment(stacks, step);
		} else {
			is_done = step_call(stacks, step, event->time_ns);
		}
	} else {
		is_done = step_other(stacks, step, event);
	}
	if (stack->last_ns < event->time_ns)
		stack->last_ns = event->time_ns;
	return is_done;
}

static void begin_frames(struct tw_stack *stack, uint64_t from_ns)
{
	if (stack->out_since_ns && stack->out_since_ns < from_ns)
		stack->out_since_ns = from_ns;
	if (stack->depth && stack->last_ns < from_ns)
		stack->last_ns = from_ns;
	for (uint32_t i = 0; i < stack->depth; i++) {
		struct tw_stack_frame *frame = &stack->frames[i];
		frame->before_ns = tw_stack_net(frame->start_ns, from_ns, 0);
		frame->start_ns = from_ns;
		frame->inner_ns = 0;
		frame->out_ns = 0;
		frame->split_self_ns = frame->split_out_ns = 0;
		frame->own_before_ns = tw_own_sum_until(&stack->own, from_ns);
		frame->lost_before_ns = stack->loss_ns;
		frame->losses_before = stack->losses;
		if (stack->states)
			tw_stack_states_begin(stack, i, from_ns);
	}
}

void tw_stacks_begin(struct tw_stacks *stacks, uint64_t from_ns)
{
	tw_stacks_find_ends(stacks);
	for (struct tw_stack *stack = NULL; (stack = tw_stacks_next(stacks, stack));) {
		/* Threads that had ended by then have no part in the selection. */
		if (stack->end_ns && stack->end_ns <= from_ns)
			stack->depth = 0;
		begin_frames(stack, from_ns);
		stacks->before += stack->depth;
	}
	/* Counts before the selection do not matter. */
	stacks->unmatched = stacks->cut = stacks->open = stacks->too_deep = stacks->losses = stacks->replaced =
		stacks->lost = stacks->hidden = 0;
}

static void split_stack(struct tw_stacks *stacks, struct tw_stack *stack, uint64_t ns)
{
	uint64_t known_ns = stack->end_ns ? stack->end_ns : stack->last_ns, end_ns = known_ns < ns ? known_ns : ns;
	uint64_t within_ns = 0, out_ns = 0;
	if (stack->out_since_ns)
		out_ns = tw_stack_net(stack->out_since_ns, end_ns,
				      tw_own_sum_until(&stack->own, end_ns) -
					      tw_own_sum_until(&stack->own, stack->out_since_ns));
	for (uint32_t depth = stack->depth; depth-- > 0;) {
		struct tw_stack_frame *frame = &stack->frames[depth];
		uint64_t total_ns = tw_stack_frame_time(stack, frame, end_ns).total_ns, other_ns;
		out_ns += frame->out_ns;
		other_ns = frame->inner_ns + within_ns + out_ns;
		total_ns = total_ns > other_ns ? total_ns : other_ns;
		stacks->calls.split(stacks->calls.context, stack, depth,
				    (int64_t)(total_ns - other_ns - frame->split_self_ns),
				    (int64_t)(out_ns - frame->split_out_ns));
		frame->split_self_ns = total_ns - other_ns;
		frame->split_out_ns = out_ns;
		within_ns = total_ns;
		out_ns = 0;
	}
}

void tw_stacks_split(struct tw_stacks *stacks, uint64_t ns)
{
	tw_stacks_find_ends(stacks);
	for (struct tw_stack *stack = NULL; (stack = tw_stacks_next(stacks, stack));)
		split_stack(stacks, stack, ns);
}

void tw_stacks_finish(struct tw_stacks *stacks, uint64_t to_ns)
{
	struct tw_capture_info info;
	tw_capture_info(stacks->capture, &info);
	stacks->ends_early = to_ns && to_ns < info.end_ns;
	tw_stacks_find_ends(stacks);
	for (struct tw_stack *stack = NULL; (stack = tw_stacks_next(stacks, stack));) {
		uint64_t end_ns = stack->end_ns;
		if (to_ns && (end_ns > to_ns || (!end_ns && stacks->ends_early)))
			end_ns = to_ns;
		if (stack->last_ns < end_ns)
			stack->last_ns = end_ns;
		stacks->has_guessed |= stack->depth && !stack->is_end_known;
		stacks->has_outlived |= stack->depth && tw_stacks_outlives(stacks, stack);
		end_process(stacks, stack);
	}
}
