/* SPDX-License-Identifier: Apache-2.0 */
/* why_late.c - `tracewheel why-late`: the slowest messages and the chain of causes behind each. */
#include "tools/late/late.h"
#include "views/names/names.h"
#include "tools/common/select.h"
#include "views/names/threads.h"

#include "tracewheel/error.h"

#include <unistd.h>

#define TOP_DEFAULT 10
#define TOP_MAX	    10000

struct request {
	struct tw_selection selection;
	const char *process;
	uint64_t top;
	bool is_json;
	bool is_html;
};

static const struct tw_option options_table[] = {
	{'n', "top", "N", "the first N messages (10)"},
	{TW_SETS(0, struct request, is_json), "json", NULL, "as JSON (docs/json.md)"},
	{TW_SETS(0, struct request, is_html), "html", NULL,
	 "one page with a timeline of each, without network, for a browser"},
	{TW_SETS(0, struct request, process), "process", "PID|NAME",
	 "messages to this process only: '<0.45.0>' or its name, of one node shop:NAME"},
	{TW_KEY_FROM, "from", "T",
	 "messages that were taken from this time on: 1.5 or 200ms after the start, -2s before the end, or the time of day, 17:03:12.25"},
	{TW_KEY_TO, "to", "T", "and before this time"},
	{0}};

static const struct tw_command command = {
	.name = "why-late",
	.arguments = "[OPTION]... [NAME.tw | FILE | -]",
	.summary =
		"Explains why messages were late: for those that waited longest in the queue of their receiver, how long the receiver ran, "
		"was ready but not scheduled, or was blocked, and by which process; then what that process did until it sent its message, and "
		"so on back along the chain.\n"
		"\nRecord with -p send,receive,procs,running -t 'mailbox:_': with mailbox:take/1 and mailbox:wait/0 a run-time reports when a process "
		"takes a message, and when it finds none that it wants (docs/embedding.md). Without them a message counts as taken when its receiver next runs, and the output says so.\n" TW_STREAM_HELP,
	.options = options_table,
	.has_colour = true,
	.examples = "  tracewheel record -p send,receive,procs,running -t 'mailbox:_' -- ./actors\n"
		    "  tracewheel why-late actors.tw\n"
		    "  tracewheel why-late --html actors.tw > late.html\n"
		    "  tracewheel why-late --process '<0.45.0>' --from 1.5 --to 2 actors.tw\n"
		    "  tracewheel why-late --json actors.tw | jq '.late[0].chain'\n",
};

static struct tw_out out;

static bool take_option(void *context, int key, const char *value)
{
	struct request *request = context;
	if (key == 'n') {
		if (!tw_parse_count(value, &request->top) || !request->top || request->top > TOP_MAX)
			return tw_refuse(&command, "--top is a number from 1 to %d, not '%s'.", TOP_MAX, value);
	} else {
		return tw_selection_take(&request->selection, &command, key, value);
	}
	return true;
}

static int why_late(struct request *request, struct tw_capture *capture, const char *path)
{
	struct tw_capture_filter filter;
	if (!tw_selection_filter(&request->selection, capture, &command, &filter))
		return TW_EXIT_USAGE;
	struct tw_lates lates = {.from_ns = filter.from_ns, .to_ns = filter.to_ns, .process = request->process};
	int error = tw_lates_make(&lates, capture, request->top), code = TW_EXIT_FAILURE;
	tw_out_init(&out, STDOUT_FILENO);
	if (error) {
		tw_fail("reading '%s' failed: %s", path, tw_strerror(error));
	} else if (request->is_json) {
		tw_late_json(&out, &lates, capture);
	} else if (request->is_html) {
		if (!tw_late_page(&out, &lates, capture, path))
			error = tw_fail("the page could not be made.");
	} else {
		tw_late_text(&out, &lates, capture);
	}
	if (!error)
		code = tw_out_finish(&out);
	if (!error && request->process && !lates.waits.count && lates.mailboxes.taken)
		tw_say("no process '%s' took a message in the selection.", request->process);
	tw_lates_free(&lates);
	tw_threads_forget();
	return tw_names_end(capture, path, code);
}

int tw_tool_why_late(int argc, char **argv)
{
	struct tw_options options = {.command = &command, .argc = argc, .argv = argv};
	struct request request = {.top = TOP_DEFAULT};
	int code;
	const char *path = tw_options_take(&options, take_option, &request, &code);
	if (!path)
		goto free_selection;
	code = TW_EXIT_USAGE;
	if (request.is_json && request.is_html) {
		tw_usage(&command, "--json and --html are two answers: one of them.");
		goto free_selection;
	}
	code = TW_EXIT_FAILURE;
	if (request.is_html && isatty(STDOUT_FILENO)) {
		tw_say("a page is not for a terminal: tracewheel why-late --html %s > late.html", path);
		goto free_selection;
	}
	struct tw_capture *capture = tw_names_open(path);
	if (capture) {
		code = why_late(&request, capture, path);
		tw_capture_close(capture);
	}
free_selection:
	tw_selection_free(&request.selection);
	return code;
}
