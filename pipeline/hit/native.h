/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native.h - calls through sleds and slots, from their entry to their end.
 *
 *	tw_native_hit()	    records the call (hit.c); if a session wants its end, its return is watched
 *	tw_native_return()  the call returned, with all that were entered by tail calls from it: return_from, the
 *			    innermost first, then one return_to
 *	tw_native_throw()   an exception leaves it: exception_from, then, when the catcher is next, return_to
 *	tw_native_jump()    longjmp leaves all calls in between: exception_from
 *	tw_native_thread_exits()  pthread_exit or cancellation leaves the first function of the thread: exception_from
 *
 * The most common call and return, one session and nothing special, are recorded here, in few instructions; all
 * others by one.c, or by hit.c and frame.c.
 *
 * Threads  any, as for hits.  Keep errno and vector registers.
 */
#ifndef TW_PIPELINE_NATIVE_H
#define TW_PIPELINE_NATIVE_H

#include "breakpoints/breakpoints.h"
#include "breakpoints/unwind.h"

#include <stdint.h>

const char *tw_native_hit(struct tw_place *place, const uint64_t *words, uint64_t *slot);
uintptr_t tw_native_return(uint64_t *slot, uint64_t value);
void tw_native_throw(uint64_t *slot, const struct tw_unwind *unwind);

/*
 * tw_native_jump - longjmp is about to leave all frames between here and its target.
 *
 * @stack	the stack pointer that it sets.
 * @address	where execution continues.
 *
 * Only jumps within the stack that the thread began with are handled: frames between two other stacks are unknown.
 */
void tw_native_jump(uintptr_t stack, uintptr_t address);

/*
 * tw_native_thread_exits - the thread is exiting: ends the call of its first function, if that is left by a forced unwind.
 *
 * libc's unwinding stops where the stack pointer is that of the caller of the thread's first function. The frame of that
 * function's stub is empty, so it has the same one, and its routine is not called (unwind.c). libc has since overwritten
 * the slot, by calling destructors.
 *
 * @frame	the frame address of the destructor of a key.
 * @caller	where it returns to: in libc.
 */
void tw_native_thread_exits(uintptr_t frame, uintptr_t caller);

/* tw_native_hit() without its first step. */
const char *tw_native_hit_whole(struct tw_place *place, const uint64_t *words, uint64_t *slot);
/* The general case of it, for a thread that has entered the hit and its read section. */
const char *tw_native_hit_generally(struct tw_place *place, const uint64_t *words, uint64_t *slot);

/* Can returns be watched in this process?  Set by tw_native_init(). */
extern _Atomic bool tw_native_can_watch __attribute__((visibility("hidden")));

/*
 * tw_native_stop_watching - watch no call from here on, forever: for programs that return any number of times to one
 * copy of a stack.
 *
 * Calls already watched keep returning correctly, however often: their entries are never reused. Any thread; before
 * the first copy is made.
 */
void tw_native_stop_watching(void);

static inline bool tw_native_is_watching(void)
{
	/* RELAXED native.watch: a thread that relies on false has read it itself, or before it was told to copy. */
	return tw_load_relaxed(&tw_native_can_watch);
}

/* Connects trampolines and stubs to this file. Called before anything is armed. */
void tw_native_init(void);

#endif
