/* SPDX-License-Identifier: Apache-2.0 */
/*
 * monitor_words.h - limits and bits of monitors, as reports in hits and run-times read them.
 *
 * Threads  under the registry's lock.  @tracees is the list of all: a queue monitor concerns those with flags of the session.
 */
#ifndef TW_SESSION_MONITOR_WORDS_H
#define TW_SESSION_MONITOR_WORDS_H

#include "pipeline/thread/monitor.h"

#include <stdbool.h>
#include <stdint.h>

struct tw_tracee;

struct tw_monitor_setting {
	bool is_on;
	uint64_t limit;	  /* of queues: Enable */
	uint64_t disable; /* queues only */
};

struct tw_monitor_kind {
	const char *name;
	uint64_t least;	 /* lower limits are raised to it */
	uint32_t wanted; /* TW_WANTS_* of run-times */
};
/* By enum tw_monitor. */
extern const struct tw_monitor_kind tw_monitor_kinds[TW_MONITOR_KINDS];

bool tw_monitor_has(enum tw_monitor kind, unsigned slot);
/* After a change: recomputes the shortest long queue, and the reports wanted of run-times. */
void tw_monitors_changed(void);
/* Clears the session's bit; the caller waits for thread progress before the limits change. */
void tw_monitor_clear(struct tw_tracee *tracees, enum tw_monitor kind, unsigned slot);
void tw_monitor_set(struct tw_tracee *tracees, enum tw_monitor kind, unsigned slot,
		    const struct tw_monitor_setting *setting);
/* A new setting begins with no long queue. */
void tw_monitor_forget_long_queues(struct tw_tracee *tracees, unsigned slot);
/* Ends all monitors of the session in that slot; the caller waits for thread progress. */
void tw_monitors_forget_locked(struct tw_tracee *tracees, unsigned slot);

#endif
