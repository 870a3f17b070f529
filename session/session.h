/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.h - what the files of this room share, and what the agent uses of it.
 *
 *	alive --destroy, or the last put--> clearing --cleared--> dead
 *
 * Only the winner of alive -> clearing clears.  The structure lives until the last handle is put and
 * the session is dead; the registry holds one reference of its own until then.
 *
 * Locks, in the order in which they may be taken: the permit; the registry's; a session's definitions.
 * All but the permit are quiet: signal handlers that join need them.
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

/* In place of a bit: it has set nothing so far. */
#define TW_SESSION_UNSEATED UINT32_MAX

enum tw_session_state { TW_SESSION_ALIVE, TW_SESSION_CLEARING, TW_SESSION_DEAD };

struct tw_writer;

/* Which ids a session's definitions hold already: grows by doubling. */
struct tw_id_set {
	uint64_t *words;
	uint32_t bits;
};

/*
 * Asked under the permit for each function that is declared later: does this session want it?
 * The agent's patterns; OTP: on_load.
 */
typedef bool (*tw_session_wants_fn)(const struct tw_function *function, void *arg);

/* What the agent wants of the functions that its patterns name. */
struct tw_session_wish {
	const struct tw_match_program *program; /* NULL: all calls */
	uint32_t actions;			/* TW_ACTION_RETURN, TW_ACTION_EXCEPTION; 0: calls only */
};

/* What is counted by process: hits count into `now`; it is kept while they pause.  NULL: not counted. */
struct tw_session_counts {
	struct tw_counts *now;
	/* Of the change or transaction under way: `now` is new, and this was there before. */
	struct tw_counts *before;
	bool is_new;
};

/* What is wanted of functions that are declared later: TW_ACTION_*; 0: nothing. */
struct tw_session_on_load {
	uint32_t actions;
	const struct tw_match_program *program, *meta_program; /* borrow */
};

/* A place that this session has set once, and its counters, which live as long as the session. */
struct tw_session_place {
	struct tw_place *place; /* NULL: never set */
	struct tw_counter *counter; /* NULL: not counted */
	struct tw_session_counts times, memories;
	uint8_t paused; /* TW_ACTION_COUNT, _TIME, _MEMORY: counted before, and kept */
	/* Of the change or transaction under way: how it was before, to put back when that is forgotten. */
	bool is_touched;
	uint8_t was_paused;
	uint32_t next_touched; /* 1 + a place id; 0: the last */
	uint64_t taken;	       /* from the counter */
};

struct tw_session {
	/* Counted handles, plus one while the session is not dead. */
	_Atomic uint32_t references;
	_Atomic uint32_t handles;
	_Atomic uint32_t state; /* enum tw_session_state */
	uint32_t slot;		/* its bit, or TW_SESSION_UNSEATED; set under the registry's lock, once */
	uint64_t id;		/* the weak one; never reused */
	struct tw_session *next; /* of those with a bit */
	struct tw_session *next_of_all;
	char name[256];

	struct tw_rs *rs; /* where its events go; NULL: nowhere */
	struct tw_writer *writer; /* NULL: somebody else drains the rings */
	struct tw_queue *queue;	  /* of a tracer in this program; NULL: another kind */
	bool is_queue_of_parent;  /* in a forked child: the memory is shared, its locks may be held by threads that are not here */
	bool is_tracer_fixed;	  /* tracer_pid is what the program said */
	_Atomic bool is_tracer_gone;	   /* no process has flags, or gets any; set under the registry's lock, once */
	_Atomic uint32_t delivery_users; /* calls that look at the ring set; see delivered.c */
	char *tracer_path;	  /* of the capture; NULL: not known */

	/* Under the registry's lock. */
	uint32_t new_flags;
	uint32_t tracer_pid; /* a process that makes no events here; 0: none */
	uint32_t last_tracer_pid; /* the same, also once it is gone: what info(meta) tells until a call has noticed */

	/* Under `definitions`. */
	struct tw_quiet_lock definitions;
	struct tw_id_set modules, functions, places;

	/* Under the permit. */
	struct tw_session_place *set_places; /* by place id */
	uint32_t set_room;
	uint32_t touched; /* the first, as next_touched */
	tw_session_wants_fn wants;
	void *wants_arg;
	struct tw_session_wish wish; /* what it wants of them */
	struct tw_session_on_load on_load, on_load_before;
	bool is_on_load_touched; /* by the change under way: on_load_before is how it was */
};

/* ---- session.c ---- */

/* Makes a session over a ring set that is attached already (or NULL); the agent's way. */
int tw_session_make(const char *name, struct tw_rs *rs, struct tw_session **out);
/*
 * In a forked child that is traced on its own: the session goes on with another image of the ring set,
 * where everything that it has set is defined anew.  Then the gate opens.
 */
int tw_session_continue_in_child(struct tw_session *session);
/*
 * Clears a session that this call brought from alive to clearing; takes and drops the permit, and waits:
 * not in a read section, and not by who holds the permit.
 */
void tw_session_clear(struct tw_session *session);
/* Brings a session that nobody has a handle of to clearing, and clears it.  By its writer. */
void tw_session_clear_if_dropped(struct tw_session *session);
/* Clears those whose last handle was put. */
int tw_sessions_clear_dropped(void);
/* Says once how processes come to be and are described; called by whatever comes first. */
void tw_session_init(void);

/* ---- seat.c ---- */

/*
 * Gives a session its bit, before anything of it is set.  TW_EDEAD, TW_ELIMIT.
 * _locked: under the registry's lock.
 */
int tw_session_seat(struct tw_session *session);
int tw_session_seat_locked(struct tw_session *session);

/* ---- definitions.c ---- */

int tw_define(struct tw_session *session, uint32_t type, const void *payload, size_t bytes);
/* So that a reader knows what lies there. */
int tw_define_module(struct tw_session *session, const struct tw_module *module);
/* Defines place, function and modules, as far as it was not done. */
int tw_define_place(struct tw_session *session, struct tw_permit *permit, const struct tw_place *place);
/* The same for all that the session has set: for an image that has defined nothing yet. */
int tw_define_places(struct tw_session *session, struct tw_permit *permit);
int tw_define_tracee(struct tw_session *session, const struct tw_tracee *tracee);
int tw_define_image(struct tw_session *session);
void tw_definitions_fini(struct tw_session *session);

/* ---- places.c ---- */

/* Those whose arity is not known, and no others. */
#define TW_ARITY_UNKNOWN (TW_ARITY_ANY + 1)

/* Which functions a call means.  Strings are borrowed; NULL: any. */
struct tw_wanted {
	const char *module, *function;
	int arity; /* or TW_ARITY_ANY, TW_ARITY_UNKNOWN */
	bool is_global; /* only those that are exported, or called through slots */
	bool is_local;	/* only those with a place that every call passes */
};

/* OTP's three wildcards: nothing but any may follow an any.  TW_EBADARG. */
int tw_wanted_read(const char *module, const char *function, int arity, struct tw_wanted *out);

typedef int (*tw_place_fn)(struct tw_session *session, struct tw_permit *permit, struct tw_place *place,
			   const void *arg);
/*
 * Calls fn for all places of every function that matches; the number of functions, or fn's error.  Objects that are
 * loaded are among the modules as far as they were looked for.
 */
int tw_for_each_place(struct tw_session *session, struct tw_permit *permit, const struct tw_wanted *wanted,
		      tw_place_fn fn, const void *arg);

/* The entry of a place that was set before; NULL: never. */
struct tw_session_place *tw_session_find(struct tw_session *session, const struct tw_place *place);
/* The same, made if it is not there; NULL: no memory.  Others may move. */
struct tw_session_place *tw_session_remember(struct tw_session *session, struct tw_place *place);
/* What it has set there, counters that pause included: TW_ACTION_*. */
uint32_t tw_session_actions(struct tw_session *session, struct tw_permit *permit, const struct tw_place *place);
/* Stages what one session wants of one place, and remembers it.  Under the permit; the caller commits. */
int tw_session_stage(struct tw_session *session, struct tw_permit *permit, struct tw_place *place,
		     const struct tw_bp_part *part);
/* Stages the removal of everything that a session has set. */
void tw_session_stage_clear_all(struct tw_session *session, struct tw_permit *permit);

/* ---- setting.c ---- */

/* Puts a match program into a part for this place, as a range test where it is one; NULL: none. */
void tw_session_use_program(struct tw_bp_part *part, const struct tw_place *place,
			    const struct tw_match_program *program);
/* ---- trace_function.c ---- */

/*
 * Traces the declared functions that `wants` says yes to, those of today and those to come.
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

/* Makes the functions of loaded objects of that name known, unless it was just tried.  Calls the loader. */
void tw_native_look_for(const char *module);

/* ---- watched.c: slots of malloc and its brothers, and of pthread_create ---- */

/* What was set or staged may change who counts memory natively, or whose flags pass to threads. */
void tw_watched_look_again(void);
/*
 * Arms such slots while somebody wants them, and takes them back when nobody does.  After each change, without the
 * permit; does nothing where there is nothing to do, or where the loader may not be asked (then the next one does it).
 */
void tw_watched_follow(void);
/* A session's breakpoints are staged to be cleared: stages that the slots are taken back, if it was the last. */
void tw_watched_end(struct tw_permit *permit);
/* Objects have come that may have such slots.  Under the permit. */
void tw_watched_loaded(void);

/* ---- offer.c ---- */

/* Stages what sessions asked for by on_load or by patterns, on a place that came. */
int tw_sessions_offer(struct tw_permit *permit, struct tw_place *place);
/* Stages what one session's patterns want of a declared function; @arg is not used. */
int tw_session_stage_pattern(struct tw_session *session, struct tw_permit *permit, struct tw_place *place, const void *arg);

/* ---- change.c ---- */

/* Seizes the permit, or takes part in this thread's transaction. */
int tw_change_begin(struct tw_permit **permit);
/* tw_session_seat() with the permit; asks the registry once a transaction. */
int tw_change_seat(struct tw_session *session);
/* Commits and drops, or leaves both to the transaction. */
int tw_change_end(struct tw_permit *permit, int result);
/* Ends what only looked: nothing is committed. */
void tw_change_look_end(struct tw_permit *permit);
/* Before a change writes to these: how they are now comes back if it is forgotten. */
void tw_change_touch(struct tw_session *session, struct tw_session_place *set);
void tw_change_touch_on_load(struct tw_session *session);

/* As tw_trace_begin() and its brothers; those that were dropped are not cleared, nor watched slots followed. */
int tw_transaction_begin(void);
int tw_transaction_commit(void);
int tw_transaction_abort(void);

/* In a forked child: whatever change was under way, of this thread or of another, is forgotten. */
void tw_changes_after_fork_in_child(void);

/* ---- tracee.c ---- */

void tw_tracee_describe(struct tw_tracee *tracee, unsigned slot);
/* Is there a process of that number? */
bool tw_tracee_is_there(uint64_t pid);
/* The session has got its slot: says to all tracees whose tracer they are.  Under the registry's lock. */
void tw_tracees_begin(const struct tw_session *session);
/* Does a thread pass on flags that new ones would not get by themselves?  Under the registry's lock. */
bool tw_tracees_pass_on(void);
/* Takes a session's flags from all tracees. */
void tw_tracees_forget(unsigned slot);
/* The flags only; under the registry's lock. */
void tw_tracees_clear_flags(unsigned slot);
/* Is there, or was there, such a process?  Takes the registry's lock. */
bool tw_tracee_has_been(uint64_t pid);
/* ---- tracee_thread.c ---- */

/* This thread joins to be a scheduler: it is no process from the start. */
extern __thread bool tw_thread_becomes_scheduler;
struct tw_tracee *tw_tracee_of_thread(struct tw_thread *thread, int thread_id);
/* The process exits: takes the registry's lock. */
void tw_tracee_exit(struct tw_tracee *tracee);
/*
 * A thread that is a process is about to make another one: makes the process that this will be, which has what it
 * inherits.  @words: the arguments of pthread_create, of which the last two are replaced.  Any register.
 */
void tw_tracee_makes_thread(uint64_t *words);
/* In a forked child: one thread is left, with a tracee of its own. */
void tw_tracees_after_fork_in_child(void);

/* ---- send_receive.c ---- */

/*
 * A pattern for messages as info/3 tells it: true, false or the match specification, copied into @arena.
 * @want is TW_WANT_SEND or TW_WANT_RECEIVE.  TW_EDEAD, TW_ENOMEM.
 */
int tw_session_pattern(struct tw_session *session, enum tw_want want, struct tw_arena *arena, struct tw_term *out);
/* The session ends, and no notice knows it any more. */
void tw_session_forget_patterns(struct tw_session *session);

/* ---- process.c ---- */

/* 'program.pid@host', for node(). */
void tw_node_init(void);
/* Threads that are processes: spawned when they are seen first, exit when they leave. */
void tw_process_thread_began(struct tw_tracee *tracee);
void tw_process_thread_ends(struct tw_tracee *tracee);

/* ---- effects.c: what match specifications do ---- */

/* {trace,Off,On} and its brothers: 1 changed, 0 not, -1 to raise.  @who none: the executing process. */
int tw_effect_trace(unsigned session, struct tw_term who, struct tw_term off, struct tw_term on);
/* {silent,B}. */
void tw_effect_silence(unsigned session, bool is_silent);

/* ---- tracer.c ---- */

/* Starts the writer of a capture; *rs is the ring set that it owns, attached. */
int tw_writer_start(const struct tw_tracer *tracer, struct tw_session *session);
/* Has it drain everything and close the capture; waits unless called by the writer itself. */
void tw_writer_stop(struct tw_writer *writer);

#endif
