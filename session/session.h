/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.h - a session: its structure, its life, its bit.
 *
 * The other headers of this folder are named after the file that they declare.  The agent uses this one, change.h,
 * definitions.h, places.h, setting.h and native.h.
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

struct tw_session_writer;
struct tw_session_module;

/* The ids that a session has already defined; grows by doubling. */
struct tw_id_set {
	uint64_t *words;
	uint32_t bits;
};

/*
 * Called under the permit for each function declared later: does this session trace it? Used for the agent's
 * patterns; OTP: on_load.
 *
 * @program	out: the condition on its calls, for the session's life; NULL: all calls.
 */
typedef bool (*tw_session_wants_fn)(const struct tw_function *function, void *arg,
				    const struct tw_match_program **program);

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

/* Which calls of a place are recorded when they end; all others are counted. */
struct tw_session_longer {
	uint64_t least_ns;			   /* those that take so long */
	const struct tw_call_condition *condition; /* with least_ns 0: those that fulfil it; NULL: all, as they begin */
	const char *text;			   /* the condition as the user wrote it */
	bool has_children, is_child;		   /* with the calls in them; and those of this place decide nothing */
};

/* A place that this session has ever set, and its counters, which live as long as the session. */
struct tw_session_place {
	struct tw_place *place;			/* NULL: never set */
	struct tw_counter *counter;		/* NULL: not counted */
	const struct tw_session_longer *longer; /* which calls are recorded, and not counted; NULL: all are counted */
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

	struct tw_rs *rs;		  /* the rings of its events; NULL: none */
	struct tw_session_writer *writer; /* NULL: the rings are drained elsewhere */
	struct tw_queue *queue;		  /* for a tracer in this program; NULL: another kind */
	struct tw_session_module *module; /* for a tracer module; NULL: another kind */
	/* In a forked child: the memory is shared, and threads of the parent may hold its locks. */
	bool is_queue_of_parent;
	bool is_tracer_fixed;		 /* the program has set tracer_pid */
	_Atomic bool is_tracer_gone;	 /* no process has or gets flags; set under the registry's lock, once */
	_Atomic uint32_t delivery_users; /* calls that use the ring set; see delivered.c */
	char *tracer_path;		 /* path of the capture; NULL: not known */

	/* Under the registry's lock. */
	uint32_t new_flags, new_port_flags;
	uint32_t tracer_pid;	  /* a process without events in this session; 0: none */
	uint32_t last_tracer_pid; /* the same, kept after it is gone: info(meta) shows it until a call has noticed */

	/* Under `definitions`. */
	struct tw_quiet_lock definitions;
	struct tw_id_set modules, functions, places;

	/* Under the permit. */
	/* By place id, in chunks: memory and walks cost what is set, not what others have set.  NULL: nothing of a chunk is set. */
	struct tw_session_place **set_chunks;
	uint32_t chunk_count;
	uint32_t touched; /* the first touched one, as next_touched */
	tw_session_wants_fn wants;
	void *wants_arg;
	uint32_t wanted_actions; /* for these: TW_ACTION_RETURN, TW_ACTION_EXCEPTION; 0: calls only */
	struct tw_session_on_load on_load, on_load_before;
	bool is_on_load_touched; /* touched by the change in progress: on_load_before has the old state */
};

/* Does another process read the session's counters?  So it is with that of a recording from outside. */
static inline bool tw_session_shares_counts(const struct tw_session *session)
{
	return session->rs && session->rs == tw_hit_host.pinned_rs;
}

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

/* ---- trace_function.c ---- */

/*
 * Traces the declared functions that `wants` accepts, present and future ones.
 *
 * @arg		borrows for the session's life.
 * @actions	beside calls: TW_ACTION_RETURN, TW_ACTION_EXCEPTION.
 */
int tw_session_trace_wanted(struct tw_session *session, tw_session_wants_fn wants, void *arg, uint32_t actions);

#endif
