/* SPDX-License-Identifier: Apache-2.0 */
/*
 * top.c - `tracewheel top`: calls by function and thread while a program runs.
 *
 *	1 start `record` or `attach` as a child, with all functions counted, and its stream in a pipe
 *	2 show the numbers of each round, until the stream ends or the user has seen enough
 *	3 end the child: attach detaches; record lets its program go on, without being recorded
 *
 * Nothing of this process is in the way of the recording: its end closes the pipe, which ends the other.
 */
#include "tools/top/top.h"
#include "tools/tool.h"

#include "tracewheel/error.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGUMENTS_MAX 256
#define SECOND_NS     UINT64_C(1000000000)
#define EVERY_LEAST   UINT64_C(10000000)

enum {
	KEY_NAME = 256,
	KEY_TIMES,
	KEY_ERRORS,
	KEY_EVERY,
	KEY_COUNT,
	KEY_BATCH,
	KEY_FORMAT,
	KEY_BY_THREAD,
	KEY_SORT,
	KEY_TOP,
	KEY_ERLANG,
	KEY_OUTPUT
};

static const struct tw_option options_table[] = {
	{'t', "trace", "PATTERN",
	 "count these functions: MODULE:FUNCTION/ARITY with globs, {a,b}; _ is anything; may be repeated. By default: those of the "
	 "program itself, and those of libraries that it calls"},
	{'N', "exclude", "PATTERN", "but not these; may be repeated"},
	{KEY_NAME, "name", "NAME", "in place of PID: the one process of this name that has an agent"},
	{KEY_TIMES, "times", NULL, "also how long calls took, with what they called; of a COMMAND only"},
	{KEY_ERRORS, "errors", "'result < 0'",
	 "also how many calls returned such a result: a comparison (<, <=, ==, !=, >=, >) with 0; of a COMMAND only"},
	{KEY_BY_THREAD, "by-thread", NULL, "a row for each function and thread"},
	{KEY_SORT, "sort", "rate|calls|time|errors|name", "the order of rows (rate, the calls of the last round)"},
	{KEY_EVERY, "every", "TIME", "the length of a round (1s)"},
	{KEY_COUNT, "count", "N", "end after N rounds"},
	{KEY_TOP, "top", "N", "with --batch: only the first N rows"},
	{KEY_BATCH, "batch", NULL, "print each round as text, also on a terminal"},
	{KEY_FORMAT, "format", "text|json", "json: each round is one line, an object (docs/json.md)"},
	{KEY_ERLANG, "erlang", NULL,
	 "the first option: the processes of an Erlang node, with options of its own: `tracewheel top --erlang --help`"},
	{KEY_OUTPUT, "program-output", "FILE",
	 "the standard output and error of COMMAND; without it they are lost while the table is on a terminal"},
	{0}};

static const struct tw_command command = {
	.name = "top",
	.arguments = "[OPTION]... PID | [--] COMMAND [ARGUMENT]...",
	.summary =
		"Shows how often functions are called while a program runs, each second: a process with a dormant agent\n"
		"(docs/attach.md), or COMMAND. Calls are counted, exactly and by thread, and nothing is recorded.\n"
		"\n"
		"Keys: q quit, s next order, t by thread, r reset, p pause, / filter by a part of the name, arrows scroll.\n"
		"After q a process is as it was before, and a COMMAND goes on without being counted.",
	.has_command = true,
	.options = options_table,
	.examples = "  tracewheel top 4711\n"
		    "  tracewheel top -t 'libc:{malloc,free}' -- python3 app.py\n"
		    "  tracewheel top -t 'libc:_' --errors 'result < 0' --batch --count 5 -- make\n"
		    "  tracewheel top --name redis-server --format json | jq .calls_per_second\n"};

struct request {
	struct tw_top top;
	struct tw_top_view view;
	char *arguments[ARGUMENTS_MAX + 2]; /* of the child */
	size_t count;
	bool has_patterns, is_batch;
	const char *every, *name, *output;
};

/* ---- the request ---- */

static bool add(struct request *request, const char *option, const char *value)
{
	if (request->count + 2 > ARGUMENTS_MAX)
		return tw_usage(&command, "there are more than %d options and arguments.", ARGUMENTS_MAX / 2), false;
	request->arguments[request->count++] = (char *)option;
	if (value)
		request->arguments[request->count++] = (char *)value;
	return true;
}

static bool set_errors(struct request *request, const char *value)
{
	request->top.errors = tw_top_errors_of(value);
	if (request->top.errors)
		return true;
	tw_usage(&command, "--errors is a comparison of the result with 0, such as 'result < 0'; not '%s'.", value);
	return false;
}

static bool set_order(struct request *request, const char *value)
{
	request->top.order = tw_top_order_named(value);
	if (request->top.order < TW_TOP_ORDERS)
		return true;
	tw_usage(&command, "--sort is rate, calls, time, errors or name, not '%s'.", value);
	return false;
}

bool tw_top_set_every(const struct tw_command *of, uint64_t *out_ns, const char *value)
{
	if (tw_parse_duration(value, out_ns) && *out_ns >= EVERY_LEAST)
		return true;
	tw_usage(of, "--every is a time of at least 10ms, not '%s'.", value);
	return false;
}

bool tw_top_set_format(const struct tw_command *of, struct tw_top_view *view, const char *value)
{
	view->is_json = strcmp(value, "json") == 0;
	if (view->is_json || strcmp(value, "text") == 0)
		return true;
	tw_usage(of, "--format is text or json, not '%s'.", value);
	return false;
}

bool tw_top_set_number(const struct tw_command *of, uint64_t *out, const char *option, const char *value)
{
	if (tw_parse_count(value, out) && *out && *out <= UINT32_MAX)
		return true;
	tw_usage(of, "--%s is a number from 1 on, not '%s'.", option, value);
	return false;
}

static bool take_option(void *arg, int key, const char *value)
{
	struct request *request = arg;
	uint64_t number;
	switch (key) {
	case 't': request->has_patterns = true; return add(request, "--count", value);
	case 'N': return add(request, "-N", value);
	case KEY_NAME: request->name = value; return true;
	case KEY_TIMES: request->top.has_times = true; return true;
	case KEY_ERRORS: return set_errors(request, value);
	case KEY_BY_THREAD: request->top.is_by_thread = true; return true;
	case KEY_SORT: return set_order(request, value);
	case KEY_EVERY: request->every = value; return tw_top_set_every(&command, &number, value);
	case KEY_COUNT: return tw_top_set_number(&command, &request->view.rounds, "count", value);
	case KEY_TOP:
		if (!tw_top_set_number(&command, &number, "top", value))
			return false;
		request->view.row_count = (uint32_t)number;
		return true;
	case KEY_BATCH: request->is_batch = true; return true;
	case KEY_ERLANG: tw_usage(&command, "--erlang comes first: `tracewheel top --erlang ...`."); return false;
	case KEY_FORMAT: request->is_batch = true; return tw_top_set_format(&command, &request->view, value);
	default: request->output = value; return true;
	}
}

/* Is it the number of a process, and not a command? */
static bool is_pid(const char *text)
{
	return *text && !text[strspn(text, "0123456789")];
}

/* Completes the child's arguments. @rest: what stands behind the options. Returns 0 or an exit code. */
static int complete(struct request *request, char **rest)
{
	bool is_process = request->name || (rest[0] && is_pid(rest[0]) && !rest[1]);
	if (!request->name && !rest[0])
		return tw_usage(&command, "which process, or which program? PID, --name NAME, or a command line.");
	if (request->name && rest[0])
		return tw_usage(&command, "--name or a process or command: one of them.");
	if (request->top.has_times && request->top.errors)
		return tw_usage(&command,
				"--times and --errors exclude each other: one number of each call is summed up.");
	if (!tw_top_has_order(&request->top, request->top.order))
		return tw_usage(&command, "--sort %s needs --%s.", tw_top_order_name(request->top.order),
				request->top.order == TW_TOP_BY_TIME ? "times" : "errors");
	if (is_process && (request->top.has_times || request->top.errors || request->output))
		return tw_usage(&command, "--times, --errors and --program-output are of a COMMAND only.");
	request->arguments[1] = is_process ? "attach" : "record";
	if ((!request->has_patterns && !(add(request, "--count", "_:_") && add(request, "--callers", "main"))) ||
	    (request->top.has_times && !add(request, "--sum", "duration")) ||
	    (request->top.errors && !add(request, "--histogram", "result")) ||
	    !add(request, "--counts-every", request->every ? request->every : "1s") ||
	    (request->output && !add(request, "--program-output", request->output)))
		return TW_EXIT_USAGE;
	if (is_process &&
	    !(add(request, "--time", "none") && add(request, "--events", "none") && add(request, "--rate", "none")))
		return TW_EXIT_USAGE;
	if (is_process)
		return (request->name ? add(request, "--name", request->name) : add(request, rest[0], NULL))
			       ? 0
			       : TW_EXIT_USAGE;
	if (!add(request, "--", NULL))
		return TW_EXIT_USAGE;
	for (; *rest; rest++)
		if (!add(request, *rest, NULL))
			return TW_EXIT_USAGE;
	return 0;
}

/* ---- the child ---- */

static volatile pid_t child;

/* Ctrl-C reaches the child as well, and ends the stream; a signal to this process alone is passed on. */
static void on_signal(int number)
{
	int saved = errno;
	if (number != SIGINT && child > 0)
		kill(child, number);
	errno = saved;
}

static void catch_signals(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, found;
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		if (sigaction(numbers[i], NULL, &found) == 0 && found.sa_handler != SIG_IGN)
			sigaction(numbers[i], &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* @has_terminal: the keys are ours. Returns the end of the pipe that is read, or a negative errno. */
static int start(char *const argv[], bool has_terminal)
{
	extern char **environ;
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t defaults;
	pid_t pid = 0;
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	sigemptyset(&defaults);
	sigaddset(&defaults, SIGPIPE);
	posix_spawnattr_setsigdefault(&attributes, &defaults);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
	posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
	if (has_terminal)
		posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	int error = posix_spawn(&pid, argv[0], &actions, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	child = pid;
	if (!error)
		return ends[0];
	close(ends[0]);
	return -error;
}

static int wait_for_child(void)
{
	int status = 0;
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The table is what the user asked for, the rest has said itself why it failed. */
static int show(struct request *request, int fd, bool has_terminal)
{
	struct tw_top_view *view = &request->view;
	bool is_process = strcmp(request->arguments[1], "attach") == 0;
	view->kind = &tw_top_of_calls;
	view->table = &request->top;
	view->filter = request->top.filter;
	view->fd = fd;
	int error = tw_capture_open_stream(fd, &view->capture);
	int result = error ? error : has_terminal ? tw_top_screen(view) : tw_top_lines(view);
	tw_capture_close(view->capture);
	if (result <= 0 && !error && is_process)
		kill(child, SIGTERM);
	close(fd);
	if (result < 0 && error != TW_EFORMAT)
		return tw_fail("the stream cannot be read: %s", tw_strerror(result));
	/* The program goes on, and its recorder with it, which waits for its end. */
	if (result == 0 && !is_process)
		return TW_EXIT_OK;
	int code = wait_for_child();
	return error && !code ? TW_EXIT_FAILURE : code;
}

int tw_tool_top(int argc, char **argv)
{
	static struct request request;
	static char self[PATH_MAX];
	struct tw_options options = {.command = &command, .argc = argc, .argv = argv};
	int code;
	if (argc > 1 && strcmp(argv[1], "--erlang") == 0)
		return tw_top_node(argc, argv);
	request = (struct request){.arguments = {self, "record", "-q", "-o", "-"}, .count = 5};
	if (!tw_options_read(&options, take_option, &request, &code))
		return code;
	code = complete(&request, argv + options.index);
	if (code)
		return code;
	if (tw_command_path(self) < 0)
		return tw_fail("this command does not know where it is: /proc cannot be read.");
	bool has_terminal = !request.is_batch && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	if (has_terminal && !request.output && strcmp(request.arguments[1], "record") == 0) {
		/* Before the options of the child: its program's output would be over the table. */
		memmove(request.arguments + 4, request.arguments + 2, (request.count - 2) * sizeof *request.arguments);
		request.arguments[2] = "--program-output";
		request.arguments[3] = "/dev/null";
	}
	catch_signals();
	int fd = start(request.arguments, has_terminal);
	if (fd < 0)
		return tw_fail("'%s' cannot be started: %s.", self, strerror(-fd));
	code = show(&request, fd, has_terminal);
	tw_top_free(&request.top);
	return code;
}
