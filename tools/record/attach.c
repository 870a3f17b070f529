/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attach.c - `tracewheel record --erlang NODE|PID`: traces a running Erlang node.
 *
 * A helper VM (erlang/src/tracewheel_attach.erl) connects to the node, gives it the application `tracewheel` and starts the trace; the
 * node starts the recorder: this command again, without an operand (erlang.c).  The helper reports by lines on its standard output;
 * the end of its standard input is the order to stop.
 */
#include "tools/common/redact.h"
#include "tools/record/config.h"
#include "tools/record/erlang.h"
#include "tools/record/erlang_end.h"
#include "tools/common/erlang_helper.h"
#include "tools/record/erlang_nodes.h"
#include "tools/record/erlang_print.h"
#include "tools/record/limits.h"
#include "tools/record/rings.h"
#include "tools/record/sizes.h"
#include "tools/tool.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARGUMENTS_MAX TW_ERLANG_ARGUMENTS_MAX

enum {
	KEY_ERLANG = 256,
	KEY_SCOPE,
	KEY_META,
	KEY_ON_LOAD,
	KEY_ON_FULL,
	KEY_RING,
	KEY_CAP,
	KEY_EVENTS,
	KEY_RATE,
	KEY_TIME,
	KEY_TERM_BYTES,
	KEY_PORT,
	KEY_COOKIE,
	KEY_TLS,
	KEY_FORCE,
	KEY_PRINT,
	KEY_LINES,
	KEY_PROCESS,
	KEY_PROCESSES,
	KEY_SEND,
	KEY_SEQ,
	KEY_RECEIVE,
	KEY_SYSTEM,
	KEY_COUNT,
	KEY_CALL_TIME,
	KEY_CALL_MEMORY,
	KEY_FLIGHT_OF_NODE,
	KEY_SNAPSHOT_ON_ENDS,
	KEY_SNAPSHOTS_MOST,
	KEY_SNAPSHOTS_EVERY,
	KEY_REDACT
};

static const struct tw_option options_table[] = {
	{KEY_ERLANG, "erlang", NULL, "the first option: the others are these, not those of `tracewheel record`"},
	{'o', "output", "NAME.tw", "the capture to make (NODE.tw)"},
	{'t', "trace", "PATTERN",
	 "trace these functions: 'lists:seq/2', lists:seq, lists, 'shop_*', 'lists:seq/2 -> return', 'lists:seq(A, B) when A > 1', "
	 "Shop.Cart.add/2 (docs/erlang.md); may be given often"},
	{'p', "flags", "FLAG[,FLAG]...",
	 "flags of erlang:trace/3 for processes: call (if there are patterns, by default), send, receive, procs, running, "
	 "garbage_collection, ports, arity, ..."},
	{KEY_SEND, "send", "MESSAGE",
	 "trace the messages of this form that processes send: '{pay, Id, _} when Id > 7', 'shop_cart ! {pay, _}', or a fun over "
	 "[To, Message] as of dbg:fun2ms/1; may be given often"},
	{KEY_RECEIVE, "receive", "MESSAGE",
	 "the same for those that they receive; a fun is over [Node, From, Message]"},
	{KEY_SEQ, "seq", "LABEL",
	 "each call of -t begins a request of seq_trace, which is followed through processes and shown by `tracewheel seq`: an atom, an integer, "
	 "or a variable of the pattern, as Id of 'shop:pay(Id, _)'"},
	{KEY_SYSTEM, "system-monitor", "EVENT[=N],...",
	 "record system events: long_gc=MS, long_schedule=MS, large_heap=WORDS, busy_port, busy_dist_port; from OTP 27 on "
	 "long_message_queue=DISABLE:ENABLE"},
	{KEY_COUNT, "count", "PATTERN",
	 "only count the calls of these functions: no events (call_count); may be given often"},
	{KEY_CALL_TIME, "call-time", "PATTERN",
	 "count their calls and sum up the time in each, without that in others of these functions (call_time)"},
	{KEY_CALL_MEMORY, "call-memory", "PATTERN",
	 "the same for the words that they allocate (call_memory); OTP 26 or later"},
	{KEY_PROCESSES, "processes", "FLAG[,FLAG]...", "the former name of --flags"},
	{KEY_PROCESS, "process", "WHO",
	 "only these processes: '<0.85.0>', a registered name, new, existing, application:APP, module:MODULE (in which they began), "
	 "behaviour:gen_server, label:TEXT; may be given often (all). With -p call,set_on_spawn also those that they start"},
	{KEY_SCOPE, "global", NULL, "only calls that name the module"},
	{KEY_META, "meta", NULL, "calls of all processes, whatever their flags and whoever traces them"},
	{KEY_ON_LOAD, "on-load", NULL, "PATTERN may be of modules that are loaded later"},
	{KEY_PRINT, "print", NULL,
	 "also print the events on standard output as they come, as dbg does, each on a line; if their reader ends, the trace does"},
	{KEY_LINES, "lines", "N/s|none",
	 "with --print, print at most N lines in a second (1000/s); the other events are counted, and a line says how many"},
	{KEY_EVENTS, "events", "N|none", "end after this many events: 250000, 2M (1M)"},
	{KEY_RATE, "rate", "N/s|none", "end when there are more events than this in a second: 1M/s (200k/s)"},
	{KEY_TIME, "time", "TIME|none", "end after this time: 10s, 500ms (60s); none is written infinity as well"},
	{KEY_ON_FULL, "on-full", "drop|block",
	 "when events come faster than they are written: lose the newest, counted, or let processes wait"},
	{KEY_RING, "ring", "SIZE", "memory for one thread's events: 64K to 1G, a power of two (1M)"},
	{KEY_CAP, "ring-cap", "SIZE", "memory for all threads together (256M)"},
	{KEY_TERM_BYTES, "term-bytes", "BYTES", "record so much of one term (1000)"},
	{KEY_REDACT, "redact", "REGEX",
	 "replace what matches in strings and binaries of terms by *, of an expression with groups what these match, before it is written "
	 "(docs/security.md); may be given often"},
	{KEY_PORT, "port", "PORT", "where NODE listens for other nodes: no epmd is asked"},
	{KEY_COOKIE, "cookie-file", "FILE",
	 "where the node's cookie is: by default in .erlang.cookie in your home, or, of a process, among its arguments or in its home"},
	{KEY_TLS, "ssl-opts", "FILE",
	 "for a node whose distribution is by TLS: this end's certificate and what it trusts, in a file as of the flag -ssl_dist_optfile of erl, of "
	 "which the part `client` is used; the node's own file does"},
	{KEY_FLIGHT_OF_NODE, "flight", NULL,
	 "keep the newest events of each scheduler in memory, and write them as a capture when a process ends by an error; signal USR2, "
	 "sent to this command, asks for one too (docs/erlang.md). There is no limit of events or time then, and --ring is 4M"},
	{KEY_SNAPSHOT_ON_ENDS, "snapshot-on", "crash|WHO|none",
	 "with --flight, which ends: those that the logger is told of (crash), or those of these processes, as of --process; may be given often "
	 "(crash)"},
	{KEY_SNAPSHOTS_MOST, "snapshots", "N", "with --flight, write at most N for such ends (5)"},
	{KEY_SNAPSHOTS_EVERY, "every", "TIME", "and this far apart (10s)"},
	{KEY_FORCE, "force", NULL, "replace an existing capture"},
	{'q', "quiet", NULL, "no summary at the end; errors are still reported"},
	{0}};

static const struct tw_command command = {
	.name = "record --erlang",
	.arguments = "[OPTION]... NODE|PID...",
	.summary =
		"Traces a running Erlang node (OTP 25 or later), until Ctrl-C or a limit. The node needs a name "
		"(-sname, -name) and nothing else: it is given the tracer, which is unloaded at the end. The node writes the capture, "
		"as the user it runs as; from another host it comes here at the end. PID is the process of a VM, which is asked for its name. "
		"Several nodes are traced at once, each into NODE.tw, which are merged into the capture of -o.\n"
		"Without NODE this is the recorder that tracewheel:start/2 starts.",
	.options = options_table,
	.examples =
		"  tracewheel record --erlang -t 'lists:seq/2 -> return' shop@localhost\n"
		"  tracewheel record --erlang --print -t lists:seq shop | grep '<0.85.0>'\n"
		"  tracewheel record --erlang -p send,receive,running --time 10s -o shop.tw shop\n"
		"  tracewheel record --erlang --print --send '{pay, Id, _} when Id > 7' shop@localhost\n"
		"  tracewheel record --erlang --seq Id -t 'shop:pay(Id, _)' shop@localhost\n"
		"  tracewheel record --erlang --seq Id -t 'shop:pay(Id, _)' -o both.tw shop@web1 stock@web2\n"
		"  tracewheel record --erlang --print --process application:shop -p send,receive shop\n"
		"  tracewheel record --erlang --flight -t 'shop_*:_ -> return' --process application:shop shop@localhost\n"
		"  tracewheel record --erlang -t rabbit_channel -p call,arity $(pgrep -n beam)\n"};

struct request {
	struct tw_recorder_options recorder;
	char path[PATH_MAX + 4];
	char *arguments[ARGUMENTS_MAX + 1]; /* of the helper; ends with NULL */
	unsigned count;
	bool has_patterns, has_flags, has_more, has_processes, is_quiet, prints, is_flight;
	char *tls;		    /* the file of --ssl-opts; NULL: not by TLS */
	const char *beside_flight;  /* an option given that is for --flight only; NULL: none */
	const char *against_flight; /* one that does not go with it */
	const char *lines;	    /* NULL: LINES */
	struct tw_config config;    /* the expressions of --redact, for the recorder */
	char self[PATH_MAX];
};

/* Printed in a second. */
#define LINES "1000"

/* ---- the request ---- */

static bool add(struct request *request, const char *key, const char *value)
{
	if (request->count == ARGUMENTS_MAX)
		return tw_usage(&command, "there are more than %d options.", ARGUMENTS_MAX), false;
	return asprintf(&request->arguments[request->count++], "%s=%s", key, value) > 0;
}

static bool add_number(struct request *request, const char *key, uint64_t value)
{
	char text[32];
	snprintf(text, sizeof text, "%llu", (unsigned long long)value);
	return add(request, key, text);
}

static bool add_limit(struct request *request, const char *key, const char *value)
{
	struct tw_limits limits = {0};
	const uint64_t *number = strcmp(key, "time") == 0     ? &limits.time_ns
				 : strcmp(key, "events") == 0 ? &limits.events
							      : &limits.rate;
	/* The word of tracewheel:start/2 is taken as well. */
	if (!tw_limits_set(&limits, &command, key, strcmp(value, "infinity") == 0 ? "none" : value))
		return false;
	if (!*number)
		return add(request, key, "infinity");
	/* Milliseconds, one at least. */
	return add_number(request, key, number == &limits.time_ns ? (*number + 999999) / 1000000 : *number);
}

static bool add_file(struct request *request, const char *key, const char *path)
{
	char whole[2 * PATH_MAX];
	return tw_erlang_helper_path(&command, whole, path) && add(request, key, whole);
}

/* Of the argument that was added last. */
static char *value_of(const struct request *request)
{
	return strchr(request->arguments[request->count - 1], '=') + 1;
}

/* For the helper, which prints where this command cannot. */
static bool add_lines(struct request *request)
{
	uint64_t number;
	return tw_parse_decimal(request->lines ? request->lines : LINES, true, &number)
		       ? add_number(request, "print", number)
		       : add(request, "print", "none");
}

/* --flight and what goes with it. */
static bool take_flight(struct request *request, int key, const char *value)
{
	uint64_t number;
	switch (key) {
	case KEY_FLIGHT_OF_NODE: return request->is_flight = true;
	case KEY_SNAPSHOT_ON_ENDS: request->beside_flight = "--snapshot-on"; return add(request, "snapshot_on", value);
	case KEY_SNAPSHOTS_MOST:
		request->beside_flight = "--snapshots";
		if (tw_parse_count(value, &number) && number > 0 && number <= UINT32_MAX)
			return add_number(request, "snapshots", number);
		return tw_usage(&command, "--snapshots is a number from 1 on, not '%s'.", value), false;
	case KEY_SNAPSHOTS_EVERY:
		request->beside_flight = "--every";
		if (tw_parse_duration(value, &number) && number / 1000000 < UINT32_MAX)
			return add_number(request, "every", (number + 999999) / 1000000);
		return tw_usage(&command, "--every is a time, such as 10s, not '%s'.", value), false;
	default: return false;
	}
}

/* Options whose values are looked at here. */
static bool take_value(struct request *request, int key, const char *value)
{
	uint64_t number;
	switch (key) {
	case KEY_RING:
		return tw_sizes_set(&request->recorder, &command, "ring", value) &&
		       add_number(request, "ring_bytes", request->recorder.ring_bytes);
	case KEY_CAP:
		return tw_sizes_set(&request->recorder, &command, "ring-cap", value) &&
		       add_number(request, "memory", request->recorder.cap_bytes);
	case KEY_ON_FULL:
		request->against_flight = "--on-full";
		if (!tw_rings_set_policy(&request->recorder, &command, value))
			return false;
		if (request->recorder.policy == TW_RECORDER_OVERWRITE)
			return tw_usage(&command, "--on-full is drop or block for an Erlang node."), false;
		return add(request, "on_full", value);
	case KEY_TERM_BYTES:
		if (tw_parse_bytes(value, &number) && number >= 16)
			return add_number(request, "term_bytes", number);
		return tw_usage(&command, "--term-bytes is a number of bytes, 16 at least, not '%s'.", value), false;
	case KEY_PORT:
		if (tw_parse_decimal(value, false, &number) && number > 0 && number < 65536)
			return add_number(request, "port", number);
		return tw_usage(&command, "--port is a number from 1 to 65535, not '%s'.", value), false;
	case KEY_COOKIE: return add_file(request, "cookie_file", value);
	default: return false;
	}
}

static bool take_option(struct request *request, int key, const char *value)
{
	uint64_t number;
	switch (key) {
	case KEY_ERLANG: return true;
	case 'o': snprintf(request->path, sizeof request->path, "%s", value); return add_file(request, "output", value);
	case 't': request->has_patterns = true; return add(request, "pattern", value);
	case KEY_SEND: request->has_more = true; return add(request, "send", value);
	case KEY_RECEIVE: request->has_more = true; return add(request, "receive", value);
	case KEY_SEQ: return add(request, "seq", value);
	case KEY_REDACT: return tw_config_add(&request->config, "redact", value) && add(request, "redact", value);
	case KEY_SYSTEM: request->has_more = true; return add(request, "system_monitor", value);
	case KEY_COUNT: request->has_more = true; return add(request, "call_count", value);
	case KEY_CALL_TIME: request->has_more = true; return add(request, "call_time", value);
	case KEY_CALL_MEMORY: request->has_more = true; return add(request, "call_memory", value);
	case KEY_PROCESSES:
	case 'p':
		if (key == KEY_PROCESSES)
			tw_say("--processes is --flags now, and --process says which processes.");
		request->has_flags = true;
		return add(request, "flags", value);
	case 'q': request->is_quiet = true; return true;
	case KEY_PRINT:
		request->against_flight = "--print";
		request->prints = true;
		return true;
	case KEY_LINES:
		request->lines = value;
		if (strcmp(value, "none") == 0 || tw_parse_decimal(value, true, &number))
			return true;
		return tw_usage(&command, "--lines is a number of lines a second such as 100/s, or none; not '%s'.",
				value),
		       false;
	case KEY_FLIGHT_OF_NODE:
	case KEY_SNAPSHOT_ON_ENDS:
	case KEY_SNAPSHOTS_MOST:
	case KEY_SNAPSHOTS_EVERY: return take_flight(request, key, value);
	case KEY_PROCESS: request->has_processes = true; return add(request, "process", value);
	case KEY_SCOPE: return add(request, "scope", "global");
	case KEY_META: return add(request, "scope", "meta");
	case KEY_ON_LOAD: return add(request, "on_load", "true");
	case KEY_EVENTS: return add_limit(request, "events", value);
	case KEY_RATE: return add_limit(request, "rate", value);
	case KEY_TIME: return add_limit(request, "time", value);
	case KEY_RING:
	case KEY_CAP:
	case KEY_ON_FULL:
	case KEY_TERM_BYTES:
	case KEY_PORT:
	case KEY_COOKIE: return take_value(request, key, value);
	case KEY_TLS: return add_file(request, "ssl_opts", value) && (request->tls = value_of(request));
	case KEY_FORCE:
		request->against_flight = "--force";
		request->recorder.force = true;
		return add(request, "force", "true");
	default: return false;
	}
}

/* ---- what it reports ---- */

struct following {
	const struct request *request;
	char path[PATH_MAX + 4]; /* of the capture; empty: the trace has not begun */
	bool is_elsewhere;
	uint32_t snapshots;
	int code; /* the exit code; below 0: it goes on */
};

static void say_begun(struct following *following, char *text)
{
	const struct request *request = following->request;
	char *blank = strchr(text, ' ');
	tw_erlang_helper_set_tracing();
	*blank = 0;
	snprintf(following->path, sizeof following->path, "%s", *request->path ? request->path : blank + 1);
	if (request->is_flight && !request->is_quiet)
		tw_say("flight recorder of '%s': `kill -USR2 %d` writes what it has done, into %s at first; Ctrl-C ends it.",
		       text, (int)getpid(), following->path);
	else if (!request->is_quiet)
		tw_say("tracing '%s' into %s; Ctrl-C ends the trace.", text, following->path);
	if (request->prints && !following->is_elsewhere &&
	    !tw_erlang_print_begin(request->self, following->path, request->lines ? request->lines : LINES))
		tw_erlang_helper_stop();
}

/* EVENTS PATH, a tabulator, and why. */
static void say_snapshot(struct following *following, char *text)
{
	char figure[TW_FIGURE_BYTES], *path, *reason = strchr(text, '\t');
	uint64_t events = strtoull(text, &path, 10);
	if (!reason || *path != ' ')
		return;
	*reason = 0;
	following->snapshots++;
	if (!following->request->is_quiet)
		tw_say("%s: %s; %s.", path + 1, tw_figure_of(figure, events, "event", "events"), reason + 1);
}

static void say_broken(struct following *following, const char *how, const char *text)
{
	following->code = TW_EXIT_FAILURE;
	if (following->request->is_flight)
		tw_say("%s, and the flight recorder has ended with it%s%s.", how, following->is_elsewhere ? "; " : "",
		       following->is_elsewhere ? text : "");
	else
		tw_say("%s, and the trace has ended with it; its recorder completes %s.", how,
		       following->is_elsewhere ? text : following->path);
}

static void say_done(struct following *following, char *text)
{
	const struct request *request = following->request;
	tw_erlang_print_end();
	following->code = request->is_flight
				  ? tw_erlang_sum_up_flight(text, following->snapshots, request->is_quiet)
				  : tw_erlang_sum_up(text, following->path, &request->recorder, request->is_quiet);
}

static void take_line(struct following *following, const char *word, char *text)
{
	bool is_quiet = following->request->is_quiet;
	if (strcmp(word, "tracing") == 0 || strcmp(word, "elsewhere") == 0) {
		following->is_elsewhere = *word == 'e';
		say_begun(following, text);
	} else if (strcmp(word, "note") == 0 || (strcmp(word, "about") == 0 && !is_quiet)) {
		tw_say("%s", text);
	} else if (strcmp(word, "line") == 0) {
		if (puts(text) < 0 || fflush(stdout) != 0)
			tw_erlang_helper_stop();
	} else if (strcmp(word, "snapshot") == 0) {
		say_snapshot(following, text);
	} else if (strcmp(word, "done") == 0) {
		say_done(following, text);
	} else if (strcmp(word, "lost") == 0) {
		say_broken(following, "the connection to the node is lost", text);
	} else if (strcmp(word, "killed") == 0) {
		say_broken(following, "the process that traces was killed in the node", text);
	} else if (strcmp(word, "failed") == 0) {
		following->code = (int)strtol(text, &text, 10);
		tw_say("%s", *text ? text + 1 : text);
	}
}

/* Follows the helper to its end.  Returns the exit code. */
static int follow(const struct request *request, FILE *lines)
{
	struct following following = {.request = request, .code = -1};
	char *line = NULL, *text;
	size_t size = 0;
	while (following.code < 0 && getline(&line, &size, lines) > 0) {
		line[strcspn(line, "\n")] = 0;
		text = strchr(line, ' ');
		if (!text)
			continue;
		*text++ = 0;
		take_line(&following, line, text);
	}
	free(line);
	tw_erlang_print_end();
	if (following.code >= 0)
		return following.code;
	if (!*following.path)
		tw_say(tw_erlang_helper_was_stopped() ? "it was stopped before the trace began."
						      : "the helper VM has ended before the trace began.");
	else if (request->is_flight)
		tw_say("the helper VM was ended, and the flight recorder with it.");
	else
		tw_say(following.is_elsewhere
			       ? "the helper VM was ended, and the trace with it; the capture stays where the node made it, and not in %s."
			       : "the helper VM was ended, and the trace with it; the node completes %s.",
		       following.path);
	return *following.path ? TW_EXIT_FAILURE : TW_EXIT_NOT_STARTED;
}

/* Returns 0, or an exit code after reporting that the options do not go together. */
static int check(const struct request *request)
{
	if (!request->has_patterns && !request->has_flags && !request->has_more)
		return tw_usage(&command,
				"what is to be traced? -t PATTERN, -p FLAGS, --send MESSAGE, --receive MESSAGE, "
				"--count PATTERN, --call-time PATTERN, --system-monitor EVENTS.");
	if (request->lines && !request->prints)
		return tw_usage(&command, "--lines is about --print.");
	if (request->beside_flight && !request->is_flight)
		return tw_usage(&command, "%s is for --flight.", request->beside_flight);
	if (request->is_flight && request->against_flight)
		return tw_usage(
			&command,
			"--flight goes without %s: nothing is written before something happens, and nothing is replaced.",
			request->against_flight);
	return 0;
}

static int attach(struct request *request, char *target)
{
	struct tw_erlang_helper helper = {.target = target, .tls = request->tls, .arguments = request->arguments};
	FILE *lines = NULL;
	int code = check(request);
	if (code)
		return code;
	if (!tw_erlang_helper_find(&helper, request->self))
		return TW_EXIT_NOT_STARTED;
	if (!add(request, "target", target) || !add(request, "recorder", request->self) ||
	    (request->prints && !add_lines(request)) || (request->is_flight && !add(request, "flight", "true")))
		return TW_EXIT_USAGE;
	code = tw_erlang_helper_begin(&helper, &lines);
	if (code)
		return code;
	tw_erlang_helper_catch_signals(&(struct tw_erlang_helper_calls){.asks_for_snapshots = request->is_flight,
									.has_ended = tw_erlang_print_has_ended,
									.kill = tw_erlang_print_kill});
	code = follow(request, lines);
	fclose(lines);
	tw_erlang_helper_wait();
	return code;
}

static int attach_to_all(struct request *request, int index, int argc, char **argv)
{
	struct tw_erlang_nodes nodes = {.self = request->self,
					.options = argv,
					.option_count = index - (strcmp(argv[index - 1], "--") == 0),
					.targets = argv + index,
					.target_count = argc - index,
					.merged = *request->path ? request->path : NULL,
					.force = request->recorder.force,
					.is_quiet = request->is_quiet};
	if (request->prints || request->is_flight)
		return tw_usage(&command, "%s is of one NODE or PID.", request->prints ? "--print" : "--flight");
	if (tw_command_path(request->self) < 0)
		return tw_say("this command does not know where it is: /proc cannot be read."), TW_EXIT_NOT_STARTED;
	return tw_erlang_nodes_record(&nodes);
}

int tw_record_erlang(int argc, char **argv)
{
	struct tw_options options = {.command = &command, .argc = argc, .argv = argv};
	struct request request = {0};
	int key, code = TW_EXIT_USAGE;
	while ((key = tw_options_next(&options)) > 0) {
		if (!take_option(&request, key, options.value))
			goto free_arguments;
	}
	request.recorder.config = request.config.text;
	if (key < 0)
		code = tw_options_exit(key);
	else if (!tw_redact_options(options.index < argc ? &command : NULL, request.arguments, request.count))
		code = TW_EXIT_USAGE;
	else if (options.index + 1 < argc)
		code = attach_to_all(&request, options.index, argc, argv);
	else if (tw_rings_are_too_large(&request.recorder, &command))
		code = TW_EXIT_USAGE;
	else if (options.index < argc)
		code = attach(&request, argv[options.index]);
	else if (!*request.path || request.has_patterns || request.has_flags || request.has_more ||
		 request.has_processes || request.prints)
		code = tw_usage(&command, "which node? Its name, or the number of its process, comes last.");
	else
		code = tw_record_erlang_port(&request.recorder, request.path, request.is_flight);
free_arguments:
	for (unsigned i = 0; i < request.count; i++)
		free(request.arguments[i]);
	free(request.config.text);
	return code;
}
