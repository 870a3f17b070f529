/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk.h - who called, who called that: return addresses by the chain of frame pointers, in a hit.
 *
 *	slot		where the call's own return address lies: the direct caller, always right
 *	%rbp		at the call: the frame of the caller, if that keeps one; there lie the frame of its
 *			caller and, above it, the address that it returns to; and so on
 *
 * Code without frame pointers has anything in %rbp: then the chain ends early, or names what lies on the
 * stack.  Whatever it is, only words of the thread's own stack above the slot are read, each frame above the
 * one before.  On other stacks (coroutines, signal stacks) there is the direct caller alone.
 *
 * Threads  in a hit, the thread's own.  No vector registers, no locks, no system calls.
 */
#ifndef TW_PIPELINE_WALK_H
#define TW_PIPELINE_WALK_H

#include <stdint.h>

#define TW_STACK_DEPTH_MAX 64
/* Of the words that trampolines hand over: %rbp as the caller had it, behind what they keep. */
#define TW_WALK_FRAME_WORD 9

struct tw_thread;

/*
 * tw_walk_callers - the innermost return addresses, the direct caller's first.
 *
 * @slot	where the return address lies.
 * @frame	%rbp at the call; any value.
 * @out		room for so many: 1 .. TW_STACK_DEPTH_MAX.
 *
 * Return addresses that lead to stubs (returns.h) come as the true ones.  Returns how many there are.
 */
unsigned tw_walk_callers(const struct tw_thread *thread, const uint64_t *slot, uintptr_t frame, uint64_t *out,
			 unsigned room);

#endif
