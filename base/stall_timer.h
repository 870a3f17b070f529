/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stall_timer.h - measures time spent waiting, as opposed to elapsed time.
 *
 * A thread that waits for another one polls, and gives up when it has waited long enough.  Measured by the clock,
 * that verdict is wrong if no thread could run: on a machine that stopped for a second (a virtual one whose
 * processors were given to others), the other thread had no chance.  Thus a check adds the time since the previous
 * check, but never more than a slice, about the time slept between the two: a stop of one second costs one slice.
 *
 *	wall time         |----|----|---------- no thread runs ---------|----|----|
 *	checks            1    2    3                                    4    5    6
 *	spent (slices)    0    1    2                                    3    4    5
 *
 * A sign of life is any number that the other side changes while it makes progress: a new one restarts the count.
 *
 * Threads  any number at once: time in which several of them waited concurrently is spent once.
 * Units    *_ns are nanoseconds of CLOCK_MONOTONIC, passed in by the caller.
 */
#ifndef TW_BASE_STALL_TIMER_H
#define TW_BASE_STALL_TIMER_H

#include "base/atomic.h"

#include <stdint.h>

/* All 0: not checked yet. */
struct tw_stall_timer {
	_Atomic uint64_t sign;	     /* of life, the last that was seen */
	_Atomic uint64_t checked_ns; /* the last check; 0: none */
	_Atomic uint64_t spent_ns;   /* since the sign */
};

/*
 * tw_stall_timer_check - one poll of a peer that has not yet done what the caller waits for.
 *
 * @sign	the peer's sign of life; a constant if it has none.
 * @now_ns	the time of the check, not 0.
 * @slice_ns	the most that one check adds.
 *
 * Returns the time spent since this sign was first seen, including this check; 0 at the first one.
 * Threads: any.  Progress: wait-free.  Signal handlers: yes.
 */
static inline uint64_t tw_stall_timer_check(struct tw_stall_timer *stall_timer, uint64_t sign, uint64_t now_ns,
					    uint64_t slice_ns)
{
	/* RELAXED stall_timer.checked: a single time; a thread that reads another thread's check adds less. */
	uint64_t checked_ns = tw_load_relaxed(&stall_timer->checked_ns), since_ns;

	/* PAIR stall_timer.sign: acquire; release in tw_stall_timer_check() of another thread.  Time before the sign is not added. */
	if (!checked_ns || tw_load_acquire(&stall_timer->sign) != sign) {
		/* RELAXED stall_timer.checked: as above. */
		tw_store_relaxed(&stall_timer->checked_ns, now_ns);
		/* RELAXED stall_timer.spent: a concurrent check may still add its slice. */
		tw_store_relaxed(&stall_timer->spent_ns, 0);
		/* PAIR stall_timer.sign: release; acquire in tw_stall_timer_check() of another thread. */
		tw_store_release(&stall_timer->sign, sign);
		return 0;
	}
	since_ns = now_ns > checked_ns ? now_ns - checked_ns : 0;
	if (since_ns > slice_ns)
		since_ns = slice_ns;
	/* RELAXED stall_timer.checked: the second thread spends nothing, because its time is spent already. */
	if (!since_ns || !tw_cas_relaxed(&stall_timer->checked_ns, &checked_ns, now_ns))
		since_ns = 0;
	/* RELAXED stall_timer.spent: a sum that only grows, except at a new sign. */
	return tw_fetch_add_relaxed(&stall_timer->spent_ns, since_ns) + since_ns;
}

#endif
