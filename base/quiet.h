/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quiet.h - sections of code that neither a signal handler nor a cancellation interrupts.
 *
 * The thread has all signals blocked and cancellation disabled from the begin to the end of a section.  Sections nest, and may
 * overlap: only the outermost begin and the last end call the system, so that a section around many small ones makes these cheap.
 * The thread can be cancelled only at the last end: pthread_setcancelstate() acts at once for a thread with asynchronous
 * cancellation, even while SIGCANCEL is blocked.  Thus code that blocks signals around a quiet lock uses this.  A child of fork() is
 * in the sections that its parent's thread was in.
 *
 * Threads  each has sections of its own.
 */
#ifndef TW_BASE_QUIET_H
#define TW_BASE_QUIET_H

#include "base/sys.h"

#include <pthread.h>
#include <stdint.h>

/* The sections that a thread is in.  Handlers leave it as they found it: their sections have ended. */
struct tw_quiet {
	unsigned depth;
	int cancel_state; /* before the outermost section */
	uint64_t signals;
};

extern __thread struct tw_quiet tw_quiet;

/* As tw_quiet_begin(), by a thread that has blocked all signals just before. @signals: before that. */
static inline void tw_quiet_begin_blocked(uint64_t signals)
{
	if (!tw_quiet.depth++) {
		tw_quiet.signals = signals;
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &tw_quiet.cancel_state);
	}
}

static inline void tw_quiet_begin(void)
{
	uint64_t signals = 0;

	if (!tw_quiet.depth)
		tw_sys_block_signals(&signals);
	tw_quiet_begin_blocked(signals);
}

/* Restores signals first: the destructors of a thread that is cancelled here run with the program's own mask. */
static inline void tw_quiet_end(void)
{
	uint64_t signals = tw_quiet.signals;
	int cancel_state = tw_quiet.cancel_state;

	if (--tw_quiet.depth)
		return;
	tw_sys_restore_signals(&signals);
	pthread_setcancelstate(cancel_state, NULL);
}

#endif
