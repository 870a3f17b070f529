/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk.h - the callers of a call: return addresses on the thread's stack, in a hit.
 *
 *	slot		holds the call's own return address: the direct caller, always right
 *	rows		how the next frame is found from an address in an object's code (symbols/frame_rows.h): needs %rsp and %rbp only
 *	%rbp		in an object without rows: the frame of the caller, if that keeps one; it holds the frame of its caller and, above it, the
 *			address that it returns to; and so on
 *
 * Only words of the thread's own stack above the slot are read, each frame above the one before: whatever rows and registers say, nothing
 * faults and the walk ends.  On other stacks (coroutines, signal stacks) only the direct caller is found.
 *
 * Threads  in a hit, the thread's own, in its read section.  No vector registers, no locks, no system calls.
 *
 * The same walk from where a thread was interrupted is for programs that crash.
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
 * Return addresses that lead to stubs (returns.h) are replaced by the true ones.  The address behind the frame of a signal handler's caller is the
 * interrupted one.  If rows do not lead on, although the outermost frame is not reached, the last entry is 0.  Returns their number.
 */
unsigned tw_walk_callers(const struct tw_thread *thread, const uint64_t *slot, uintptr_t frame, uint64_t *out,
			 unsigned capacity);

/* The direct caller's alone; 0: it is not known. */
uint64_t tw_walk_caller(const uint64_t *slot);

/* Why a walk went no further.  Numbers are part of the capture format. */
enum tw_walk_end {
	TW_WALK_OUTERMOST, /* there is no caller */
	TW_WALK_FULL,	   /* there is no room for more */
	TW_WALK_UNKNOWN_CODE, /* an address that is in no code that is known: the stack is damaged, or code was made at run time */
	TW_WALK_NO_ROW,	   /* its code does not say how the caller is found */
	TW_WALK_UNREADABLE /* where the next frame should be is no memory, or it is not above the last one */
};

/* The point at which a thread was interrupted. */
struct tw_walk_registers {
	uintptr_t pc, rsp, rbp;
	/* If no code that is known is at pc, it was called from there: where the return address is. */
	const uint64_t *slot;
};

/*
 * tw_walk_interrupted - the instruction at which a thread was interrupted, and the return addresses from there.
 *
 * Stacks of all kinds, and damaged ones: each word is read by a system call, which fails where there is no memory.  The list of known code is not
 * changed any more from the first call on, so that no read section is needed.
 *
 * Threads  any, in a signal handler.  Returns their number, 1 or more; the first is that of the original where a copy runs (entry.h).
 */
unsigned tw_walk_interrupted(const struct tw_walk_registers *at, uint64_t *out, unsigned capacity,
			     enum tw_walk_end *end);

#endif
