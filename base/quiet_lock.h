/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quiet_lock.h - a lock that signal handlers of the same thread may take as well.
 *
 * A handler can hit a place for the first time and join, which takes locks.  Thus the holder of such a lock has all
 * signals blocked, and handlers run after it.  The holder cannot be cancelled either: code under the lock may open and
 * write files.  Hold it for a few microseconds only, and release locks in reverse order.
 */
#ifndef TW_BASE_QUIET_LOCK_H
#define TW_BASE_QUIET_LOCK_H

#include "base/lock.h"
#include "base/quiet.h"

struct tw_quiet_lock {
	struct tw_lock lock;
	struct tw_quiet quiet; /* the holder's */
};

#define TW_QUIET_LOCK_INIT    \
	{                     \
		TW_LOCK_INIT, \
		{             \
			0, 0  \
		}             \
	}

static inline void tw_quiet_lock(struct tw_quiet_lock *lock)
{
	struct tw_quiet quiet;

	tw_quiet_begin(&quiet);
	tw_lock_seize(&lock->lock);
	lock->quiet = quiet;
}

static inline void tw_quiet_unlock(struct tw_quiet_lock *lock)
{
	struct tw_quiet quiet = lock->quiet;

	tw_lock_drop(&lock->lock);
	tw_quiet_end(&quiet);
}

#endif
