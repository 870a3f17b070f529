/* SPDX-License-Identifier: Apache-2.0 */
/* tracer_gone.h - tracers that go away. */
#ifndef TW_SESSION_TRACER_GONE_H
#define TW_SESSION_TRACER_GONE_H

#include "session/session.h"

/* A session has a queue, so that a process may be its tracer: exits are looked at from now on. */
void tw_tracers_are_processes(void);
/* The tracer of a session is gone, under the registry's lock: no flags any more, nobody waits. */
void tw_tracer_lost_locked(struct tw_session *session);
/* A process exits, under the registry's lock: it may have been a tracer. */
void tw_tracer_exit_locked(uint32_t pid);

#endif
