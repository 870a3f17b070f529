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
#include "pipeline/definitions.h"
#include "pipeline/hit.h"
#include "tracewheel/session.h"

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

/* A place that this session has set once, and its counter, which lives as long as the session. */
struct tw_session_place {
	struct tw_place *place; /* NULL: never set */
	_Atomic uint64_t *counter; /* NULL: not counted */
	bool is_paused;
	/* Of the change or transaction under way: how it was before, to put back when that is forgotten. */
	bool is_touched;
	bool was_paused;
	uint32_t next_touched; /* 1 + a place id; 0: the last */
	uint64_t taken;	       /* from the counter */
};

struct tw_session {
	/* Counted handles, plus one while the session is not dead. */
	_Atomic uint32_t references;
	_Atomic uint32_t handles;
	_Atomic uint32_t state; /* enum tw_session_state */
	uint32_t slot;		/* its bit */
	uint64_t id;		/* the weak one; never reused */
	struct tw_session *next;
	char name[256];

	struct tw_rs *rs; /* where its events go; NULL: nowhere */
	uint32_t image;
	struct tw_writer *writer; /* NULL: somebody else drains the rings */

	/* Under the registry's lock. */
	uint32_t new_flags;

	/* Under `definitions`. */
	struct tw_quiet_lock definitions;
	struct tw_id_set modules, functions, places;

	/* Under the permit. */
	struct tw_session_place *set_places; /* by place id */
	uint32_t set_room;
	uint32_t touched; /* the first, as next_touched */
	tw_session_wants_fn wants;
	void *wants_arg;
	const struct tw_match_program *wants_program;
};

/* ---- session.c ---- */

/* Makes a session over a ring set that is attached already (or NULL); the agent's way. */
int tw_session_make(const char *name, struct tw_rs *rs, uint32_t image, struct tw_session **out);
/*
 * In a forked child that is traced on its own: the session goes on with another image of the ring set,
 * where everything that it has set is defined anew.  Then the gate opens.
 */
int tw_session_continue_in_child(struct tw_session *session, uint32_t image);
/*
 * Clears a session that this call brought from alive to clearing; takes and drops the permit, and waits:
 * not in a read section, and not by who holds the permit.
 */
void tw_session_clear(struct tw_session *session);
/* Brings a session that nobody has a handle of to clearing, and clears it.  By its writer. */
void tw_session_clear_if_dropped(struct tw_session *session);
/* The session of a bit, alive or clearing; NULL: none.  Under the registry's lock. */
struct tw_session *tw_session_at(unsigned slot);
bool tw_session_is_alive(const struct tw_session *session);
void tw_registry_lock(void);
void tw_registry_unlock(void);
/* The first of all sessions; follow `next`.  Under the registry's lock. */
struct tw_session *tw_sessions(void);
/* Clears those whose last handle was put. */
int tw_sessions_clear_dropped(void);
/* Says once how processes come to be and are described; called by whatever comes first. */
void tw_session_init(void);

/* ---- definitions.c ---- */

int tw_define(struct tw_session *session, uint32_t type, const void *payload, size_t bytes);
/* Defines place, function and modules, as far as it was not done. */
int tw_define_place(struct tw_session *session, struct tw_permit *permit, const struct tw_place *place);
int tw_define_tracee(struct tw_session *session, const struct tw_tracee *tracee);
int tw_define_image(struct tw_session *session);
void tw_definitions_fini(struct tw_session *session);

/* ---- trace_function.c ---- */

/* Stages what one session wants of one place, and remembers it.  Under the permit; the caller commits. */
int tw_session_stage(struct tw_session *session, struct tw_permit *permit, struct tw_place *place,
		     const struct tw_bp_part *part);
/* Puts a match program into a part for this place, as a range test where it is one. */
void tw_session_use_program(struct tw_bp_part *part, const struct tw_place *place,
			    const struct tw_match_program *program);
/*
 * Traces the declared functions that `wants` says yes to, those of today and those to come (on_load).
 *
 * @arg, @program	borrows for the session's life; @program may be NULL.
 */
int tw_session_trace_wanted(struct tw_session *session, tw_session_wants_fn wants, void *arg,
			    const struct tw_match_program *program);
/* Stages one declared place for a session that wants it. */
int tw_session_stage_wanted(struct tw_session *session, struct tw_permit *permit, struct tw_place *place);
/* Stages the removal of everything that a session has set. */
void tw_session_stage_clear_all(struct tw_session *session, struct tw_permit *permit);
/* Seizes the permit, or takes part in this thread's transaction. */
int tw_change_begin(struct tw_permit **permit);
/* Commits and drops, or leaves both to the transaction. */
int tw_change_end(struct tw_permit *permit, int result);

/* In a forked child: whatever change was under way, of this thread or of another, is forgotten. */
void tw_changes_after_fork_in_child(void);

/* ---- tracee.c ---- */

struct tw_tracee *tw_tracee_of_thread(struct tw_thread *thread, int thread_id);
void tw_tracee_describe(struct tw_tracee *tracee, unsigned slot);
void tw_tracee_exit(struct tw_tracee *tracee);
/* Takes a session's flags from all tracees. */
void tw_tracees_forget(unsigned slot);
/* In a forked child: one thread is left, with a tracee of its own. */
void tw_tracees_after_fork_in_child(void);

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
