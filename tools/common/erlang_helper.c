/* SPDX-License-Identifier: Apache-2.0 */
/* erlang_helper.c - the helper VM of `record --erlang NODE` and `top --erlang NODE`. */
#include "tools/common/erlang_helper.h"
#include "tools/common/proc.h"
#include "tools/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* As long has the helper to end in order what has not begun to trace: it may wait for a node that stands still. */
#define PATIENCE_S 5

static volatile sig_atomic_t stops_asked, is_tracing;
static volatile int stop_fd = -1;
static volatile pid_t helper;
static struct tw_erlang_helper_calls calls;

void tw_erlang_helper_stop(void)
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
		if (calls.kill)
			calls.kill();
	} else {
		tw_erlang_helper_stop();
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
	if (calls.has_ended && calls.has_ended())
		tw_erlang_helper_stop();
	errno = saved;
}

void tw_erlang_helper_tell(const char *line)
{
	int saved = errno;
	if (stop_fd >= 0 && write(stop_fd, line, strlen(line)) < 0)
		errno = 0;
	errno = saved;
}

static void on_snapshot(int number)
{
	(void)number;
	tw_erlang_helper_tell("snapshot\n");
}

static void on_alarm(int number)
{
	(void)number;
	if (!is_tracing)
		kill(helper, SIGKILL);
}

void tw_erlang_helper_catch_signals(const struct tw_erlang_helper_calls *wanted)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, found;
	calls = *wanted;
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
	action.sa_handler = on_snapshot;
	if (calls.asks_for_snapshots)
		sigaction(SIGUSR2, &action, NULL);
}

/*
 * The helper will be in the network of this process, which may be that of a container: there the addresses are that it listens at.
 * Returns 0, also where it has the same network or there is no such process, or an errno.
 */
static int enter_network(int process_id)
{
	struct stat ours, theirs;
	char path[64];
	int error = 0;
	snprintf(path, sizeof path, "/proc/%d/ns/net", process_id);
	if (stat("/proc/self/ns/net", &ours) < 0 || stat(path, &theirs) < 0 ||
	    (ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino))
		return 0;
	int network = pidfd_open(process_id, 0);
	if (network < 0 || setns(network, CLONE_NEWNET) < 0)
		error = errno;
	if (network >= 0)
		close(network);
	return error;
}

/* A process group of its own: the terminal's Ctrl-C is for this command. Returns 0 or an errno. */
static int start(char *const argv[], FILE **lines)
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
	/* A handler of a signal writes there. */
	fcntl(in[1], F_SETFL, O_NONBLOCK);
	stop_fd = in[1];
	helper = child;
	*lines = fdopen(out[0], "r");
	return error;
}

/* The installed tree; the build tree. */
bool tw_erlang_helper_find(struct tw_erlang_helper *helper, char self[PATH_MAX])
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
		snprintf(helper->folder, PATH_MAX, "%.*s", (int)(strrchr(real, '/') - real), real);
		free(real);
		return true;
	}
	tw_say("%.*s%s, the application for Erlang, is missing: it is built and installed with this command if erlc and erl_nif.h "
	       "are there (Debian: erlang-base, erlang-dev).",
	       parent, self, places[0]);
	return false;
}

bool tw_erlang_helper_path(const struct tw_command *command, char whole[2 * PATH_MAX], const char *path)
{
	char folder[PATH_MAX];
	if (!*path || strlen(path) >= PATH_MAX || !getcwd(folder, sizeof folder))
		return tw_usage(command, "-o, --cookie-file and --ssl-opts want the name of a file."), false;
	snprintf(whole, 2 * PATH_MAX, "%s%s%s", *path == '/' ? "" : folder, *path == '/' ? "" : "/", path);
	return true;
}

static int append(const char **argv, int count, const char *const *more)
{
	while (*more)
		argv[count++] = *more++;
	return count;
}

int tw_erlang_helper_begin(const struct tw_erlang_helper *helper, FILE **lines)
{
	/* OTP does not begin both families at once by TLS. */
	const char *const tcp[] = {"-proto_dist", "inet_tcp", "inet6_tcp", NULL};
	const char *const tls[] = {"-proto_dist", "inet_tls", "-ssl_dist_optfile", helper->tls, NULL};
	const char *const main_function[] = {"-s", "tracewheel_attach", "main", "-extra", NULL};
	const char *argv[TW_ERLANG_ARGUMENTS_MAX + 32] =
		{"erl",	       "-noshell", "-boot",	   "no_dot_erlang",	"+Bi", "-start_epmd", "false",
		 "-setcookie", "none",	   "-epmd_module", "tracewheel_attach", "-pa", helper->folder};
	int count = append(argv, 13, helper->tls ? tls : tcp);
	count = append(argv, count, main_function);
	count = append(argv, count, (const char *const *)helper->arguments);
	argv[count] = NULL;
	int error = enter_network(tw_proc_number(helper->target));
	if (error)
		return tw_say("process %s is in another network, as of a container, which this user may not enter (%s): run this as root, or there.",
			      helper->target, strerror(error)),
		       TW_EXIT_NOT_STARTED;
	error = start((char *const *)argv, lines);
	if (!error && *lines)
		return 0;
	if (*lines)
		fclose(*lines);
	tw_say(error == ENOENT ? "the command erl is not in PATH, by which nodes are reached (Debian: erlang-base)."
			       : "the command erl cannot be started: %s.",
	       strerror(error));
	return error == ENOENT ? TW_EXIT_NOT_FOUND : TW_EXIT_NOT_STARTED;
}

void tw_erlang_helper_set_tracing(void)
{
	is_tracing = 1;
}

bool tw_erlang_helper_was_stopped(void)
{
	return stops_asked != 0;
}

void tw_erlang_helper_wait(void)
{
	int status;
	while (waitpid(helper, &status, 0) < 0 && errno == EINTR)
		;
}
