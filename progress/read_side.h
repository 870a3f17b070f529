/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read_side.h - the read side of progress.h, to be inlined into hits.
 *
 * What liburcu's own inline functions do, with two differences: errno is kept where an updater must
 * be woken, and thread sanitizers are told of the order, which they cannot see in liburcu's assembly.
 */
#ifndef TW_PROGRESS_READ_SIDE_H
#define TW_PROGRESS_READ_SIDE_H

#define URCU_INLINE_SMALL_FUNCTIONS
#define _LGPL_SOURCE
#include <urcu/urcu-memb.h>

#include "base/assert.h"
#include "base/atomic.h"

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined __SANITIZE_THREAD__ || __has_feature(thread_sanitizer)
void __tsan_acquire(void *address);
void __tsan_release(void *address);
#define TW_TSAN_ACQUIRE(p) __tsan_acquire(p)
#define TW_TSAN_RELEASE(p) __tsan_release(p)
#else
#define TW_TSAN_ACQUIRE(p) ((void)(p))
#define TW_TSAN_RELEASE(p) ((void)(p))
#endif

/* For thread sanitizers only: what readers release to waiters, and waiters to readers. */
extern char tw_progress_read_tag, tw_progress_wait_tag;

/* Wakes the thread that waits for this reader.  Keeps errno. */
void tw_progress_wake_waiter(void);

static inline int tw_progress_is_inside(void)
{
	return _urcu_memb_read_ongoing();
}

static inline void tw_progress_enter(void)
{
	_urcu_memb_read_lock();
	TW_TSAN_ACQUIRE(&tw_progress_wait_tag);
}

/* tw_progress_exit() without its last step: the caller must still call tw_progress_wake_waiter() where this says so. */
static inline bool tw_progress_exit_quietly(void)
{
	unsigned long ctr = URCU_TLS(urcu_memb_reader).ctr;

	TW_TSAN_RELEASE(&tw_progress_read_tag);
	if (tw_unlikely((ctr & URCU_GP_CTR_NEST_MASK) != URCU_GP_COUNT)) {
		_CMM_STORE_SHARED(URCU_TLS(urcu_memb_reader).ctr, ctr - URCU_GP_COUNT);
		return false;
	}
	/* urcu_memb_smp_mb_slave() before and behind the store, with one look at which kind of barrier it is. */
	if (tw_likely(urcu_memb_has_sys_membarrier)) {
		cmm_barrier();
		_CMM_STORE_SHARED(URCU_TLS(urcu_memb_reader).ctr, ctr - URCU_GP_COUNT);
		cmm_barrier();
	} else {
		cmm_smp_mb();
		_CMM_STORE_SHARED(URCU_TLS(urcu_memb_reader).ctr, ctr - URCU_GP_COUNT);
		cmm_smp_mb();
	}
	/* RELAXED progress.futex: liburcu's word, whose barrier stands just above; atomic so that sanitizers see it. */
	return tw_load_plain_acquire(&urcu_memb_gp.futex) == -1;
}

static inline void tw_progress_exit(void)
{
	if (tw_unlikely(tw_progress_exit_quietly()))
		tw_progress_wake_waiter();
	cmm_barrier();
}

#endif
