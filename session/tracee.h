/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracee.h - processes as this room sees them: the list, their flags, what they inherit.
 *
 * Everything here is called under the registry's lock, but where it says that it takes it.
 */
#ifndef TW_SESSION_TRACEE_H
#define TW_SESSION_TRACEE_H

#include "pipeline/hit/hit.h"
#include "tracewheel/process.h"

/* ---- tracee.c ---- */

/* A process more, with the flags of new ones; NULL: no memory. */
struct tw_tracee *tw_tracee_make(int thread_id, const char *name);
struct tw_tracee *tw_tracee_find(tw_pid pid);
/* The next process gets this id, if no living one has it: for tests of what comes after 2^32 of them. */
void tw_tracee_ids_go_on_at(uint32_t id);
/* By registered name. */
struct tw_tracee *tw_tracee_named(struct tw_term name);
/* The first; follow `next`. */
struct tw_tracee *tw_tracees(void);
/*
 * Nothing runs it any more, and control finds tracees under the lock only: the memory can be used again at once; its id is
 * not, until 2^32 are spent.
 */
void tw_tracee_forget(struct tw_tracee *tracee);
void tw_tracees_forget_all(void);

/*
 * tw_tracee_change - takes flags from a process and gives it others, in one session.
 *
 * Returns 1 when its flags are others now, 0 when not, -1 when there is no such process.
 * Threads: any, also in a hit.  Takes the registry's lock.
 */
int tw_tracee_change(uint64_t pid, unsigned session, uint32_t removed, uint32_t added);

/* ---- flags.c ---- */

/* Sets all flags of a process in a session, and derives from them what hits and notices read. */
void tw_flags_apply(struct tw_tracee *tracee, unsigned slot, uint32_t flags);
/* Adds or removes some. */
void tw_flags_change(struct tw_tracee *tracee, unsigned slot, bool how, uint32_t flags);
/* Whether the `timestamp` of a session is CPU time, for these processes and all that come. */
void tw_flags_stamp_cpu_time(struct tw_tracee *tracees, unsigned slot, bool how);
/* The flags of new processes, in every session. */
void tw_flags_apply_new(struct tw_tracee *tracee);
/* They have changed: who spawns is asked for what they want of a child's first events. */
void tw_flags_new_changed(void);
/* What hits must know of a process when a session has got its slot, and the slot was another's. */
void tw_flags_begin(struct tw_tracee *tracee, const struct tw_session *session);
/* The process exits: nobody wants anything of it. */
void tw_flags_forget(struct tw_tracee *tracee);
/* While a process is sensitive its flags have no effect. */
void tw_flags_set_sensitive(struct tw_tracee *tracee, bool is_sensitive);

/* ---- process.c ---- */

/* Room for one pid as a term. */
#define TW_PID_BYTES 96

static inline struct tw_tracee *tw_tracee_of(const struct tw_process *process)
{
	return (struct tw_tracee *)(uintptr_t)process;
}

/* An event of a process, without the lock: two terms at most, `none` for those that are not there. */
void tw_process_tell(struct tw_tracee *tracee, enum tw_event_kind kind, enum tw_want want, struct tw_term a, struct tw_term b);
/* An event with a pid, and perhaps another term. */
void tw_process_tell_pid(struct tw_tracee *tracee, enum tw_event_kind kind, uint64_t pid, struct tw_term more);
/* Where a process begins: `entry`, or {undefined,undefined,[]} where nobody says so. */
struct tw_term tw_process_entry(struct tw_arena *arena, struct tw_term entry);

/* ---- inherit.c ---- */

void tw_inherit_by_spawn(struct tw_tracee *parent, struct tw_tracee *child, bool is_linked);
void tw_inherit_by_link(struct tw_tracee *process, struct tw_tracee *other);

#endif
