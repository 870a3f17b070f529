/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.h - declarations shared by the files of this room, and used by the agent.
 *
 *	alive --destroy, or the last put--> clearing --cleared--> dead
 *
 * Only the winner of alive -> clearing clears.  The structure lives until the last handle is put and
 * the session is dead; the registry holds one reference of its own until then.
 *
 * Locks, in the order in which they may be taken: the permit; the registry's; a session's definitions.
 * All but the permit are quiet locks: signal handlers that join take them.
 */
#ifndef TW_SESSION_SESSION_H
#define TW_SESSION_SESSION_H

#include "base/error.h"
#include "base/export.h"
#include "base/quiet_lock.h"
#include "breakpoints/breakpoints.h"
#include "pipeline/hit/count.h"
#include "pipeline/format/definitions.h"
#include "pipeline/hit/hit.h"
#include "session/registry.h"
#include "tracewheel/session.h"

/* The slot of a session that has set nothing yet. */
#define TW_SESSION_NO_SLOT UINT32_MAX

enum tw_session_state { TW_SESSION_ALIVE, TW_SESSION_CLEARING, TW_SESSION_DEAD };

struct tw_writer;

/* The ids that a session has already defined; grows by doubling. */
struct tw_id_set {
	uint64_t *words;
	uint32_t bits;
};

/*
 * Called under the permit for each function declared later: does this session trace it? Used for the agent's
 * patterns; OTP: on_load.
 */
typedef bool (*tw_session_wants_fn)(const struct tw_function *function, void *arg);

/* What the agent traces of the functions that its patterns name. */
struct tw_session_wish {
	const struct tw_match_program *program; /* NULL: all calls */
	uint32_t actions;			/* TW_ACTION_RETURN, TW_ACTION_EXCEPTION; 0: calls only */
};

/* Counts by process: hits count into `now`, which is kept while counting is paused.  NULL: not counted. */
struct tw_session_counts {
	struct tw_counts *now;
	/* During a change or transaction that has replaced `now`: the earlier value. */
	struct tw_counts *before;
	bool is_new;
};

/* Settings for functions declared later: TW_ACTION_*; 0: none. */
struct tw_session_on_load {
	uint32_t actions;
	const struct tw_match_program *program, *meta_program; /* borrow */
};

/* A place that this session has ever set, and its counters, which live as long as the session. */
struct tw_session_place {
	struct tw_place *place;	    /* NULL: never set */
	struct tw_counter *counter; /* NULL: not counted */
	struct tw_session_counts times, memories;
	uint8_t paused; /* TW_ACTION_COUNT, _TIME, _MEMORY: paused counters, whose values are kept */
	/* The state before the change or transaction in progress, restored when that is aborted. */
	bool is_touched;
	uint8_t was_paused;
	uint32_t next_touched; /* 1 + a place id; 0: the last */
	uint64_t taken;	       /* value read from the counter */
};

struct tw_session {
	/* Counted handles, plus one while the session is not dead. */
	_Atomic uint32_t references;
	_Atomic uint32_t handles;
	_Atomic uint32_t state;	 /* enum tw_session_state */
	uint32_t slot;		 /* its bit, or TW_SESSION_NO_SLOT; set under the registry's lock, once */
	uint64_t id;		 /* the weak id; never reused */
	struct tw_session *next; /* next session with a bit */
	struct tw_session *next_of_all;
	char name[256];

	struct tw_rs *rs;	  /* the rings of its events; NULL: none */
	struct tw_writer *writer; /* NULL: the rings are drained elsewhere */
	struct tw_queue *queue;	  /* for a tracer in this program; NULL: another kind */
	/* In a forked child: the memory is shared, and threads of the parent may hold its locks. */
	bool is_queue_of_parent;
	bool is_tracer_fixed;		 /* the program has set tracer_pid */
	_Atomic bool is_tracer_gone;	 /* no process has or gets flags; set under the registry's lock, once */
	_Atomic uint32_t delivery_users; /* calls that use the ring set; see delivered.c */
	char *tracer_path;		 /* path of the capture; NULL: not known */

	/* Under the registry's lock. */
	uint32_t new_flags;
	uint32_t tracer_pid;	  /* a process without events in this session; 0: none */
	uint32_t last_tracer_pid; /* the same, kept after it is gone: info(meta) shows it until a call has noticed */

	/* Under `definitions`. */
	struct tw_quiet_lock definitions;
	struct tw_id_set modules, functions, places;

	/* Under the permit. */
	struct tw_session_place *set_places; /* by place id */
	uint32_t set_room;
	uint32_t touched; /* the first touched one, as next_touched */
	tw_session_wants_fn wants;
	void *wants_arg;
	struct tw_session_wish wish; /* what is traced of them */
	struct tw_session_on_load on_load, on_load_before;
	bool is_on_load_touched; /* touched by the change in progress: on_load_before has the old state */
};

/* ---- session.c ---- */

/* Makes a session over a ring set that is already attached (or NULL); for the agent. */
int tw_session_make(const char *name, struct tw_rs *rs, struct tw_session **out);
/*
 * In a forked child that is traced separately: the session continues with another image of the ring set, where
 * everything that it has set is defined anew.  Then the gate opens.
 */
int tw_session_continue_in_child(struct tw_session *session);
/*
 * Clears a session that the caller has brought from alive to clearing.  Takes and drops the permit, and waits: not to
 * be called in a read section or while holding the permit.
 */
void tw_session_clear(struct tw_session *session);
/* Brings a session without handles to clearing, and clears it.  Called by its writer. */
void tw_session_clear_if_dropped(struct tw_session *session);
/* Clears all sessions whose last handle was put. */
int tw_sessions_clear_dropped(void);
/* Registers once the callbacks that create and describe processes; called by every possible first entry. */
void tw_session_init(void);

/* ---- slot.c ---- */

/*
 * Gives a session its bit, before anything is set in it.  TW_EDEAD, TW_ELIMIT.
 * _locked: under the registry's lock.
 */
int tw_session_assign_slot(struct tw_session *session);
int tw_session_assign_slot_locked(struct tw_session *session);

/* ---- definitions.c ---- */

int tw_define(struct tw_session *session, uint32_t type, const void *payload, size_t bytes);
/* Defines the module, so that a reader can resolve addresses in it. */
int tw_define_module(struct tw_session *session, const struct tw_module *module);
/* Defines place, function and modules, as far as not yet defined. */
int tw_define_place(struct tw_session *session, struct tw_permit *permit, const struct tw_place *place);
/* The same for all places that the session has set: for an image without definitions. */
int tw_define_places(struct tw_session *session, struct tw_permit *permit);
int tw_define_tracee(struct tw_session *session, const struct tw_tracee *tracee);
int tw_define_image(struct tw_session *session);
void tw_definitions_fini(struct tw_session *session);

/* ---- places.c ---- */

/* Matches only functions whose arity is not known. */
#define TW_ARITY_UNKNOWN (TW_ARITY_ANY + 1)

/* The functions that a call selects.  Strings are borrowed; NULL: any. */
struct tw_wanted {
	const char *module, *function;
	int arity;	/* or TW_ARITY_ANY, TW_ARITY_UNKNOWN */
	bool is_global; /* only functions that are exported, or called through slots */
	bool is_local;	/* only functions with a place that every call passes */
};

/* Accepts OTP's three wildcards: only "any" may follow an "any".  TW_EBADARG. */
int tw_wanted_read(const char *module, const char *function, int arity, struct tw_wanted *out);

typedef int (*tw_place_fn)(struct tw_session *session, struct tw_permit *permit, struct tw_place *place,
			   const void *arg);
/*
 * Calls fn for all places of every function that matches; returns the number of functions, or fn's error.  Loaded
 * objects are among the modules if they have been looked up.
 */
int tw_for_each_place(struct tw_session *session, struct tw_permit *permit, const struct tw_wanted *wanted,
		      tw_place_fn fn, const void *arg);

/* The entry of a place that was set before; NULL: never set. */
struct tw_session_place *tw_session_find(struct tw_session *session, const struct tw_place *place);
/* The same, created if it does not exist; NULL: no memory.  Other entries may move. */
struct tw_session_place *tw_session_remember(struct tw_session *session, struct tw_place *place);
/* The actions set there, paused counters included: TW_ACTION_*. */
uint32_t tw_session_actions(struct tw_session *session, struct tw_permit *permit, const struct tw_place *place);
/* Stages the settings of one session for one place, and remembers the place.  Under the permit; the caller commits. */
int tw_session_stage(struct tw_session *session, struct tw_permit *permit, struct tw_place *place,
		     const struct tw_bp_part *part);
/* Stages the removal of all settings of a session. */
void tw_session_stage_clear_all(struct tw_session *session, struct tw_permit *permit);

/* ---- setting.c ---- */

/* Puts a match program into a part for this place, as a range test if it is one; NULL: none. */
void tw_session_use_program(struct tw_bp_part *part, const struct tw_place *place,
			    const struct tw_match_program *program);
/* ---- trace_function.c ---- */

/*
 * Traces the declared functions that `wants` accepts, present and future ones.
 *
 * @arg, @wish->program	borrows for the session's life.
 */
int tw_session_trace_wanted(struct tw_session *session, tw_session_wants_fn wants, void *arg,
			    const struct tw_session_wish *wish);
/* ---- module.c ---- */

struct tw_sym_object;
/* The module that a loaded object is: found or added.  TW_ENOMEM. */
int tw_native_module(struct tw_permit *permit, const struct tw_sym_object *object, struct tw_module **out);

/* ---- native.c ---- */

/* Makes the functions of loaded objects of that name known, unless this was tried since the last load.  Calls the loader. */
void tw_native_look_for(const char *module);

/* ---- watched.c: slots of the allocators and of pthread_create ---- */

/* To be called when a setting may have changed whether native memory is counted or flags pass to new threads. */
void tw_watched_look_again(void);
/*
 * Arms such slots while some session needs them, and restores them when none does.  Called after each change, without
 * the permit; does nothing if nothing has changed, or where the loader must not be called (then the next call does
 * it).
 */
void tw_watched_follow(void);
/* Called when a session's breakpoints are staged for clearing: stages the restoring of the slots if it was the last. */
void tw_watched_end(struct tw_permit *permit);
/* Called when objects have been loaded that may have such slots.  Under the permit. */
void tw_watched_loaded(void);

/* ---- offer.c ---- */

/* Stages the settings of on_load and of patterns on a new place. */
int tw_sessions_offer(struct tw_permit *permit, struct tw_place *place);
/* Stages the settings of one session's patterns on a declared function; @arg is not used. */
int tw_session_stage_pattern(struct tw_session *session, struct tw_permit *permit, struct tw_place *place,
			     const void *arg);

/* ---- change.c ---- */

/* Seizes the permit, or joins this thread's transaction. */
int tw_change_begin(struct tw_permit **permit);
/* tw_session_assign_slot() with the permit; asks the registry once per transaction. */
int tw_change_assign_slot(struct tw_session *session);
/* Commits and drops the permit, or leaves both to the transaction. */
int tw_change_end(struct tw_permit *permit, int result);
/* Ends a read-only operation: nothing is committed. */
void tw_change_look_end(struct tw_permit *permit);
/* To be called before a change writes to these: aborting restores their present state. */
void tw_change_touch(struct tw_session *session, struct tw_session_place *set);
void tw_change_touch_on_load(struct tw_session *session);

/* As tw_trace_begin(), _commit() and _abort(), without clearing dropped sessions and without following watched slots. */
int tw_transaction_begin(void);
int tw_transaction_commit(void);
int tw_transaction_abort(void);

/* In a forked child: any change in progress, of this thread or of another, is aborted. */
void tw_changes_after_fork_in_child(void);

/* ---- tracee.c ---- */

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
/* In a forked child: keeps the one remaining thread, with a tracee of its own. */
void tw_tracees_after_fork_in_child(void);

/* ---- send_receive.c ---- */

/*
 * A pattern for messages as info/3 shows it: true, false or the match specification, copied into @arena.
 * @want is TW_WANT_SEND or TW_WANT_RECEIVE.  TW_EDEAD, TW_ENOMEM.
 */
int tw_session_pattern(struct tw_session *session, enum tw_want want, struct tw_arena *arena, struct tw_term *out);
/* Frees the patterns of a session that ends, after the last runtime event could use it. */
void tw_session_forget_patterns(struct tw_session *session);

/* ---- process.c ---- */

/* Sets the result of node(): 'program.pid@host'. */
void tw_node_init(void);
/* Events of threads that are processes: spawned when first seen, exit when they end. */
void tw_process_thread_began(struct tw_tracee *tracee);
void tw_process_thread_ends(struct tw_tracee *tracee);

/* ---- effects.c: actions of match specifications ---- */

/* {trace,Off,On} and similar: 1 changed, 0 not, -1 to raise.  @who none: the executing process. */
int tw_effect_trace(unsigned session, struct tw_term who, struct tw_term off, struct tw_term on);
/* {silent,B}. */
void tw_effect_silence(unsigned session, bool is_silent);

/* ---- tracer.c ---- */

/* Starts the writer of a capture and attaches the ring set that it owns. */
int tw_writer_start(const struct tw_tracer *tracer, struct tw_session *session);
/* Makes the writer drain everything and close the capture; waits unless called by the writer itself. */
void tw_writer_stop(struct tw_writer *writer);

#endif
