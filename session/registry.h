/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registry.h - all sessions: their lock, lists and handles.
 *
 * The lock is quiet: signal handlers that join take it.  Functions are called under it unless they are said to take it.
 */
#ifndef TW_SESSION_REGISTRY_H
#define TW_SESSION_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tw_session;

void tw_registry_lock(void);
void tw_registry_unlock(void);
void tw_registry_before_fork(void);
void tw_registry_after_fork(void);

/* The first session with a bit; follow `next`. */
struct tw_session *tw_sessions(void);
/* The first of all sessions; follow `next_of_all`. */
struct tw_session *tw_sessions_all(void);
/* The session that has a bit, alive or clearing; NULL: none. */
struct tw_session *tw_session_at(unsigned slot);
/* Has the session its bit?  A dead one has it no more: it may be another's. */
bool tw_session_has_slot(const struct tw_session *session);
/* With or without the lock. */
bool tw_session_is_alive(const struct tw_session *session);
/* Are the session and its tracer both alive? */
bool tw_session_takes_flags(const struct tw_session *session);

/* The id of the next session.  Takes the lock. */
uint64_t tw_registry_take_id(void);
/* Adds a session that is complete: from here on other threads find it, and may destroy it. */
void tw_registry_add(struct tw_session *session);
/* Gives the session a free bit. */
void tw_registry_assign_slot(struct tw_session *session, unsigned slot);
/* Removes the session from all lists and frees its bit.  Takes the lock. */
void tw_registry_remove(struct tw_session *session);

/* Takes the lock.  Gives a handle of each live session, newest first, up to capacity; returns their total number. */
size_t tw_sessions_get_alive(struct tw_session **out, size_t capacity);

#endif
