/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native.h - calls through sleds and slots, from their entry to their end.
 *
 *	tw_native_hit()	    the call is recorded (hit.c); where somebody wants its end, its return is watched
 *	tw_native_return()  the call returned, with all that were entered by tail calls from it: return_from, the
 *			    innermost first, then one return_to
 *	tw_native_throw()   an exception leaves it: exception_from, then, when the catcher is next, return_to
 *	tw_native_jump()    longjmp leaves all that lie between: exception_from
 *
 * The commonest call and return, one session and nothing special, are recorded here, in few instructions; all others
 * by hit.c and frame.c, which say what is to be done.
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
 * tw_native_jump - longjmp is about to leave all frames between here and there.
 *
 * @stack	the stack pointer that it sets.
 * @address	where it goes on.
 *
 * Only within the stack that the thread began with: what lies between two others cannot be told.
 */
void tw_native_jump(uintptr_t stack, uintptr_t address);

/* The general case of tw_native_hit(): what is done first is done, or could not be. */
const char *tw_native_hit_whole(struct tw_place *place, const uint64_t *words, uint64_t *slot);

/* Can returns be watched in this process?  Set by tw_native_init(). */
extern _Atomic bool tw_native_can_watch;

/*
 * tw_native_stop_watching - no call is watched from here on, for ever: for programs that go back to one copy of a stack
 * as often as they like.
 *
 * What is being watched returns to where it should, however often: nothing takes its place any more.
 * Any thread; before the first copy is made.
 */
void tw_native_stop_watching(void);

static inline bool tw_native_is_watching(void)
{
	/* RELAXED native.watch: who needs it to be false has loaded, in the same thread or before it was told to copy. */
	return tw_load_relaxed(&tw_native_can_watch);
}

/* Makes trampolines and stubs lead here.  Before anything is armed. */
void tw_native_init(void);

#endif
