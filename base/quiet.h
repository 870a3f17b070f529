/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quiet.h - sections of code that neither a signal handler nor a cancellation interrupts.
 *
 * The thread has all signals blocked and cancellation disabled from the begin to the end of a section.  Sections nest; the
 * thread can be cancelled only at the end of the outermost one: pthread_setcancelstate() acts at once for a thread with
 * asynchronous cancellation, even while SIGCANCEL is blocked.  Thus code that blocks signals around a quiet lock uses
 * this.
 */
#ifndef TW_BASE_QUIET_H
#define TW_BASE_QUIET_H

#include "base/sys.h"

#include <pthread.h>
#include <stdint.h>

struct tw_quiet {
	uint64_t signals;
	int cancel_state;
};

static inline void tw_quiet_begin(struct tw_quiet *quiet)
{
	tw_sys_block_signals(&quiet->signals);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &quiet->cancel_state);
}

/* Restores signals first: the destructors of a thread that is cancelled here run with the program's own mask. */
static inline void tw_quiet_end(const struct tw_quiet *quiet)
{
	int cancel_state = quiet->cancel_state;

	tw_sys_restore_signals(&quiet->signals);
	pthread_setcancelstate(cancel_state, NULL);
}

#endif
