/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracee.h - processes and ports in this folder: the list, their flags and inheritance.
 *
 * All functions are called under the registry's lock, except those that are said to take it.
 */
#ifndef TW_SESSION_TRACEE_H
#define TW_SESSION_TRACEE_H

#include "pipeline/hit/hit.h"
#include "tracewheel/process.h"
#include "tracewheel/runtime.h"

/* ---- tracee.c ---- */

/* Makes a process with the flags of new ones; NULL: no memory. */
struct tw_tracee *tw_tracee_make(int thread_id, const char *name);
/* Makes a port with the flags of new ones; NULL: no memory.  @port_slot: its entry in the table of ports, not 0. */
struct tw_tracee *tw_tracee_make_port(uint32_t port_slot, const char *name);
/* Only processes. */
struct tw_tracee *tw_tracee_find(tw_pid pid);
/* Only ports, by the number that is printed. */
struct tw_tracee *tw_tracee_find_port(uint64_t number);
/* The next process gets this id, if no living one has it: for tests of the wrap after 2^32 processes. */
void tw_tracee_ids_go_on_at(uint32_t id);
/* Finds a process or port by its registered name. */
struct tw_tracee *tw_tracee_named(struct tw_term name);
/* The first process or port; follow `next`. */
struct tw_tracee *tw_tracees(void);
/*
 * No thread runs the process any more, and control finds tracees under the lock only, so the memory is reused at once.
 * The id is not reused until 2^32 are spent.
 */
void tw_tracee_forget(struct tw_tracee *tracee);
void tw_tracees_forget_all(void);

/*
 * tw_tracee_change - removes flags of a process or port and adds others, in one session.
 *
 * Returns 1 when its flags have changed, 0 when not, -1 when there is none of that number.  Threads: any, also in a hit.
 * Takes the registry's lock.
 */
int tw_tracee_change(uint64_t number, unsigned session, uint32_t removed, uint32_t added);

/* ---- tracee.c, for other files of this folder: these take the lock, except where said ---- */

void tw_tracee_describe(struct tw_tracee *tracee, unsigned slot);
/* Does a process of that number exist? */
bool tw_tracee_is_there(uint64_t pid);
/* Called when the session has its slot: marks the tracee that is its tracer.  Under the registry's lock. */
void tw_tracees_begin(const struct tw_session *session);
/* Does any thread pass on flags that new ones would not get anyway?  Under the registry's lock. */
bool tw_tracees_pass_on(void);
/* Removes a session's flags from all tracees. */
void tw_tracees_forget(unsigned slot);
/* The same for the flags only; under the registry's lock. */
void tw_tracees_clear_flags(unsigned slot);
/* Does or did such a process exist?  Takes the registry's lock. */
bool tw_tracee_has_been(uint64_t pid);

/* ---- tracee_thread.c ---- */

/* Set while this thread joins as a scheduler: it is never a process. */
extern __thread bool tw_thread_becomes_scheduler;
struct tw_tracee *tw_tracee_of_thread(struct tw_thread *thread, int thread_id);
/* Ends the process; takes the registry's lock. */
void tw_tracee_exit(struct tw_tracee *tracee);
/*
 * Called when a thread that is a process is about to create another: makes the new thread's process with its
 * inherited flags.  @words: the arguments of pthread_create; the last two are replaced.
 */
void tw_tracee_makes_thread(uint64_t *words);
/* Called after that, outside of the hit: the new thread gets the token of this one, with the events of a spawn. */
void tw_tracee_passes_token(const uint64_t *words);
/* In a forked child: keeps the one remaining thread, with a tracee of its own. */
void tw_tracees_after_fork_in_child(void);

/* ---- flags.c ---- */

/* Sets all flags of a process in a session, and derives the words that hits and runtime events read. */
void tw_flags_apply(struct tw_tracee *tracee, unsigned slot, uint32_t flags);
/* Adds or removes some flags. */
void tw_flags_change(struct tw_tracee *tracee, unsigned slot, bool how, uint32_t flags);
/* Sets whether the `timestamp` of a session is CPU time, for these and all future processes. */
void tw_flags_stamp_cpu_time(struct tw_tracee *tracees, unsigned slot, bool how);
/* Gives a process the flags of new ones, in every session. */
void tw_flags_apply_new(struct tw_tracee *tracee);
/* Called when the flags of new processes have changed: recomputes the events wanted when a process spawns. */
void tw_flags_new_changed(void);
/* Sets the words that hits read of a process when a session gets a slot that another session had before. */
void tw_flags_begin(struct tw_tracee *tracee, const struct tw_session *session);
/* Called when the process exits: no event of it is wanted any more. */
void tw_flags_forget(struct tw_tracee *tracee);
/* The bits of tw_runtime_wanted that concern all processes. */
#define TW_WANTS_OF_MONITORS \
	((uint32_t)(TW_WANTS_MAILBOX | TW_WANTS_PORT_SCHEDULES | TW_WANTS_COLLECTIONS | TW_WANTS_BUSY))
/* The TW_WANTS_* that monitors of the system need from run-times, whatever the flags of processes. */
void tw_flags_monitored(uint32_t wanted);
/* Opens or closes the gate of sequential tracing in tw_runtime_wanted. */
void tw_flags_seq(bool is_open);
/* While a process is sensitive its flags have no effect. */
void tw_flags_set_sensitive(struct tw_tracee *tracee, bool is_sensitive);

/* ---- process.c ---- */

/* Sets the result of node(): 'program.pid@host'. */
void tw_node_init(void);
/* Events of threads that are processes: spawned when first seen, exit when they end. */
void tw_process_thread_began(struct tw_tracee *tracee);
void tw_process_thread_ends(struct tw_tracee *tracee);

/* Space for one pid as a term. */
#define TW_PID_BYTES 96

static inline struct tw_tracee *tw_tracee_of(const struct tw_process *process)
{
	return (struct tw_tracee *)(uintptr_t)process;
}

/* Makes an event of a process, without the lock; at most two terms, `none` for absent ones. */
void tw_process_tell(struct tw_tracee *tracee, enum tw_event_kind kind, enum tw_want want, struct tw_term a,
		     struct tw_term b);
/* The process that this thread runs begins, or ends, to run a port: its events for sessions with running_procs. */
void tw_process_inside_port(bool is_inside);
/* Makes an event with a pid, and optionally another term. */
void tw_process_tell_pid(struct tw_tracee *tracee, enum tw_event_kind kind, uint64_t pid, struct tw_term more);
/* The initial call of a process: `entry`, or {undefined,undefined,[]} if it is not known. */
struct tw_term tw_process_entry(struct tw_arena *arena, struct tw_term entry);

/* ---- inherit.c ---- */

void tw_inherit_by_spawn(struct tw_tracee *parent, struct tw_tracee *child, bool is_linked);
void tw_inherit_by_link(struct tw_tracee *process, struct tw_tracee *other);

#endif
