/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.h - thread progress: when has every thread that was reading moved on?
 *
 * Read-copy-update with a read side of our own: one word a thread, in memory of the caller's (read_side.h).  A thread
 * joins before its first read section, also a foreign one in the middle of a hit, and leaves at its exit.
 *
 *		enter/exit	join	leave	wait	wait_code
 *	enter/exit	yes	yes	yes	yes	yes
 *	join			yes	yes	yes	yes	(one after another, by a lock inside)
 *	wait					yes	yes	(one after another)
 *
 * Guarantee  A read section that began before tw_progress_wait() has ended when it returns, and
 * what was written before the wait is seen by every read section that begins after it.
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
 * One joined thread.  In memory that is never unmapped: a thread that is not allowed to take locks at its end stays in
 * the list, outside of any section, and harms nobody.
 */
struct tw_progress_reader {
	/* 0: outside; else the epoch in which the section began.  Written by its thread. */
	_Atomic uint64_t section;
	struct cds_list_head node; /* under the lock of joins */
};

/* Registers for membarrier.  Idempotent, called by whatever comes first; cheap afterwards. */
void tw_progress_init(void);

/* Does tw_progress_wait_code() make instruction fetch follow on this kernel?  If not it still waits. */
bool tw_progress_has_code_barrier(void);

/*
 * tw_progress_join - the calling thread will read, with this word.
 *
 * @reader	zeroed; shares until tw_progress_leave().
 * Signals blocked by the caller: a handler that hit in the middle would join a second time.
 */
void tw_progress_join(struct tw_progress_reader *reader);
void tw_progress_leave(struct tw_progress_reader *reader);

/* Is the calling thread inside a read section? */
bool tw_progress_is_reading(void);

/* Waits for a grace period.  A bug inside a read section. */
void tw_progress_wait(void);
/* The same, and every thread fetches instructions anew before it runs the next one. */
void tw_progress_wait_code(void);
/* For tw_progress_waits() of tracewheel/progress.h: the wait that is just over was one for code. */
void tw_progress_note_code_wait(void);

/* A full memory barrier on every thread of this process that runs; the other threads have passed one by not running. */
void tw_progress_barrier_everywhere(void);

/*
 * Around fork(), as pthread_atfork() wants them: no grace period is half-way when the memory is
 * copied, and the child forgets the threads that it does not have.
 */
void tw_progress_before_fork(void);
void tw_progress_after_fork_in_parent(void);
void tw_progress_after_fork_in_child(void);

#endif
