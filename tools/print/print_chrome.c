/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print_chrome.c - `tracewheel print --format chrome`: the timeline as the JSON that Perfetto (ui.perfetto.dev),
 * chrome://tracing and speedscope read.
 *
 * Times are microseconds since the first event. A slice has its arguments and its result; an arrow leads from the send
 * of a message to its receive.
 *
 * Source: "Trace Event Format" of the Chromium project.
 */
#include "tools/print/timeline.h"
#include "views/names/missing.h"
#include "base/grow.h"

#include "tracewheel/error.h"

#include <stdio.h>
#include <stdlib.h>

struct chrome {
	struct tw_name *quoted; /* by function: its name as JSON */
	uint32_t quoted_count;
	bool is_next;
};

static struct tw_out scratch;

/* Writes the beginning of an object: its kind, track and time. */
static void open_event(struct tw_timeline *timeline, char phase, uint32_t image, uint32_t track, uint64_t ns)
{
	struct chrome *chrome = timeline->user;
	uint64_t start = timeline->printer->start_ns, at = ns > start ? ns - start : 0;
	struct tw_out *out = timeline->out;
	tw_out_reserve(out);
	tw_put(out, chrome->is_next ? ",\n" : "\n", chrome->is_next ? 2 : 1);
	chrome->is_next = true;
	tw_put(out, "{\"ph\":\"", 7);
	tw_put_char(out, phase);
	tw_put(out, "\",\"pid\":", 8);
	tw_put_u64(out, tw_timeline_process(timeline, image));
	tw_put(out, ",\"tid\":", 7);
	tw_put_u64(out, track);
	if (phase == 'M')
		return;
	tw_put(out, ",\"ts\":", 6);
	tw_put_u64(out, at / 1000);
	tw_put_char(out, '.');
	tw_put_digits(out, at % 1000, 3);
}

static void put_times(struct tw_timeline *timeline, uint32_t image, uint32_t track, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t ns = to_ns > from_ns ? to_ns - from_ns : 0;
	open_event(timeline, 'X', image, track, from_ns);
	tw_put(timeline->out, ",\"dur\":", 7);
	tw_put_u64(timeline->out, ns / 1000);
	tw_put_char(timeline->out, '.');
	tw_put_digits(timeline->out, ns % 1000, 3);
}

/* ---- names ---- */

static void name_track(struct tw_timeline *timeline, uint32_t image, uint32_t track, const char *name, size_t bytes)
{
	open_event(timeline, 'M', image, track, 0);
	tw_out_text(timeline->out, ",\"name\":\"thread_name\",\"args\":{\"name\":");
	tw_json_quote(timeline->out, name, bytes);
	tw_out_text(timeline->out, "}}");
}

static bool quote_names(struct chrome *chrome, const struct tw_places *places)
{
	chrome->quoted = calloc(places->function_count + (size_t)1, sizeof *chrome->quoted);
	for (uint32_t i = 0; chrome->quoted && i < places->function_count; i++) {
		scratch.used = 0;
		tw_json_quote(&scratch, places->names[i].text, places->names[i].bytes);
		chrome->quoted[i].text = malloc(scratch.used + 1);
		if (!chrome->quoted[i].text)
			return false;
		memcpy(chrome->quoted[i].text, scratch.data, scratch.used);
		chrome->quoted[i].bytes = (uint32_t)scratch.used;
		chrome->quoted_count++;
	}
	return chrome->quoted != NULL;
}

static bool open_array(struct tw_timeline *timeline)
{
	char program[TW_TIMELINE_PROGRAM_BYTES];
	if (!quote_names(timeline->user, &timeline->places))
		return false;
	tw_out_text(timeline->out, "{\"traceEvents\":[");
	for (uint32_t i = 0; tw_capture_image(timeline->printer->capture, i); i++) {
		open_event(timeline, 'M', i, 0, 0);
		tw_out_text(timeline->out, ",\"name\":\"process_name\",\"args\":{\"name\":");
		tw_json_quote(timeline->out, program, tw_timeline_program(timeline, i, program));
		tw_out_text(timeline->out, "}}");
	}
	return true;
}

/* ---- slices ---- */

/*
 * Readers that keep the order of the file for slices that begin at one time take the first for the outer one, and inner slices
 * are written first. So a slice begins at least 1 ns after the one in which it lies; frame->mark keeps the difference.
 */
static void nest_begin(struct tw_stack *stack, uint32_t depth)
{
	struct tw_stack_frame *frame = &stack->frames[depth];
	const struct tw_stack_frame *outer = depth ? frame - 1 : NULL;
	uint64_t least_ns = outer ? outer->start_ns + outer->mark + 1 : 0;
	frame->mark = least_ns > frame->start_ns ? (uint32_t)(least_ns - frame->start_ns) : 0;
}

/* Keeps the arguments of a call for its slice, which is written when it ends. */
static void begin_call(struct tw_timeline *timeline, struct tw_timeline_track *track, struct tw_stack *stack,
		       uint32_t depth, const struct tw_capture_event *event)
{
	nest_begin(stack, depth);
	if (!event)
		return;
	scratch.used = 0;
	bool has_any = event->kind == TW_CAPTURE_CALL && event->payload_words &&
		       tw_print_arguments_member(timeline->printer, event, &scratch);
	if (depth >= track->arguments_count && !has_any)
		return;
	if (!tw_grow_to(track->arguments, track->arguments_count, depth)) {
		timeline->has_no_memory = true;
		return;
	}
	struct tw_timeline_arguments *arguments = &track->arguments[depth];
	arguments->bytes = 0;
	if (!tw_grow_by(arguments->text, 0, arguments->capacity, scratch.used)) {
		timeline->has_no_memory = true;
		return;
	}
	if (has_any)
		memcpy(arguments->text, scratch.data, scratch.used);
	arguments->bytes = has_any ? scratch.used : 0;
}

/* A member of the object of arguments, which the first of them opens. */
static void put_member(struct tw_out *out, const char **between, const char *text, size_t bytes)
{
	tw_out_text(out, *between);
	tw_out_bytes(out, text, bytes);
	*between = ",";
}

static void put_number(struct tw_out *out, const char **between, const char *name, uint64_t value)
{
	char text[60];
	put_member(out, between, text,
		   (size_t)snprintf(text, sizeof text, "\"%s\":%llu", name, (unsigned long long)value));
}

static void end_call(struct tw_timeline *timeline, const struct tw_timeline_end *end)
{
	const struct chrome *chrome = timeline->user;
	const struct tw_stack *stack = end->stack;
	const struct tw_stack_frame *frame = &stack->frames[stack->depth - 1];
	const struct tw_name *name = &chrome->quoted[frame->function];
	const struct tw_timeline_arguments *arguments =
		stack->depth <= end->track->arguments_count ? &end->track->arguments[stack->depth - 1] : NULL;
	const char *between = ",\"args\":{";
	struct tw_out *out = timeline->out;
	char text[40];
	put_times(timeline, stack->image, end->track->number, frame->start_ns + frame->mark, end->ns);
	tw_put(out, ",\"name\":", 8);
	tw_out_bytes(out, name->text, name->bytes);
	if (arguments && arguments->bytes)
		put_member(out, &between, arguments->text, arguments->bytes);
	if (end->result)
		put_member(out, &between, end->result, end->result_bytes);
	if (end->end)
		put_member(out, &between, text, (size_t)snprintf(text, sizeof text, "\"end\":\"%s\"", end->end));
	if (frame->before_ns)
		put_number(out, &between, "before_ns", frame->before_ns);
	if (end->is_lossy)
		put_member(out, &between, "\"lossy\":true", 12);
	if (end->own_ns)
		put_number(out, &between, "own_ns", end->own_ns);
	tw_out_text(out, between[1] ? "}" : "}}");
}

static void put_span(struct tw_timeline *timeline, const struct tw_timeline_span *span)
{
	struct tw_out *out = timeline->out;
	put_times(timeline, span->image, span->number, span->from_ns, span->to_ns);
	tw_put(out, ",\"name\":", 8);
	tw_json_quote(out, span->name, strlen(span->name));
	if (span->category)
		tw_out_format(out, ",\"cat\":\"%s\"", span->category);
	if (span->arguments) {
		tw_out_text(out, ",\"args\":{");
		tw_out_bytes(out, span->arguments, span->arguments_bytes);
		tw_out_text(out, "}");
	}
	tw_out_text(out, "}");
}

/* ---- moments ---- */

/* Writes one end of an arrow, at the moment that was written last. */
static void put_flow(struct tw_timeline *timeline, const struct tw_timeline_moment *moment)
{
	bool is_send = moment->flow == TW_TIMELINE_FLOW_BEGINS;
	open_event(timeline, is_send ? 's' : 'f', moment->track->image, moment->track->number, moment->ns);
	tw_out_format(timeline->out,
		      moment->is_seq ? ",\"name\":\"request\",\"cat\":\"seq\",\"id\":\"0x%llx\"%s}"
				     : ",\"name\":\"message\",\"cat\":\"message\",\"id\":%llu%s}",
		      (unsigned long long)moment->flow_id, is_send ? "" : ",\"bp\":\"e\"");
}

static void put_moment(struct tw_timeline *timeline, const struct tw_timeline_moment *moment)
{
	const struct chrome *chrome = timeline->user;
	struct tw_out *out = timeline->out;
	open_event(timeline, 'i', moment->track->image, moment->track->number, moment->ns);
	tw_out_text(out, ",\"s\":\"t\",\"name\":");
	if (moment->word)
		tw_out_format(out, "\"%s\"", moment->word);
	else
		tw_out_bytes(out, chrome->quoted[moment->function].text, chrome->quoted[moment->function].bytes);
	if (moment->arguments) {
		tw_out_text(out, ",\"args\":{");
		tw_out_bytes(out, moment->arguments, moment->arguments_bytes);
		tw_out_text(out, "}");
	} else if (moment->what) {
		tw_out_text(out, ",\"args\":{\"what\":");
		tw_json_quote(out, moment->what, moment->what_bytes);
		tw_out_text(out, "}");
	}
	tw_out_text(out, "}");
	if (moment->flow)
		put_flow(timeline, moment);
}

/* Writes the end of the array, and missing data: viewers show "otherData" unchanged. */
static void close_array(struct tw_timeline *timeline)
{
	struct tw_json json = {.out = timeline->out};
	struct tw_capture_account account;
	tw_capture_account(timeline->printer->capture, &account);
	tw_out_text(timeline->out, "\n],\"otherData\":");
	tw_json_open(&json, NULL, '{');
	tw_missing_json(&json, &account);
	if (tw_flows_left_out(timeline->flows))
		tw_json_u64(&json, "messages_without_arrows", tw_flows_left_out(timeline->flows));
	tw_json_close(&json, '}');
	tw_out_text(timeline->out, "}\n");
}

int tw_print_chrome(struct tw_printer *printer, const struct tw_capture_filter *filter, uint64_t limit)
{
	static const struct tw_timeline_format format = {
		.open = open_array,
		.name_track = name_track,
		.begin = begin_call,
		.end = end_call,
		.span = put_span,
		.moment = put_moment,
		.close = close_array,
	};
	struct chrome chrome = {0};
	tw_out_init(&scratch, -1);
	int error = tw_timeline_write(printer, &format, &chrome, filter, limit);
	for (uint32_t i = 0; i < chrome.quoted_count; i++)
		free(chrome.quoted[i].text);
	free(chrome.quoted);
	return error;
}
