/* SPDX-License-Identifier: Apache-2.0 */
/* erlang_print.c - `record --erlang NODE --print`. */
#include "tools/record/erlang_print.h"
#include "tools/tool.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

static volatile pid_t printer; /* 0: none, or it was waited for */

/* SIGCHLD does not come before the process is known. */
bool tw_erlang_print_begin(const char *self, const char *path, const char *lines)
{
	extern char **environ;
	char *const argv[] = {"tracewheel", "print",   "--follow",    "--from",	    "0", "--format",
			      "dbg",	    "--lines", (char *)lines, (char *)path, NULL};
	posix_spawnattr_t attributes;
	sigset_t child, keyboard, before;
	pid_t pid = 0;
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigemptyset(&keyboard);
	sigaddset(&keyboard, SIGINT);
	sigaddset(&keyboard, SIGQUIT);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attributes, &keyboard);
	sigprocmask(SIG_BLOCK, &child, &before);
	int error = posix_spawn(&pid, self, NULL, &attributes, argv, environ);
	printer = error ? 0 : pid;
	sigprocmask(SIG_SETMASK, &before, NULL);
	posix_spawnattr_destroy(&attributes);
	if (error)
		tw_say("the trace cannot be printed: %s cannot be started: %s.", self, strerror(error));
	return error == 0;
}

bool tw_erlang_print_has_ended(void)
{
	int status;
	if (!printer || waitpid(printer, &status, WNOHANG) != printer)
		return false;
	printer = 0;
	return true;
}

void tw_erlang_print_kill(void)
{
	if (printer)
		kill(printer, SIGKILL);
}

void tw_erlang_print_end(void)
{
	pid_t pid = printer;
	int status;
	/* The handler may be first. */
	while (pid && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	printer = 0;
}
