/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.h - thread progress: waits until every read section in progress has ended.
 *
 * Read-copy-update with its own read side: one word per thread, in memory of the caller (read_side.h).  A thread
 * joins before its first read section, which a foreign thread does in the middle of a hit, and leaves at its exit.
 *
 *		enter/exit	join	leave	wait	wait_code
 *	enter/exit	yes	yes	yes	yes	yes
 *	join			yes	yes	yes	yes	(one after another, by a lock inside)
 *	wait					yes	yes	(one after another)
 *
 * Guarantee  A read section that began before tw_progress_wait() has ended when it returns, and
 * every read section that begins after the wait sees all writes made before it.
 * A grace period does not synchronise instruction fetch; tw_progress_wait_code() does that too.
 *
 * Threads  any that has joined may read; waits only outside read sections.
 */
#ifndef TW_PROGRESS_PROGRESS_H
#define TW_PROGRESS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <urcu/list.h>

/*
 * One joined thread.  Its memory is never unmapped: a thread that must not take locks at its end stays in the list,
 * outside of any section, without harm.
 */
struct tw_progress_reader {
	/* 0: outside; else the epoch in which the section began.  Written by its thread. */
	_Atomic uint64_t section;
	struct cds_list_head node; /* under the lock of joins */
};

/* Registers for membarrier.  Idempotent, called by every possible first user; cheap afterwards. */
void tw_progress_init(void);

/* Does tw_progress_wait_code() synchronise instruction fetch on this kernel?  If not, it still waits. */
bool tw_progress_has_code_barrier(void);

/*
 * tw_progress_join - make the calling thread a reader with this word.
 *
 * @reader	zeroed; shares until tw_progress_leave().
 * The caller has blocked signals: a handler with a hit in the middle would join a second time.
 */
void tw_progress_join(struct tw_progress_reader *reader);
/* Of the calling thread, or of one that is dead. */
void tw_progress_leave(struct tw_progress_reader *reader);

/* Is the calling thread inside a read section? */
bool tw_progress_is_reading(void);

/* Waits for a grace period.  Calling it inside a read section is a bug. */
void tw_progress_wait(void);
/* The same, and every thread fetches instructions anew before it runs the next one. */
void tw_progress_wait_code(void);
/* For tw_progress_waits() of tracewheel/progress.h: counts the wait just ended as one for code. */
void tw_progress_note_code_wait(void);

/* A full memory barrier on every running thread of this process; the other threads passed one when they stopped running. */
void tw_progress_barrier_everywhere(void);

/*
 * Around fork(), as pthread_atfork() wants them: no grace period is in progress when the memory is copied, and the
 * child forgets the threads that it does not have.
 */
void tw_progress_before_fork(void);
void tw_progress_after_fork_in_parent(void);
void tw_progress_after_fork_in_child(void);

#endif
