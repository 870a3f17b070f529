/* SPDX-License-Identifier: Apache-2.0 */
/* monitor.h - monitors of the system, for this folder. */
#ifndef TW_SESSION_MONITOR_H
#define TW_SESSION_MONITOR_H

#include "tracewheel/term.h"

struct tw_session;

/* The list of info(system, all); none if the arena is full. Takes the registry's lock. */
struct tw_term tw_monitors_of(const struct tw_session *session, struct tw_arena *arena);

#endif
