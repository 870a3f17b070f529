/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress_urcu.c - grace periods by liburcu, membarrier flavour.
 *
 * liburcu keeps its readers in a list through their thread-local memory, and this flavour knows
 * nothing of fork(): in the child the list would lead through the stacks of threads that are not there.
 * So joins, leaves and waits take a lock of ours that fork() can take too, we keep a list of readers
 * of our own, and the child unlinks all but itself.
 */
#include "progress/progress.h"
#include "progress/read_side.h"
#include "base/clock.h"
#include "base/export.h"
#include "base/quiet_lock.h"
#include "tracewheel/error.h"
#include "tracewheel/progress.h"

#include <pthread.h>

/* One joined thread, in the order of joining. */
struct reader {
	struct urcu_reader *urcu;
	struct reader *next, **link;
};

char tw_progress_read_tag, tw_progress_wait_tag;

static struct tw_quiet_lock join_lock = TW_QUIET_LOCK_INIT;
static pthread_mutex_t wait_lock = PTHREAD_MUTEX_INITIALIZER;
static struct reader *readers;
static __thread struct reader self;
/* Under the lock of waits. */
static struct tw_progress_waits waits;

/*
 * What urcu_common_wake_up_gp() does, by atomics that sanitizers understand and without errno.  Called inside
 * of hits: the vector registers may be the program's.
 */
__attribute__((target("general-regs-only"))) void tw_progress_wake_waiter(void)
{
	/* RELAXED progress.futex: liburcu's word; who waits looks at all readers again. */
	if (tw_load_plain_acquire(&urcu_memb_gp.futex) != -1)
		return;
	/* RELAXED progress.futex: as above. */
	tw_store_plain_release(&urcu_memb_gp.futex, 0);
	tw_sys_futex_wake((const _Atomic uint32_t *)&urcu_memb_gp.futex, 1);
}

void tw_progress_join(void)
{
	tw_quiet_lock(&join_lock);
	urcu_memb_register_thread();
	self.urcu = &URCU_TLS(urcu_memb_reader);
	self.next = readers;
	self.link = &readers;
	if (readers)
		readers->link = &self.next;
	readers = &self;
	tw_quiet_unlock(&join_lock);
}

static void unlink_reader(struct reader *reader)
{
	*reader->link = reader->next;
	if (reader->next)
		reader->next->link = reader->link;
}

void tw_progress_leave(void)
{
	tw_quiet_lock(&join_lock);
	unlink_reader(&self);
	urcu_memb_unregister_thread();
	tw_quiet_unlock(&join_lock);
}

void tw_progress_read_lock(void)
{
	tw_progress_enter();
}

void tw_progress_read_unlock(void)
{
	tw_progress_exit();
}

bool tw_progress_is_reading(void)
{
	return _urcu_memb_read_ongoing() != 0;
}

/* The power of two, and the two bits below it. */
static unsigned bucket_of(uint64_t ns)
{
	unsigned power = 63 - (unsigned)__builtin_clzll(ns | 1);
	unsigned bucket = power < 2 ? power * 4 : power * 4 + (unsigned)(ns >> (power - 2) & 3);

	return bucket < TW_PROGRESS_BUCKETS ? bucket : TW_PROGRESS_BUCKETS - 1;
}

static void note_wait(uint64_t ns)
{
	waits.count++;
	waits.total_ns += ns;
	if (ns > waits.longest_ns)
		waits.longest_ns = ns;
	waits.by_duration[bucket_of(ns)]++;
}

void tw_progress_wait(void)
{
	uint64_t before;

	TW_ASSERT(!tw_progress_is_reading());
	pthread_mutex_lock(&wait_lock);
	before = tw_clock_monotonic_ns();
	urcu_memb_synchronize_rcu();
	note_wait(tw_clock_monotonic_ns() - before);
	pthread_mutex_unlock(&wait_lock);
	TW_TSAN_ACQUIRE(&tw_progress_read_tag);
	TW_TSAN_RELEASE(&tw_progress_wait_tag);
}

void tw_progress_note_code_wait(void)
{
	pthread_mutex_lock(&wait_lock);
	waits.code_count++;
	pthread_mutex_unlock(&wait_lock);
}

TW_API int tw_progress_waits(struct tw_progress_waits *out)
{
	if (tw_progress_is_reading())
		return TW_EDEADLK;
	pthread_mutex_lock(&wait_lock);
	*out = waits;
	pthread_mutex_unlock(&wait_lock);
	return 0;
}

void tw_progress_before_fork(void)
{
	pthread_mutex_lock(&wait_lock);
	tw_quiet_lock(&join_lock);
}

void tw_progress_after_fork_in_parent(void)
{
	tw_quiet_unlock(&join_lock);
	pthread_mutex_unlock(&wait_lock);
}

void tw_progress_after_fork_in_child(void)
{
	for (struct reader *reader = readers, *next; reader; reader = next) {
		next = reader->next;
		if (reader == &self)
			continue;
		cds_list_del(&reader->urcu->node);
		unlink_reader(reader);
	}
	tw_progress_after_fork_in_parent();
}
