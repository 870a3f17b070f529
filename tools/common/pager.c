/* SPDX-License-Identifier: Apache-2.0 */
/* pager.c - starts a pager, and waits for it at the end. */
#include "tools/common/pager.h"
#include "tools/tool.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_forbidden, takes_messages;
static pid_t pager;

void tw_pager_forbid(void)
{
	is_forbidden = true;
}

/* Is the program in PATH? */
static bool is_there(const char *name)
{
	const char *folders = getenv("PATH");
	char path[PATH_MAX];
	for (size_t bytes; folders && *folders; folders += bytes + (folders[bytes] == ':')) {
		bytes = strcspn(folders, ":");
		if ((size_t)snprintf(path, sizeof path, "%.*s/%s", (int)bytes, folders, name) < sizeof path &&
		    access(path, X_OK) == 0)
			return true;
	}
	return false;
}

/* A command line for the shell; NULL: none. */
static const char *choose(void)
{
	const char *asked = getenv("TRACEWHEEL_PAGER");
	if (!asked)
		asked = getenv("PAGER");
	if (!asked)
		asked = is_there("less") ? "less" : "";
	return *asked && strcmp(asked, "cat") != 0 ? asked : NULL;
}

/* The pager ends when it has read everything, or when the user ends it. Only calls that signal handlers may make. */
static void wait_for_pager(void)
{
	close(STDOUT_FILENO);
	if (takes_messages)
		close(STDERR_FILENO);
	while (waitpid(pager, NULL, 0) < 0 && errno == EINTR)
		;
}

static void at_exit(void)
{
	fflush(stdout);
	fflush(stderr);
	wait_for_pager();
}

/* The terminal is the pager's until it has ended; then the command ends by the signal. */
static void on_signal(int signal_number)
{
	wait_for_pager();
	raise(signal_number);
}

static void run(const char *command, const int pipe_ends[2])
{
	char *const argv[] = {"sh", "-c", (char *)(uintptr_t)command, NULL};
	dup2(pipe_ends[0], STDIN_FILENO);
	close(pipe_ends[0]);
	close(pipe_ends[1]);
	setenv("LESS", "FRX", 0);
	setenv("LV", "-c", 0);
	execv("/bin/sh", argv);
	_exit(TW_EXIT_NOT_FOUND);
}

/* Later questions about the terminal are answered now. */
static void remember_terminal(void)
{
	char columns[16];
	snprintf(columns, sizeof columns, "%d", tw_terminal_columns(STDOUT_FILENO));
	setenv("COLUMNS", columns, 1);
	tw_colour_choose(tw_colour_is_wanted(STDOUT_FILENO) ? "always" : "never");
}

void tw_pager_start(void)
{
	static const int signals[] = {SIGINT, SIGHUP, SIGTERM, SIGQUIT, SIGPIPE};
	const char *command = is_forbidden || !isatty(STDOUT_FILENO) ? NULL : choose();
	int pipe_ends[2];
	if (!command || pipe(pipe_ends) < 0)
		return;
	takes_messages = isatty(STDERR_FILENO);
	fflush(stdout);
	fflush(stderr);
	pager = fork();
	if (pager == 0)
		run(command, pipe_ends);
	if (pager > 0) {
		remember_terminal();
		dup2(pipe_ends[1], STDOUT_FILENO);
		if (takes_messages)
			dup2(pipe_ends[1], STDERR_FILENO);
		for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
			sigaction(signals[i],
				  &(struct sigaction){.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND}, NULL);
		atexit(at_exit);
	}
	close(pipe_ends[0]);
	close(pipe_ends[1]);
}
