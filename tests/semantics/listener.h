/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listener.h - a tracer module that keeps the messages of a session, so that scenarios can be played with it in place of
 * a queue.
 *
 * Its state is {Tracer, Number}: the process that would be the tracer of the queue, and which listener it is.  It answers
 * as OTP's own module does: nothing of the tracer itself, and `remove` once the tracer is dead.
 */
#ifndef TW_TESTS_SEMANTICS_LISTENER_H
#define TW_TESTS_SEMANTICS_LISTENER_H

#include <tracewheel/tracewheel.h>

#include <stdbool.h>
#include <stddef.h>

struct listener;

/* A session whose tracer is a listener for that process. */
int listener_open(const char *name, tw_pid tracer, bool is_dead, struct tw_session **session, struct listener **out);
/* The process is dead: every listener for it answers `remove` from now on. */
void listener_tracer_died(tw_pid tracer);
/* The messages since the last call, copied; returns how many. */
size_t listener_take(struct listener *listener, struct tw_arena *arena, struct tw_term *out, size_t capacity);
/* After its session is destroyed. */
void listener_close(struct listener *listener);

#endif
