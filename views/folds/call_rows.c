/* SPDX-License-Identifier: Apache-2.0 */
/* call_rows.c - rows of calls. */
#include "views/folds/call_rows.h"
#include "base/grow.h"

#include "tracewheel/error.h"

#include <stdlib.h>

static struct tw_call_row *add_row(struct tw_call_rows *rows, const struct tw_stack *stack,
				   const struct tw_call_open *call, uint32_t depth)
{
	if (!tw_grow(rows->rows, rows->count, rows->capacity)) {
		rows->has_no_memory = true;
		return NULL;
	}
	const struct tw_call_opens *open = stack->user;
	struct tw_call_row *row = &rows->rows[rows->count++];
	*row = (struct tw_call_row){.id = call->id,
				    .parent = depth && open && depth <= open->count ? open->at[depth - 1].id : 0,
				    .has_caller = depth,
				    .caller = depth ? stack->frames[depth - 1].function : 0,
				    .image = stack->image,
				    .stream = call->stream,
				    .tracee_id = stack->has_tracee ? stack->tracee_id : 0,
				    .depth = depth,
				    .lock_ns = call->lock_ns,
				    .wait = call->wait,
				    .details = call->details,
				    .details_bytes = call->details_bytes};
	return row;
}

static struct tw_call_open make_call(struct tw_call_rows *rows)
{
	const struct tw_capture_event *event = rows->event;
	struct tw_call_open call = {.id = ++rows->ids,
				    .stream = event->stream,
				    .is_wanted = event->time_ns >= rows->from_ns &&
						 (!rows->to_ns || event->time_ns < rows->to_ns)};
	if (rows->reads_details && call.is_wanted && event->kind == TW_CAPTURE_CALL)
		call.details = rows->details(rows->stacks.capture, event, &call.details_bytes);
	return call;
}

static struct tw_call_opens *opens_of(struct tw_call_rows *rows, struct tw_stack *stack)
{
	struct tw_call_opens *open = stack->user;
	if (!open) {
		open = stack->user = calloc(1, sizeof *open);
		if (!open)
			return NULL;
		open->next = rows->opens;
		rows->opens = open;
	}
	if (stack->depth > open->count) {
		void *more = tw_grown_to(open->at, &open->count, stack->depth, sizeof *open->at);
		if (!more)
			return NULL;
		open->at = more;
	}
	return open;
}

static void on_begin(void *context, struct tw_stack *stack)
{
	struct tw_call_rows *rows = context;
	struct tw_call_opens *open = opens_of(rows, stack);
	if (!open) {
		rows->has_no_memory = true;
		return;
	}
	struct tw_call_open *call = &open->at[stack->depth - 1];
	free(call->details);
	*call = make_call(rows);
	rows->wanted_open += call->is_wanted;
}

static void on_end(void *context, struct tw_stack *stack, enum tw_frame_end how, const struct tw_frame_time *time)
{
	struct tw_call_rows *rows = context;
	struct tw_call_opens *open = stack->user;
	struct tw_call_open *call = open && stack->depth <= open->count ? &open->at[stack->depth - 1] : NULL;
	const struct tw_stack_frame *frame = &stack->frames[stack->depth - 1];
	if (!call || !call->is_wanted)
		return;
	bool has_returned = how == TW_FRAME_RETURNED || how == TW_FRAME_EXCEPTION;
	call->is_wanted = false;
	rows->wanted_open--;
	if (rows->takes && !rows->takes(rows->context, how))
		return;
	struct tw_call_row *row = add_row(rows, stack, call, stack->depth - 1);
	if (!row)
		return;
	call->details = NULL;
	row->start_ns = frame->start_ns;
	row->function = frame->function;
	row->has_end = true;
	row->how = how;
	row->duration_ns = time->total_ns;
	row->self_ns = time->self_ns;
	if (time->states) {
		row->states = time->states->total;
		row->has_states = tw_state_sums_all(&row->states) != 0;
	}
	if (rows->reads_result && has_returned && rows->event->kind <= TW_CAPTURE_EXCEPTION_FROM)
		row->result = rows->details(rows->stacks.capture, rows->event, &row->result_bytes);
}

static void on_moment(void *context, struct tw_stack *stack, uint32_t function)
{
	struct tw_call_rows *rows = context;
	struct tw_call_open call = make_call(rows);
	struct tw_call_row *row = call.is_wanted ? add_row(rows, stack, &call, stack->depth) : NULL;
	if (!row) {
		free(call.details);
		return;
	}
	row->start_ns = rows->event->time_ns;
	row->function = function;
}

int tw_call_rows_begin(struct tw_call_rows *rows, struct tw_capture *capture, const struct tw_places *places,
		       const struct tw_capture_filter *filter)
{
	int error = tw_stacks_init(&rows->stacks, capture, places);
	if (!error)
		error = tw_stacks_foresee(&rows->stacks, filter);
	rows->stacks.calls =
		(struct tw_stacks_calls){.begin = on_begin, .end = on_end, .moment = on_moment, .context = rows};
	return error;
}

int tw_call_rows_see(struct tw_call_rows *rows, const struct tw_capture_event *event, struct tw_step *step)
{
	rows->event = event;
	return tw_stacks_event(&rows->stacks, event, step) && !rows->has_no_memory ? 0 : TW_ENOMEM;
}

void tw_call_rows_waited(struct tw_call_rows *rows, uint32_t stream, const struct tw_call_wait *wait)
{
	const struct tw_stack *stack = stream < rows->stacks.stream_count ? rows->stacks.streams[stream] : NULL;
	struct tw_call_opens *open = stack ? stack->user : NULL;
	for (uint32_t depth = 0; open && depth < stack->depth && depth < open->count; depth++) {
		struct tw_call_open *call = &open->at[depth];
		call->lock_ns += wait->ns;
		if (wait->ns > call->wait.ns)
			call->wait = *wait;
	}
}

void tw_call_rows_finish(struct tw_call_rows *rows)
{
	tw_stacks_finish(&rows->stacks, 0);
}

void tw_call_rows_forget(struct tw_call_rows *rows)
{
	for (size_t i = 0; i < rows->count; i++) {
		free(rows->rows[i].details);
		free(rows->rows[i].result);
	}
	rows->count = 0;
}

void tw_call_rows_end(struct tw_call_rows *rows)
{
	tw_stacks_free(&rows->stacks);
	while (rows->opens) {
		struct tw_call_opens *open = rows->opens;
		rows->opens = open->next;
		for (size_t i = 0; i < open->count; i++)
			free(open->at[i].details);
		free(open->at);
		free(open);
	}
	rows->wanted_open = rows->ids = 0;
}

void tw_call_rows_free(struct tw_call_rows *rows)
{
	tw_call_rows_forget(rows);
	tw_call_rows_end(rows);
	free(rows->rows);
	rows->rows = NULL;
	rows->capacity = 0;
}
