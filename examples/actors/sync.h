/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sync.h - the few atomics of the run-time, each with its order in its name, and a small lock.
 */
#ifndef ACTORS_SYNC_H
#define ACTORS_SYNC_H

#include <sched.h>
#include <stdatomic.h>

#define load_relaxed(p)	       atomic_load_explicit((p), memory_order_relaxed)
#define load_acquire(p)	       atomic_load_explicit((p), memory_order_acquire)
#define store_relaxed(p, v)    atomic_store_explicit((p), (v), memory_order_relaxed)
#define store_release(p, v)    atomic_store_explicit((p), (v), memory_order_release)
#define exchange_acquire(p, v) atomic_exchange_explicit((p), (v), memory_order_acquire)
#define add_relaxed(p, v)      atomic_fetch_add_explicit((p), (v), memory_order_relaxed)

/*
 * A lock for a dozen instructions: mailboxes and run queues.  Taking it costs one locked instruction, giving it back a
 * store.  A thread that finds it taken tries a few times, then yields.
 */
struct lock {
	atomic_int is_taken;
};

static inline void lock_take(struct lock *lock)
{
	for (int turn = 0;; turn++) {
		/* PAIR actors.lock: acquire; release in lock_give().  Sees what the last holder wrote. */
		if (exchange_acquire(&lock->is_taken, 1) == 0)
			return;
		/* RELAXED actors.lock_spin: only a hint when to try again. */
		while (load_relaxed(&lock->is_taken)) {
			if (++turn > 64)
				sched_yield();
		}
	}
}

static inline void lock_give(struct lock *lock)
{
	/* PAIR actors.lock: release; acquire in lock_take().  Without it a holder sees half a list. */
	store_release(&lock->is_taken, 0);
}

#endif
