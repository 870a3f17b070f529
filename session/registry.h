/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registry.h - the sessions that there are: their lock, their lists, handles of them.
 *
 * The lock is quiet: signal handlers that join need it.  Functions that do not say that they take it are called under it.
 */
#ifndef TW_SESSION_REGISTRY_H
#define TW_SESSION_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>

struct tw_session;

void tw_registry_lock(void);
void tw_registry_unlock(void);

/* The first of the sessions that have a bit; follow `next`. */
struct tw_session *tw_sessions(void);
/* The first of all; follow `next_of_all`. */
struct tw_session *tw_sessions_all(void);
/* The session of a bit, alive or clearing; NULL: none. */
struct tw_session *tw_session_at(unsigned slot);
/* With or without the lock. */
bool tw_session_is_alive(const struct tw_session *session);
/* Is it alive, and its tracer as well? */
bool tw_session_takes_flags(const struct tw_session *session);

/* Takes the lock: a session more, without a bit; its id. */
void tw_registry_add(struct tw_session *session);
/* Gives it a bit that no other has. */
void tw_registry_seat(struct tw_session *session, unsigned slot);
/* Takes the lock: it is in no list any more, and its bit is free. */
void tw_registry_remove(struct tw_session *session);

/* Takes the lock.  Gives a handle of each session that is alive, newest first, up to room; returns how many there are. */
size_t tw_sessions_get_alive(struct tw_session **out, size_t room);

#endif
