/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork.c - children that are made without fork handlers: _Fork(), and system calls made by syscall().
 *
 * A child has none of its parent's rings mapped.  Where a handler made it that interrupted a hit, the hit goes on in the child
 * when the handler returns, and is to end in memory of the child.  A child that shares its parent's memory is left alone, and so
 * is one that gets a stack of its own: it goes back to nobody's hit.
 */
#include "agent/agent.h"

#include "base/atomic.h"
#include "base/export.h"
#include "base/filter.h"
#include "pipeline/hit/hit.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>

typedef pid_t (*fork_fn)(void);

static _Atomic(fork_fn) real_fork;

/* Early: handlers must not ask the loader. */
__attribute__((constructor(101))) static void find_fork(void)
{
	fork_fn real;

	*(void **)&real = dlsym(RTLD_NEXT, "_Fork");
	/* RELAXED agent.real: whoever comes first finds the same answer. */
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
	/* A libc without it has no callers of it. */
	child = real ? real() : -1;
	if (child == 0)
		tw_threads_let_go_in_child();
	return child;
}

bool tw_preload_makes_child(long number, long a, long b)
{
	const uint64_t *words = (const uint64_t *)a;

	if (number == SYS_fork)
		return true;
	if (number == SYS_clone)
		return !(a & CLONE_VM) && !b;
	/* flags; where the stack lies. */
	return number == SYS_clone3 && (size_t)b >= 64 && !(words[0] & CLONE_VM) && !words[5];
}
