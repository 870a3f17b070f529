/* SPDX-License-Identifier: Apache-2.0 */
/* queue.h - the queue of a session, and tracers that go away. */
#ifndef TW_SESSION_QUEUE_H
#define TW_SESSION_QUEUE_H

#include "session/session.h"

struct tw_queue;

/* Makes the rings of a queue; session->rs and session->queue are set.  Errors as tw_rs_create(). */
int tw_queue_start(const struct tw_tracer *tracer, struct tw_session *session);
/* No event is made any more: who receives need not wait. */
void tw_queue_wake(struct tw_queue *queue);
/* With the last handle. */
void tw_queue_destroy(struct tw_queue *queue);
/* In a forked child: the rings are the parent's. */
void tw_queue_after_fork_in_child(struct tw_session *session);

/* Asks for a mark; its number. */
int tw_queue_ask(struct tw_session *session, tw_pid pid, uint32_t *number);
/* Sleeps until the mark was received, or the time is over; was it? */
bool tw_queue_wait_answer(struct tw_queue *queue, uint32_t number, uint64_t timeout_ns);

/* The tracer of a session is gone, under the registry's lock: no flags any more, nobody waits. */
void tw_tracer_lost_locked(struct tw_session *session);
/* A process exits, under the registry's lock: it may have been a tracer. */
void tw_tracer_exit_locked(uint32_t pid);

/* Was any queue ever made? */
bool tw_queue_is_any(void);

#endif
