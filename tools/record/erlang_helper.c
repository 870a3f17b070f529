/* SPDX-License-Identifier: Apache-2.0 */
/* erlang_helper.c - the helper VM of `record --erlang NODE`. */
#include "tools/record/erlang_helper.h"
#include "tools/record/erlang_print.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* As long has the helper to end in order what has not begun to trace: it may wait for a node that stands still. */
#define PATIENCE_S 5

static volatile sig_atomic_t stops_asked, is_tracing;
static volatile int stop_fd = -1;
static volatile pid_t helper;

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
		tw_erlang_print_kill();
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
	if (tw_erlang_print_has_ended())
		tw_erlang_helper_stop();
	errno = saved;
}

static void on_snapshot(int number)
{
	static const char line[] = "snapshot\n";
	int saved = errno;
	(void)number;
	/* A helper that takes none has ended, or has more of them than it can make. */
	if (stop_fd >= 0 && write(stop_fd, line, sizeof line - 1) < 0)
		errno = 0;
	errno = saved;
}

static void on_alarm(int number)
{
	(void)number;
	if (!is_tracing)
		kill(helper, SIGKILL);
}

void tw_erlang_helper_catch_signals(bool asks_for_snapshots)
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
	action.sa_handler = on_snapshot;
	if (asks_for_snapshots)
		sigaction(SIGUSR2, &action, NULL);
}

int tw_erlang_helper_enter_network(int process_id)
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

/* A process group of its own: the terminal's Ctrl-C is for this command. */
int tw_erlang_helper_start(char *const argv[], FILE **lines)
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
