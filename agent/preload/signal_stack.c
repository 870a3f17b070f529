/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signal_stack.c - the stack on which a thread's signal handlers run.
 *
 * A hit that finds another hit under way must know whether that one is below it on the same stack, and may not ask the
 * system (a filter may forbid it).  Thus the thread records its signal stack when it sets one.  It is not told of the one that we gave it
 * (thread/signal_stack.c).
 */
#include "agent/preload/real.h"
#include "base/export.h"
#include "pipeline/hit/hit.h"
#include "pipeline/thread/thread.h"

#include <signal.h>

#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1u << 31)
#endif

typedef int (*set_fn)(const stack_t *, stack_t *);

TW_REAL(set_fn, set, "sigaltstack")

/* Looked up early: a handler must not call the loader. */
__attribute__((constructor(101))) static void find_early(void)
{
	find_set();
	tw_thread_hears_signal_stacks = true;
}

/* Recorded before the system call; undone if the call fails. */
TW_API int sigaltstack(const stack_t *stack, stack_t *old_stack)
{
	struct tw_sys_signal_stack before = tw_thread_signal_stack;
	int result;

	if (stack && !(stack->ss_flags & SS_DISABLE))
		tw_thread_signal_stack =
			(struct tw_sys_signal_stack){.low = (uintptr_t)stack->ss_sp,
						     .high = (uintptr_t)stack->ss_sp + stack->ss_size,
						     .is_disarmed_in_handlers =
							     ((unsigned)stack->ss_flags & SS_AUTODISARM) != 0};
	result = find_set()(stack, old_stack);
	if (!result && old_stack && tw_thread_is_given_stack(old_stack->ss_sp))
		*old_stack = (stack_t){.ss_flags = SS_DISABLE};
	if (result)
		tw_thread_signal_stack = before;
	else if (stack && (stack->ss_flags & SS_DISABLE))
		tw_thread_signal_stack = (struct tw_sys_signal_stack){0};
	return result;
}
