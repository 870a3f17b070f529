/* SPDX-License-Identifier: Apache-2.0 */
/* trace_process.c - sets and reads the flags of processes. */
#include "pipeline/thread/thread.h"
#include "session/session.h"
#include "session/tracee.h"
#include "session/watched.h"
#include "base/sys.h"
#include "progress/progress.h"
#include "tracewheel/process.h"

/* Under the registry's lock, for a live session. */
static int change_flags(struct tw_session *session, tw_pid pid, bool how, uint32_t flags)
{
	bool is_of_processes = flags & TW_FLAG_ALL;
	struct tw_tracee *one = NULL;
	int count = 0;

	if (flags & TW_FLAG_CPU_TIMESTAMP)
		tw_flags_stamp_cpu_time(tw_tracees(), session->slot, how);
	flags &= TW_FLAG_ALL;
	/* If the tracer is gone, flags are not set, but the processes are counted as usual. */
	if (!tw_session_takes_flags(session))
		flags = 0;
	if (pid < TW_PID_NEW) {
		one = tw_tracee_find(pid);
		if (!one)
			return TW_EBADARG;
		tw_flags_change(one, session->slot, how, flags);
		return 1;
	}
	if (pid != TW_PID_EXISTING)
		session->new_flags = how ? session->new_flags | flags : session->new_flags & ~flags;
	tw_flags_new_changed();
	/* OTP counts the processes that it visits. */
	if (pid == TW_PID_NEW || !is_of_processes)
		return 0;
	for (struct tw_tracee *tracee = tw_tracees(); tracee; tracee = tracee->next) {
		tw_flags_change(tracee, session->slot, how, flags);
		count++;
	}
	return count;
}

TW_API int tw_trace_process(struct tw_session *session, tw_pid pid, bool how, uint32_t flags)
{
	/* CPU time belongs to the whole program: set for all processes or for none. */
	uint32_t allowed = pid == TW_PID_ALL ? TW_FLAG_ALL | TW_FLAG_CPU_TIMESTAMP : TW_FLAG_ALL;
	int result;

	if (!session || (flags & ~allowed))
		return TW_EBADARG;
	if ((flags & TW_FLAG_CPU_TIMESTAMP) && tw_sys_process_cpu_ns() < 0)
		return TW_EBADARG;
	if (tw_progress_is_reading())
		return TW_EDEADLK;
	tw_sessions_clear_dropped();
	/* The caller is a process as well. */
	tw_thread_join();
	tw_registry_lock();
	result = tw_session_assign_slot_locked(session);
	if (!result)
		result = change_flags(session, pid, how, flags);
	tw_registry_unlock();
	/* After return no event is made because of a removed flag. */
	if (result >= 0 && pid != TW_PID_NEW && !how && flags)
		tw_progress_wait();
	if (result >= 0 && (flags & (TW_FLAG_SET_ON_SPAWN | TW_FLAG_SET_ON_FIRST_SPAWN))) {
		tw_watched_mark_due();
		tw_watched_follow();
	}
	return result;
}

TW_API int tw_trace_process_flags(struct tw_session *session, tw_pid pid, uint32_t *flags)
{
	struct tw_tracee *tracee;
	int error = 0;

	if (!session || !flags || pid == TW_PID_ALL || pid == TW_PID_EXISTING)
		return TW_EBADARG;
	tw_registry_lock();
	tracee = pid == TW_PID_NEW ? NULL : tw_tracee_find(pid);
	if (!tw_session_is_alive(session))
		error = TW_EDEAD;
	else if (pid == TW_PID_NEW)
		*flags = session->new_flags;
	else if (!tracee)
		error = TW_EBADARG;
	else {
		/* RELAXED tracee.flags: under the registry's lock. */
		*flags = session->slot == TW_SESSION_NO_SLOT ? 0 : tw_load_relaxed(&tracee->flags[session->slot]);
	}
	tw_registry_unlock();
	return error;
}
