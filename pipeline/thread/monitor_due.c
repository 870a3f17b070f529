/* SPDX-License-Identifier: Apache-2.0 */
/* monitor_due.c - the limits of all sessions, and which sessions a report exceeds. */
#include "pipeline/thread/monitor.h"

struct tw_monitors tw_monitors = {.least_enable = UINT64_MAX};

bool tw_monitor_is_due(const struct tw_tracee *tracee, const struct tw_runtime_event *event, unsigned session)
{
	bool is_queue = event->monitor == TW_MONITOR_LONG_MESSAGE_QUEUE;

	/* RELAXED monitor.limits: constant while the session has its bit. */
	if (is_queue && event->is_short)
		return event->value <= tw_load_relaxed(&tw_monitors.disable[session]);
	/* RELAXED monitor.limits: as above. */
	return event->value >= tw_load_relaxed(&tw_monitors.limits[event->monitor][session]);
}

uint64_t tw_monitor_sessions(struct tw_tracee *tracee, const struct tw_runtime_event *event)
{
	/* PAIR monitor.wants: acquire; release in tw_monitor_set().  The limits and rings of a session with a bit are seen. */
	uint64_t wants = tw_load_acquire(&tw_monitors.wants[event->monitor]), due = 0;

	for (uint64_t todo = wants; todo; todo &= todo - 1) {
		unsigned session = (unsigned)__builtin_ctzll(todo);

		due |= (uint64_t)tw_monitor_is_due(tracee, event, session) << session;
	}
	if (event->monitor != TW_MONITOR_LONG_MESSAGE_QUEUE || !due)
		return due;
	/* RELAXED monitor.long_queue: one of several reports at once changes the state and makes the event. */
	if (event->is_short)
		return due & tw_fetch_and_relaxed(&tracee->long_queue, ~due);
	/* RELAXED monitor.long_queue: as above. */
	return due & ~tw_fetch_or_relaxed(&tracee->long_queue, due);
}
