/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leave.h - recordings of a program that runs: begun by a thread that waits for the command, and left again.
 *
 *	dormant		the thread sleeps
 *	attached	as in a program that was started by the command
 *	leaving, left	leave.c has the order in which a recording ends inside
 *
 * Threads  that of dormant.c, if nothing else is said.
 */
#ifndef TW_AGENT_LEAVE_H
#define TW_AGENT_LEAVE_H

#include <stdbool.h>

/* ---- dormant.c ---- */

/*
 * tw_agent_wait_for_command - make the thread that waits for `tracewheel attach`, in this process and in those that it forks.
 *
 * Threads: the constructor's.
 */
void tw_agent_wait_for_command(void);

/*
 * tw_agent_rights_changed - the calling thread has changed what is its own alone: capabilities, or flags of theirs.
 *
 * A new thread, which has the same, takes the place of the one that waits: libc ends a program in which a change of the user
 * succeeds in one thread and not in another.
 *
 * Threads: any of the program.  Progress: waits for the other thread, 0.1 s at most.
 */
void tw_agent_rights_changed(void);

/* ---- start.c ---- */

/*
 * tw_agent_attach - start tracing for the owner of this ring set, in a program that runs.
 *
 * @is_filtered	is set to true if the error, TW_EPERM, comes of a seccomp filter that the owner does not have.
 * @why		out: a clause of TW_AGENT_WHY_BYTES, if the error is TW_ENOTSUP; else "".
 *
 * Errors: those of tw_rs_attach() and tw_rs_image_claim(); TW_ENOTSUP: Python is asked for, and there is none that could be recorded.
 * Threads: the one of dormant.c.
 */
int tw_agent_attach(const char *path, bool *is_filtered, char *why);

/* Has the command asked for this, by a whole line of its text? */
bool tw_agent_is_asked(const char *line);

/* ---- lead.c ---- */

/* Was the agent loaded into a program that ran?  Threads: any, after the constructor. */
bool tw_agent_is_late(void);
/* Calls that the agent wraps are led to it, for the first time.  Threads: the constructor's, of an agent that came late. */
void tw_agent_came_late(void);
/*
 * tw_agent_lead - the same in objects that were loaded since; nothing in an agent that was there first.
 *
 * Calls the loader: never under the permit.  Threads: any.
 */
void tw_agent_lead(void);

/* ---- leave.c ---- */

/*
 * tw_agent_end - end the recording from inside: no place is armed, nothing is recorded, no thread is inside of the agent.
 *
 * Jumps over functions' first instructions stay until a recorder takes them back (written.c).  False: other threads are
 * still inside of the agent, or of dlclose(); call it again later.
 */
bool tw_agent_end(void);
/*
 * tw_agent_forget - unmap the ring set, after tw_agent_end(): the process can be attached to again.
 *
 * False: a session of the program counts calls in the ring set; call it again later.
 */
bool tw_agent_forget(void);

/* ---- python_late.c: an interpreter of Python that runs ---- */

/* Bytes of a reason: TW_DOORBELL_WHY_BYTES. */
#define TW_AGENT_WHY_BYTES 192

/* Is there an interpreter that can be recorded?  @why	out: the reason if not, as a clause. */
bool tw_agent_python_may_attach(char why[TW_AGENT_WHY_BYTES]);
/* Its frames are recorded from now on, if its lock is free within a second; else as soon as it is, and a note says so. */
void tw_agent_python_attach(void);
/* Now and then, while attached: looks whether a wait for the lock is over. */
void tw_agent_python_settle(void);
/*
 * tw_agent_python_leave - the interpreter evaluates its frames by itself again; nothing if it does.
 *
 * False: its lock is not free; call it again soon.  After a second a note says what stays, and the answer is true.
 */
bool tw_agent_python_leave(void);
/* The recording is forgotten: the interpreter's object may be closed. */
void tw_agent_python_forget(void);
/* In a forked child, which is not recorded. */
void tw_agent_python_after_fork_in_child(void);

/* ---- parts of it, each in the file that has the state ---- */

/* arm.c */
/* Calls @end, which ends the session, while no object can be unloaded.  False: no memory, and not called. */
bool tw_agent_disarm(void (*end)(void));
/* The reverse of tw_agent_arm_init(), when no thread is inside. */
void tw_agent_arm_fini(void);
/* known.c */
/* The recording is left: all objects are to be examined again. */
void tw_known_doubt(void);
/* written.c */
/* A new recording of a process takes back what an earlier one has left. */
void tw_agent_written_show(void);
/* Bracket the end of the session, in a process that may be recorded again: the list says then what is left in memory.  Without permit. */
void tw_agent_written_leave(void);
void tw_agent_written_left(void);
/* state.c */
/* Is any thread inside? */
bool tw_agent_is_used(void);
/* In a forked child: the other threads are gone. */
void tw_agent_users_after_fork(void);

#endif
