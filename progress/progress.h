/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.h - thread progress: when has every thread that was reading moved on?
 *
 * One flavour of liburcu for all threads (membarrier: a read section costs two plain stores).  A
 * thread joins before its first read section, also a foreign one in the middle of a hit, and leaves
 * at its exit.  No call_rcu: it would start threads in somebody else's program.
 *
 *		lock/unlock	join	leave	wait	wait_code
 *	lock/unlock	yes	yes	yes	yes	yes
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

/* Registers for membarrier.  Idempotent, called by whatever comes first; cheap afterwards. */
void tw_progress_init(void);

/* Does tw_progress_wait_code() make instruction fetch follow on this kernel?  If not it still waits. */
bool tw_progress_has_code_barrier(void);

/* Signals blocked by the caller: a handler that hit in the middle would join a second time. */
void tw_progress_join(void);
void tw_progress_leave(void);

/* May nest.  Wait-free.  Signal handlers: yes, once the thread has joined. */
void tw_progress_read_lock(void);
void tw_progress_read_unlock(void);
/* Is this thread inside a read section? */
bool tw_progress_is_reading(void);

/* Waits for a grace period.  A bug inside a read section. */
void tw_progress_wait(void);
/* The same, and every thread fetches instructions anew before it runs the next one. */
void tw_progress_wait_code(void);
/* For tw_progress_waits() of tracewheel/progress.h: the wait that is just over was one for code. */
void tw_progress_note_code_wait(void);

/*
 * Around fork(), as pthread_atfork() wants them: no grace period is half-way when the memory is
 * copied, and the child forgets the threads that it does not have.
 */
void tw_progress_before_fork(void);
void tw_progress_after_fork_in_parent(void);
void tw_progress_after_fork_in_child(void);

#endif
