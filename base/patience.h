/* SPDX-License-Identifier: Apache-2.0 */
/*
 * patience.h - time that was waited, as opposed to time that went by.
 *
 * Who waits for somebody else looks again and again, and gives up when it has waited long enough.  Measured by the
 * clock that verdict is wrong wherever nobody could run: on a machine that stood still for a second (a virtual one,
 * whose processors were given to others) the one waited for had no chance.  So a look spends the time since the look
 * before, and never more than a slice, about what was slept between the two: a second of standstill costs one slice.
 *
 *	wall time         |----|----|----------- nobody runs -----------|----|----|
 *	looks             1    2    3                                    4    5    6
 *	spent (slices)    0    1    2                                    3    4    5
 *
 * A sign of life is any number that the other side changes while it makes progress: a new one begins anew.
 *
 * Threads  any number at once: time that several of them waited beside each other is spent once.
 * Units    *_ns are nanoseconds of CLOCK_MONOTONIC, handed in by who looks.
 */
#ifndef TW_BASE_PATIENCE_H
#define TW_BASE_PATIENCE_H

#include "base/atomic.h"

#include <stdint.h>

/* All 0: nobody has looked. */
struct tw_patience {
	_Atomic uint64_t sign;	    /* of life, the last that was seen */
	_Atomic uint64_t looked_ns; /* the last look; 0: none */
	_Atomic uint64_t spent_ns;  /* since the sign */
};

/*
 * tw_patience_look - one look at somebody who has not done yet what is waited for.
 *
 * @sign	its sign of life; always the same where it gives none.
 * @now_ns	the time of the look, not 0.
 * @slice_ns	what a look spends at most.
 *
 * Returns what is spent since this sign was first seen, this look included; 0 at the first look.
 * Threads: any.  Progress: wait-free.  Signal handlers: yes.
 */
static inline uint64_t tw_patience_look(struct tw_patience *patience, uint64_t sign, uint64_t now_ns, uint64_t slice_ns)
{
	/* RELAXED patience.looked: a lone time; who finds that of another thread's look spends less. */
	uint64_t looked_ns = tw_load_relaxed(&patience->looked_ns), since_ns;

	/* PAIR patience.sign: acquire; release below.  Nothing is spent of this one that belongs to the one before. */
	if (!looked_ns || tw_load_acquire(&patience->sign) != sign) {
		/* RELAXED patience.looked: as above. */
		tw_store_relaxed(&patience->looked_ns, now_ns);
		/* RELAXED patience.spent: a look under way may still add its slice. */
		tw_store_relaxed(&patience->spent_ns, 0);
		/* PAIR patience.sign: release; acquire above. */
		tw_store_release(&patience->sign, sign);
		return 0;
	}
	since_ns = now_ns > looked_ns ? now_ns - looked_ns : 0;
	if (since_ns > slice_ns)
		since_ns = slice_ns;
	/* RELAXED patience.looked: who is second spends nothing, its time is spent already. */
	if (!since_ns || !tw_cas_relaxed(&patience->looked_ns, &looked_ns, now_ns))
		since_ns = 0;
	/* RELAXED patience.spent: a sum that only grows but for a new sign. */
	return tw_fetch_add_relaxed(&patience->spent_ns, since_ns) + since_ns;
}

#endif
