/* SPDX-License-Identifier: Apache-2.0 */
/*
 * monitor.c - a session's monitors of the system: OTP's trace:system/3.
 *
 * Settings change one at a time, under the permit. The session's bit is cleared and thread progress awaited before
 * its limits change, so that a report in progress uses either the old limits or the new ones.
 */
#include "session/change.h"
#include "session/monitor.h"
#include "session/monitor_words.h"
#include "pipeline/thread/monitor.h"
#include "session/info.h"
#include "session/session.h"
#include "session/tracee.h"

static int read_kind(struct tw_term event)
{
	for (int kind = 0; kind < TW_MONITOR_KINDS; kind++)
		if (tw_info_is(event, tw_monitor_kinds[kind].name))
			return kind;
	return TW_EBADARG;
}

static uint64_t raised(uint64_t limit, uint64_t least)
{
	return limit < least ? least : limit;
}

static int read_value(enum tw_monitor kind, struct tw_term value, struct tw_monitor_setting *out)
{
	*out = (struct tw_monitor_setting){.is_on = true};
	if (tw_info_is(value, "false")) {
		out->is_on = false;
		return 0;
	}
	if (kind == TW_MONITOR_BUSY_PORT || kind == TW_MONITOR_BUSY_DIST_PORT)
		return tw_info_is(value, "true") ? 0 : TW_EBADARG;
	if (kind != TW_MONITOR_LONG_MESSAGE_QUEUE) {
		if (tw_term_get_uint64(value, &out->limit))
			return TW_EBADARG;
		out->limit = raised(out->limit, tw_monitor_kinds[kind].least);
		return 0;
	}
	if (tw_term_tuple_count(value) != 2 || tw_term_get_uint64(tw_term_element(value, 0), &out->disable) ||
	    tw_term_get_uint64(tw_term_element(value, 1), &out->limit) || out->disable >= out->limit)
		return TW_EBADARG;
	return 0;
}

/* Under the permit: the first half ends the old setting, the second one begins the new one. */
static int change(struct tw_session *session, enum tw_monitor kind, const struct tw_monitor_setting *setting)
{
	bool was_on;
	int error;

	tw_registry_lock();
	error = tw_session_assign_slot_locked(session);
	was_on = !error && tw_monitor_has(kind, session->slot);
	if (was_on) {
		tw_monitor_clear(tw_tracees(), kind, session->slot);
		tw_monitors_changed();
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
			tw_monitor_forget_long_queues(tw_tracees(), session->slot);
		tw_monitor_set(tw_tracees(), kind, session->slot, setting);
		tw_monitors_changed();
	}
	tw_registry_unlock();
	return error;
}

TW_API int tw_trace_system(struct tw_session *session, struct tw_term event, struct tw_term value)
{
	int kind = read_kind(event), error;
	struct tw_permit *permit;
	struct tw_monitor_setting setting;

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
	struct tw_term parts[2] = {tw_term_atom_z(tw_monitor_kinds[kind].name), limit};

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
		if (tw_session_has_slot(session) && tw_monitor_has(order[i], session->slot))
			items[count++] = item_of(arena, order[i], session->slot);
	tw_registry_unlock();
	return tw_term_list(arena, items, count, tw_term_nil());
}
