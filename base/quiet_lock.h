/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quiet_lock.h - a lock that signal handlers of the same thread may take as well.
 *
 * A handler can hit a place for the first time and join, which takes locks.  Thus the holder of such a lock has all
 * signals blocked, and handlers run after it.  The holder cannot be cancelled either: code under the lock may open and
 * write files.  Hold it for a few microseconds only.
 *
 * Handlers of fork() hold locks over the calls that libc makes meanwhile.  These calls may be traced, and need the same
 * locks: for the thread that forks, taking such a lock again changes nothing, in the parent and in the child.
 */
#ifndef TW_BASE_QUIET_LOCK_H
#define TW_BASE_QUIET_LOCK_H

#include "base/lock.h"
#include "base/quiet.h"

struct tw_quiet_lock {
	struct tw_lock lock;
	const void *_Atomic forks_in; /* the thread that holds it over its fork(); NULL: none */
};

#define TW_QUIET_LOCK_INIT          \
	{                           \
		TW_LOCK_INIT, NULL, \
	}

/* Does the calling thread hold the lock over its fork()? */
static inline bool tw_quiet_lock_forks(struct tw_quiet_lock *lock)
{
	/* RELAXED base.forks: only this thread's own value matters, which it wrote itself. */
	return tw_load_relaxed(&lock->forks_in) == __builtin_thread_pointer();
}

static inline void tw_quiet_lock(struct tw_quiet_lock *lock)
{
	if (tw_quiet_lock_forks(lock))
		return;
	tw_quiet_begin();
	tw_lock_seize(&lock->lock);
}

static inline void tw_quiet_unlock(struct tw_quiet_lock *lock)
{
	if (tw_quiet_lock_forks(lock))
		return;
	tw_lock_drop(&lock->lock);
	tw_quiet_end();
}

static inline void tw_quiet_lock_before_fork(struct tw_quiet_lock *lock)
{
	tw_quiet_lock(lock);
	/* RELAXED base.forks: as above. */
	tw_store_relaxed(&lock->forks_in, __builtin_thread_pointer());
}

/* On both sides of the fork. */
static inline void tw_quiet_unlock_after_fork(struct tw_quiet_lock *lock)
{
	/* RELAXED base.forks: as above. */
	tw_store_relaxed(&lock->forks_in, NULL);
	tw_quiet_unlock(lock);
}

#endif
