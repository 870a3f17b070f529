/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk.h - the callers of a call: return addresses by the chain of frame pointers, in a hit.
 *
 *	slot		holds the call's own return address: the direct caller, always right
 *	%rbp		at the call: the frame of the caller, if that keeps one; it holds the frame of its
 *			caller and, above it, the address that it returns to; and so on
 *
 * Code without frame pointers has arbitrary values in %rbp: then the chain ends early, or names values that happen to
 * lie on the stack. Only words of the thread's own stack above the slot are read, each frame above the one before. On
 * other stacks (coroutines, signal stacks) only the direct caller is found.
 *
 * Threads  in a hit, the thread's own.  No vector registers, no locks, no system calls.
 */
#ifndef TW_PIPELINE_WALK_H
#define TW_PIPELINE_WALK_H

#include <stdint.h>

#define TW_STACK_DEPTH_MAX 64
/* Index of %rbp, as the caller had it, in the words that trampolines pass; it follows the words they save. */
#define TW_WALK_FRAME_WORD 9

struct tw_thread;

/*
 * tw_walk_callers - the innermost return addresses, the direct caller's first.
 *
 * @slot	the address of the return address.
 * @frame	%rbp at the call; any value.
 * @out		an array of @capacity entries: 1 .. TW_STACK_DEPTH_MAX.
 *
 * Return addresses that lead to stubs (returns.h) are replaced by the true ones. Returns their number.
 */
unsigned tw_walk_callers(const struct tw_thread *thread, const uint64_t *slot, uintptr_t frame, uint64_t *out,
			 unsigned capacity);

#endif
