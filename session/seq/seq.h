/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seq.h - sequential tracing: tokens and clocks of processes, and the system tracer.
 *
 *	send		curr := curr + 1; the token carries {prev,curr}; From is the sender
 *	receive		the token is the message's; curr := max(curr, tcurr); prev := tcurr
 *
 * seq.c has the moves and the public calls, token.c a token as terms and by component, tracer.c the system tracer and the epoch.
 */
#ifndef TW_SESSION_SEQ_H
#define TW_SESSION_SEQ_H

#include "pipeline/hit/seq.h"
#include "session/session.h"
#include "session/tracee.h"
#include "tracewheel/seq.h"

static inline struct tw_seq_words *tw_seq_words_of(struct tw_seq_token *token)
{
	return (struct tw_seq_words *)token->words;
}

/* Counts of what could not be followed: the fields of struct tw_seq_stats. */
enum tw_seq_count {
	TW_SEQ_OVERFLOWED,
	TW_SEQ_DAMAGED,
	TW_SEQ_FOREIGN,
	TW_SEQ_FORGOTTEN,
	TW_SEQ_REFUSED_DAMAGED,
	TW_SEQ_REFUSED_VERSION,
	TW_SEQ_REFUSED_LIMIT,
	TW_SEQ_COUNTS
};
void tw_seq_count(enum tw_seq_count what);
/* A token from outside that cannot be taken, by its error. */
void tw_seq_count_refused(int error);

/* ---- seq.c: by the thread that runs the process ---- */

/* The state of this epoch. */
struct tw_seq_state *tw_seq_state_of(struct tw_tracee *tracee);
/* Has it a token?  Changes nothing; also in a hit. */
bool tw_seq_has_token(const struct tw_tracee *tracee);
/* Gives the process a token of its own unless it has one.  Takes the registry's lock if it is the first; also in a hit. */
struct tw_seq_state *tw_seq_begin(struct tw_tracee *tracee);
/* Is it a token of this process and of now?  Counts those that are wrong. */
bool tw_seq_is_good(const struct tw_seq_words *token);
/* Spawn of a child that no thread runs yet: its token, and the events of the request and the reply. */
void tw_seq_spawn(struct tw_tracee *parent, struct tw_tracee *child, struct tw_term entry, bool is_linked);
/* The process that the calling thread runs; NULL: none. */
struct tw_tracee *tw_seq_self(void);

/* ---- token.c: the token of a process as a term, by component; also in a hit ---- */

struct tw_term tw_seq_term_of(struct tw_arena *arena, const struct tw_tracee *tracee);
/* @old: none, if not asked for.  TW_EBADARG and others as tw_seq_set_component(). */
int tw_seq_set_of(struct tw_arena *arena, struct tw_tracee *tracee, struct tw_term component, struct tw_term value,
		  struct tw_term *old);

/* ---- tracer.c ---- */

void tw_seq_init(void);
/* The epoch in which tokens are made from now on, with the gate of runtime.h open.  Takes the registry's lock if it is not; also in a hit. */
uint32_t tw_seq_open(void);
/* A thread that is a process gets a token: those that it makes are to inherit it, from the next tw_watched_follow() on. */
void tw_seq_thread_has_token(void);
/* May any have one?  Under the registry's lock. */
bool tw_seq_threads_have_tokens(void);
/* Adds a note to the session's capture, if it is the system tracer: how many tokens were dropped since the last one. */
void tw_seq_tell(struct tw_session *session);
/* The session is no system tracer any more.  Under the registry's lock. */
void tw_seq_forget_locked(unsigned slot);
void tw_seq_after_fork_in_child(void);

#endif
