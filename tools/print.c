/* SPDX-License-Identifier: Apache-2.0 */
/* print.c - `tracewheel print`: every event, in order of time over all threads. */
#include "tools/print.h"
#include "tools/select.h"

#include "tracewheel/error.h"
#include "tracewheel/term.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { KEY_FORMAT = 256, KEY_TIMESTAMPS };

static const struct tw_option options_table[] = {
	{'f', "format", "text|erlang|json",
	 "text for people (default), Erlang's trace messages, or one\n"
	 "JSON object a line (docs/json.md)"},
	{KEY_TIMESTAMPS, "timestamps", "none|monotonic|wall",
	 "in Erlang terms: none, nanoseconds, or {MegaSecs,Secs,MicroSecs};\n"
	 "as the session asked, if not given"},
	TW_SELECTION_OPTIONS,
	{'n', "limit", "N", "the first N events only"},
	{0}};

static const struct tw_command command = {
	.name = "print",
	.arguments = "[OPTION]... NAME.tw",
	.summary = "Every event in order of time, over all threads. Losses stand where they happened.",
	.options = options_table,
	.examples = "  tracewheel print --limit 20 sqlite3.tw\n"
		    "  tracewheel print --from 1.5 --to 1.6 -t 'libc:read' -t 'libc:write' sqlite3.tw\n"
		    "  tracewheel print --format erlang sqlite3.tw > sqlite3.term\n"
		    "  tracewheel print --format json sqlite3.tw | jq -c 'select(.function == \"malloc\")'\n",
};

struct request {
	const struct tw_print_format *format;
	struct tw_selection selection;
	uint64_t limit;
	bool has_limit;
	int stamp;
};

static struct tw_out out;

void tw_print_pid(struct tw_printer *printer, const struct tw_capture_event *event)
{
	if (event->tracee_id != printer->pid_tracee || event->image != printer->pid_image) {
		printer->pid_bytes = tw_name_pid(printer->capture, event->image, event->tracee_id,
						 printer->pid, sizeof printer->pid);
		printer->pid_image = event->image;
		printer->pid_tracee = event->tracee_id;
	}
	tw_put(printer->out, printer->pid, printer->pid_bytes);
}

size_t tw_print_extra(const struct tw_print_payload *payload, char text[TW_PRINT_EXTRA_BYTES])
{
	struct tw_arena arena;
	struct tw_term term;
	size_t bytes = 1;
	text[0] = '?';
	tw_arena_init(&arena, 1 << 20);
	if (tw_etf_decode(&arena, payload->extra, payload->extra_bytes, NULL, NULL, &term) == 0)
		bytes = tw_term_format(term, TW_PRINT_WRITE, text, TW_PRINT_EXTRA_BYTES);
	tw_arena_fini(&arena);
	return bytes;
}

static bool take_stamp(struct request *request, const char *value)
{
	static const struct {
		const char *name;
		int stamp;
	} rows[] = {{"none", TW_PRINT_STAMP_NONE},
		    {"monotonic", TW_PRINT_STAMP_MONOTONIC},
		    {"wall", TW_PRINT_STAMP_WALL}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (strcmp(value, rows[i].name) == 0) {
			request->stamp = rows[i].stamp;
			return true;
		}
	}
	tw_usage(&command, "--timestamps is none, monotonic or wall, not '%s'.", value);
	return false;
}

static bool take_option(struct request *request, int key, const char *value)
{
	static const struct tw_print_format *const formats[] = {&tw_print_text, &tw_print_erlang,
								&tw_print_json};
	if (key == 'n') {
		request->has_limit = tw_parse_count(value, &request->limit);
		if (!request->has_limit)
			tw_usage(&command, "--limit is a number, not '%s'.", value);
		return request->has_limit;
	}
	if (key == KEY_TIMESTAMPS)
		return take_stamp(request, value);
	if (key != 'f')
		return tw_selection_take(&request->selection, &command, key, value);
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
		if (strcmp(value, formats[i]->name) == 0) {
			request->format = formats[i];
			return true;
		}
	}
	tw_usage(&command, "--format is text, erlang or json, not '%s'.", value);
	return false;
}

static void free_printer(struct tw_printer *printer)
{
	for (uint32_t i = 0; printer->places && i < printer->image_count; i++)
		tw_names_free(&printer->places[i]);
	for (uint32_t i = 0; printer->streams && i < printer->stream_count; i++)
		free(printer->streams[i].text);
	free(printer->places);
	free(printer->streams);
}

static bool init_printer(struct tw_printer *printer, const struct tw_capture *capture,
			 const struct tw_print_format *format)
{
	struct tw_capture_info info;
	tw_capture_info(capture, &info);
	*printer = (struct tw_printer){.out = &out,
				       .capture = capture,
				       .start_ns = info.start_ns,
				       .pid_tracee = UINT32_MAX,
				       .stamp = printer->stamp,
				       .image_count = info.images,
				       .stream_count = info.streams};
	printer->places = calloc(info.images + 1, sizeof *printer->places);
	printer->streams = calloc(info.streams + 1, sizeof *printer->streams);
	if (!printer->places || !printer->streams)
		return false;
	for (uint32_t i = 0; i < info.images; i++) {
		if (!tw_names_places(&printer->places[i], capture, i, format->make_place))
			return false;
	}
	for (uint32_t i = 0; i < info.streams; i++) {
		const struct tw_capture_stream *stream = tw_capture_stream(capture, i);
		int bytes = asprintf(&printer->streams[i].text, "  %7d ", stream ? stream->thread_id : 0);
		if (bytes < 0)
			return false;
		printer->streams[i].bytes = (uint32_t)bytes;
	}
	return true;
}

/* Answers 0 or an error. */
static int print_events(struct tw_printer *printer, const struct request *request,
			const struct tw_capture_filter *filter)
{
	struct tw_capture_events *events;
	int error = tw_capture_events_create((struct tw_capture *)printer->capture, filter, &events);
	if (error)
		return error;
	struct tw_capture_info info;
	tw_capture_info(printer->capture, &info);
	struct tw_meter meter;
	tw_meter_start(&meter, "printing");
	uint64_t left = request->has_limit ? request->limit : UINT64_MAX, done = 0;
	const struct tw_capture_event *batch;
	int64_t count = 0;
	while (left && !out.error && (count = tw_capture_events_next(events, &batch)) > 0) {
		for (int64_t i = 0; i < count && left; i++) {
			if (batch[i].kind == TW_CAPTURE_LOSS) {
				request->format->loss(printer, &batch[i]);
				continue;
			}
			request->format->event(printer, &batch[i]);
			left--;
		}
		done += (uint64_t)count;
		if (!isatty(STDOUT_FILENO))
			tw_meter_at(&meter, done, info.events);
	}
	tw_meter_stop(&meter);
	tw_capture_events_destroy(events);
	return left && !out.error && count < 0 ? (int)count : 0;
}

int tw_tool_print(int argc, char **argv)
{
	struct tw_options options = {.command = &command, .argc = argc, .argv = argv};
	struct request request = {.format = &tw_print_text, .stamp = -1};
	struct tw_printer printer = {0};
	struct tw_capture *capture = NULL;
	struct tw_capture_filter filter;
	int key, code = TW_EXIT_USAGE;
	while ((key = tw_options_next(&options)) > 0) {
		if (!take_option(&request, key, options.value))
			goto free_request;
	}
	if (key < 0) {
		code = tw_options_exit(key);
		goto free_request;
	}
	const char *path = tw_options_capture(&options);
	if (!path)
		goto free_request;
	code = TW_EXIT_FAILURE;
	capture = tw_names_open(path);
	if (!capture)
		goto free_request;
	if (!tw_selection_filter(&request.selection, capture, &command, &filter)) {
		code = TW_EXIT_USAGE;
		goto free_request;
	}
	tw_out_init(&out, STDOUT_FILENO);
	printer.stamp = request.stamp;
	int error = init_printer(&printer, capture, request.format)
			    ? print_events(&printer, &request, &filter)
			    : TW_ENOMEM;
	code = tw_out_finish(&out);
	if (error)
		code = tw_fail("reading '%s' failed: %s", path, tw_strerror(error));
	tw_names_say_damage(capture, path);
free_request:
	free_printer(&printer);
	tw_capture_close(capture);
	tw_selection_free(&request.selection);
	return code;
}
