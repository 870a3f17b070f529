/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attach.c - `tracewheel record --erlang NODE|PID`: traces a running Erlang node.
 *
 * A helper VM (erlang/src/tracewheel_attach.erl) connects to the node, gives it the application `tracewheel` and starts the trace; the
 * node starts the recorder: this command again, without an operand (erlang.c).  The helper reports by lines on its standard output;
 * the end of its standard input is the order to stop.
 */
#include "tools/record/erlang.h"
#include "tools/record/erlang_end.h"
#include "tools/record/erlang_nodes.h"
#include "tools/record/erlang_print.h"
#include "tools/record/limits.h"
#include "tools/record/rings.h"
#include "tools/record/sizes.h"
#include "tools/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGUMENTS_MAX 256

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
	KEY_FLIGHT_OF_NODE
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
	{KEY_PORT, "port", "PORT", "where NODE listens for other nodes: no epmd is asked"},
	{KEY_COOKIE, "cookie-file", "FILE",
	 "where the node's cookie is: by default in .erlang.cookie in your home, or, of a process, among its arguments or in its home"},
	{KEY_FLIGHT_OF_NODE, "flight", NULL,
	 "of the recorder without NODE: the newest events stay in memory until tracewheel:flight/2 asks for a snapshot"},
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
	.examples = "  tracewheel record --erlang -t 'lists:seq/2 -> return' shop@localhost\n"
		    "  tracewheel record --erlang --print -t lists:seq shop | grep '<0.85.0>'\n"
		    "  tracewheel record --erlang -p send,receive,running --time 10s -o shop.tw shop\n"
		    "  tracewheel record --erlang --print --send '{pay, Id, _} when Id > 7' shop@localhost\n"
		    "  tracewheel record --erlang --seq Id -t 'shop:pay(Id, _)' shop@localhost\n"
		    "  tracewheel record --erlang --seq Id -t 'shop:pay(Id, _)' -o both.tw shop@web1 stock@web2\n"
		    "  tracewheel record --erlang --print --process application:shop -p send,receive shop\n"
		    "  tracewheel record --erlang -t rabbit_channel -p call,arity $(pgrep -n beam)\n"};

struct request {
	struct tw_recorder_options recorder;
	char path[PATH_MAX + 4];
	char *arguments[ARGUMENTS_MAX + 1]; /* of the helper; ends with NULL */
	unsigned count;
	bool has_patterns, has_flags, has_more, has_processes, is_quiet, prints, is_flight;
	const char *lines; /* NULL: LINES */
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

/* The helper and the node have other folders than this process. */
static bool add_file(struct request *request, const char *key, const char *path)
{
	char folder[PATH_MAX], whole[2 * PATH_MAX];
	if (!*path || strlen(path) >= PATH_MAX || !getcwd(folder, sizeof folder))
		return tw_usage(&command, "-o and --cookie-file want the name of a file."), false;
	snprintf(whole, sizeof whole, "%s%s%s", *path == '/' ? "" : folder, *path == '/' ? "" : "/", path);
	return add(request, key, whole);
}

/* For the helper, which prints where this command cannot. */
static bool add_lines(struct request *request)
{
	uint64_t number;
	return tw_parse_decimal(request->lines ? request->lines : LINES, true, &number)
		       ? add_number(request, "print", number)
		       : add(request, "print", "none");
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
	case KEY_PRINT: request->prints = true; return true;
	case KEY_LINES:
		request->lines = value;
		if (strcmp(value, "none") == 0 || tw_parse_decimal(value, true, &number))
			return true;
		return tw_usage(&command, "--lines is a number of lines a second such as 100/s, or none; not '%s'.",
				value),
		       false;
	case KEY_FLIGHT_OF_NODE: return request->is_flight = true;
	case KEY_PROCESS: request->has_processes = true; return add(request, "process", value);
	case KEY_SCOPE: return add(request, "scope", "global");
	case KEY_META: return add(request, "scope", "meta");
	case KEY_ON_LOAD: return add(request, "on_load", "true");
	case KEY_EVENTS: return add_limit(request, "events", value);
	case KEY_RATE: return add_limit(request, "rate", value);
	case KEY_TIME: return add_limit(request, "time", value);
	case KEY_RING:
		return tw_sizes_set(&request->recorder, &command, "ring", value) &&
		       add_number(request, "ring_bytes", request->recorder.ring_bytes);
	case KEY_CAP:
		return tw_sizes_set(&request->recorder, &command, "ring-cap", value) &&
		       add_number(request, "memory", request->recorder.cap_bytes);
	case KEY_ON_FULL:
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
	case KEY_FORCE: request->recorder.force = true; return add(request, "force", "true");
	default: return false;
	}
}

/* ---- the helper ---- */

/* The installed tree; the build tree. */
static bool find_application(char folder[PATH_MAX], char self[PATH_MAX])
{
	static const char *const places[] = {"/" TW_AGENT_FOLDER "/erlang", "/../erlang"};
	int parent = tw_command_path(self);
	if (parent < 0)
		return tw_say("this command does not know where it is: /proc cannot be read."), false;
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		char candidate[2 * PATH_MAX], *real;
		snprintf(candidate, sizeof candidate, "%.*s%s/ebin/tracewheel_attach.beam", parent, self, places[i]);
		real = realpath(candidate, NULL);
		if (!real)
			continue;
		snprintf(folder, PATH_MAX, "%.*s", (int)(strrchr(real, '/') - real), real);
		free(real);
		return true;
	}
	tw_say("%.*s%s, the application for Erlang, is missing: it is built and installed with this command if erlc and erl_nif.h "
	       "are there (Debian: erlang-base, erlang-dev).",
	       parent, self, places[0]);
	return false;
}

/* As long has the helper to end in order what has not begun to trace: it may wait for a node that stands still. */
#define PATIENCE_S 5

static volatile sig_atomic_t stops_asked, is_tracing;
static volatile int stop_fd = -1;
static volatile pid_t helper;

/* The helper's input ends: it ends the trace. */
static void stop(void)
{
	if (stop_fd >= 0)
		close(stop_fd);
	stop_fd = -1;
}

/* A second signal is not as patient: then the node ends the trace, as its owner is gone. */
static void on_signal(int number)
{
	int saved = errno;
	(void)number;
	if (stops_asked++) {
		kill(helper, SIGKILL);
		tw_erlang_print_kill();
	} else {
		stop();
		if (!is_tracing)
			alarm(PATIENCE_S);
	}
	errno = saved;
}

/* Nobody reads any more what is printed: as a command in a pipe would, this one ends. */
static void on_child(int number)
{
	int saved = errno;
	(void)number;
	if (tw_erlang_print_has_ended())
		stop();
	errno = saved;
}

static void on_alarm(int number)
{
	(void)number;
	if (!is_tracing)
		kill(helper, SIGKILL);
}

static void catch_signals(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, found;
	/* Each is alone with stop_fd. */
	sigfillset(&action.sa_mask);
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		if (sigaction(numbers[i], NULL, &found) == 0 && found.sa_handler != SIG_IGN)
			sigaction(numbers[i], &action, NULL);
	action.sa_handler = on_alarm;
	sigaction(SIGALRM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	action.sa_handler = on_child;
	sigaction(SIGCHLD, &action, NULL);
}

/* A process group of its own: the terminal's Ctrl-C is for this command.  Returns 0 or an errno. */
static int start_helper(char *const argv[], FILE **lines)
{
	extern char **environ;
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int in[2], out[2];
	pid_t child = 0;
	if (pipe2(in, O_CLOEXEC) < 0)
		return errno;
	if (pipe2(out, O_CLOEXEC) < 0) {
		int error = errno;
		close(in[0]);
		close(in[1]);
		return error;
	}
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in[0], 0);
	posix_spawn_file_actions_adddup2(&actions, out[1], 1);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
	/* A crash dump would hold the cookie. */
	setenv("ERL_CRASH_DUMP_SECONDS", "0", 1);
	setenv("ERL_CRASH_DUMP_BYTES", "0", 1);
	int error = posix_spawnp(&child, argv[0], &actions, &attributes, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	close(in[0]);
	close(out[1]);
	stop_fd = in[1];
	helper = child;
	*lines = fdopen(out[0], "r");
	return error;
}

/* ---- what it reports ---- */

/* Follows the helper to its end.  Returns the exit code. */
static int follow(const struct request *request, FILE *lines)
{
	char *line = NULL, *text, path[PATH_MAX + 4] = "";
	size_t size = 0;
	bool is_elsewhere = false;
	int code = -1;
	while (code < 0 && getline(&line, &size, lines) > 0) {
		line[strcspn(line, "\n")] = 0;
		text = strchr(line, ' ');
		if (!text)
			continue;
		*text++ = 0;
		if (strcmp(line, "tracing") == 0 || strcmp(line, "elsewhere") == 0) {
			char *blank = strchr(text, ' ');
			is_tracing = 1;
			is_elsewhere = *line == 'e';
			*blank = 0;
			snprintf(path, sizeof path, "%s", *request->path ? request->path : blank + 1);
			if (!request->is_quiet)
				tw_say("tracing '%s' into %s; Ctrl-C ends the trace.", text, path);
			if (request->prints && !is_elsewhere &&
			    !tw_erlang_print_begin(request->self, path, request->lines ? request->lines : LINES))
				stop();
		} else if (strcmp(line, "note") == 0 || (strcmp(line, "about") == 0 && !request->is_quiet)) {
			tw_say("%s", text);
		} else if (strcmp(line, "line") == 0) {
			if (puts(text) < 0 || fflush(stdout) != 0)
				stop();
		} else if (strcmp(line, "done") == 0) {
			tw_erlang_print_end();
			code = tw_erlang_sum_up(text, path, &request->recorder, request->is_quiet);
		} else if (strcmp(line, "lost") == 0) {
			tw_say("the connection to the node is lost, and the trace has ended with it; its recorder completes %s.",
			       is_elsewhere ? text : path);
			code = TW_EXIT_FAILURE;
		} else if (strcmp(line, "killed") == 0) {
			tw_say("the process that traces was killed in the node, and the trace has ended with it; its recorder "
			       "completes %s.",
			       is_elsewhere ? text : path);
			code = TW_EXIT_FAILURE;
		} else if (strcmp(line, "failed") == 0) {
			code = (int)strtol(text, &text, 10);
			tw_say("%s", *text ? text + 1 : text);
		}
	}
	free(line);
	tw_erlang_print_end();
	if (code >= 0)
		return code;
	tw_say(is_elsewhere
		       ? "the helper VM was ended, and the trace with it; the capture stays where the node made it, and not in %s."
	       : *path	     ? "the helper VM was ended, and the trace with it; the node completes %s."
	       : stops_asked ? "it was stopped before the trace began%s."
			     : "the helper VM has ended before the trace began%s.",
	       path);
	return *path ? TW_EXIT_FAILURE : TW_EXIT_NOT_STARTED;
}

static int attach(struct request *request, const char *target)
{
	char folder[PATH_MAX],
		*argv[ARGUMENTS_MAX + 32] = {"erl",	     "-noshell",	  "-boot",    "no_dot_erlang",
					     "+Bi",	     "-start_epmd",	  "false",    "-setcookie",
					     "none",	     "-proto_dist",	  "inet_tcp", "inet6_tcp",
					     "-epmd_module", "tracewheel_attach", "-pa",      folder,
					     "-s",	     "tracewheel_attach", "main",     "-extra"};
	FILE *lines = NULL;
	int status, code, count = 20;
	if (!request->has_patterns && !request->has_flags && !request->has_more)
		return tw_usage(&command,
				"what is to be traced? -t PATTERN, -p FLAGS, --send MESSAGE, --receive MESSAGE, "
				"--count PATTERN, --call-time PATTERN, --system-monitor EVENTS.");
	if (request->lines && !request->prints)
		return tw_usage(&command, "--lines is about --print.");
	if (!find_application(folder, request->self))
		return TW_EXIT_NOT_STARTED;
	if (!add(request, "target", target) || !add(request, "recorder", request->self) ||
	    (request->prints && !add_lines(request)))
		return TW_EXIT_USAGE;
	memcpy(argv + count, request->arguments, (request->count + 1) * sizeof *argv);
	int error = start_helper(argv, &lines);
	if (error || !lines) {
		if (lines)
			fclose(lines);
		tw_say(error == ENOENT
			       ? "the command erl is not in PATH, by which nodes are reached (Debian: erlang-base)."
			       : "the command erl cannot be started: %s.",
		       strerror(error));
		return error == ENOENT ? TW_EXIT_NOT_FOUND : TW_EXIT_NOT_STARTED;
	}
	catch_signals();
	code = follow(request, lines);
	fclose(lines);
	waitpid(helper, &status, 0);
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
	if (request->prints)
		return tw_usage(&command, "--print is of one NODE or PID.");
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
	if (key < 0)
		code = tw_options_exit(key);
	else if (options.index < argc && request.is_flight)
		code = tw_usage(
			&command,
			"--flight is for tracewheel:flight/2, in a shell of the node (docs/erlang.md), and not for a NODE.");
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
	return code;
}
