/* SPDX-License-Identifier: Apache-2.0 */
/* monitor_words.c - the words that reports of monitors read, changed under the registry's lock. */
#include "session/monitor_words.h"
#include "base/clock.h"
#include "pipeline/thread/monitor.h"
#include "session/session.h"
#include "session/tracee.h"

const struct tw_monitor_kind tw_monitor_kinds[TW_MONITOR_KINDS] = {
	[TW_MONITOR_LONG_GC] = {"long_gc", 1, TW_WANTS_COLLECTIONS},
	[TW_MONITOR_LONG_SCHEDULE] = {"long_schedule", 1, TW_WANTS_PORT_SCHEDULES},
	[TW_MONITOR_LARGE_HEAP] = {"large_heap", 16384, TW_WANTS_COLLECTIONS},
	[TW_MONITOR_LONG_MESSAGE_QUEUE] = {"long_message_queue", 1, TW_WANTS_MAILBOX},
	[TW_MONITOR_BUSY_PORT] = {"busy_port", 0, TW_WANTS_BUSY},
	[TW_MONITOR_BUSY_DIST_PORT] = {"busy_dist_port", 0, TW_WANTS_BUSY},
};
_Static_assert(TW_WANTS_OF_MONITORS ==
		       (TW_WANTS_COLLECTIONS | TW_WANTS_PORT_SCHEDULES | TW_WANTS_MAILBOX | TW_WANTS_BUSY),
	       "all of the table");

bool tw_monitor_has(enum tw_monitor kind, unsigned slot)
{
	/* RELAXED monitor.wants: written under the registry's lock only. */
	return tw_load_relaxed(&tw_monitors.wants[kind]) >> slot & 1;
}

/* Recomputes what depends on all settings: the shortest long queue, and the reports wanted of run-times. */
void tw_monitors_changed(void)
{
	uint64_t least = UINT64_MAX, most = 0;
	uint32_t wanted = 0;

	for (unsigned kind = 0; kind < TW_MONITOR_KINDS; kind++) {
		/* RELAXED monitor.wants: as above. */
		if (tw_load_relaxed(&tw_monitors.wants[kind]))
			wanted |= tw_monitor_kinds[kind].wanted;
	}
	for (unsigned slot = 0; slot < TW_SESSIONS_MAX; slot++) {
		/* RELAXED monitor.limits: written under the registry's lock only. */
		uint64_t enable = tw_load_relaxed(&tw_monitors.limits[TW_MONITOR_LONG_MESSAGE_QUEUE][slot]);

		/* RELAXED monitor.limits: as above. */
		uint64_t disable = tw_load_relaxed(&tw_monitors.disable[slot]);

		if (!tw_monitor_has(TW_MONITOR_LONG_MESSAGE_QUEUE, slot))
			continue;
		least = enable < least ? enable : least;
		most = disable > most ? disable : most;
	}
	/* RELAXED monitor.limits: a report sees the change, or counts as made before it. */
	tw_store_relaxed(&tw_monitors.least_enable, least);
	/* RELAXED monitor.limits: as above. */
	tw_store_relaxed(&tw_monitors.most_disable, most);
	tw_flags_monitored(wanted);
}

/* Other threads report about a process: its own thread must check for their events if the session has flags on it. */
static void queue_monitor_changed(struct tw_tracee *tracees, unsigned slot)
{
	for (struct tw_tracee *tracee = tracees; tracee; tracee = tracee->next) {
		/* RELAXED tracee.flags: under the registry's lock. */
		uint32_t flags = tw_load_relaxed(&tracee->flags[slot]);

		if (flags)
			tw_flags_apply(tracee, slot, flags);
	}
}

void tw_monitor_clear(struct tw_tracee *tracees, enum tw_monitor kind, unsigned slot)
{
	if (!tw_monitor_has(kind, slot))
		return;
	/*
	 * PROGRESS monitor.wants: the thread that clears the bit waits for thread progress before the limits or the
	 * slot are used again.
	 */
	tw_fetch_and_seq_cst(&tw_monitors.wants[kind], ~(UINT64_C(1) << slot));
	if (kind == TW_MONITOR_LONG_MESSAGE_QUEUE)
		queue_monitor_changed(tracees, slot);
}

void tw_monitor_set(struct tw_tracee *tracees, enum tw_monitor kind, unsigned slot,
		    const struct tw_monitor_setting *setting)
{
	/* RELAXED monitor.since: published by the bit below. */
	if (!tw_load_relaxed(&tw_monitors.wants[kind])) {
		/* RELAXED monitor.since: as above. */
		tw_store_relaxed(&tw_monitors.since[kind], tw_clock_ticks());
	}
	/* RELAXED monitor.limits: no report reads them before it sees the bit. */
	tw_store_relaxed(&tw_monitors.limits[kind][slot], setting->limit);
	if (kind == TW_MONITOR_LONG_MESSAGE_QUEUE) {
		/* RELAXED monitor.limits: as above. */
		tw_store_relaxed(&tw_monitors.disable[slot], setting->disable);
	}
	/* PAIR monitor.wants: release; acquire in tw_monitor_sessions(): it sees the limits, and the session's rings. */
	tw_fetch_or_seq_cst(&tw_monitors.wants[kind], UINT64_C(1) << slot);
	if (kind == TW_MONITOR_LONG_MESSAGE_QUEUE)
		queue_monitor_changed(tracees, slot);
}

/* A new setting begins with no long queue. */
void tw_monitor_forget_long_queues(struct tw_tracee *tracees, unsigned slot)
{
	for (struct tw_tracee *tracee = tracees; tracee; tracee = tracee->next) {
		/* RELAXED monitor.long_queue: no report is in progress that would change the session's bit. */
		tw_fetch_and_relaxed(&tracee->long_queue, ~(UINT64_C(1) << slot));
	}
}

void tw_monitors_forget_locked(struct tw_tracee *tracees, unsigned slot)
{
	for (unsigned kind = 0; kind < TW_MONITOR_KINDS; kind++)
		tw_monitor_clear(tracees, (enum tw_monitor)kind, slot);
	tw_monitors_changed();
}
