/* SPDX-License-Identifier: Apache-2.0 */
/* tracer_gone.h - the end of tracers. */
#ifndef TW_SESSION_TRACER_GONE_H
#define TW_SESSION_TRACER_GONE_H

#include "session/session.h"

/* Called when a session has a queue, so that a process may be its tracer: exits are checked from now on. */
void tw_tracers_are_processes(void);
/* Called under the registry's lock when the tracer of a session is gone: removes all flags and ends all waits. */
void tw_tracer_lost_locked(struct tw_session *session);
/* Called under the registry's lock when a process, possibly a tracer, exits. */
void tw_tracer_exit_locked(uint32_t pid);

#endif
