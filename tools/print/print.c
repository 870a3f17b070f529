/* SPDX-License-Identifier: Apache-2.0 */
/* print.c - `tracewheel print`: every event of all threads, in order of time. */
#include "views/names/counted.h"
#include "views/names/crash.h"
#include "views/names/lines.h"
#include "views/names/missing.h"
#include "views/names/notes.h"
#include "views/folds/pass.h"
#include "views/folds/slowest.h"
#include "tools/common/pager.h"
#include "tools/print/pace.h"
#include "tools/print/print.h"
#include "tools/common/select.h"

#include "tracewheel/error.h"
#include "tracewheel/flight.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
	KEY_TIMESTAMPS = 256,
	KEY_SLOWEST,
	KEY_FOLLOW,
	KEY_LINES,
};

struct request {
	const struct tw_print_format *format;
	struct tw_selection selection;
	uint64_t limit;
	bool has_limit;
	bool is_tree;
	bool has_setups;
	bool shows_waits;
	bool has_sched;
	const char *process;
	uint64_t slowest; /* 0: events */
	bool is_strace;
	const struct tw_print_timeline *timeline;
	bool is_stream;
	bool follows;
	uint64_t lines; /* a second; 0: all */
	bool is_on_request;
	bool is_bare;
	int stamp;
};

static const struct tw_option options_table[] = {
	{'f', "format", "text|strace|erlang|dbg|json|perfetto|speedscope|chrome",
	 "text for people (default), a line for each call with its result\n"
	 "and time, as strace shows it, Erlang's trace messages, the lines that\n"
	 "dbg makes of them, one JSON\n"
	 "object a line (docs/json.md), a timeline for Perfetto\n"
	 "(ui.perfetto.dev), for speedscope, or for chrome://tracing"},
	{TW_SETS(0, struct request, is_tree), "tree", NULL,
	 "text: calls indented by depth, with the time at which each began (--from takes it) and durations; equal leaves that follow each other are one line: x 900; ? marks a duration whose end was not seen or that contains a loss, > one that began before --from"},
	{KEY_SLOWEST, "slowest", "N",
	 "text or JSON: the N slowest calls of the functions of -t, each with what it did and, with record --locks, the locks that it waited for and the calls that held them; without -t those with most time of their own, but none of libc that wait (epoll_wait, pthread_cond_wait, nanosleep)"},
	{TW_SETS(0, struct request, shows_waits), "show-waits", NULL,
	 "--slowest without -t: also the calls of libc that wait"},
	{TW_SETS(0, struct request, has_setups), "setups", NULL,
	 "also list the set-up of threads and rings, which is subtracted from times"},
	{TW_SETS(0, struct request, has_sched), "sched", NULL,
	 "also list when threads ran, were preempted and were off the processor; for captures of `record --sched`"},
	{KEY_TIMESTAMPS, "timestamps", "none|monotonic|wall",
	 "in Erlang terms: none, nanoseconds, or {MegaSecs,Secs,MicroSecs};\n"
	 "by default as the session requested"},
	{TW_SETS(0, struct request, is_bare), "bare-pids", NULL,
	 "in Erlang terms: <0.1.0> for people, instead of '<0.1.0>' for\nfile:consult/1; also ports, references and funs"},
	{TW_SETS(0, struct request, process), "process", "PID|NAME",
	 "one process' life over all threads, from spawn to exit: '<0.45.0>', its name or the number of its thread, of one node shop:NAME; in text, an event shows what it ended: a run, "
	 "a time ready or blocked and the cause, a message's time in the queue, a call"},
	{KEY_FOLLOW, "follow", NULL,
	 "text, Erlang terms or JSON of a capture that is being recorded: events as they happen, from now on (or --from 0, or "
	 "--from -2s), until the recording ends; with --from, one that has ended meanwhile is shown as well"},
	{KEY_LINES, "lines", "N/s|none",
	 "with --follow, as text or --format dbg: at most N lines in a second (none); the other events are counted, and a line says how many"},
	{TW_SETS(0, struct request, is_on_request), "on-request", NULL,
	 "the same for a program that shows them: for each line on standard input a packet of four bytes of length, the highest first, the numbers of events shown and left out, a newline, and the lines"},
	TW_WHEN_OPTIONS,
	{TW_KEY_HIDE_WAITS, "hide-waits", NULL, "--slowest without -t: not the calls of libc that wait, as by default"},
	TW_SELECTION_OPTIONS,
	{'n', "limit", "N", "the first N events only; 0 is all"},
	{0}};

static const struct tw_command command = {
	.name = "print",
	.arguments = "[OPTION]... [NAME.tw | FILE | -]",
	.summary =
		"Prints every event of all threads in order of time. Losses appear where they happened.\n"
		"\nWithout a name: the newest capture in this folder. Instead of a capture's folder, - is a stream on standard input, from `tracewheel record -o -` or a program\n"
		"that traces itself, shown as it arrives; FILE is a file with such a stream. --tree and timelines read it\n"
		"to its end first. A stream that was cut off is shown as far as it goes, with exit code 1.",
	.options = options_table,
	.has_colour = true,
	.has_pager = true,
	.examples = "  tracewheel print --limit 20 sqlite3.tw\n"
		    "  tracewheel print --tree --limit 1000 sqlite3.tw | less\n"
		    "  tracewheel print --slowest 10 -t libsqlite3:sqlite3_step sqlite3.tw\n"
		    "  tracewheel print --from 1.5 --to 1.6 -t 'libc:read' -t 'libc:write' sqlite3.tw\n"
		    "  tracewheel print --process '<0.45.0>' actors.tw\n"
		    "  tracewheel print --format erlang sqlite3.tw > sqlite3.term\n"
		    "  tracewheel record -q -o - -- ls | tracewheel print -\n"
		    "  tracewheel print --follow -t libc:open server.tw\n"
		    "  tracewheel print -f json sqlite3.tw | jq 'select(.function == \"malloc\")'\n",
};

/* Lines a second of a program that asks for them and does not say how many. */
#define LINES 1000

static struct tw_out out;

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
	return tw_refuse(&command, "--timestamps is none, monotonic or wall, not '%s'.", value);
}

static bool take_lines(struct request *request, const char *value)
{
	bool is_right = strcmp(value, "none") == 0 || tw_parse_decimal(value, true, &request->lines);
	return is_right ||
	       tw_refuse(&command, "--lines is a number of lines a second such as 100/s, or none; not '%s'.", value);
}

/* It is none of the formats with an event a line. */
static bool has_form_of_its_own(const struct request *request)
{
	return request->timeline || request->is_strace;
}

static bool take_format(struct request *request, const char *value)
{
	static const struct tw_print_format *const formats[] = {&tw_print_text, &tw_print_erlang, &tw_print_dbg,
								&tw_print_json};
	request->timeline = tw_print_timeline(value);
	request->is_strace = strcmp(value, "strace") == 0;
	if (has_form_of_its_own(request))
		return true;
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
		if (strcmp(value, formats[i]->name) == 0) {
			request->format = formats[i];
			return true;
		}
	}
	return tw_refuse(&command,
			 "--format is text, strace, erlang, dbg, json, perfetto, speedscope or chrome, not '%s'.",
			 value);
}

static bool take_option(void *context, int key, const char *value)
{
	struct request *request = context;
	if (key == 'n') {
		bool is_right = tw_parse_count(value, &request->limit);
		if (!is_right)
			tw_usage(&command, "--limit is a number, not '%s'.", value);
		request->has_limit = is_right && request->limit;
		return is_right;
	}
	if (key == KEY_SLOWEST) {
		if (tw_parse_count(value, &request->slowest) && request->slowest && request->slowest <= TW_SLOWEST_MAX)
			return true;
		return tw_refuse(&command, "--slowest is a number of calls from 1 to %u, not '%s'.", TW_SLOWEST_MAX,
				 value);
	}
	if (key == KEY_FOLLOW) {
		request->follows = request->is_stream = true;
		return true;
	}
	if (key == KEY_LINES)
		return take_lines(request, value);
	if (key == KEY_TIMESTAMPS)
		return take_stamp(request, value);
	if (key != 'f')
		return tw_selection_take(&request->selection, &command, key, value);
	return take_format(request, value);
}

struct printing {
	struct tw_printer *printer;
	struct tw_pace *pace; /* NULL: all is shown */
	/* Which calls are selected; if any are. */
	struct tw_places calls;
	struct tw_stacks stacks;
	bool has_begun;
	const struct request *request;
	uint64_t left;
	uint32_t places;
};

/* The events from here on are shown; calls may have begun before. */
static int begin(void *self, uint64_t from_ns)
{
	struct printing *printing = self;
	printing->has_begun = true;
	if (printing->printer->when && from_ns)
		tw_stacks_begin(&printing->stacks, from_ns);
	return 0;
}

static int see(void *self, const struct tw_capture_event *event)
{
	struct printing *printing = self;
	const struct tw_print_format *format = printing->request->format;
	bool is_own_time = event->kind == TW_CAPTURE_OWN_TIME, is_state = event->kind == TW_CAPTURE_THREAD_STATE;
	bool is_event = event->kind != TW_CAPTURE_LOSS && !is_own_time && !is_state;
	struct tw_step step;
	if (!printing->left || out.error)
		return TW_FOLD_DONE;
	if (printing->printer->when && !tw_stacks_event(&printing->stacks, event, &step))
		return TW_ENOMEM;
	if (!printing->has_begun || (printing->printer->when && step.kind == TW_STEP_HIDDEN))
		return 0;
	/* Each thread has a set-up, a busy one several: views subtract them from times, and text shows no line for them. */
	if ((is_own_time &&
	     (!format->own_time || (event->id == TW_CAPTURE_OWN_SETUP && !printing->request->has_setups))) ||
	    (is_state && !format->state) || (printing->pace && !tw_pace_admits(printing->pace, is_event)))
		return 0;
	if (event->kind == TW_CAPTURE_LOSS) {
		format->loss(printing->printer, event);
	} else if (is_own_time) {
		format->own_time(printing->printer, event);
	} else if (is_state) {
		format->state(printing->printer, event);
	} else {
		if (format->exec && !tw_printer_begin_image(printing->printer, event, format))
			return TW_ENOMEM;
		format->event(printing->printer, event);
		printing->printer->shown++;
		printing->left--;
	}
	return printing->left ? 0 : TW_FOLD_DONE;
}

/* A live stream is shown as it comes, with the names that came with it. */
static int follow(void *self, bool is_over)
{
	struct printing *printing = self;
	if (printing->pace)
		(is_over ? tw_pace_release : tw_pace_hold)(printing->pace);
	else if (is_over)
		tw_out_flush(&out);
	if (is_over || tw_printer_refresh(printing->printer, printing->request->format, &printing->places))
		return 0;
	return TW_ENOMEM;
}

/* Finds the calls that are selected. */
static int find_calls(struct printing *printing, const struct tw_capture_filter *filter)
{
	struct tw_capture *capture = (struct tw_capture *)printing->printer->capture;
	struct tw_capture_filter all = *filter;
	all.from_ns = 0;
	int error = tw_places_make(&printing->calls, capture, filter);
	if (error == 0)
		error = tw_stacks_init(&printing->stacks, capture, &printing->calls);
	printing->stacks.when = printing->printer->when;
	return error ? error : tw_stacks_foresee(&printing->stacks, &all);
}

/* Returns 0 or an error. */
static int print_events(struct tw_printer *printer, const struct request *request,
			const struct tw_capture_filter *filter, struct tw_pace *pace)
{
	struct tw_capture_info info;
	tw_capture_info(printer->capture, &info);
	struct printing printing = {.printer = printer,
				    .pace = pace,
				    .request = request,
				    .left = request->has_limit ? request->limit : UINT64_MAX,
				    .places = info.places};
	struct tw_fold fold = {.self = &printing,
			       .filter = *filter,
			       .wants_before = printer->when != NULL,
			       .begin = begin,
			       .see = see,
			       .batch = request->is_stream ? follow : NULL};
	fold.filter.wants_thread_states = request->has_sched;
	if (!printing.left)
		return 0;
	int error = printer->when ? find_calls(&printing, &fold.filter) : 0;
	if (error == 0)
		error = tw_pass((struct tw_capture *)printer->capture, &fold, 1,
				request->is_stream || isatty(STDOUT_FILENO) ? NULL : "printing");
	printer->hidden = printing.stacks.hidden;
	tw_stacks_free(&printing.stacks);
	tw_places_free(&printing.calls);
	return error;
}

/* Does it read the whole capture before it prints? */
static bool reads_to_the_end(const struct request *request)
{
	return request->is_tree || has_form_of_its_own(request) || request->process || request->slowest ||
	       request->selection.longer_ns || tw_selection_has_conditions(&request->selection);
}

/* The capture; NULL: an error, which has been reported. */
static struct tw_capture *open_capture(struct request *request, const char *path)
{
	if (request->follows)
		return tw_names_follow(path, request->selection.from);
	if (reads_to_the_end(request) || tw_selection_wants_end(&request->selection))
		return tw_names_open(path);
	return tw_names_open_stream(path, &request->is_stream);
}

/* The filter; what is followed is shown from now on, if nothing else is said. False: a time is not valid, which has been reported. */
static bool make_filter(struct request *request, const struct tw_capture *capture, struct tw_capture_filter *filter)
{
	struct tw_capture_info info;
	tw_capture_info(capture, &info);
	if (!tw_selection_filter(&request->selection, capture, &command, filter))
		return false;
	if (request->follows && !request->selection.from)
		filter->from_ns = info.end_ns;
	/* The time of the first event becomes more exact while a stream is read. */
	if (request->is_stream && filter->from_ns <= info.zero_ns)
		filter->from_ns = 0;
	return true;
}

/* Options that exclude each other are reported. */
static bool fits_together(const struct request *request)
{
	if (request->is_tree && (request->format != &tw_print_text || has_form_of_its_own(request)))
		return tw_refuse(&command, "--tree is text; it cannot be --format %s.",
				 request->timeline    ? request->timeline->name
				 : request->is_strace ? "strace"
						      : request->format->name);
	if (request->process && (request->is_tree || has_form_of_its_own(request) || request->selection.thread))
		return tw_refuse(
			&command,
			"--process is a list of events over all threads: not with --tree, a timeline, --format strace, or --thread.");
	if (request->slowest && (request->is_tree || has_form_of_its_own(request) || request->process ||
				 request->selection.longer_ns || request->format == &tw_print_erlang))
		return tw_refuse(
			&command,
			"--slowest is a list of its own, as text or --format json: not with --tree, --process or --longer.");
	if ((request->selection.hides_waits || request->shows_waits) && !request->slowest)
		return tw_refuse(&command, "--%s-waits is about the slowest calls: it goes with --slowest.",
				 request->shows_waits ? "show" : "hide");
	if (request->process && (request->selection.longer_ns || tw_selection_has_conditions(&request->selection)))
		return tw_refuse(&command, "--process shows all events of a process: not with --longer and --when.");
	if (request->follows && (reads_to_the_end(request) || request->selection.tail))
		return tw_refuse(
			&command,
			"--follow shows events as they come: not with --tree, a timeline, --format strace, --process, --slowest, --longer, --when or --tail.");
	if ((request->lines || request->is_on_request) &&
	    (!request->follows || (request->format != &tw_print_text && request->format != &tw_print_dbg)))
		return tw_refuse(&command, "--lines and --on-request go with --follow, as text or --format dbg.");
	if (request->timeline && !request->timeline->is_text && isatty(STDOUT_FILENO))
		return tw_refuse(
			&command,
			"--format perfetto is no text: write it to a file, tracewheel print --format perfetto NAME.tw > NAME.pftrace.");
	return true;
}

/* Says on standard error what the output lacks. */
static void say_more(const struct request *request, const struct tw_capture *capture, const struct tw_printer *printer)
{
	char when[TW_WHEN_SENTENCE_BYTES], clause[TW_COST_CLAUSE_BYTES];
	const char *redaction = tw_notes_of_redaction(capture);
	if (redaction)
		tw_say("%s.", redaction);
	if (request->timeline && request->timeline->print != tw_print_chrome)
		tw_missing_say(capture);
	tw_counted_say(capture);
	if (*tw_tracer_cost_clause(printer->cost_ns, clause))
		tw_say("the tracer's own cost is in these times: %s.", clause);
	if (printer->when && !request->slowest)
		tw_say("calls %s.", tw_when_describe(printer->when, printer->hidden, when));
}

static void say_trigger(const struct tw_capture *capture)
{
	char trigger[TW_TRIGGER_BYTES];
	if (tw_name_trigger(capture, trigger))
		tw_say("a flight recorder's snapshot, %s.", trigger);
	static struct tw_out crash;
	tw_out_init(&crash, STDERR_FILENO);
	tw_crash_put(&crash, capture, "", "  ");
	tw_out_flush(&crash);
}

/* The thread of the call that caused the snapshot, and then what others did meanwhile. */
static int print_around(struct tw_printer *printer, struct request *request, uint64_t limit)
{
	static const enum tw_around parts[] = {TW_AROUND_TRIGGER, TW_AROUND_OTHERS};
	struct tw_capture_filter filter;
	struct tw_capture_crash crash;
	bool is_crash = tw_capture_crash(printer->capture, &crash);
	uint64_t shown[2] = {0};
	int error = 0;
	for (size_t i = 0; i < sizeof parts / sizeof *parts && !error; i++) {
		uint64_t before = printer->shown;
		request->selection.around_part = parts[i];
		if (!make_filter(request, (struct tw_capture *)printer->capture, &filter))
			return TW_EBADARG;
		tw_out_text(printer->out, i	     ? "\nother threads:\n"
					  : is_crash ? "the thread that crashed:\n"
						     : "the thread of the call:\n");
		error = tw_print_tree(printer, &filter, limit);
		shown[i] = printer->shown - before;
		if (!error && !shown[i])
			tw_out_format(printer->out, "(no event in that time)\n");
	}
	if (!error && !shown[0] && shown[1])
		tw_say("the call %s", tw_selection_why_not_around);
	return error;
}

/* Nothing of the capture is left out. */
static bool is_whole(const struct request *request)
{
	const struct tw_selection *selection = &request->selection;
	return !selection->from && !selection->to && !selection->tail && !selection->thread &&
	       !selection->patterns.wanted_count && !selection->patterns.excluded_count &&
	       !tw_selection_has_conditions(selection);
}

/* Prints in the form that was asked for. Returns 0 or an error. */
static int print_as_asked(struct tw_printer *printer, struct request *request, const struct tw_capture_filter *filter,
			  struct tw_pace *pace)
{
	uint64_t limit = request->has_limit ? request->limit : UINT64_MAX;
	const struct tw_print_life life = {request->process, filter->from_ns, request->format == &tw_print_text};
	const struct tw_print_slowest slowest = {(uint32_t)request->slowest, !request->shows_waits,
						 request->format == &tw_print_json};
	if (request->slowest)
		return tw_print_slowest(printer, filter, &slowest);
	if (request->is_tree)
		return request->selection.around_thread ? print_around(printer, request, limit)
							: tw_print_tree(printer, filter, limit);
	if (request->timeline)
		return request->timeline->print(printer, filter, limit);
	if (request->is_strace)
		return tw_print_strace(printer, filter, limit);
	if (request->format == &tw_print_text && !request->process && !request->is_stream && is_whole(request)) {
		int error = tw_print_ended(printer, request->format, filter);
		if (error)
			return error;
	}
	return request->process ? tw_print_life(printer, request->format, filter, &life, limit)
				: print_events(printer, request, filter, pace);
}

/* The whole output, and what it does not hold. Returns the exit code. */
static int show(struct request *request, struct tw_capture *capture, const char *path, struct tw_printer *printer,
		struct tw_pace *pace)
{
	struct tw_capture_filter filter;
	int error = TW_ENOMEM;
	if (!make_filter(request, capture, &filter))
		return TW_EXIT_USAGE;
	printer->when = tw_selection_when(&request->selection);
	say_trigger(capture);
	if (tw_printer_init(printer, &out, capture, request->format))
		error = print_as_asked(printer, request, &filter, pace);
	if (pace)
		tw_pace_end(pace);
	int code = tw_out_finish(&out);
	if (!error && !printer->shown && request->process)
		tw_say("no process '%s' has events in the selection; `tracewheel report` lists processes.",
		       request->process);
	else if (!error && !printer->shown && !request->follows)
		tw_selection_say_empty(&request->selection, capture, &filter);
	if (!error)
		say_more(request, capture, printer);
	if (error)
		code = error == TW_ENOTSUP && request->slowest
			       ? tw_fail("--slowest needs durations, and '%s' has no returns: record with --returns.",
					 path)
			       : tw_selection_fail(&request->selection, path, error);
	return tw_names_end(capture, path, code);
}

int tw_tool_print(int argc, char **argv)
{
	struct tw_options options = {.command = &command, .argc = argc, .argv = argv};
	struct request request = {.format = &tw_print_text, .stamp = -1};
	struct tw_printer printer = {0};
	struct tw_capture *capture = NULL;
	struct tw_pace *pace = NULL;
	int code;
	if (!tw_options_read(&options, take_option, &request, &code))
		goto free_request;
	code = TW_EXIT_USAGE;
	if (!fits_together(&request))
		goto free_request;
	if (request.is_on_request && !request.lines)
		request.lines = LINES;
	const char *path = tw_options_capture(&options);
	if (!path)
		goto free_request;
	code = TW_EXIT_FAILURE;
	/* A stream is shown as it arrives. */
	if (strcmp(path, "-") != 0 && !request.follows)
		tw_pager_start();
	tw_out_init(&out, request.is_on_request ? -1 : STDOUT_FILENO);
	if (request.lines && !(pace = tw_pace_begin(&out, request.lines, request.is_on_request))) {
		tw_fail("there is no memory for a thread.");
		goto free_request;
	}
	capture = open_capture(&request, path);
	if (!capture)
		goto free_request;
	printer.stamp = request.stamp;
	printer.is_bare = request.is_bare;
	code = show(&request, capture, path, &printer, pace);
free_request:
	tw_printer_free(&printer);
	free(printer.begun);
	tw_lines_forget();
	tw_capture_close(capture);
	tw_selection_free(&request.selection);
	return code;
}
