/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wait.h - work of a hit on its thread ring, which may have to wait: for a ring, and for space in it.
 *
 * The work is done in steps on a stack of our own (breakpoints/own_stack.h).  Between two steps the thread sleeps where the hit
 * is, on the program's stack: signal handlers run there, and may jump away.  The read section of the hit is left meanwhile.
 */
#ifndef TW_PIPELINE_WAIT_H
#define TW_PIPELINE_WAIT_H

#include "pipeline/hit/hit.h"
#include "pipeline/thread/thread.h"

/* The owner's own time after which a thread that waits for a ring takes a small one in spite of the cap. */
#define TW_RING_WAIT_NS UINT64_C(200000000)

/*
 * tw_ring_wait_step - where `block` was asked for, wait until a ring is given back.
 *
 * To be called after each claim that failed; w->spent_ns is 0 at first, the owner's own time that has passed.  SLEEPS: then
 * again, first of all in the next step.  UNWANTED: no session still wants the hit.
 */
enum tw_ring_wait { TW_RING_MAY_BE_THERE, TW_RING_IN_VAIN, TW_RING_UNWANTED, TW_RING_SLEEPS };
enum tw_ring_wait tw_ring_wait_step(struct tw_ring_work *w);

/*
 * tw_space_step - space in the thread's ring, or in a larger one that replaces it: for the record, and for one that reports the wait
 * (tw_space_tell()).
 *
 * To be called again while it returns ASLEEP. NONE: there is no space, which is counted; or the record is unwanted, which is not.
 */
enum tw_space { TW_SPACE_NONE, TW_SPACE_GROWN, TW_SPACE_WAITED, TW_SPACE_ASLEEP };
enum tw_space tw_space_step_of(struct tw_ring_work *w);

#endif
