/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print_strace.c - `tracewheel print --format strace`: a line for each call, with its result and its time.
 *
 *	0.000104 openat(AT_FDCWD, "/etc/passwd", O_RDONLY|O_CLOEXEC) = 3 <0.000012>
 *	0.000131 read(3,  <unfinished ...>
 *	0.000140 [pid 4712] write(1, "x", 1)            = 1 <0.000003>
 *	0.000150 <... read resumed>"root:x:0:0"..., 4096) = 1024 <0.000019>
 *	0.000163 exit(0)                                = ?
 *
 * A call is printed when it returns. If another call begins before, on any thread, the line is left unfinished and resumed at the
 * return, as strace does. Calls whose arguments are not known by type show their words.
 */
#include "views/names/missing.h"
#include "base/grow.h"
#include "views/folds/pass.h"
#include "views/folds/stacks.h"
#include "views/names/threads.h"
#include "views/names/typed.h"
#include "tools/print/print.h"

#include "tracewheel/error.h"

#include <stdio.h>
#include <stdlib.h>

/* Results begin there at the earliest. */
#define RESULT_COLUMN 40

/* A call that has not returned. */
struct open_call {
	struct tw_typed_call call;
	uint64_t *words; /* its payload */
	uint32_t capacity;
	uint32_t shown; /* arguments that were printed before it was left unfinished */
	bool is_split;
};

/* The open calls of a process by depth: a stack's user data. */
struct open_calls {
	struct open_call *at;
	uint32_t capacity;
};

struct strace {
	struct tw_printer *printer;
	struct tw_out *out;
	struct tw_stacks stacks;
	struct tw_places places;
	bool has_pids;
	bool has_begun;
	bool is_limited; /* calls still open at --limit continued after it */
	uint64_t limit;
	/* The line that is not printed yet; NULL: none. */
	struct tw_stack *line_stack;
	uint32_t line_depth;
};

/* ---- open calls ---- */

/* NULL: the call was not seen, or there is no memory. */
static struct open_call *call_at(const struct tw_stack *stack, uint32_t depth)
{
	const struct open_calls *calls = stack->user;
	return calls && depth < calls->capacity ? &calls->at[depth] : NULL;
}

static struct open_call *make_call_at(struct tw_stack *stack, uint32_t depth)
{
	struct open_calls *calls = stack->user;
	if (!calls)
		calls = stack->user = calloc(1, sizeof *calls);
	return calls && tw_grow_to(calls->at, calls->capacity, depth) ? &calls->at[depth] : NULL;
}

static bool keep_call(struct strace *s, struct tw_stack *stack, uint32_t depth, const struct tw_capture_event *event)
{
	struct open_call *open = make_call_at(stack, depth);
	struct tw_message_payload payload = {0};
	if (!open)
		return false;
	if (tw_print_is_plain(event))
		tw_print_payload(event, &payload);
	if (!tw_grow_by(open->words, 0, open->capacity, payload.count))
		return false;
	if (payload.count)
		memcpy(open->words, payload.words, payload.count * sizeof *open->words);
	open->call = (struct tw_typed_call){.layout = tw_typed_layout(s->printer->capture, event),
					    .words = open->words,
					    .count = payload.count};
	open->shown = 0;
	open->is_split = false;
	return true;
}

/* ---- lines ---- */

static void put_head(struct strace *s, struct tw_stack *stack, uint64_t ns)
{
	uint64_t us = (ns - s->printer->start_ns) / 1000;
	tw_out_format(s->out, "%llu.%06llu ", (unsigned long long)(us / 1000000), (unsigned long long)(us % 1000000));
	if (s->has_pids)
		tw_out_format(s->out, "[%s] ", tw_stacks_name(&s->stacks, stack));
}

/* Without the module and the number of arguments; libc's own __read_nocancel is read. */
static void put_name(struct strace *s, uint32_t function)
{
	static const char inner[] = "_nocancel";
	const struct tw_capture_function *known = s->places.functions[function];
	const struct tw_name *name = &s->places.names[function];
	const char *end = known && strncmp(known->name, "__", 2) == 0 ? strstr(known->name, inner) : NULL;
	if (end)
		tw_out_clean(s->out, known->name + 2, (size_t)(end - known->name) - 2);
	else if (known)
		tw_out_name(s->out, known->name);
	else
		tw_out_bytes(s->out, name->text, name->bytes);
}

/* The arguments that are left, and the bracket; without a return only those that are known before. */
static void put_arguments(struct strace *s, struct open_call *open)
{
	if (open->call.layout) {
		open->shown = tw_typed_call_arguments(s->out, &open->call, open->shown);
		return;
	}
	for (uint32_t i = open->shown; i < open->call.count; i++)
		tw_out_format(s->out, "%s0x%llx", i ? ", " : "", (unsigned long long)open->call.words[i]);
	open->shown = open->call.count;
}

static void put_line_begin(struct strace *s, struct tw_stack *stack, uint32_t depth)
{
	const struct tw_stack_frame *frame = &stack->frames[depth];
	put_head(s, stack, frame->start_ns);
	put_name(s, frame->function);
	tw_out_text(s->out, "(");
}

/* Another call begins, or a call ends: what is not printed yet is left unfinished. */
static void leave_line(struct strace *s)
{
	struct open_call *open = s->line_stack ? call_at(s->line_stack, s->line_depth) : NULL;
	if (open) {
		put_line_begin(s, s->line_stack, s->line_depth);
		put_arguments(s, open);
		tw_out_text(s->out, " <unfinished ...>\n");
		open->is_split = true;
	}
	s->line_stack = NULL;
}

/* From the beginning of the line to its result. */
static void put_call(struct strace *s, struct tw_stack *stack, uint32_t depth, const struct tw_stack_frame *frame,
		     uint64_t ns)
{
	struct open_call *open = call_at(stack, depth);
	put_head(s, stack, open && !open->is_split ? frame->start_ns : ns);
	uint64_t mark = tw_out_mark(s->out);
	tw_out_text(s->out, open && open->is_split ? "<... " : "");
	put_name(s, frame->function);
	tw_out_text(s->out, !open ? "(..." : open->is_split ? " resumed>" : "(");
	if (open)
		put_arguments(s, open);
	tw_out_text(s->out, ")");
	uint64_t columns = tw_out_mark(s->out) - mark;
	tw_out_format(s->out, "%*s = ", columns < RESULT_COLUMN - 1 ? (int)(RESULT_COLUMN - 1 - columns) : 0, "");
}

/* ---- events ---- */

static void put_return(struct strace *s, const struct tw_capture_event *event, const struct tw_step *step)
{
	struct open_call *open = call_at(step->stack, step->depth);
	struct tw_message_payload payload;
	uint64_t ns = step->time.total_ns;
	if (s->line_stack != step->stack || s->line_depth != step->depth)
		leave_line(s);
	s->line_stack = NULL;
	tw_print_payload(event, &payload);
	if (open) {
		open->call.is_over = true;
		open->call.return_words = payload.words;
		open->call.return_count = payload.count;
	}
	put_call(s, step->stack, step->depth, step->frame, event->time_ns);
	if (event->kind == TW_CAPTURE_EXCEPTION_FROM || payload.has_terms)
		tw_out_text(s->out, "? (exception)");
	else if (open && open->call.layout)
		tw_typed_call_result(s->out, &open->call);
	else if (payload.count)
		tw_out_format(s->out, "0x%llx", (unsigned long long)payload.words[0]);
	tw_out_format(s->out, " <%llu.%06llu>\n", (unsigned long long)(ns / 1000000000),
		      (unsigned long long)(ns / 1000 % 1000000));
}

/* A call whose return cannot be seen: only its arguments are known. */
static bool put_moment(struct strace *s, const struct tw_capture_event *event, const struct tw_step *step)
{
	struct tw_stack_frame frame = {.function = step->function, .start_ns = event->time_ns};
	leave_line(s);
	/* As if it were open: it is overwritten by the next call of that depth. */
	if (!keep_call(s, step->stack, step->depth, event))
		return false;
	put_call(s, step->stack, step->depth, &frame, event->time_ns);
	tw_out_text(s->out, "?\n");
	return true;
}

/* A call ends without a return: exit, exec, the end of the selection. */
static void on_end(void *context, struct tw_stack *stack, enum tw_frame_end how, const struct tw_frame_time *time)
{
	struct strace *s = context;
	(void)time;
	if (how == TW_FRAME_RETURNED || how == TW_FRAME_EXCEPTION)
		return;
	if (s->line_stack != stack || s->line_depth != stack->depth - 1)
		leave_line(s);
	s->line_stack = NULL;
	put_call(s, stack, stack->depth - 1, &stack->frames[stack->depth - 1], stack->last_ns);
	bool continues = how == TW_FRAME_OPEN && (s->is_limited || s->stacks.ends_early);
	tw_out_text(s->out, how == TW_FRAME_LOST ? "? (lost)\n" : continues ? "? <unfinished ...>\n" : "?\n");
}

static void put_loss(struct strace *s, const struct tw_capture_event *event)
{
	struct tw_missing_loss loss;
	char figure[TW_FIGURE_BYTES], text[TW_MISSING_TEXT_BYTES];
	tw_missing_loss(s->printer->capture, event, &loss);
	tw_out_text(s->out, tw_missing_replaced(loss.overwritten, text));
	if (loss.sum)
		tw_out_format(s->out, "%s!! LOST %s", loss.overwritten ? "; " : "",
			      tw_figure_of(figure, loss.sum, "event", "events"));
	tw_out_text(s->out, "\n");
}

static bool put_event(struct strace *s, const struct tw_capture_event *event, const struct tw_step *step)
{
	if (step->kind == TW_STEP_RETURN) {
		put_return(s, event, step);
	} else if (step->kind == TW_STEP_CALL && step->stack->depth > step->depth) {
		leave_line(s);
		s->line_stack = step->stack;
		s->line_depth = step->depth;
		return keep_call(s, step->stack, step->depth, event);
	} else if (step->kind == TW_STEP_MOMENT) {
		return put_moment(s, event, step);
	} else if (step->kind == TW_STEP_LOSS) {
		leave_line(s);
		put_loss(s, event);
	}
	return true;
}

static int begin(void *self, uint64_t from_ns)
{
	struct strace *s = self;
	s->has_begun = true;
	if (from_ns)
		tw_stacks_begin(&s->stacks, from_ns);
	s->stacks.calls = (struct tw_stacks_calls){.end = on_end, .context = s};
	return 0;
}

static int see(void *self, const struct tw_capture_event *event)
{
	struct strace *s = self;
	struct tw_step step;
	s->is_limited = !s->limit;
	if (s->is_limited || s->out->error)
		return TW_FOLD_DONE;
	if (!tw_stacks_event(&s->stacks, event, &step))
		return TW_ENOMEM;
	if (!s->has_begun || step.kind == TW_STEP_HIDDEN)
		return 0;
	if (!put_event(s, event, &step))
		return TW_ENOMEM;
	if (event->kind != TW_CAPTURE_LOSS && event->kind != TW_CAPTURE_OWN_TIME) {
		s->limit--;
		s->printer->shown++;
	}
	return 0;
}

static void free_calls(struct tw_stacks *stacks)
{
	for (struct tw_stack *stack = NULL; (stack = tw_stacks_next(stacks, stack));) {
		struct open_calls *calls = stack->user;
		for (uint32_t k = 0; calls && k < calls->capacity; k++)
			free(calls->at[k].words);
		free(calls ? calls->at : NULL);
		free(calls);
	}
}

int tw_print_strace(struct tw_printer *printer, const struct tw_capture_filter *filter, uint64_t limit)
{
	struct strace s = {.printer = printer, .out = printer->out, .limit = limit};
	struct tw_capture *capture = (struct tw_capture *)printer->capture;
	struct tw_fold fold = {.self = &s, .filter = *filter, .wants_before = true, .begin = begin, .see = see};
	struct tw_capture_filter all = *filter;
	struct tw_capture_info info;
	all.from_ns = 0;
	tw_capture_info(capture, &info);
	s.has_pids = printer->has_pids || info.threads > 1;
	int error = tw_places_make(&s.places, capture, filter);
	if (error == 0)
		error = tw_stacks_init(&s.stacks, capture, &s.places);
	s.stacks.when = printer->when;
	if (error == 0 && !tw_places_have_returns(&s.places))
		tw_say("no returns were recorded: nothing is known of results and durations.");
	if (error == 0)
		error = tw_stacks_foresee(&s.stacks, &all);
	if (error == 0)
		error = tw_pass_one(capture, &fold, NULL);
	if (error == 0)
		tw_stacks_finish(&s.stacks, filter->to_ns);
	printer->hidden = s.stacks.hidden;
	free_calls(&s.stacks);
	tw_stacks_free(&s.stacks);
	tw_places_free(&s.places);
	return error;
}
