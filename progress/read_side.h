/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read_side.h - the read side of progress.h, to be inlined into hits: two loads and two stores for a section.
 *
 *	reader				waiter
 *	section := epoch		epoch := epoch + 4
 *	(barrier)			(barrier)
 *	...				every section is 0, or not older than the new epoch
 *	section := 0
 *
 * The waiter provides the barriers: membarrier() makes each running thread execute a full barrier, so the reader needs
 * none.  Without membarrier() the epoch is odd, and then the reader executes a full barrier itself.
 *
 * Epochs are never used twice.  A reader delayed between its load and its store stores an old epoch: the next wait lasts
 * longer by that section, and no wait is too short.  (With a phase of one bit, as 32-bit flavours of RCU have, two
 * rounds would be needed.)
 */
#ifndef TW_PROGRESS_READ_SIDE_H
#define TW_PROGRESS_READ_SIDE_H

#include "base/assert.h"
#include "base/atomic.h"
#include "base/cacheline.h"
#include "progress/progress.h"

/* In the epoch: readers execute a full barrier themselves, and always leave by the slow path. */
#define TW_PROGRESS_FENCED UINT64_C(1)
#define TW_PROGRESS_STEP   UINT64_C(4)
/* In a section's word, beside its epoch: the section of a nested hit. */
#define TW_PROGRESS_NESTED UINT64_C(2)

/* In `notes`: conditions that a reader handles when it leaves its section. */
#define TW_PROGRESS_HAS_WAITER	1u
#define TW_PROGRESS_HAS_NO_HELP 2u /* no membarrier(): a full barrier comes before reading the other note */

/* Read by every section, written by waits. */
struct tw_progress_global {
	TW_CACHELINE_ALIGNED _Atomic uint64_t epoch; /* never 0 */
	_Atomic uint32_t notes;			     /* futex of the waiter */
};
extern struct tw_progress_global tw_progress_global __attribute__((visibility("hidden")));

/* Wakes the thread that waits for this reader.  Keeps errno and vector registers. */
void tw_progress_wake_waiter(void);

static inline bool tw_progress_is_inside(const struct tw_progress_reader *reader)
{
	/* RELAXED progress.own: this thread's own word. */
	return tw_load_relaxed(&reader->section) != 0;
}

/* Sections do not nest: see tw_progress_enter_nested(). */
static inline void tw_progress_enter(struct tw_progress_reader *reader)
{
	/* PAIR progress.epoch: acquire; release in wait_for_readers().  Writes made before the wait are seen. */
	uint64_t epoch = tw_load_acquire(&tw_progress_global.epoch);

	/* PAIR progress.section: release; the previous section has ended, also for a waiter that sees only the new epoch. */
	tw_store_release(&reader->section, epoch);
	if (tw_unlikely(epoch & TW_PROGRESS_FENCED))
		tw_full_barrier();
	tw_compiler_barrier();
}

/* tw_progress_exit() without its last step: if it returns true, the caller must still call tw_progress_wake_waiter(). */
static inline bool tw_progress_exit_quietly(struct tw_progress_reader *reader)
{
	/* PAIR progress.section: release; acquire in is_anybody_behind().  Data that the section has read may be freed. */
	tw_store_release(&reader->section, 0);
	tw_compiler_barrier();
	/* RELAXED progress.notes: the waiter sets the note, makes this thread execute a barrier, and checks again. */
	return tw_unlikely(tw_load_relaxed(&tw_progress_global.notes));
}

static inline void tw_progress_exit(struct tw_progress_reader *reader)
{
	if (tw_progress_exit_quietly(reader))
		tw_progress_wake_waiter();
}

/* All that a dead thread has done in its sections is visible then: the kernel's word that it is dead comes after the last of them. */
static inline void tw_progress_see_sections_of_dead(const struct tw_progress_reader *reader)
{
	/* PAIR progress.section: acquire; release in tw_progress_exit_quietly(). */
	(void)tw_load_acquire(&reader->section);
}

/*
 * A section in a signal handler that interrupted a hit of this thread, inside or outside that hit's section; in the
 * first case that section covers this one.  Returns the argument of tw_progress_exit_nested(); 0: no section was
 * entered.
 */
static inline uint64_t tw_progress_enter_nested(struct tw_progress_reader *reader)
{
	uint64_t epoch;

	if (tw_progress_is_inside(reader))
		return 0;
	/* PAIR progress.epoch: acquire; as in tw_progress_enter(). */
	epoch = tw_load_acquire(&tw_progress_global.epoch) | TW_PROGRESS_NESTED;
	/* PAIR progress.section: release; as in tw_progress_enter(). */
	tw_store_release(&reader->section, epoch);
	if (tw_unlikely(epoch & TW_PROGRESS_FENCED))
		tw_full_barrier();
	tw_compiler_barrier();
	return epoch;
}

/* A handler that switches coroutines may have let the other hit begin its section meanwhile: then that one stays. */
static inline void tw_progress_exit_nested(struct tw_progress_reader *reader, uint64_t entered)
{
	if (!entered)
		return;
	/* PAIR progress.section: release (as part of an exchange); as in tw_progress_exit_quietly(). */
	tw_cas_acq_rel(&reader->section, &entered, 0);
	/* RELAXED progress.notes: as in tw_progress_exit_quietly(). */
	if (tw_unlikely(tw_load_relaxed(&tw_progress_global.notes)))
		tw_progress_wake_waiter();
}

#endif
