/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_stack.h - stacks of our own, for the slow half of a hit.
 *
 * The program's stack may be nearly used up: signal stacks, coroutines and split stacks leave a few hundred bytes.  Work that
 * needs more, or libc, or vector registers, is done on one of a few stacks of the process, with all signals blocked:
 *
 *	| guard | stack 0 | guard | stack 1 | ...	an area that is mapped once, before the first place is prepared
 *
 * Signals are blocked because no code of the program may run on such a stack.  The system would begin a handler with SA_ONSTACK at
 * the top of the signal stack, over the handler that the hit interrupted, and a garbage collector's handler would report a
 * stack pointer that is not in its thread's stack.  Cancellation is disabled there: libc would unwind from it.  Thus no jump leaves
 * such a stack, and each is free again after its call.
 * Work that has to wait for long is cut into steps, and the thread waits between them on the program's stack.
 *
 * Threads  any, in hits; signal handlers: yes.  Keeps vector registers and errno is the function's concern.
 */
#ifndef TW_BREAKPOINTS_OWN_STACK_H
#define TW_BREAKPOINTS_OWN_STACK_H

#include "base/atomic.h"

#include <stdbool.h>
#include <stdint.h>

/* Maps the stacks; without memory for them there are none.  Idempotent.  Under the permit, or before anything is armed. */
void tw_own_stacks_init(void);

/*
 * tw_own_stack_try - call a function on one of these stacks, with all signals blocked and cancellation disabled.
 *
 * A call from such a stack is a plain call.  A thread that may make no system call stays on its stack, where its vector state is
 * saved as well (tw_patch_call_keeping_vectors()), and so does one of a program without places: its calls are made on purpose.
 *
 * Returns false, and does nothing, if there are no stacks, or other threads have had all of them for a second.
 */
bool tw_own_stack_try(void (*function)(void *), void *argument);

/* The same for work that must be done: then it is done on the program's stack. */
void tw_own_stack_call(void (*function)(void *), void *argument);

/* The area of all stacks; its first word is 0 before they are mapped. */
struct tw_own_stacks {
	_Atomic uintptr_t low;
	uintptr_t bytes;
};
extern struct tw_own_stacks tw_own_stacks __attribute__((visibility("hidden")));

/* Does the address lie on one of these stacks?  Then the code that runs there is ours. */
static inline bool tw_own_stack_has(const void *address)
{
	/* PAIR own_stack.low: acquire; release in tw_own_stacks_init(). */
	uintptr_t low = tw_load_acquire(&tw_own_stacks.low);

	return low && (uintptr_t)address - low < tw_own_stacks.bytes;
}

/* In a forked child no other thread exists that could use a stack. */
void tw_own_stacks_after_fork_in_child(void);

#endif
