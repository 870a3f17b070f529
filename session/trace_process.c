/* SPDX-License-Identifier: Apache-2.0 */
/* trace_process.c - sets and reads the flags of processes and ports. */
#include "pipeline/thread/thread.h"
#include "session/session.h"
#include "session/port_table.h"
#include "session/tracee.h"
#include "session/tracer_module.h"
#include "session/watched.h"
#include "base/sys.h"
#include "progress/progress.h"
#include "tracewheel/port.h"
#include "tracewheel/process.h"

#include <stdlib.h>

_Static_assert(TW_PORT_ALL == TW_PID_ALL && TW_PORT_EXISTING == TW_PID_EXISTING && TW_PORT_NEW == TW_PID_NEW,
	       "the same code serves both");

/* Is the call about this process or port? */
static bool is_target(const struct tw_tracee *tracee, bool is_of_ports, uint64_t target)
{
	if (is_of_ports)
		return tw_port_is_open(tw_port_id(tracee)) && (target >= TW_PID_NEW || target == tw_port_id(tracee));
	return !tracee->port_slot && (target >= TW_PID_NEW || target == tracee->pid_number);
}

/* Numbers of processes or ports for which a tracer module has said that it is gone. */
struct refusals {
	uint32_t *numbers;
	size_t count, capacity;
};

static bool is_refused(const struct refusals *refusals, uint32_t number)
{
	for (size_t i = 0; i < refusals->count; i++)
		if (refusals->numbers[i] == number)
			return true;
	return false;
}

/* Takes the registry's lock. Returns their number; stores as many as fit. */
static size_t note_targets(bool is_of_ports, uint64_t target, struct refusals *refusals)
{
	size_t count = 0;

	tw_registry_lock();
	for (const struct tw_tracee *tracee = tw_tracees(); tracee; tracee = tracee->next) {
		if (!is_target(tracee, is_of_ports, target))
			continue;
		if (count++ < refusals->capacity)
			refusals->numbers[refusals->count++] = tracee->pid_number;
	}
	tw_registry_unlock();
	return count;
}

/*
 * Each process or port that the call is about is asked for once, before it gets flags, and without a lock: a callback that waits
 * for another thread delays only those who change sessions.  TW_ENOMEM.
 */
static int ask_module(const struct tw_session *session, bool is_of_ports, uint64_t target, struct refusals *refusals)
{
	size_t kept = 0;

	refusals->capacity = note_targets(is_of_ports, target, refusals);
	refusals->numbers = refusals->capacity ? malloc(refusals->capacity * sizeof *refusals->numbers) : NULL;
	if (refusals->capacity && !refusals->numbers)
		return TW_ENOMEM;
	note_targets(is_of_ports, target, refusals);
	for (size_t i = 0; i < refusals->count; i++)
		if (!tw_tracer_module_is_active(session, refusals->numbers[i], is_of_ports))
			refusals->numbers[kept++] = refusals->numbers[i];
	refusals->count = kept;
	return 0;
}

static void change_one(struct tw_session *session, struct tw_tracee *tracee, bool how, uint32_t flags,
		       const struct refusals *refusals)
{
	if (tw_unlikely(is_refused(refusals, tracee->pid_number)))
		tw_flags_apply(tracee, session->slot, 0);
	else
		tw_flags_change(tracee, session->slot, how, flags);
}

/* Under the registry's lock, for a live session.  @target: a pid or a port, or one of the three above. */
static int change_flags(struct tw_session *session, bool is_of_ports, uint64_t target, bool how, uint32_t flags,
			const struct refusals *refusals)
{
	bool has_own_flags = flags & TW_FLAG_ALL;
	uint32_t *new_flags = is_of_ports ? &session->new_port_flags : &session->new_flags;
	struct tw_tracee *one = NULL;
	int count = 0;

	if (flags & TW_FLAG_CPU_TIMESTAMP)
		tw_flags_stamp_cpu_time(tw_tracees(), session->slot, how);
	flags &= TW_FLAG_ALL;
	/* If the tracer is gone, flags are not set, but the processes are counted as usual. */
	if (!tw_session_takes_flags(session))
		flags = 0;
	if (target < TW_PID_NEW) {
		one = is_of_ports ? tw_port_of(target) : tw_tracee_find(target);
		if (!one)
			return TW_EBADARG;
		change_one(session, one, how, flags, refusals);
		return 1;
	}
	if (target != TW_PID_EXISTING)
		*new_flags = how ? *new_flags | flags : *new_flags & ~flags;
	tw_flags_new_changed();
	/* OTP counts those that it visits. */
	if (target == TW_PID_NEW || !has_own_flags)
		return 0;
	for (struct tw_tracee *tracee = tw_tracees(); tracee; tracee = tracee->next) {
		if (!is_target(tracee, is_of_ports, target))
			continue;
		change_one(session, tracee, how, flags, refusals);
		count++;
	}
	return count;
}

static int trace(struct tw_session *session, bool is_of_ports, uint64_t target, bool how, uint32_t flags)
{
	/* CPU time belongs to the whole program: set for all or for none. */
	uint32_t allowed = target == TW_PID_ALL ? TW_FLAG_ALL | TW_FLAG_CPU_TIMESTAMP : TW_FLAG_ALL;
	struct refusals refusals = {0};
	int result = 0;

	if (!session || (flags & ~allowed))
		return TW_EBADARG;
	if ((flags & TW_FLAG_CPU_TIMESTAMP) && tw_sys_process_cpu_ns() < 0)
		return TW_EBADARG;
	if (tw_progress_is_reading())
		return TW_EDEADLK;
	tw_sessions_clear_dropped();
	/* The caller is a process as well. */
	tw_thread_join();
	if (session->module && how && flags && target != TW_PID_NEW)
		result = ask_module(session, is_of_ports, target, &refusals);
	if (result)
		return result;
	tw_registry_lock();
	result = tw_session_assign_slot_locked(session);
	if (!result)
		result = change_flags(session, is_of_ports, target, how, flags, &refusals);
	tw_registry_unlock();
	free(refusals.numbers);
	/* After return no event is made because of a removed flag. */
	if (result >= 0 && target != TW_PID_NEW && !how && flags)
		tw_progress_wait();
	return result;
}

TW_API int tw_trace_process(struct tw_session *session, tw_pid pid, bool how, uint32_t flags)
{
	int result = trace(session, false, pid, how, flags);

	if (result >= 0 && (flags & (TW_FLAG_SET_ON_SPAWN | TW_FLAG_SET_ON_FIRST_SPAWN))) {
		tw_watched_mark_due();
		tw_watched_follow();
	}
	return result;
}

TW_API int tw_trace_port(struct tw_session *session, tw_port port, bool how, uint32_t flags)
{
	return trace(session, true, port, how, flags);
}

/* Flags that are inspected: is the module that receives events of them still there? */
static void ask_for_status(struct tw_session *session, bool is_of_ports, uint64_t target)
{
	uint32_t *new_flags = is_of_ports ? &session->new_port_flags : &session->new_flags;
	const struct tw_tracee *tracee = NULL;
	uint32_t number = 0;
	bool has_any = false;

	tw_registry_lock();
	if (session->slot != TW_SESSION_NO_SLOT && tw_session_is_alive(session)) {
		if (target != TW_PID_NEW)
			tracee = is_of_ports ? tw_port_of(target) : tw_tracee_find(target);
		if (tracee)
			number = tracee->pid_number;
		/* RELAXED tracee.flags: under the registry's lock. */
		has_any = tracee ? tw_load_relaxed(&tracee->flags[session->slot]) : target == TW_PID_NEW && *new_flags;
	}
	tw_registry_unlock();
	if (!has_any || tw_tracer_module_is_active(session, number, is_of_ports))
		return;
	if (number) {
		/* The session may be dead by now. */
		tw_tracer_module_remove_from(session, number);
		return;
	}
	tw_registry_lock();
	*new_flags = 0;
	tw_flags_new_changed();
	tw_registry_unlock();
}

static int get_flags(struct tw_session *session, bool is_of_ports, uint64_t target, uint32_t *flags)
{
	struct tw_tracee *tracee = NULL;
	int error = 0;

	if (!session || !flags || target == TW_PID_ALL || target == TW_PID_EXISTING)
		return TW_EBADARG;
	if (session->module)
		ask_for_status(session, is_of_ports, target);
	tw_registry_lock();
	if (target != TW_PID_NEW)
		tracee = is_of_ports ? tw_port_of(target) : tw_tracee_find(target);
	if (!tw_session_is_alive(session))
		error = TW_EDEAD;
	else if (target == TW_PID_NEW)
		*flags = is_of_ports ? session->new_port_flags : session->new_flags;
	else if (!tracee)
		error = TW_EBADARG;
	else {
		/* RELAXED tracee.flags: under the registry's lock. */
		*flags = session->slot == TW_SESSION_NO_SLOT ? 0 : tw_load_relaxed(&tracee->flags[session->slot]);
	}
	tw_registry_unlock();
	return error;
}

TW_API int tw_trace_process_flags(struct tw_session *session, tw_pid pid, uint32_t *flags)
{
	return get_flags(session, false, pid, flags);
}

TW_API int tw_trace_port_flags(struct tw_session *session, tw_port port, uint32_t *flags)
{
	return get_flags(session, true, port, flags);
}
