/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print_chrome.c - `tracewheel print --format chrome`: the timeline as the JSON that Perfetto (ui.perfetto.dev),
 * chrome://tracing and speedscope read.
 *
 * Each process has a track with its calls as slices; each scheduler has one with its runs, if they were recorded; all
 * other events are moments on the track of their process. Times are microseconds since the first event. A slice has
 * its arguments and its result; an arrow leads from the send of a message to its receive.
 *
 * Source: "Trace Event Format" of the Chromium project.
 */
#include "views/names/missing.h"
#include "views/folds/pass.h"
#include "views/folds/seq_events.h"
#include "tools/print/print.h"
#include "tools/print/print_flows.h"
#include "views/folds/stacks.h"
#include "views/names/threads.h"
#include "base/map.h"
#include "base/grow.h"

#include "tracewheel/error.h"

#include <stdio.h>
#include <stdlib.h>

/*
 * Tracks of threads have the kernel's numbers, which are below 2^22; then come processes, and threads whose number is
 * already used by another track; then schedulers.
 */
#define OTHER_TRACKS	 (UINT32_C(1) << 23)
#define SCHEDULER_TRACKS UINT32_C(1000000000)

/* The arguments of an open call, as a member. */
struct arguments {
	char *text;
	size_t bytes, capacity;
};

/*
 * A stack's user data: the start of its present run, whether its track is named, and the arguments of its open calls,
 * by depth.
 */
struct track {
	uint64_t since_ns;  /* 0: it is not running */
	uint64_t own_to_ns; /* the end of the tracer's own time so far */
	uint32_t scheduler_id;
	uint32_t number;
	bool is_named;
	struct arguments *arguments;
	uint32_t arguments_count;
};

struct chrome {
	struct tw_printer *printer;
	struct tw_out *out;
	struct tw_places places;
	struct tw_stacks stacks;
	struct tw_map taken;	/* process and number of each thread's track */
	struct tw_name *quoted; /* by function: its name as JSON */
	struct tw_flows *flows;
	struct tw_seq_nodes nodes;
	const struct tw_capture_event *event; /* the one being processed */
	bool is_next;
	bool has_no_memory;
	uint64_t limit;	       /* the events that may still be shown */
	uint64_t reached_ns;   /* the time of the last one */
	bool is_limited;       /* calls still open at --limit continued after it */
	bool has_begun;	       /* events are now inside the selection */
	bool schedulers[1024]; /* whose tracks are named */
};

static struct tw_out scratch;

static uint32_t process_id(const struct chrome *chrome, uint32_t image)
{
	const struct tw_capture_image *at = tw_capture_image(chrome->printer->capture, image);
	/* Process ids of several nodes may be equal. */
	return !at ? 0 : *at->node ? image + 1 : (uint32_t)at->process_id;
}

/* Writes the beginning of an object: its kind, track and time. */
static void open_event(struct chrome *chrome, char phase, uint32_t image, uint32_t track, uint64_t ns)
{
	uint64_t start = chrome->printer->start_ns, at = ns > start ? ns - start : 0;
	struct tw_out *out = chrome->out;
	tw_out_reserve(out);
	tw_put(out, chrome->is_next ? ",\n" : "\n", chrome->is_next ? 2 : 1);
	chrome->is_next = true;
	tw_put(out, "{\"ph\":\"", 7);
	tw_put_char(out, phase);
	tw_put(out, "\",\"pid\":", 8);
	tw_put_u64(out, process_id(chrome, image));
	tw_put(out, ",\"tid\":", 7);
	tw_put_u64(out, track);
	if (phase == 'M')
		return;
	tw_put(out, ",\"ts\":", 6);
	tw_put_u64(out, at / 1000);
	tw_put_char(out, '.');
	tw_put_digits(out, at % 1000, 3);
}

static void put_duration(struct chrome *chrome, uint64_t ns)
{
	tw_put(chrome->out, ",\"dur\":", 7);
	tw_put_u64(chrome->out, ns / 1000);
	tw_put_char(chrome->out, '.');
	tw_put_digits(chrome->out, ns % 1000, 3);
}

static void put_track_name(struct chrome *chrome, uint32_t image, uint32_t track, const char *name, size_t bytes)
{
	open_event(chrome, 'M', image, track, 0);
	tw_out_text(chrome->out, ",\"name\":\"thread_name\",\"args\":{\"name\":");
	tw_json_quote(chrome->out, name, bytes);
	tw_out_text(chrome->out, "}}");
}

/* The kernel's number of the thread of a stack; 0: it is no thread's. */
static uint32_t thread_of(const struct chrome *chrome, const struct tw_stack *stack)
{
	const struct tw_capture *capture = chrome->printer->capture;
	const struct tw_capture_stream *stream;
	if (stack->has_tracee)
		return tw_process_thread(capture, stack->image, stack->tracee_id);
	stream = tw_capture_stream(capture, stack->tracee_id);
	return stream ? (uint32_t)stream->thread_id : 0;
}

/* The track of a stack. */
static struct track *track_of(struct chrome *chrome, struct tw_stack *stack)
{
	struct track *track = stack->user;
	if (!track) {
		uint32_t thread = thread_of(chrome, stack);
		track = stack->user = calloc(1, sizeof *track);
		if (!track) {
			chrome->has_no_memory = true;
			return NULL;
		}
		uint64_t key = (uint64_t)process_id(chrome, stack->image) << 32 | thread;
		bool is_free =
			thread && tw_map_get(&chrome->taken, key) == TW_MAP_NONE && tw_map_add(&chrome->taken, key, 0);
		track->number = is_free ? thread : OTHER_TRACKS + stack->number;
	}
	if (!track->is_named && chrome->has_begun) {
		track->is_named = true;
		/* Viewers show the number of the track beside its name. */
		char last[TW_THREAD_NAME_BYTES] = "";
		const char *name = tw_stacks_name(&chrome->stacks, stack);
		if (track->number < OTHER_TRACKS && stack->has_tracee && !chrome->printer->has_pids)
			tw_process_name(chrome->printer->capture, stack->image, stack->tracee_id, last);
		name = *last ? last : name;
		put_track_name(chrome, stack->image, track->number, name, strlen(name));
	}
	return track;
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

static void put_times(struct chrome *chrome, const struct tw_stack *stack, uint32_t track, uint64_t from_ns,
		      uint64_t to_ns)
{
	open_event(chrome, 'X', stack->image, track, from_ns);
	put_duration(chrome, to_ns > from_ns ? to_ns - from_ns : 0);
}

/* Keeps the arguments of a call for its slice, which is written when it ends. */
static void keep_arguments(struct chrome *chrome, const struct tw_capture_event *event, struct track *track,
			   uint32_t depth)
{
	scratch.used = 0;
	bool has_any = event->kind == TW_CAPTURE_CALL && event->payload_words &&
		       tw_print_arguments_member(chrome->printer, event, &scratch);
	if (depth >= track->arguments_count && !has_any)
		return;
	if (!tw_grow_to(track->arguments, track->arguments_count, depth)) {
		chrome->has_no_memory = true;
		return;
	}
	struct arguments *arguments = &track->arguments[depth];
	arguments->bytes = 0;
	if (arguments->capacity < scratch.used) {
		char *grown = realloc(arguments->text, scratch.used * 2);
		if (!grown) {
			chrome->has_no_memory = true;
			return;
		}
		arguments->text = grown;
		arguments->capacity = scratch.used * 2;
	}
	if (has_any)
		memcpy(arguments->text, scratch.data, scratch.used);
	arguments->bytes = has_any ? scratch.used : 0;
}

static void put_arguments(struct chrome *chrome, const struct track *track, uint32_t depth, const char **between)
{
	if (depth >= track->arguments_count || !track->arguments[depth].bytes)
		return;
	tw_out_text(chrome->out, *between);
	tw_out_bytes(chrome->out, track->arguments[depth].text, track->arguments[depth].bytes);
	*between = ",";
}

static void put_result(struct chrome *chrome, const char **between)
{
	scratch.used = 0;
	if (!chrome->event->payload_words || !tw_print_result_member(chrome->printer, chrome->event, &scratch))
		return;
	tw_out_text(chrome->out, *between);
	tw_out_bytes(chrome->out, scratch.data, scratch.used);
	*between = ",";
}

static void on_end(void *context, struct tw_stack *stack, enum tw_frame_end how, const struct tw_frame_time *time)
{
	struct chrome *chrome = context;
	const struct tw_stack_frame *frame = &stack->frames[stack->depth - 1];
	const struct tw_name *name = &chrome->quoted[frame->function];
	const char *const ends[] = {[TW_FRAME_EXCEPTION] = "exception",
				    [TW_FRAME_CUT] = "no return seen",
				    [TW_FRAME_OPEN] = chrome->is_limited ? "after --limit" : "still open",
				    [TW_FRAME_LOST] = "lost"};
	const struct track *track = track_of(chrome, stack);
	if (!track)
		return;
	/*
	 * Slices nest as the calls did: the tracer's own time is a slice of its own inside them, and a call without a
	 * return lasts to the last event before it was known to have ended, behind all calls within it.
	 */
	uint64_t end_ns = frame->start_ns + time->gross_ns;
	if (how == TW_FRAME_CUT && end_ns < stack->last_ns)
		end_ns = stack->last_ns;
	put_times(chrome, stack, track->number, frame->start_ns + frame->mark, end_ns);
	tw_put(chrome->out, ",\"name\":", 8);
	tw_out_bytes(chrome->out, name->text, name->bytes);
	const char *between = ",\"args\":{";
	put_arguments(chrome, track, stack->depth - 1, &between);
	if (how == TW_FRAME_RETURNED || how == TW_FRAME_EXCEPTION)
		put_result(chrome, &between);
	if (ends[how]) {
		tw_out_format(chrome->out, "%s\"end\":\"%s\"", between, ends[how]);
		between = ",";
	}
	if (frame->before_ns) {
		tw_out_format(chrome->out, "%s\"before_ns\":%llu", between, (unsigned long long)frame->before_ns);
		between = ",";
	}
	if (time->is_lossy) {
		tw_out_format(chrome->out, "%s\"lossy\":true", between);
		between = ",";
	}
	if (time->gross_ns != time->total_ns) {
		tw_out_format(chrome->out, "%s\"own_ns\":%llu", between,
			      (unsigned long long)(time->gross_ns - time->total_ns));
		between = ",";
	}
	if (*between == ',' && !between[1])
		tw_out_text(chrome->out, "}");
	tw_out_text(chrome->out, "}");
}

/* The command that a port executed last: the term of its event out. */
static void put_command(struct chrome *chrome, const struct tw_capture_event *event)
{
	struct tw_message_payload payload;
	struct tw_term command;
	tw_print_payload(event, &payload);
	if (!payload.has_terms || !tw_print_next_term(&payload, &command))
		return;
	tw_out_text(chrome->out, ",\"args\":{\"command\":");
	tw_print_put_json(chrome->out, command);
	tw_out_text(chrome->out, "}");
}

/* Writes a run on a scheduler's track. */
static void put_run(struct chrome *chrome, struct tw_stack *stack, const struct track *track,
		    const struct tw_capture_event *out)
{
	const struct tw_capture_tracee *tracee =
		stack->has_tracee ? tw_capture_tracee(chrome->printer->capture, stack->image, stack->tracee_id) : NULL;
	char name[200];
	uint32_t number = SCHEDULER_TRACKS + track->scheduler_id;
	size_t known = track->scheduler_id % (sizeof chrome->schedulers / sizeof *chrome->schedulers);
	if (!chrome->schedulers[known]) {
		chrome->schedulers[known] = true;
		put_track_name(chrome, stack->image, number, name,
			       (size_t)snprintf(name, sizeof name, "scheduler %u", track->scheduler_id));
	}
	put_times(chrome, stack, number, track->since_ns, out->time_ns);
	tw_put(chrome->out, ",\"name\":", 8);
	const char *process = tw_stacks_name(&chrome->stacks, stack);
	tw_json_quote(chrome->out, process, strlen(process));
	if (tracee && tracee->is_port)
		put_command(chrome, out);
	tw_out_text(chrome->out, "}");
}

static void put_moment(struct chrome *chrome, const struct tw_capture_event *event, const struct tw_step *step,
		       const struct track *track)
{
	const struct tw_print_kind *kind = tw_print_kind(event->kind);
	open_event(chrome, 'i', event->image, track->number, event->time_ns);
	tw_out_text(chrome->out, ",\"s\":\"t\",\"name\":");
	if (step->kind == TW_STEP_MOMENT || step->kind == TW_STEP_UNMATCHED)
		tw_out_bytes(chrome->out, chrome->quoted[step->function].text, chrome->quoted[step->function].bytes);
	else if (step->kind == TW_STEP_LOSS)
		tw_out_text(chrome->out, "\"LOST\"");
	else
		tw_out_format(chrome->out, "\"%s\"", kind ? kind->word : "event");
	scratch.used = 0;
	if (step->kind == TW_STEP_MOMENT) {
		if (event->payload_words && tw_print_arguments_member(chrome->printer, event, &scratch)) {
			tw_out_text(chrome->out, ",\"args\":{");
			tw_out_bytes(chrome->out, scratch.data, scratch.used);
			tw_out_text(chrome->out, "}");
		}
		tw_out_text(chrome->out, "}");
		return;
	}
	if (step->kind == TW_STEP_LOSS) {
		struct tw_missing_loss loss;
		char text[TW_MISSING_TEXT_BYTES];
		tw_missing_loss(chrome->printer->capture, event, &loss);
		if (loss.sum)
			tw_out_format(&scratch, "%llu event%s%s", (unsigned long long)loss.sum,
				      loss.sum == 1 ? "" : "s", loss.overwritten ? "; " : "");
		tw_out_text(&scratch, tw_missing_replaced(loss.overwritten, text));
	} else {
		struct tw_out *out = chrome->printer->out;
		chrome->printer->out = &scratch;
		tw_print_text_payload(chrome->printer, event);
		chrome->printer->out = out;
	}
	size_t blanks = scratch.used && *scratch.data == ' ';
	if (scratch.used > blanks) {
		tw_out_text(chrome->out, ",\"args\":{\"what\":");
		tw_json_quote(chrome->out, scratch.data + blanks, scratch.used - blanks);
		tw_out_text(chrome->out, "}");
	}
	tw_out_text(chrome->out, "}");
}

/* A message of sequential tracing: both of its ends tell by themselves that they belong together. */
static void put_seq_flow(struct chrome *chrome, const struct tw_capture_event *event, const struct track *track)
{
	bool is_send = event->kind == TW_CAPTURE_SEQ_SEND;
	struct tw_seq_event seq;
	if (tw_seq_take(&chrome->nodes, event, &seq) <= 0)
		return;
	open_event(chrome, is_send ? 's' : 'f', event->image, track->number, event->time_ns);
	tw_out_format(chrome->out, ",\"name\":\"request\",\"cat\":\"seq\",\"id\":\"0x%llx\"%s}",
		      (unsigned long long)tw_seq_key(&seq), is_send ? "" : ",\"bp\":\"e\"");
}

/* Writes one end of an arrow, at the moment that was written last. */
static void put_flow(struct chrome *chrome, const struct tw_capture_event *event, const struct track *track)
{
	bool is_send = event->kind == TW_CAPTURE_SEND;
	if (event->kind == TW_CAPTURE_SEQ_SEND || event->kind == TW_CAPTURE_SEQ_RECEIVE) {
		put_seq_flow(chrome, event, track);
		return;
	}
	if (!is_send && event->kind != TW_CAPTURE_RECEIVE)
		return;
	uint64_t number = (is_send ? tw_flows_send : tw_flows_receive)(chrome->flows, event);
	if (!number)
		return;
	open_event(chrome, is_send ? 's' : 'f', event->image, track->number, event->time_ns);
	tw_out_format(chrome->out, ",\"name\":\"message\",\"cat\":\"message\",\"id\":%llu%s}",
		      (unsigned long long)number, is_send ? "" : ",\"bp\":\"e\"");
}

static void put_own_time(struct chrome *chrome, const struct tw_capture_event *event, struct tw_stack *stack)
{
	struct track *track = track_of(chrome, stack);
	if (!track)
		return;
	/* It has the time of the event that it delayed: a call begins before it. Stretches that overlap are one behind the other. */
	uint64_t end_ns = event->time_ns + tw_capture_own_ns(chrome->printer->capture, event);
	uint64_t from_ns = event->time_ns > track->own_to_ns ? event->time_ns : track->own_to_ns;
	if (end_ns <= from_ns + 1)
		return;
	track->own_to_ns = end_ns;
	put_times(chrome, stack, track->number, from_ns + 1, end_ns);
	tw_out_format(chrome->out, ",\"name\":\"(tracer: %s)\",\"cat\":\"own_time\"}", tw_capture_own_name(event->id));
}

/* False: it is left out, as a short call. */
static bool put_event(struct chrome *chrome, const struct tw_capture_event *event)
{
	struct tw_step step;
	chrome->event = event;
	if (!tw_stacks_event(&chrome->stacks, event, &step)) {
		chrome->has_no_memory = true;
		return false;
	}
	if (step.kind == TW_STEP_HIDDEN)
		return false;
	if (step.kind == TW_STEP_CALL && step.stack->depth > step.depth) {
		struct track *track = track_of(chrome, step.stack);
		nest_begin(step.stack, step.depth);
		if (track)
			keep_arguments(chrome, event, track, step.depth);
	}
	if (step.kind == TW_STEP_CALL || step.kind == TW_STEP_RETURN)
		return true;
	if (step.kind == TW_STEP_OWN_TIME) {
		if (chrome->has_begun)
			put_own_time(chrome, event, step.stack);
		return true;
	}
	struct track *track = track_of(chrome, step.stack);
	if (!track)
		return true;
	if (event->kind == TW_CAPTURE_IN || event->kind == TW_CAPTURE_IN_EXITING) {
		const struct tw_capture_stream *stream = tw_capture_stream(chrome->printer->capture, event->stream);
		track->since_ns = event->time_ns;
		track->scheduler_id = stream ? stream->scheduler_id : 0;
	} else if (event->kind >= TW_CAPTURE_OUT && event->kind <= TW_CAPTURE_OUT_EXITED) {
		if (track->since_ns && chrome->has_begun)
			put_run(chrome, step.stack, track, event);
		track->since_ns = 0;
	} else if (chrome->has_begun) {
		put_moment(chrome, event, &step, track);
		put_flow(chrome, event, track);
	}
	return true;
}

/* Begins the selection: slices of open calls, and of runs, begin here. */
static int begin(void *self, uint64_t from_ns)
{
	struct chrome *chrome = self;
	chrome->has_begun = true;
	chrome->stacks.calls = (struct tw_stacks_calls){.end = on_end, .context = chrome};
	if (!from_ns)
		return 0;
	tw_stacks_begin(&chrome->stacks, from_ns);
	for (uint32_t i = 0; i <= chrome->stacks.mask; i++) {
		for (struct tw_stack *stack = chrome->stacks.slots[i]; stack; stack = stack->next) {
			struct track *track = stack->user;
			if (track && track->since_ns && track->since_ns < from_ns)
				track->since_ns = from_ns;
			for (uint32_t depth = 0; depth < stack->depth; depth++)
				nest_begin(stack, depth);
		}
	}
	return 0;
}

static int see(void *self, const struct tw_capture_event *event)
{
	struct chrome *chrome = self;
	chrome->is_limited = !chrome->limit;
	if (chrome->is_limited || chrome->out->error)
		return TW_FOLD_DONE;
	bool is_shown = put_event(chrome, event);
	chrome->reached_ns = event->time_ns;
	if (chrome->has_begun && is_shown && event->kind != TW_CAPTURE_LOSS && event->kind != TW_CAPTURE_OWN_TIME) {
		chrome->limit--;
		chrome->printer->shown++;
	}
	return chrome->has_no_memory ? TW_ENOMEM : 0;
}

static int put_events(struct chrome *chrome, const struct tw_capture_filter *filter)
{
	struct tw_fold fold = {.self = chrome, .filter = *filter, .wants_before = true, .begin = begin, .see = see};
	struct tw_capture_filter all = *filter;
	/* Calls and runs from before it may reach into it. */
	all.from_ns = 0;
	int error = tw_stacks_foresee(&chrome->stacks, &all);
	if (error == 0)
		error = tw_pass_one((struct tw_capture *)chrome->printer->capture, &fold, NULL);
	if (error)
		return error;
	chrome->printer->shown += chrome->stacks.before;
	chrome->printer->hidden = chrome->stacks.hidden;
	tw_stacks_finish(&chrome->stacks, chrome->is_limited ? chrome->reached_ns : filter->to_ns);
	return 0;
}

/* ---- names ---- */

static bool quote_names(struct chrome *chrome)
{
	chrome->quoted = calloc(chrome->places.function_count + (size_t)1, sizeof *chrome->quoted);
	for (uint32_t i = 0; chrome->quoted && i < chrome->places.function_count; i++) {
		scratch.used = 0;
		tw_json_quote(&scratch, chrome->places.names[i].text, chrome->places.names[i].bytes);
		chrome->quoted[i].text = malloc(scratch.used + 1);
		if (!chrome->quoted[i].text)
			return false;
		memcpy(chrome->quoted[i].text, scratch.data, scratch.used);
		chrome->quoted[i].bytes = (uint32_t)scratch.used;
	}
	return chrome->quoted != NULL;
}

static void put_process_names(struct chrome *chrome)
{
	const struct tw_capture_image *image;
	for (uint32_t i = 0; (image = tw_capture_image(chrome->printer->capture, i)); i++) {
		open_event(chrome, 'M', i, 0, 0);
		tw_out_text(chrome->out, ",\"name\":\"process_name\",\"args\":{\"name\":");
		char node[TW_NODE_TEXT_BYTES];
		scratch.used = tw_node_text(chrome->printer->capture, i, node);
		memcpy(scratch.data, node, scratch.used);
		tw_out_text(&scratch, image->program);
		tw_json_quote(chrome->out, scratch.data, scratch.used);
		tw_out_text(chrome->out, "}}");
	}
}

/* Writes the end of the array, and missing data: viewers show "otherData" unchanged. */
static void put_account(struct chrome *chrome)
{
	struct tw_json json = {.out = chrome->out};
	struct tw_capture_account account;
	tw_capture_account(chrome->printer->capture, &account);
	tw_out_text(chrome->out, "\n],\"otherData\":");
	tw_json_open(&json, NULL, '{');
	tw_missing_json(&json, &account);
	if (tw_flows_left_out(chrome->flows))
		tw_json_u64(&json, "messages_without_arrows", tw_flows_left_out(chrome->flows));
	tw_json_close(&json, '}');
	tw_out_text(chrome->out, "}\n");
}

static void free_chrome(struct chrome *chrome)
{
	for (uint32_t i = 0; chrome->stacks.slots && i <= chrome->stacks.mask; i++) {
		for (struct tw_stack *stack = chrome->stacks.slots[i]; stack; stack = stack->next) {
			struct track *track = stack->user;
			for (uint32_t depth = 0; track && depth < track->arguments_count; depth++)
				free(track->arguments[depth].text);
			free(track ? track->arguments : NULL);
			free(track);
		}
	}
	tw_flows_destroy(chrome->flows);
	tw_seq_nodes_free(&chrome->nodes);
	for (uint32_t i = 0; chrome->quoted && i < chrome->places.function_count; i++)
		free(chrome->quoted[i].text);
	free(chrome->quoted);
	tw_map_fini(&chrome->taken);
	tw_stacks_free(&chrome->stacks);
	tw_places_free(&chrome->places);
}

int tw_print_chrome(struct tw_printer *printer, const struct tw_capture_filter *filter, uint64_t limit)
{
	struct chrome *chrome = calloc(1, sizeof *chrome);
	if (!chrome)
		return TW_ENOMEM;
	chrome->printer = printer;
	chrome->out = printer->out;
	chrome->limit = limit;
	tw_out_init(&scratch, -1);
	int error = tw_places_make(&chrome->places, (struct tw_capture *)printer->capture, filter);
	if (error == 0)
		error = tw_stacks_init(&chrome->stacks, (struct tw_capture *)printer->capture, &chrome->places);
	chrome->stacks.least_ns = printer->longer_ns;
	chrome->flows = tw_flows_create(printer->capture);
	if (error == 0)
		error = tw_seq_nodes_make(&chrome->nodes, printer->capture);
	if (error == 0 && (!chrome->flows || !quote_names(chrome)))
		error = TW_ENOMEM;
	if (error == 0) {
		tw_out_text(chrome->out, "{\"traceEvents\":[");
		put_process_names(chrome);
		error = put_events(chrome, filter);
		put_account(chrome);
	}
	free_chrome(chrome);
	free(chrome);
	return error;
}
