/* SPDX-License-Identifier: Apache-2.0 */
/*
 * children.c - processes that the program starts: counted if they are not followed, and their calls up to exec.
 *
 * Between vfork() and exec, the child runs in its parent's memory, on its parent's thread, which stands still.  Its calls are events of
 * that thread, if the thread has a ring: the child can claim none, since a ring ends with the thread that owns it.  Therefore
 * the thread gets its ring here, before the child exists.
 *
 * Seen are fork() and what libc builds on it (a fork handler: start.c), _Fork() and system calls of syscall() (fork.c),
 * posix_spawn() (exec.c), and here vfork(), system() and popen().  Not seen: clone(), and system calls of the program's own.
 */
#include "agent/agent.h"
#include "agent/preload/real.h"
#include "base/assert.h"
#include "base/export.h"
#include "pipeline/hit/hit.h"
#include "pipeline/thread/thread.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef int (*system_fn)(const char *);
typedef FILE *(*popen_fn)(const char *, const char *);

TW_REAL(system_fn, system, "system")
TW_REAL(popen_fn, popen, "popen")
TW_REAL(void *, vfork, "vfork")

/* Looked up early: handlers must not call the loader. */
__attribute__((constructor(101))) static void find_early(void)
{
	find_system();
	find_popen();
	find_vfork();
}

void tw_preload_child_begins(void)
{
	int saved_errno = errno;

	if (tw_agent_enter()) {
		if (tw_hit_host.pinned_rs)
			tw_thread_prepare(tw_hit_host.pinned_session);
		tw_agent_leave();
	}
	errno = saved_errno;
}

void tw_preload_child_began(void)
{
	if (tw_agent_environment_is_followed() || !tw_agent_enter())
		return;
	tw_rs_count_child(&tw_agent_ring_set, 1);
	tw_agent_leave();
}

TW_API int system(const char *command)
{
	int result;

	tw_preload_child_begins();
	result = find_system()(command);
	if (command && result != -1)
		tw_preload_child_began();
	return result;
}

TW_API FILE *popen(const char *command, const char *mode)
{
	FILE *result;

	tw_preload_child_begins();
	result = find_popen()(command, mode);
	if (result)
		tw_preload_child_began();
	return result;
}

void *tw_preload_before_vfork(void);

/* Whether the child is made is known to the real function only, which returns to the program. */
__attribute__((used)) void *tw_preload_before_vfork(void)
{
	void *real = find_vfork();

	tw_preload_child_begins();
	tw_preload_child_began();
	/* Every libc that this library runs with has it. */
	TW_ASSERT(real);
	return real;
}

pid_t tw_preload_vfork(void) __asm__("vfork");

/* Jumps to the real function: the child uses the stack above, and must find the program's return address there. */
TW_API __attribute__((naked)) pid_t tw_preload_vfork(void)
{
	__asm__("endbr64\n\t"
		"subq $8, %rsp\n\t"
		"call tw_preload_before_vfork\n\t"
		"addq $8, %rsp\n\t"
		"jmp *%rax");
}
