/* SPDX-License-Identifier: Apache-2.0 */
/* stacks.c - open calls of each process. */
#include "tools/stacks.h"
#include "tools/threads.h"
#include "tools/tool.h"

#include "tracewheel/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A return looks no further for its call. */
#define SEARCH_FRAMES 4096

int tw_stacks_init(struct tw_stacks *stacks, const struct tw_capture *capture, const struct tw_places *places)
{
	struct tw_capture_info info;
	tw_capture_info(capture, &info);
	*stacks = (struct tw_stacks){
		.capture = capture, .places = places, .mask = 255, .stream_count = info.streams};
	stacks->slots = calloc(stacks->mask + (size_t)1, sizeof(struct tw_stack *));
	stacks->streams = calloc(info.streams + (size_t)1, sizeof(struct tw_stack *));
	return stacks->slots && stacks->streams ? 0 : TW_ENOMEM;
}

void tw_stacks_free(struct tw_stacks *stacks)
{
	for (uint32_t i = 0; stacks->slots && i <= stacks->mask; i++) {
		struct tw_stack *next;
		for (struct tw_stack *stack = stacks->slots[i]; stack; stack = next) {
			next = stack->next;
			free(stack->frames);
			free(stack->name);
			free(stack);
		}
	}
	free(stacks->slots);
	free(stacks->streams);
	*stacks = (struct tw_stacks){0};
}

/* ---- which stack ---- */

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
		return; /* longer chains, nothing worse */
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

static struct tw_stack *make_stack(struct tw_stacks *stacks, const struct tw_capture_event *event,
				   uint32_t session, bool has_tracee, uint32_t id)
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

static struct tw_stack *find_stack(struct tw_stacks *stacks, const struct tw_capture_event *event)
{
	bool has_tracee = event->tracee_id != 0;
	uint32_t id = has_tracee ? event->tracee_id : event->stream;
	struct tw_stack **last =
		event->stream < stacks->stream_count ? &stacks->streams[event->stream] : NULL;
	if (last && *last && (*last)->tracee_id == id && (*last)->has_tracee == has_tracee)
		return *last;
	const struct tw_capture_stream *stream = tw_capture_stream(stacks->capture, event->stream);
	uint32_t session = stream ? stream->session_index : 0;
	struct tw_stack *stack = stacks->slots[slot_of(stacks, event->image, session, id)];
	while (stack && (stack->tracee_id != id || stack->has_tracee != has_tracee ||
			 stack->image != event->image || stack->session_index != session))
		stack = stack->next;
	if (!stack)
		stack = make_stack(stacks, event, session, has_tracee, id);
	if (last)
		*last = stack;
	return stack;
}

/* ---- frames ---- */

static struct tw_frame_time frame_time(const struct tw_frame *frame, uint64_t end_ns)
{
	struct tw_frame_time time = {.total_ns = end_ns > frame->start_ns ? end_ns - frame->start_ns : 0};
	/* Clocks of two processors may differ by some nanoseconds. */
	if (time.total_ns < frame->inner_ns + frame->out_ns)
		time.total_ns = frame->inner_ns + frame->out_ns;
	time.self_ns = time.total_ns - frame->inner_ns - frame->out_ns;
	return time;
}

/* A process that was scheduled out runs: the time between is nobody's own. */
static void runs_again(struct tw_stack *stack, uint64_t ns)
{
	if (!stack->out_since_ns)
		return;
	if (stack->depth && ns > stack->out_since_ns)
		stack->frames[stack->depth - 1].out_ns += ns - stack->out_since_ns;
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
	if (stack->uncertain > stack->depth)
		stack->uncertain = stack->depth;
	stacks->cut += how == TW_FRAME_CUT;
	stacks->open += how == TW_FRAME_OPEN;
}

static void cut_to(struct tw_stacks *stacks, struct tw_stack *stack, uint32_t depth)
{
	while (stack->depth > depth) {
		const struct tw_frame *frame = &stack->frames[stack->depth - 1];
		const struct tw_frame_time time = {.total_ns = frame->inner_ns + frame->out_ns};
		end_frame(stacks, stack, TW_FRAME_CUT, &time);
	}
}

static void end_process(struct tw_stacks *stacks, struct tw_stack *stack)
{
	stack->too_deep = 0;
	runs_again(stack, stack->last_ns);
	while (stack->depth) {
		const struct tw_frame_time time =
			frame_time(&stack->frames[stack->depth - 1], stack->last_ns);
		end_frame(stacks, stack, TW_FRAME_OPEN, &time);
	}
	free(stack->frames);
	stack->frames = NULL;
	stack->room = 0;
}

static bool push(struct tw_stacks *stacks, struct tw_stack *stack, uint32_t function, uint64_t ns)
{
	if (stack->depth == TW_STACK_DEPTH_MAX) {
		stack->too_deep++;
		stacks->too_deep++;
		return true;
	}
	if (stack->depth == stack->room) {
		uint32_t room = stack->room ? stack->room * 2 : 8;
		struct tw_frame *grown = realloc(stack->frames, room * sizeof *grown);
		if (!grown)
			return false;
		stack->frames = grown;
		stack->room = room;
	}
	stack->frames[stack->depth++] = (struct tw_frame){.start_ns = ns, .function = function};
	if (stacks->calls.begin)
		stacks->calls.begin(stacks->calls.context, stack);
	return true;
}

/* Straight behind a loss: what is called again has ended. */
static uint32_t settle(struct tw_stacks *stacks, struct tw_stack *stack, uint32_t function)
{
	uint32_t before = stack->depth;
	for (uint32_t i = stack->depth; i > 0; i--) {
		if (stack->frames[i - 1].function == function) {
			cut_to(stacks, stack, i - 1);
			break;
		}
	}
	return before - stack->depth;
}

static bool step_call(struct tw_stacks *stacks, struct tw_step *step, uint64_t ns)
{
	struct tw_stack *stack = step->stack;
	if (stack->uncertain && stack->uncertain == stack->depth)
		step->cut_count = settle(stacks, stack, step->function);
	step->kind = TW_STEP_CALL;
	step->depth = stack->depth;
	return push(stacks, stack, step->function, ns);
}

static void step_return(struct tw_stacks *stacks, struct tw_step *step, enum tw_frame_end how, uint64_t ns)
{
	struct tw_stack *stack = step->stack;
	uint32_t at = stack->depth, last = at > SEARCH_FRAMES ? at - SEARCH_FRAMES : 0;
	if (stack->too_deep) {
		stack->too_deep--;
		return;
	}
	while (at > last && stack->frames[at - 1].function != step->function)
		at--;
	step->depth = stack->depth;
	if (at == last) {
		step->kind = TW_STEP_UNMATCHED;
		stacks->unmatched++;
		return;
	}
	step->cut_count = stack->depth - at;
	cut_to(stacks, stack, at);
	step->kind = TW_STEP_RETURN;
	step->depth = at - 1;
	step->frame = stack->frames[at - 1];
	step->time = frame_time(&step->frame, ns);
	step->time.is_exact = at > stack->uncertain;
	end_frame(stacks, stack, how, &step->time);
}

/* ---- losses, scheduling, exits ---- */

static void step_loss(struct tw_stacks *stacks, struct tw_step *step, const struct tw_capture_event *event)
{
	struct tw_stack *stack = step->stack;
	uint64_t first_ns = tw_capture_ns(stacks->capture, tw_capture_event_loss(event)->first_ticks);
	step->kind = TW_STEP_LOSS;
	stacks->losses++;
	/* Other processes may have run there too. */
	if (!stack->is_bound || event->stream >= stacks->stream_count)
		stacks->loss_epoch++;
	stack->loss_epoch = stacks->loss_epoch;
	stack->uncertain = stack->depth;
	if (first_ns < stack->last_ns)
		first_ns = stack->last_ns;
	if (stack->depth && !stack->out_since_ns && event->time_ns > first_ns)
		stack->frames[stack->depth - 1].out_ns += event->time_ns - first_ns;
}

static bool step_other(struct tw_stacks *stacks, struct tw_step *step, const struct tw_capture_event *event)
{
	struct tw_stack *stack = step->stack;
	switch (event->kind) {
	case TW_CAPTURE_LOSS: step_loss(stacks, step, event); break;
	case TW_CAPTURE_GC_MINOR_START:
	case TW_CAPTURE_GC_MAJOR_START:
		step->function =
			event->kind == TW_CAPTURE_GC_MINOR_START ? TW_PLACES_GC_MINOR : TW_PLACES_GC_MAJOR;
		return step_call(stacks, step, event->time_ns);
	case TW_CAPTURE_GC_MINOR_END:
	case TW_CAPTURE_GC_MAJOR_END:
		step->function =
			event->kind == TW_CAPTURE_GC_MINOR_END ? TW_PLACES_GC_MINOR : TW_PLACES_GC_MAJOR;
		step_return(stacks, step, TW_FRAME_RETURNED, event->time_ns);
		break;
	case TW_CAPTURE_IN:
	case TW_CAPTURE_IN_EXITING: runs_again(stack, event->time_ns); break;
	case TW_CAPTURE_OUT:
	case TW_CAPTURE_OUT_EXITING:
		if (!stack->out_since_ns)
			stack->out_since_ns = event->time_ns;
		break;
	case TW_CAPTURE_EXIT:
	case TW_CAPTURE_OUT_EXITED:
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
	struct tw_stack *stack = find_stack(stacks, event);
	bool is_done = true;
	step->kind = TW_STEP_OTHER;
	step->stack = stack;
	step->cut_count = 0;
	if (!stack)
		return false;
	step->depth = stack->depth;
	if (stack->loss_epoch != stacks->loss_epoch && !stack->is_bound) {
		stack->loss_epoch = stacks->loss_epoch;
		stack->uncertain = stack->depth;
	}
	if (event->kind >= TW_CAPTURE_CALL && event->kind <= TW_CAPTURE_EXCEPTION_FROM) {
		runs_again(stack, event->time_ns);
		step->function = tw_places_function(stacks->places, event->image, event->id);
		if (event->kind != TW_CAPTURE_CALL) {
			step_return(stacks, step,
				    event->kind == TW_CAPTURE_RETURN_FROM ? TW_FRAME_RETURNED
									  : TW_FRAME_EXCEPTION,
				    event->time_ns);
		} else if (tw_places_is_moment(stacks->places, event->image, event->id)) {
			step->kind = TW_STEP_MOMENT;
			if (stacks->calls.moment)
				stacks->calls.moment(stacks->calls.context, stack, step->function);
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

void tw_stacks_finish(struct tw_stacks *stacks, uint64_t to_ns)
{
	struct tw_capture_info info;
	tw_capture_info(stacks->capture, &info);
	for (uint32_t i = 0; i <= stacks->mask; i++) {
		for (struct tw_stack *stack = stacks->slots[i]; stack; stack = stack->next) {
			/* They are open where the selection ends. */
			if (to_ns && to_ns < info.end_ns && stack->last_ns < to_ns)
				stack->last_ns = to_ns;
			end_process(stacks, stack);
		}
	}
}

const char *tw_stacks_name(const struct tw_stacks *stacks, struct tw_stack *stack)
{
	const struct tw_capture_stream *stream;
	char text[TW_THREAD_TEXT_BYTES] = "?";
	if (stack->name)
		return stack->name;
	if (stack->has_tracee)
		tw_process_text(stacks->capture, stack->image, stack->tracee_id, text);
	else if ((stream = tw_capture_stream(stacks->capture, stack->tracee_id)))
		tw_thread_text(stacks->capture, stream, text);
	stack->name = strdup(text);
	return stack->name ? stack->name : "?";
}
