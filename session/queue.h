/* SPDX-License-Identifier: Apache-2.0 */
/* queue.h - the queue of a session. */
#ifndef TW_SESSION_QUEUE_H
#define TW_SESSION_QUEUE_H

#include "session/session.h"

struct tw_queue;

/* Makes the rings of a queue; session->rs and session->queue are set.  Errors as tw_rs_create(). */
int tw_queue_start(const struct tw_tracer *tracer, struct tw_session *session);
/* Called when the last handle is put. */
void tw_queue_destroy(struct tw_queue *queue);

/* Requests a mark; returns its number. */
int tw_queue_ask(struct tw_session *session, tw_pid pid, uint32_t *number);
/* Sleeps until the mark is received or the time is over; was it received? */
bool tw_queue_wait_answer(struct tw_queue *queue, uint32_t number, uint64_t timeout_ns);

#endif
