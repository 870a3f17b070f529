/* SPDX-License-Identifier: Apache-2.0 */
/*
 * monitor.c - a session's monitors of the system: OTP's trace:system/3.
 *
 * Settings change one at a time, under the permit. The session's bit is cleared and thread progress awaited before
 * its limits change, so that a report in progress uses either the old limits or the new ones.
 */
#include "session/change.h"
#include "session/monitor.h"
#include "base/clock.h"
#include "pipeline/thread/monitor.h"
#include "session/info.h"
#include "session/session.h"
#include "session/tracee.h"

struct setting {
	bool is_on;
	uint64_t limit;	  /* of queues: Enable */
	uint64_t disable; /* queues only */
};

static const struct {
	const char *name;
	uint64_t least;	 /* lower limits are raised to it */
	uint32_t wanted; /* TW_WANTS_* of run-times */
} kinds[TW_MONITOR_KINDS] = {
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

/* ---- the words that reports read; under the registry's lock ---- */

static bool has_bit(enum tw_monitor kind, unsigned slot)
{
	/* RELAXED monitor.wants: written under the registry's lock only. */
	return tw_load_relaxed(&tw_monitors.wants[kind]) >> slot & 1;
}

/* Recomputes what depends on all settings: the shortest long queue, and the reports wanted of run-times. */
static void settings_changed(void)
{
	uint64_t least = UINT64_MAX;
	uint32_t wanted = 0;

	for (unsigned kind = 0; kind < TW_MONITOR_KINDS; kind++) {
		/* RELAXED monitor.wants: as above. */
		if (tw_load_relaxed(&tw_monitors.wants[kind]))
			wanted |= kinds[kind].wanted;
	}
	for (unsigned slot = 0; slot < TW_SESSIONS_MAX; slot++) {
		/* RELAXED monitor.limits: written under the registry's lock only. */
		uint64_t enable = tw_load_relaxed(&tw_monitors.limits[TW_MONITOR_LONG_MESSAGE_QUEUE][slot]);

		if (has_bit(TW_MONITOR_LONG_MESSAGE_QUEUE, slot) && enable < least)
			least = enable;
	}
	/* RELAXED monitor.limits: a report sees the change, or counts as made before it. */
	tw_store_relaxed(&tw_monitors.least_enable, least);
	tw_flags_monitored(wanted);
}

/* Other threads report about a process: its own thread must check for their events if the session has flags on it. */
static void queue_monitor_changed(unsigned slot)
{
	for (struct tw_tracee *tracee = tw_tracees(); tracee; tracee = tracee->next) {
		/* RELAXED tracee.flags: under the registry's lock. */
		uint32_t flags = tw_load_relaxed(&tracee->flags[slot]);

		if (flags)
			tw_flags_apply(tracee, slot, flags);
	}
}

static void clear_bit(enum tw_monitor kind, unsigned slot)
{
	if (!has_bit(kind, slot))
		return;
	/*
	 * PROGRESS monitor.wants: the thread that clears the bit waits for thread progress before the limits or the
	 * slot are used again.
	 */
	tw_fetch_and_seq_cst(&tw_monitors.wants[kind], ~(UINT64_C(1) << slot));
	if (kind == TW_MONITOR_LONG_MESSAGE_QUEUE)
		queue_monitor_changed(slot);
}

static void set_bit(enum tw_monitor kind, unsigned slot, const struct setting *setting)
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
		queue_monitor_changed(slot);
}

/* A new setting begins with no long queue. */
static void forget_long_queues(unsigned slot)
{
	for (struct tw_tracee *tracee = tw_tracees(); tracee; tracee = tracee->next) {
		/* RELAXED monitor.long_queue: no report is in progress that would change the session's bit. */
		tw_fetch_and_relaxed(&tracee->long_queue, ~(UINT64_C(1) << slot));
	}
}

void tw_monitors_forget_locked(unsigned slot)
{
	for (unsigned kind = 0; kind < TW_MONITOR_KINDS; kind++)
		clear_bit((enum tw_monitor)kind, slot);
	settings_changed();
}

/* ---- settings ---- */

static int read_kind(struct tw_term event)
{
	for (int kind = 0; kind < TW_MONITOR_KINDS; kind++)
		if (tw_info_is(event, kinds[kind].name))
			return kind;
	return TW_EBADARG;
}

static uint64_t raised(uint64_t limit, uint64_t least)
{
	return limit < least ? least : limit;
}

static int read_value(enum tw_monitor kind, struct tw_term value, struct setting *out)
{
	*out = (struct setting){.is_on = true};
	if (tw_info_is(value, "false")) {
		out->is_on = false;
		return 0;
	}
	if (kind == TW_MONITOR_BUSY_PORT || kind == TW_MONITOR_BUSY_DIST_PORT)
		return tw_info_is(value, "true") ? 0 : TW_EBADARG;
	if (kind != TW_MONITOR_LONG_MESSAGE_QUEUE) {
		if (tw_term_get_uint64(value, &out->limit))
			return TW_EBADARG;
		out->limit = raised(out->limit, kinds[kind].least);
		return 0;
	}
	if (tw_term_tuple_count(value) != 2 || tw_term_get_uint64(tw_term_element(value, 0), &out->disable) ||
	    tw_term_get_uint64(tw_term_element(value, 1), &out->limit) || out->disable >= out->limit)
		return TW_EBADARG;
	return 0;
}

/* Under the permit: the first half ends the old setting, the second one begins the new one. */
static int change(struct tw_session *session, enum tw_monitor kind, const struct setting *setting)
{
	bool was_on;
	int error;

	tw_registry_lock();
	error = tw_session_assign_slot_locked(session);
	was_on = !error && has_bit(kind, session->slot);
	if (was_on) {
		clear_bit(kind, session->slot);
		settings_changed();
	}
	tw_registry_unlock();
	if (error)
		return error;
	if (was_on)
		tw_progress_wait();
	if (!setting->is_on)
		return 0;
	tw_registry_lock();
	if (!tw_session_is_alive(session))
		error = TW_EDEAD;
	else if (tw_session_takes_flags(session)) {
		if (kind == TW_MONITOR_LONG_MESSAGE_QUEUE)
			forget_long_queues(session->slot);
		set_bit(kind, session->slot, setting);
		settings_changed();
	}
	tw_registry_unlock();
	return error;
}

TW_API int tw_trace_system(struct tw_session *session, struct tw_term event, struct tw_term value)
{
	int kind = read_kind(event), error;
	struct tw_permit *permit;
	struct setting setting;

	if (!session)
		return TW_EBADARG;
	if (tw_progress_is_reading() || tw_hit_is_under_way())
		return TW_EDEADLK;
	if (!tw_session_is_alive(session))
		return TW_EDEAD;
	if (!session->queue || session->is_queue_of_parent || kind < 0 ||
	    read_value((enum tw_monitor)kind, value, &setting))
		return TW_EBADARG;
	tw_sessions_clear_dropped();
	error = tw_change_begin(&permit);
	if (error)
		return error;
	error = change(session, (enum tw_monitor)kind, &setting);
	tw_change_end_read(permit);
	return error;
}

/* ---- info(system) ---- */

static struct tw_term item_of(struct tw_arena *arena, enum tw_monitor kind, unsigned slot)
{
	/* RELAXED monitor.limits: under the registry's lock. */
	struct tw_term limit = tw_term_unsigned(arena, tw_load_relaxed(&tw_monitors.limits[kind][slot]));
	struct tw_term parts[2] = {tw_term_atom_z(kinds[kind].name), limit};

	if (kind == TW_MONITOR_BUSY_PORT || kind == TW_MONITOR_BUSY_DIST_PORT)
		return parts[0];
	if (kind == TW_MONITOR_LONG_MESSAGE_QUEUE) {
		/* RELAXED monitor.limits: under the registry's lock. */
		struct tw_term disable = tw_term_unsigned(arena, tw_load_relaxed(&tw_monitors.disable[slot]));

		parts[1] = tw_term_tuple(arena, (struct tw_term[]){disable, limit}, 2);
	}
	return tw_term_tuple(arena, parts, 2);
}

struct tw_term tw_monitors_of(const struct tw_session *session, struct tw_arena *arena)
{
	/* OTP's order. */
	static const enum tw_monitor order[TW_MONITOR_KINDS] = {TW_MONITOR_BUSY_DIST_PORT,
								TW_MONITOR_BUSY_PORT,
								TW_MONITOR_LARGE_HEAP,
								TW_MONITOR_LONG_SCHEDULE,
								TW_MONITOR_LONG_GC,
								TW_MONITOR_LONG_MESSAGE_QUEUE};
	struct tw_term items[TW_MONITOR_KINDS];
	size_t count = 0;

	tw_registry_lock();
	for (unsigned i = 0; i < TW_MONITOR_KINDS; i++)
		if (session->slot != TW_SESSION_NO_SLOT && has_bit(order[i], session->slot))
			items[count++] = item_of(arena, order[i], session->slot);
	tw_registry_unlock();
	return tw_term_list(arena, items, count, tw_term_nil());
}
