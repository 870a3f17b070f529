/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grace.c - grace periods over the readers of read_side.h.
 *
 *  1  the epoch is raised
 *  2  barrier everywhere: a reader not seen in a section from here on sees all writes before 1
 *  3  done if each reader is outside, or began after 1
 *  4  else set the note of a waiter; barrier everywhere: a reader that leaves its section from here on sees it
 *  5  3 again, then sleep until a reader leaves its section
 *
 * tests/models/progress.pml has these steps.  fork() takes both locks; the child forgets the readers of other threads.
 */
#include "progress/progress.h"
#include "progress/read_side.h"
#include "base/clock.h"
#include "base/export.h"
#include "base/filter.h"
#include "base/quiet_lock.h"
#include "tracewheel/error.h"
#include "tracewheel/progress.h"

/* A section takes about ten nanoseconds, unless its thread is not running. */
#define POLLS_BEFORE_SLEEP 100
/* A reader that must not make system calls does not wake the waiter, so it polls. */
#define POLL_NS UINT64_C(2000000)

/* Readers execute their own barriers until tw_progress_init() has found membarrier(). */
struct tw_progress_global tw_progress_global = {.epoch = TW_PROGRESS_STEP | TW_PROGRESS_FENCED,
						.notes = TW_PROGRESS_HAS_NO_HELP};

static struct tw_quiet_lock join_lock = TW_QUIET_LOCK_INIT;
static struct tw_lock wait_lock = TW_LOCK_INIT;
static CDS_LIST_HEAD(readers);
static __thread struct tw_progress_reader *self;
/* Under the lock of waits. */
static struct tw_progress_waits waits;

/* Called inside of hits: the vector registers may be the program's. */
__attribute__((target("general-regs-only"))) void tw_progress_wake_waiter(void)
{
	/* RELAXED progress.notes: as in tw_progress_exit_quietly(). */
	uint32_t notes = tw_load_relaxed(&tw_progress_global.notes);

	if (notes & TW_PROGRESS_HAS_NO_HELP) {
		tw_full_barrier();
		/* RELAXED progress.notes: after the barrier, which the waiter cannot make this thread execute. */
		notes = tw_load_relaxed(&tw_progress_global.notes);
	}
	/* The waiter polls anyway. */
	if (!(notes & TW_PROGRESS_HAS_WAITER) || !tw_thread_may_call_system())
		return;
	/* RELAXED progress.notes: the thread that clears the note wakes the waiter, which checks all readers again. */
	if (tw_fetch_and_relaxed(&tw_progress_global.notes, ~TW_PROGRESS_HAS_WAITER) & TW_PROGRESS_HAS_WAITER)
		tw_sys_futex_wake(&tw_progress_global.notes, 1);
}

void tw_progress_join(struct tw_progress_reader *reader)
{
	tw_progress_init();
	tw_quiet_lock(&join_lock);
	cds_list_add(&reader->node, &readers);
	tw_quiet_unlock(&join_lock);
	self = reader;
}

void tw_progress_leave(struct tw_progress_reader *reader)
{
	if (self == reader)
		self = NULL;
	tw_quiet_lock(&join_lock);
	cds_list_del(&reader->node);
	tw_quiet_unlock(&join_lock);
}

bool tw_progress_is_reading(void)
{
	return self && tw_progress_is_inside(self);
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

/* Is a reader in a section that began before this epoch? */
static bool is_anybody_behind(uint64_t epoch)
{
	struct tw_progress_reader *reader;
	bool found = false;

	tw_quiet_lock(&join_lock);
	cds_list_for_each_entry(reader, &readers, node)
	{
		/*
		 * PAIR progress.section: acquire; release in tw_progress_exit_quietly(), and in tw_progress_enter() for a
		 * reader that has ended one section and begun another.  Reads of the old section are over.
		 */
		uint64_t section = tw_load_acquire(&reader->section);

		found = section && section < epoch;
		if (found)
			break;
	}
	tw_quiet_unlock(&join_lock);
	return found;
}

static void sleep_until_over(uint64_t epoch)
{
	for (;;) {
		/* RELAXED progress.notes: readers see it after the barrier, or have left before it. */
		uint32_t notes =
			tw_fetch_or_relaxed(&tw_progress_global.notes, TW_PROGRESS_HAS_WAITER) | TW_PROGRESS_HAS_WAITER;

		tw_progress_barrier_everywhere(); /* 4 */
		if (!is_anybody_behind(epoch))	  /* 5 */
			break;
		tw_sys_futex_wait(&tw_progress_global.notes, notes, POLL_NS);
	}
	/* RELAXED progress.notes: a reader that still sees the note makes a system call for nothing. */
	tw_fetch_and_relaxed(&tw_progress_global.notes, ~TW_PROGRESS_HAS_WAITER);
}

static void wait_for_readers(void)
{
	/*
	 * PAIR progress.epoch: release (as part of an addition); acquire in tw_progress_enter().  A reader with this epoch or a
	 * later one has seen all earlier writes.
	 */
	uint64_t epoch = tw_fetch_add_acq_rel(&tw_progress_global.epoch, TW_PROGRESS_STEP) + TW_PROGRESS_STEP; /* 1 */

	tw_progress_barrier_everywhere();			    /* 2 */
	for (unsigned poll = 0; is_anybody_behind(epoch); poll++) { /* 3 */
		if (poll == POLLS_BEFORE_SLEEP) {
			sleep_until_over(epoch);
			return;
		}
		tw_cpu_relax();
	}
}

void tw_progress_wait(void)
{
	uint64_t before;

	TW_ASSERT(!tw_progress_is_reading());
	tw_progress_init();
	tw_lock_seize(&wait_lock);
	before = tw_clock_monotonic_ns();
	wait_for_readers();
	note_wait(tw_clock_monotonic_ns() - before);
	tw_lock_drop(&wait_lock);
}

void tw_progress_note_code_wait(void)
{
	tw_lock_seize(&wait_lock);
	waits.code_count++;
	tw_lock_drop(&wait_lock);
}

TW_API int tw_progress_waits(struct tw_progress_waits *out)
{
	if (tw_progress_is_reading())
		return TW_EDEADLK;
	tw_lock_seize(&wait_lock);
	*out = waits;
	tw_lock_drop(&wait_lock);
	return 0;
}

void tw_progress_before_fork(void)
{
	tw_lock_seize(&wait_lock);
	tw_quiet_lock_before_fork(&join_lock);
}

void tw_progress_after_fork_in_parent(void)
{
	tw_quiet_unlock_after_fork(&join_lock);
	tw_lock_drop(&wait_lock);
}

void tw_progress_after_fork_in_child(void)
{
	CDS_INIT_LIST_HEAD(&readers);
	if (self)
		cds_list_add(&self->node, &readers);
	tw_progress_after_fork_in_parent();
}
