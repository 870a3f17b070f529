/* SPDX-License-Identifier: Apache-2.0 */
/* convert.c - `tracewheel convert`: captures from and to the trace files of Erlang's own tools. */
#include "views/names/counted.h"
#include "views/names/lines.h"
#include "views/names/missing.h"
#include "views/names/names.h"
#include "views/folds/pass.h"
#include "tools/convert/convert.h"
#include "tools/convert/otlp.h"
#include "tools/convert/profile.h"

#include "tracewheel/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEY_FROM = 256, KEY_TO, KEY_TIMESTAMPS };

/* In --help and in the message about another word. */
#define FORMATS "perfetto|speedscope|chrome|ctf|pprof|callgrind|folded|otlp|sqlite|csv|ttb"

struct request {
	bool is_to, is_from, force, quiet;
	const char *timeline;		       /* --to: the name of its form; NULL: another */
	const struct tw_profile_form *profile; /* likewise */
	const char *table;		       /* likewise: sqlite or csv */
	bool is_ctf, is_otlp;		       /* likewise */
	const char *output;
	int stamp;
	const char **paths;
	uint32_t path_count;
};

static const struct tw_option options_table[] = {
	{KEY_TO, "to", FORMATS,
	 "write a capture as a timeline for ui.perfetto.dev, speedscope or chrome://tracing, as a folder for babeltrace2 and other readers of the Common Trace Format, as a profile for pprof, callgrind_annotate and kcachegrind, as folded stacks for flamegraph.pl, as spans of its requests for collectors of OpenTelemetry, as a database of SQLite, as CSV of its calls, or as trace messages, a file for `dbg:trace_client(file, FILE, Handler)`"},
	{KEY_FROM, "from", "ttb",
	 "make a capture from such files, written by `dbg:trace_port(file, FILE)` or the tracer of ttb; several, such as wrap files, are read in the order given"},
	{TW_SETS('o', struct request, output), "output", "FILE",
	 "the file to write, - for standard output; the folder, of ctf; or the capture, NAME.tw"},
	{KEY_TIMESTAMPS, "timestamps", "none|monotonic|wall",
	 "--to ttb: times in the messages: none, nanoseconds, or\n"
	 "{MegaSecs,Secs,MicroSecs}; by default as the session requested"},
	{TW_SETS(0, struct request, force), "force", NULL, "replace an existing file or capture of that name"},
	{TW_SETS('q', struct request, quiet), "quiet", NULL, "say nothing when all went well"},
	{0}};

static const struct tw_command command = {
	.name = "convert",
	.arguments = "--to FORMAT NAME -o FILE | --from ttb FILE... -o NAME",
	.summary =
		"Converts a capture to a timeline for viewers or to a trace file that Erlang's own tools read, or such trace files to a capture, which all commands here read.\n"
		"\nTimelines: threads, processes and schedulers are tracks, calls are slices with their arguments and results, messages are flows (speedscope: calls only, each with its time); `tracewheel print --format perfetto` writes a part of a capture, such as that of --from and --to.\n"
		"\nctf: a trace of the Common Trace Format 1.8, with every event, and lost events as discarded ones.\n"
		"\nProfiles: calls and own times by stack (pprof, folded), or by caller (callgrind).\n"
		"\notlp: each request with a token of sequential tracing is a trace, each of its messages a span; the file is what a collector of OpenTelemetry takes by HTTP.\n"
		"\nsqlite and csv: the tables of `tracewheel sql`, which writes other parts: `tracewheel sql --csv NAME.tw QUERY`.\n"
		"\nttb: each event is one trace message, and lost events are dropped messages, as file ports count them. Pids in the file are those of a node without a name. In a capture, times of "
		"Erlang's monotonic clock count from the start of the VM. Terms of more than 8,000 bytes are cut, and '...' marks the cut.\n"
		"\nA file that ends inside a message is read up to there, with exit code 1; the capture holds the complete messages.",
	.options = options_table,
	.examples = "  tracewheel convert --to perfetto sqlite3.tw -o sqlite3.pftrace\n"
		    "  tracewheel convert --to speedscope sqlite3.tw -o sqlite3.speedscope.json\n"
		    "  tracewheel convert --to ttb node.tw -o node.trace\n"
		    "  erl> dbg:trace_client(file, \"node.trace\").\n"
		    "  tracewheel convert --from ttb node.trace -o node.tw\n"
		    "  tracewheel convert --from ttb $(ls -tr wrap*.log) -o wrap.tw\n",
};

/* ---- options ---- */

/* Is it any form but ttb? */
static bool has_own_times(const struct request *request)
{
	return request->timeline || request->profile || request->table || request->is_ctf || request->is_otlp;
}

static bool take_option(void *context, int key, const char *value)
{
	struct request *request = context;
	switch (key) {
	case KEY_TO:
		request->timeline = tw_tool_has_timeline(value) ? value : NULL;
		request->profile = tw_profile_form(value);
		request->table = strcmp(value, "sqlite") == 0 || strcmp(value, "csv") == 0 ? value : NULL;
		request->is_ctf = strcmp(value, "ctf") == 0;
		request->is_otlp = strcmp(value, "otlp") == 0;
		if (has_own_times(request) || strcmp(value, "ttb") == 0)
			return request->is_to = true;
		return tw_refuse(&command, "--to is one of " FORMATS ", not '%s'.", value);
	case KEY_FROM:
		request->is_from = strcmp(value, "ttb") == 0;
		return request->is_from ||
		       tw_refuse(&command, "--from is ttb, the trace files of Erlang's tools, not '%s'.", value);
	default: break;
	}
	request->stamp = strcmp(value, "none") == 0	   ? TW_PRINT_STAMP_NONE
			 : strcmp(value, "monotonic") == 0 ? TW_PRINT_STAMP_MONOTONIC
			 : strcmp(value, "wall") == 0	   ? TW_PRINT_STAMP_WALL
							   : -2;
	if (request->stamp == -2)
		tw_usage(&command, "--timestamps is none, monotonic or wall, not '%s'.", value);
	return request->stamp != -2;
}

static int check_request(const struct request *request)
{
	if (request->is_to == request->is_from)
		return tw_usage(&command, "exactly one of --to and --from is wanted.");
	if (!request->path_count)
		return tw_usage(&command, request->is_to ? "which capture?" : "which trace file?");
	if (request->is_to && request->path_count > 1)
		return tw_usage(&command, "one capture at a time.");
	if ((request->is_from || has_own_times(request)) && request->stamp != -1)
		return tw_usage(&command, "--timestamps goes with --to ttb: others have the times of the events.");
	if (!request->output || !*request->output)
		return tw_usage(&command, "-o says where to write.");
	return -1;
}

/* ---- to ---- */

static int see_event(void *self, const struct tw_capture_event *event)
{
	struct tw_ttb_export *export = self;
	return export->out->error ? TW_FOLD_DONE : tw_ttb_export_event(export, event);
}

static int open_output(const struct request *request)
{
	if (strcmp(request->output, "-") == 0)
		return STDOUT_FILENO;
	return open(request->output, O_WRONLY | O_CREAT | O_CLOEXEC | (request->force ? O_TRUNC : O_EXCL), 0666);
}

static void say_events(const struct request *request, uint64_t count)
{
	char events[TW_FIGURE_BYTES];
	if (!request->quiet)
		tw_say("%s: %s.", request->output, tw_figure_of(events, count, "event", "events"));
}

static void say_spans(const struct request *request, const struct tw_otlp_counts *counts)
{
	char requests[TW_FIGURE_BYTES], spans[TW_FIGURE_BYTES];
	if (!counts->requests)
		tw_say("%s is empty: the capture has no requests with tokens of sequential tracing (docs/seq-trace.md).",
		       request->output);
	else if (!request->quiet)
		tw_say("%s: %s, %s.", request->output, tw_figure_of(requests, counts->requests, "request", "requests"),
		       tw_figure_of(spans, counts->spans, "span", "spans"));
	if (counts->left_out)
		tw_say("%s of requests were too many and are not there.",
		       tw_figure_of(spans, counts->left_out, "event", "events"));
}

static void say_exported(const struct request *request, const struct tw_ttb_export *export)
{
	char events[TW_FIGURE_BYTES], dropped[TW_FIGURE_BYTES];
	if (request->timeline || request->profile) {
		say_events(request, export->events);
		return;
	}
	tw_figure_count(events, export->events);
	if (!request->quiet && export->dropped)
		tw_say("%s: %s message%s, and %s dropped.", request->output, events, export->events == 1 ? "" : "s",
		       tw_figure_count(dropped, export->dropped));
	else if (!request->quiet)
		tw_say("%s: %s message%s.", request->output, events, export->events == 1 ? "" : "s");
}

static int convert_to(const struct request *request)
{
	static struct tw_out out;
	struct tw_ttb_export export;
	struct tw_otlp_counts spans;
	struct tw_capture *capture = tw_names_open(request->paths[0]);
	if (!capture)
		return TW_EXIT_FAILURE;
	tw_ttb_export_init(&export, &out, request->stamp);
	export.message.capture = capture;
	int code = TW_EXIT_FAILURE, fd = open_output(request);
	if (fd < 0) {
		tw_say(errno == EEXIST ? "'%s' exists; --force replaces it." : "'%s' cannot be written: %s.",
		       request->output, strerror(errno));
	} else {
		tw_out_init(&out, fd);
		struct tw_fold fold = {.self = &export, .see = see_event};
		int error = request->timeline ? tw_tool_write_timeline(request->timeline, capture, &out, &export.events)
			    : request->profile ? tw_profile_write(request->profile, capture, &out, &export.events)
			    : request->is_otlp ? tw_otlp_write(capture, &out, &spans)
					       : tw_pass_one(capture, &fold, "converting");
		code = tw_out_finish_file(&out, request->output);
		if (error)
			code = tw_fail("reading '%s' failed: %s", request->paths[0], tw_strerror(error));
		if (!code && request->is_otlp)
			say_spans(request, &spans);
		else if (!code)
			say_exported(request, &export);
		/* Trace files have lost events as dropped messages; others have them in part or not at all. */
		if (!code && has_own_times(request))
			tw_missing_say(capture);
		if (!code && !request->quiet)
			tw_counted_say(capture);
	}
	code = tw_names_end(capture, request->paths[0], code);
	tw_ttb_export_fini(&export);
	tw_lines_forget();
	tw_capture_close(capture);
	return code;
}

static int convert_to_ctf(const struct request *request)
{
	struct tw_capture *capture = tw_names_open(request->paths[0]);
	uint64_t events;
	if (!capture)
		return TW_EXIT_FAILURE;
	int code = tw_tool_write_ctf(request->output, request->force, capture, &events);
	if (!code) {
		say_events(request, events);
		tw_missing_say(capture);
		if (!request->quiet)
			tw_counted_say(capture);
	}
	code = tw_names_end(capture, request->paths[0], code);
	tw_lines_forget();
	tw_capture_close(capture);
	return code;
}

/* Tables are those of SQL: the program that links the database writes them. Returns an exit code if it could not be run. */
static int write_tables(const struct request *request)
{
	char *argv[10];
	int count = 1, code;
	bool is_csv = strcmp(request->table, "csv") == 0;
	argv[count++] = is_csv ? "--csv" : "--sqlite";
	argv[count++] = "-o";
	argv[count++] = (char *)request->output;
	if (request->force)
		argv[count++] = "--force";
	if (request->quiet)
		argv[count++] = "--quiet";
	argv[count++] = "--";
	argv[count++] = (char *)request->paths[0];
	if (is_csv)
		argv[count++] = "select * from calls";
	argv[count] = NULL;
	code = tw_run_program("sql", argv);
	if (code != TW_EXIT_OK)
		return code;
	return tw_fail(
		"--to %s is written by the program tracewheel-sql, which is neither in the folder of this command nor in PATH; "
		"it is built where libsqlite3-dev is installed.",
		request->table);
}

/* ---- from ---- */

/* Messages looked at for a kind of stamp, and the node's name. */
#define LOOKED_AT 1000

/*
 * Reads all files once: the first messages say which stamps there are, and, without a time of day in them, the last
 * message was written when the file was changed last.
 */
static int look(const struct request *request, struct tw_ttb_survey *survey, struct tw_ttb_survey *last)
{
	struct tw_ttb_reader reader;
	enum tw_ttb_answer answer;
	tw_ttb_open(&reader, request->paths, request->path_count);
	while ((answer = tw_ttb_next(&reader)) == TW_TTB_RECORD || answer == TW_TTB_CUT) {
		if (answer == TW_TTB_RECORD && reader.op == TW_TTB_TERM && reader.records <= LOOKED_AT)
			tw_ttb_survey_term(survey, reader.term, reader.size);
		if (answer == TW_TTB_RECORD && reader.op == TW_TTB_TERM && !reader.left &&
		    reader.path + 1 == reader.path_count)
			tw_ttb_survey_term(last, reader.term, reader.size);
	}
	int code = -1;
	if (answer == TW_TTB_UNREADABLE)
		code = tw_fail("'%s' cannot be read: %s.", tw_ttb_path(&reader), strerror(errno));
	else if (answer == TW_TTB_MALFORMED && reader.records == 0)
		code = tw_fail("'%s' is not a trace file of Erlang: it does not begin with a trace message.",
			       tw_ttb_path(&reader));
	tw_ttb_close(&reader);
	return code;
}

/* The time of day at 0 of the file's times, and the time of messages before the first stamp. */
static uint64_t find_offset(const struct request *request, const struct tw_ttb_survey *survey,
			    const struct tw_ttb_survey *last, uint64_t *start_ns)
{
	struct stat st = {0};
	stat(request->paths[request->path_count - 1], &st);
	uint64_t changed_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec;
	*start_ns = survey->has_monotonic ? survey->monotonic_ns : survey->has_wall ? survey->wall_ns : changed_ns;
	if (survey->has_wall && survey->has_monotonic)
		return survey->wall_ns - survey->monotonic_ns;
	if (!survey->has_monotonic)
		return 0;
	return changed_ns - (last->has_monotonic ? last->monotonic_ns : survey->monotonic_ns);
}

struct result {
	uint64_t events, dropped, strange; /* strange: terms that are not trace messages */
	char trouble[300];		   /* a sentence; "": none */
};

/* Returns 0 or an error of the writer. */
static int import_all(const struct request *request, struct tw_ttb_import *import, struct result *result)
{
	struct tw_ttb_reader reader;
	enum tw_ttb_answer answer;
	struct tw_meter meter;
	int error = 0;
	tw_ttb_open(&reader, request->paths, request->path_count);
	tw_meter_start(&meter, "converting");
	while (!error && ((answer = tw_ttb_next(&reader)) == TW_TTB_RECORD || answer == TW_TTB_CUT)) {
		if (answer == TW_TTB_CUT) {
			snprintf(result->trouble, sizeof result->trouble, "'%s' ends inside a message: it was cut off",
				 tw_ttb_path(&reader));
		} else if (reader.op == TW_TTB_DROPPED) {
			error = tw_ttb_import_dropped(import, reader.size);
			result->dropped += reader.size;
		} else {
			error = tw_ttb_import_term(import, reader.term, reader.size);
			result->strange += error == TW_EFORMAT;
			result->events += !error;
			error = error == TW_EFORMAT ? 0 : error;
		}
		tw_meter_at(&meter, reader.records, 0);
	}
	tw_meter_stop(&meter);
	if (!error && answer == TW_TTB_MALFORMED)
		snprintf(result->trouble, sizeof result->trouble,
			 "'%s' is not a trace file from its message %llu on: the rest was left out",
			 tw_ttb_path(&reader), (unsigned long long)reader.records + 1);
	else if (!error && answer == TW_TTB_UNREADABLE)
		snprintf(result->trouble, sizeof result->trouble, "'%s' cannot be read: %s", tw_ttb_path(&reader),
			 strerror(errno));
	tw_ttb_close(&reader);
	return error;
}

#define STRANGE_BYTES 160

static const char *strange_terms(uint64_t count, char *text)
{
	char figure[TW_FIGURE_BYTES];
	snprintf(text, STRANGE_BYTES, "%s of the trace file %s, and %s left out",
		 tw_figure_of(figure, count, "term", "terms"),
		 count == 1 ? "is not a trace message" : "are not trace messages", count == 1 ? "was" : "were");
	return text;
}

static int note_trouble(struct tw_capture_writer *writer, const struct result *result)
{
	char text[400], strange[STRANGE_BYTES];
	int bytes = 0, error = 0;
	if (result->strange)
		bytes = snprintf(text, sizeof text, "%s", strange_terms(result->strange, strange));
	if (bytes)
		error = tw_capture_writer_note(writer, (struct tw_producer_name){text, (size_t)bytes});
	if (*result->trouble)
		tw_capture_writer_cut(writer);
	if (!error && *result->trouble)
		error = tw_capture_writer_note(writer,
					       (struct tw_producer_name){result->trouble, strlen(result->trouble)});
	return error;
}

static int say_imported(const struct request *request, const struct result *result)
{
	char events[TW_FIGURE_BYTES], dropped[TW_FIGURE_BYTES], strange[STRANGE_BYTES];
	if (!request->quiet)
		tw_say("%s: %s event%s%s%s%s.", request->output, tw_figure_count(events, result->events),
		       result->events == 1 ? "" : "s", result->dropped ? ", and " : "",
		       result->dropped ? tw_figure_count(dropped, result->dropped) : "",
		       result->dropped ? " dropped before they were written" : "");
	if (result->strange)
		tw_say("%s.", strange_terms(result->strange, strange));
	if (*result->trouble)
		return tw_fail("%s.", result->trouble);
	return TW_EXIT_OK;
}

static int fail_capture(const struct request *request, int error)
{
	if (error == TW_EEXIST)
		return tw_fail("'%s' exists; --force replaces a capture, and nothing else.", request->output);
	return tw_fail("'%s' cannot be written: %s", request->output, tw_strerror(error));
}

static int convert_from(const struct request *request)
{
	struct tw_ttb_survey survey = {0}, last = {0};
	struct tw_capture_writer *writer;
	struct result result = {0};
	uint64_t start_ns;
	if (strcmp(request->output, "-") == 0)
		return tw_usage(&command, "a capture is a folder: it cannot be written to standard output.");
	int code = look(request, &survey, &last);
	if (code >= 0)
		return code;
	const struct tw_capture_writer_options options = {
		.path = request->output,
		.force = request->force,
		/* By this name views know an Erlang VM. */
		.program = "beam.smp",
		.command = request->paths[0],
		.session = "ttb",
		.wall_offset_ns = find_offset(request, &survey, &last, &start_ns),
	};
	int error = tw_capture_writer_create(&options, &writer);
	if (error)
		return fail_capture(request, error);
	struct tw_ttb_import *import = tw_ttb_import_create(writer, &survey, start_ns, options.wall_offset_ns);
	error = import ? import_all(request, import, &result) : TW_ENOMEM;
	if (!error)
		error = note_trouble(writer, &result);
	if (error)
		tw_capture_writer_abort(writer);
	else
		error = tw_capture_writer_finish(writer);
	tw_ttb_import_destroy(import);
	return error ? fail_capture(request, error) : say_imported(request, &result);
}

int tw_tool_convert(int argc, char **argv)
{
	struct request request = {.stamp = -1, .paths = calloc((size_t)argc + 1, sizeof *request.paths)};
	if (!request.paths)
		return tw_fail("no memory.");
	struct tw_options options = {.command = &command, .argc = argc, .argv = argv};
	int code = tw_options_words(&options, take_option, &request, request.paths, &request.path_count);
	if (code < 0)
		code = check_request(&request);
	if (code < 0)
		code = request.table	? write_tables(&request)
		       : request.is_ctf ? convert_to_ctf(&request)
		       : request.is_to	? convert_to(&request)
					: convert_from(&request);
	free(request.paths);
	return code;
}
