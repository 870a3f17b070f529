/* SPDX-License-Identifier: Apache-2.0 */
/* seq.c - `tracewheel seq`: the trace of one request. */
#include "tools/seq/seq.h"
#include "views/names/names.h"
#include "tools/common/select.h"
#include "views/names/threads.h"

#include "tracewheel/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	KEY_FORMAT = 256,
};

enum form { FORM_TEXT, FORM_JSON, FORM_MERMAID, FORM_ERLANG, FORM_COUNT };
static const char *const forms[] = {"text", "json", "mermaid", "erlang"};

struct request {
	struct tw_selection selection;
	const char *label;
	const char *html;
	enum form form;
};

static const struct tw_option options_table[] = {
	{TW_SETS('l', struct request, label), "label", "LABEL",
	 "this request: its label as an Erlang term, 17, order or {order,17}, or its trace-id, the 32 hexadecimal digits by which "
	 "OpenTelemetry and other tracers know it"},
	{KEY_FORMAT, "format", "FORM",
	 "text (default), json (docs/json.md), mermaid (a sequence diagram), or erlang: the events as seq_trace has them"},
	{TW_SETS(0, struct request, html), "html", "FILE",
	 "writes a sequence diagram to FILE: one page for a browser, without network"},
	{TW_KEY_FROM, "from", "T",
	 "events from this time on: 1.5 or 200ms after the start, -2s before the end, or the time of day, 17:03:12.25"},
	{TW_KEY_TO, "to", "T", "and before this time"},
	{0}};

static const struct tw_command command = {
	.name = "seq",
	.arguments = "[OPTION]... [NAME.tw | FILE | -]",
	.summary =
		"Shows one request that sequential tracing (seq_trace) followed through processes, threads and nodes: which process sent "
		"which message to which, when it was received, and what it caused. Without --label it lists the "
		"requests of the capture, or shows the only one.\n"
		"\nat: time since the request began. waited: from the send to the receive. A line that branches has several effects. "
		"Sends and receives without their counterpart are marked, and events that were lost meanwhile are counted. `tracewheel "
		"merge` makes one capture of those of several nodes.\n" TW_STREAM_HELP,
	.options = options_table,
	.has_colour = true,
	.examples = "  tracewheel seq shop.tw\n"
		    "  tracewheel seq --label 17 shop.tw\n"
		    "  tracewheel seq --label 0af7651916cd43dd8448eb211c80319c shop.tw\n"
		    "  tracewheel seq --label '{order,17}' --html order.html shop.tw\n"
		    "  tracewheel seq --label 17 --format mermaid shop.tw\n"
		    "  tracewheel seq --format json shop.tw | jq '.requests[].label'\n",
};

static struct tw_out out;

static bool take_option(void *context, int key, const char *value)
{
	struct request *request = context;
	if (key == KEY_FORMAT) {
		request->form = 0;
		while (request->form < FORM_COUNT && strcmp(forms[request->form], value) != 0)
			request->form++;
		if (request->form == FORM_COUNT)
			return tw_refuse(&command, "--format is text, json, mermaid or erlang, not '%s'.", value);
	} else {
		return tw_selection_take(&request->selection, &command, key, value);
	}
	return true;
}

/* False: no request has this trace-id.  Labels of our own have one, too: that of their headers and spans. */
static bool find_trace_id(const struct tw_requests *requests, const char *given, char text[TW_LABEL_BYTES])
{
	unsigned char id[TW_SEQ_TRACE_ID_BYTES];
	if (!tw_seq_trace_id_read(given, id))
		return false;
	for (uint32_t i = 0; i < requests->count; i++) {
		if (memcmp(requests->rows[i].trace_id, id, sizeof id) != 0)
			continue;
		snprintf(text, TW_LABEL_BYTES, "%s", requests->rows[i].label);
		return true;
	}
	return false;
}

/* The trace goes to standard output, or the page to its file. */
static int show(const struct request *request, const struct tw_seq_trace *trace, const char *path)
{
	int fd = STDOUT_FILENO, code;
	if (request->html) {
		fd = open(request->html, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
		if (fd < 0)
			return tw_fail("the page '%s' cannot be written: %s", request->html, strerror(errno));
	}
	tw_out_init(&out, fd);
	if (request->html && !tw_seq_page(&out, trace, path)) {
		close(fd);
		return tw_fail("the page could not be made.");
	}
	if (!request->html) {
		void (*const show_form[])(struct tw_out *, const struct tw_seq_trace *) = {tw_seq_text, tw_seq_json,
											   tw_seq_mermaid,
											   tw_seq_erlang};
		show_form[request->form](&out, trace);
	}
	code = tw_out_finish(&out);
	if (request->html && close(fd) && code == TW_EXIT_OK)
		code = tw_fail("the page '%s' could not be written: %s", request->html, strerror(errno));
	return code;
}

static int show_one(const struct request *request, struct tw_capture *capture, const char *path, const char *label,
		    const struct tw_capture_filter *filter)
{
	struct tw_seq_trace trace;
	int error = tw_seq_trace_make(&trace, capture, label, filter->from_ns, filter->to_ns), code;
	if (error)
		code = tw_fail("reading '%s' failed: %s", path, tw_strerror(error));
	else if (!trace.event_count)
		code = tw_fail("'%s' has no events of a request with the label %s; `tracewheel seq %s` lists them.",
			       path, label, path);
	else
		code = show(request, &trace, path);
	tw_seq_trace_free(&trace);
	return code;
}

static int show_list(const struct request *request, const struct tw_requests *requests, struct tw_capture *capture,
		     const char *path)
{
	if (request->html || request->form == FORM_MERMAID || request->form == FORM_ERLANG) {
		tw_usage(&command, "%s shows one request, and '%s' has %u: --label, for example --label '%s'.",
			 request->html ? "--html" : "this --format", path, requests->count, requests->rows[0].shown);
		return TW_EXIT_USAGE;
	}
	tw_out_init(&out, STDOUT_FILENO);
	if (request->form == FORM_JSON)
		tw_seq_list_json(&out, requests);
	else
		tw_seq_list(&out, requests, capture);
	return tw_out_finish(&out);
}

static int seq(struct request *request, struct tw_capture *capture, const char *path)
{
	struct tw_capture_filter filter;
	char label[TW_LABEL_BYTES];
	if (!tw_selection_filter(&request->selection, capture, &command, &filter))
		return TW_EXIT_USAGE;
	unsigned char id[TW_SEQ_TRACE_ID_BYTES];
	if (request->label && !tw_seq_trace_id_read(request->label, id)) {
		tw_seq_label_read(request->label, label);
		return show_one(request, capture, path, label, &filter);
	}
	struct tw_requests requests;
	int error = tw_requests_make(&requests, capture, filter.from_ns, filter.to_ns), code;
	if (!error && request->label) {
		if (!find_trace_id(&requests, request->label, label))
			tw_seq_label_read(request->label, label);
		code = show_one(request, capture, path, label, &filter);
	} else if (error) {
		code = tw_fail("reading '%s' failed: %s", path, tw_strerror(error));
	} else if (!requests.count && request->form == FORM_JSON && !request->html) {
		code = show_list(request, &requests, capture, path);
	} else if (!requests.count) {
		code = tw_fail("no request was followed in '%s': there are no events of seq_trace in it%s.", path,
			       filter.from_ns || filter.to_ns ? " in this time" : "");
	} else if (requests.count == 1 && !(request->form == FORM_JSON && !request->html)) {
		code = show_one(request, capture, path, requests.rows[0].label, &filter);
	} else {
		code = show_list(request, &requests, capture, path);
	}
	tw_requests_free(&requests);
	return code;
}

int tw_tool_seq(int argc, char **argv)
{
	struct tw_options options = {.command = &command, .argc = argc, .argv = argv};
	struct request request = {.form = FORM_TEXT};
	int code;
	const char *path = tw_options_take(&options, take_option, &request, &code);
	if (!path)
		goto free_selection;
	code = TW_EXIT_USAGE;
	if (request.html && request.form != FORM_TEXT) {
		tw_usage(&command, "--html and --format are two answers: one of them.");
		goto free_selection;
	}
	code = TW_EXIT_FAILURE;
	struct tw_capture *capture = tw_names_open(path);
	if (capture) {
		code = tw_names_end(capture, path, seq(&request, capture, path));
		tw_threads_forget();
		tw_capture_close(capture);
	}
free_selection:
	tw_selection_free(&request.selection);
	return code;
}
