/* SPDX-License-Identifier: Apache-2.0 */
/* cut.c - `tracewheel cut`: a part of a capture becomes a capture of its own. */
#include "base/grow.h"
#include "base/map.h"
#include "tools/common/redact.h"
#include "tools/common/select.h"
#include "tools/common/unwritten.h"
#include "views/folds/opens.h"
#include "views/folds/pass.h"
#include "views/names/lines.h"
#include "views/names/names.h"

#include "tracewheel/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { KEY_REDACT = 256 };

struct request {
	struct tw_selection selection;
	const char *output;
	bool is_forced, is_quiet, is_stripped;
	const char **redact;
	size_t redact_count, redact_capacity;
};

static const struct tw_option options_table[] = {
	{TW_SETS('o', struct request, output), "output", "PART.tw", "the new capture"},
	{TW_SETS('f', struct request, is_forced), "force", NULL, "replace a capture of that name"},
	{TW_SETS(0, struct request, is_stripped), "strip", NULL,
	 "leave out arguments, strings, messages, and of paths and the command line all but names of files (docs/cut.md)"},
	{KEY_REDACT, "redact", "REGEX",
	 "replace what matches in text of arguments, results, messages and the command line by '*'; of an expression with groups what they "
	 "match: 'password=([^&]*)'. May be repeated"},
	{TW_SETS('q', struct request, is_quiet), "quiet", NULL, "say nothing when all went well"},
	TW_SELECTION_OPTIONS,
	{0},
};

static const struct tw_command command = {
	.name = "cut",
	.arguments = "[OPTION]... [NAME.tw | FILE | -] -o PART.tw",
	.summary =
		"Writes a part of a capture as a capture of its own, to send or to keep. Every command shows of it what it would show of the whole with "
		"the same selection: times count from the start of the whole, calls that are open at the beginning are shown as open, and losses "
		"within the part stay counted. It reads the same on a machine without the program's files: files and lines of callers (`record "
		"--stack`) are inside.\n"
		"\nWhat --ports and mailboxes know from before the part is not in it.",
	.options = options_table,
	.examples = "  tracewheel cut --from 1.5 --to 1.6 -o slow.tw server.tw\n"
		    "  tracewheel cut --from -2s -o last.tw server.tw\n"
		    "  tracewheel cut --redact \"identified by '([^']*)'\" -o part.tw server.tw\n"
		    "  tracewheel cut --strip -o bare.tw server.tw\n"
		    "  tracewheel cut -t 'libsqlite3:_' --thread worker-1 -o sqlite3.tw app.tw\n",
};

/* Code addresses of the part, each once. */
struct lines {
	struct tw_capture *capture;
	const struct tw_cut_options *part;
	struct tw_map known; /* by a hash */
	struct tw_capture_line *lines;
	size_t count, capacity;
};

static bool take_redact(struct request *request, const char *value)
{
	if (!tw_redact_option(&command, value))
		return false;
	if (!tw_grow(request->redact, request->redact_count, request->redact_capacity))
		return tw_complain("no memory.");
	request->redact[request->redact_count++] = value;
	return true;
}

static bool take_option(void *context, int key, const char *value)
{
	struct request *request = context;
	switch (key) {
	case KEY_REDACT: return take_redact(request, value);
	default: return tw_selection_take(&request->selection, &command, key, value);
	}
}

/* ---- lines ---- */

/* Texts of lines are kept until tw_lines_forget(). An address of which nothing is known needs no line. */
static bool add_line(struct lines *lines, uint32_t image, uint64_t address)
{
	struct tw_line line;
	uint64_t hash = tw_hash_word(image, address);
	if (tw_map_find(&lines->known, hash, i, lines->lines[i].image == image && lines->lines[i].address == address) !=
	    TW_MAP_NONE)
		return true;
	tw_line_of_return(lines->capture, image, address, &line);
	if (!line.function && line.is_return)
		return true;
	if (!tw_grow(lines->lines, lines->count, lines->capacity) || !tw_map_add(&lines->known, hash, lines->count))
		return false;
	lines->lines[lines->count++] =
		(struct tw_capture_line){image, line.line, address, line.function, line.file, line.is_return};
	return true;
}

/* Callers follow their call. */
static bool is_of_open_call(const struct tw_cut_options *part, const struct tw_capture_event *event)
{
	for (size_t i = 0; i < part->before_count; i++)
		if (part->before[i].stream == event->stream && part->before[i].sequence + 1 == event->sequence)
			return true;
	return false;
}

static int see_stack(void *self, const struct tw_capture_event *event)
{
	struct lines *lines = self;
	if (event->kind != TW_CAPTURE_STACK ||
	    (event->time_ns < lines->part->filter.from_ns && !is_of_open_call(lines->part, event)))
		return 0;
	for (uint32_t i = 0; i < event->payload_words; i++)
		if (!add_line(lines, event->image, event->payload[i]))
			return TW_ENOMEM;
	return 0;
}

static int find_lines(struct lines *lines, const struct tw_cut_options *part)
{
	struct tw_fold fold = {.self = lines, .filter = part->filter, .see = see_stack};
	fold.filter.kinds = UINT64_C(1) << TW_CAPTURE_STACK;
	fold.filter.wants_own_time = false;
	fold.wants_before = part->before_count != 0;
	lines->part = part;
	return tw_pass_one(lines->capture, &fold, "finding lines");
}

/* ---- writing ---- */

static struct tw_meter meter;

static void on_progress(void *context, uint64_t events)
{
	const struct tw_capture *capture = context;
	struct tw_capture_info info;
	tw_capture_info(capture, &info);
	tw_meter_at(&meter, events, info.events);
}

static void say_result(const struct request *request, const struct tw_capture *capture,
		       const struct tw_cut_result *result)
{
	struct tw_capture_info info;
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES], c[TW_FIGURE_BYTES];
	tw_capture_info(capture, &info);
	tw_say("%s has %s of %s%s%s.", request->output, tw_figure_of(a, result->events, "event", "events"),
	       tw_figure_count(b, info.events), result->before ? ", and from before them what is open there: " : "",
	       result->before ? tw_figure_of(c, result->before, "event", "events") : "");
}

static int cut(struct request *request, struct tw_capture *capture, const char *path)
{
	struct tw_cut_options part = {.path = request->output,
				      .is_forced = request->is_forced,
				      .is_stripped = request->is_stripped,
				      .redact = request->redact,
				      .redact_count = request->redact_count,
				      .progress = on_progress,
				      .context = capture};
	struct lines lines = {.capture = capture};
	struct tw_cut_result result = {0};
	struct tw_opens opens;
	if (!tw_selection_filter(&request->selection, capture, &command, &part.filter))
		return TW_EXIT_USAGE;
	int error = tw_opens_find(&opens, capture, &part.filter);
	part.before = opens.events;
	part.before_count = opens.event_count;
	part.places = opens.places;
	part.place_count = opens.place_count;
	part.kinds = opens.kinds;
	if (!error)
		error = find_lines(&lines, &part);
	if (error) {
		tw_selection_fail(&request->selection, path, error);
	} else {
		part.lines = lines.lines;
		part.line_count = lines.count;
		part.filter.wants_thread_states = true;
		tw_meter_start(&meter, "cutting");
		error = tw_capture_cut(capture, &part, &result);
		tw_meter_stop(&meter);
		if (error)
			tw_unwritten(request->output, request->is_forced, error);
	}
	tw_opens_free(&opens);
	free(lines.lines);
	tw_map_fini(&lines.known);
	tw_lines_forget();
	if (!error && !result.events)
		tw_selection_say_empty(&request->selection, capture, &part.filter);
	if (!error && !request->is_quiet)
		say_result(request, capture, &result);
	if (!error && !request->is_quiet && request->redact)
		tw_redact_say(result.redacted, request->output);
	return tw_names_end(capture, path, error ? TW_EXIT_FAILURE : TW_EXIT_OK);
}

int tw_tool_cut(int argc, char **argv)
{
	struct tw_options options = {.command = &command, .argc = argc, .argv = argv};
	struct request request = {0};
	int code;
	const char *path = tw_options_take(&options, take_option, &request, &code);
	if (path && !request.output) {
		code = tw_usage(&command, "-o names the new capture.");
		path = NULL;
	}
	struct tw_capture *capture = path ? tw_names_open(path) : NULL;
	if (path)
		code = capture ? cut(&request, capture, path) : TW_EXIT_FAILURE;
	if (capture)
		tw_capture_close(capture);
	tw_selection_free(&request.selection);
	free(request.redact);
	return code;
}
