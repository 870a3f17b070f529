/* SPDX-License-Identifier: Apache-2.0 */
/* watched.h - slots of the allocators and of pthread_create that this library itself needs. */
#ifndef TW_SESSION_WATCHED_H
#define TW_SESSION_WATCHED_H

#include "breakpoints/breakpoints.h"

/* To be called when a setting may have changed whether native memory is counted or flags pass to new threads. */
void tw_watched_mark_due(void);
/*
 * Arms such slots while some session needs them, and restores them when none does.  Called after each change, without
 * the permit; does nothing if nothing has changed, or where the loader must not be called (then the next call does
 * it).
 */
void tw_watched_follow(void);
/* Called when a session's breakpoints are staged for clearing: stages the restoring of the slots if it was the last. */
void tw_watched_end(struct tw_permit *permit);
/* Called when objects have been loaded that may have such slots.  Under the permit. */
void tw_watched_loaded(void);

#endif
