/* SPDX-License-Identifier: Apache-2.0 */
/* leave.c - a child that outlives the command, to free its memory. */
#include "tools/record/leave.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define STACK_BYTES 16384

static _Alignas(16) char stack[STACK_BYTES];
static int ends[2]; /* of a pipe whose writing end is closed when the command has ended */

/*
 * Shares memory with the command, which continues: uses only its own stack, and data that the command no longer uses.
 */
static int outlive(void *unused)
{
	char nothing;

	/* This child keeps no pipe or file open that another process may wait for. */
	dup2(ends[0], STDIN_FILENO);
	if (close_range(1, ~0U, 0) < 0) {
		close(STDOUT_FILENO);
		close(STDERR_FILENO);
		close(ends[1]);
	}
	while (read(STDIN_FILENO, &nothing, 1) > 0)
		;
	_exit(0);
}

void tw_leave_memory(uint64_t bytes)
{
	sigset_t all, before;

	if (bytes < TW_LEAVE_BYTES_LEAST || pipe2(ends, O_CLOEXEC) < 0)
		return;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	/* Both share the memory: the last to end frees it, which is the child. */
	clone(outlive, stack + sizeof stack, CLONE_VM, NULL);
	sigprocmask(SIG_SETMASK, &before, NULL);
}
