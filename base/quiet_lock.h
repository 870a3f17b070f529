/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quiet_lock.h - a lock that signal handlers of the same thread may need as well.
 *
 * A handler can hit a place for the first time and join, which takes locks.  So whoever holds one of
 * those has all signals blocked: the handler comes after.  Hold it for a few microseconds only.
 */
#ifndef TW_BASE_QUIET_LOCK_H
#define TW_BASE_QUIET_LOCK_H

#include "base/sys.h"

#include <pthread.h>

struct tw_quiet_lock {
	pthread_mutex_t mutex;
	uint64_t signals; /* of the holder, to restore */
};

#define TW_QUIET_LOCK_INIT                                                                                   \
	{                                                                                                    \
		PTHREAD_MUTEX_INITIALIZER, 0                                                                 \
	}

static inline void tw_quiet_lock(struct tw_quiet_lock *lock)
{
	uint64_t signals;

	tw_sys_block_signals(&signals);
	pthread_mutex_lock(&lock->mutex);
	lock->signals = signals;
}

static inline void tw_quiet_unlock(struct tw_quiet_lock *lock)
{
	uint64_t signals = lock->signals;

	pthread_mutex_unlock(&lock->mutex);
	tw_sys_restore_signals(&signals);
}

#endif
