/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork.c - children made without fork handlers: by _Fork(), or by syscall().
 *
 * A child has none of its parent's rings mapped.  If a handler that interrupted a hit made the child, the hit continues
 * there when the handler returns, and must finish in memory of the child.  Nothing is done for a child that shares its
 * parent's memory, nor for one with a stack of its own, which never returns to the hit.
 */
#include "agent/agent.h"

#include "base/atomic.h"
#include "base/export.h"
#include "base/filter.h"
#include "pipeline/hit/hit.h"
#include "pipeline/thread/thread.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>

typedef pid_t (*fork_fn)(void);

static _Atomic(fork_fn) real_fork;

/* Looked up early: handlers must not call the loader. */
__attribute__((constructor(101))) static void find_fork(void)
{
	fork_fn real;

	*(void **)&real = dlsym(RTLD_NEXT, "_Fork");
	/* RELAXED agent.real: every thread finds the same answer. */
	tw_store_relaxed(&real_fork, real);
}

pid_t tw_preload_fork(void) __asm__("_Fork");

TW_API pid_t tw_preload_fork(void)
{
	fork_fn real;
	pid_t child;

	/* RELAXED agent.real: as above. */
	if (!tw_load_relaxed(&real_fork))
		find_fork();
	/* RELAXED agent.real: as above. */
	real = tw_load_relaxed(&real_fork);
	/* A libc without _Fork() has no callers of it. */
	child = real ? real() : -1;
	if (child == 0)
		tw_threads_let_go_in_child();
	else if (child > 0)
		tw_preload_child_began();
	return child;
}

bool tw_preload_makes_child(long number, long a, long b)
{
	const uint64_t *words = (const uint64_t *)a;

	if (number == SYS_fork)
		return true;
	if (number == SYS_clone)
		return !(a & CLONE_VM) && !b;
	/* words: the flags, ..., the stack's address. */
	return number == SYS_clone3 && (size_t)b >= 64 && !(words[0] & CLONE_VM) && !words[5];
}
