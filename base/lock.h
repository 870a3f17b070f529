/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock.h - a lock for code that runs inside unknown programs.
 *
 *	0 free	1 held	2 held, and a thread may be asleep		Drepper, "Futexes are tricky", mutex 2
 *
 * Not pthread's: programs interpose their own functions (lock profilers, sanitizers), and such a function would run while
 * we hold the lock, call traced functions, and request the same lock again.  Only the kernel is called here.
 *
 * Threads  Any; not recursive, not fair.  Signal handlers: only those of quiet_lock.h.  A fork handler that holds it drops
 *	    it on both sides.
 */
#ifndef TW_BASE_LOCK_H
#define TW_BASE_LOCK_H

#include "base/assert.h"
#include "base/atomic.h"
#include "base/sys.h"

struct tw_lock {
	_Atomic uint32_t word;
};

/* A zeroed lock is free as well. */
#define TW_LOCK_INIT \
	{            \
		0    \
	}

static inline void tw_lock_seize(struct tw_lock *lock)
{
	uint32_t found = 0;

	/* PAIR base.lock: acquire and release; release in tw_lock_drop().  The previous holder's writes are seen. */
	if (tw_cas_acq_rel(&lock->word, &found, 1))
		return;
	/* PAIR base.lock: acquire and release; as above, and from here on a thread may be asleep. */
	while (tw_exchange_acq_rel(&lock->word, 2) != 0)
		tw_sys_futex_wait(&lock->word, 2, UINT64_MAX);
}

static inline void tw_lock_drop(struct tw_lock *lock)
{
	/* PAIR base.lock: acquire and release; acquire in tw_lock_seize(). */
	uint32_t found = tw_exchange_acq_rel(&lock->word, 0);

	TW_ASSERT(found);
	if (found == 2)
		tw_sys_futex_wake(&lock->word, 1);
}

#endif
