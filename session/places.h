/* SPDX-License-Identifier: Apache-2.0 */
/* places.h - which places a call selects, and what one session has set at them. */
#ifndef TW_SESSION_PLACES_H
#define TW_SESSION_PLACES_H

#include "session/session.h"

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

/* Places in a chunk of a session's settings. */
#define TW_SESSION_CHUNK_PLACES 256

/* The entry of the place with that id, if it was set before; NULL: never set. */
struct tw_session_place *tw_session_place_at(const struct tw_session *session, uint32_t id);
/* The first entry from *id on, whose id is then in *id; NULL: none. */
struct tw_session_place *tw_session_next_place(const struct tw_session *session, uint32_t *id);
/* The entry of a place that was set before; NULL: never set. */
struct tw_session_place *tw_session_find(struct tw_session *session, const struct tw_place *place);
/* The same, created if it does not exist; NULL: no memory. */
struct tw_session_place *tw_session_remember(struct tw_session *session, struct tw_place *place);
/* The actions set there, paused counters included: TW_ACTION_*. */
uint32_t tw_session_actions(struct tw_session *session, struct tw_permit *permit, const struct tw_place *place);
/* Stages the settings of one session for one place, and remembers the place.  Under the permit; the caller commits. */
int tw_session_stage(struct tw_session *session, struct tw_permit *permit, struct tw_place *place,
		     const struct tw_bp_part *part);
/*
 * Stages that calls of the place are counted and nothing else, from the commit on: one moment for all threads.  Calls that began
 * before are recorded with their ends.  With tw_session_shares_counts() the capture says since when, and has the counts by thread.
 * Errors: also those of tw_counter_share().
 */
int tw_session_stage_counted(struct tw_session *session, struct tw_permit *permit, struct tw_place *place);
/*
 * Stages that those calls of the place are recorded, with their returns, of which @longer says so, and all others counted
 * (pipeline/hit/longer.h).  For a session with tw_session_shares_counts() only, which is the one of the command.  Errors: as
 * tw_session_stage_counted().
 *
 * @longer	lends, as does its condition: as long as the process lives.
 * @slot_words	what is recorded of the arguments, as in struct tw_bp_part; none from vector registers.
 */
int tw_session_stage_longer(struct tw_session *session, struct tw_permit *permit, struct tw_place *place,
			    const struct tw_session_longer *longer, uint8_t slot_words);
/* Stages the removal of all settings of a session. */
void tw_session_stage_clear_all(struct tw_session *session, struct tw_permit *permit);

#endif
