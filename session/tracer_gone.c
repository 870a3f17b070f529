/* SPDX-License-Identifier: Apache-2.0 */
/* tracer_gone.c - the end of a session's events when its tracer exits or its reader is gone. */
#include "session/tracer_gone.h"
#include "session/monitor_words.h"
#include "session/seq/seq.h"
#include "session/tracee.h"

static _Atomic bool are_processes;

void tw_tracers_are_processes(void)
{
	/* RELAXED queue.any: the tracer of a queue exits after the queue was made, both under the registry's lock. */
	tw_store_relaxed(&are_processes, true);
}

void tw_tracer_lost_locked(struct tw_session *session)
{
	/* PAIR session.tracer_gone: release; acquire in is_gone() and is_consumer_gone(). */
	if (tw_exchange_acq_rel(&session->is_tracer_gone, true))
		return;
	session->new_flags = session->new_port_flags = 0;
	tw_flags_new_changed();
	session->tracer_pid = 0;
	if (tw_session_has_slot(session)) {
		/* PROGRESS hit.alive: no wait is needed: events made meanwhile are dropped and counted. */
		tw_fetch_and_seq_cst(&tw_hit_alive, ~(UINT64_C(1) << session->slot));
		tw_tracees_clear_flags(session->slot);
		tw_monitors_forget_locked(tw_tracees(), session->slot);
		tw_seq_forget_locked(session->slot);
	}
	/* Threads that wait for space give up at their next poll; the memory stays until no thread uses it. */
	if (session->rs)
		tw_rs_close(session->rs);
	/* In a forked child the rings are the parent's. */
	if (session->queue && session->rs)
		tw_rs_wake(session->rs);
}

void tw_tracer_exit_locked(uint32_t pid)
{
	/* RELAXED queue.any: as above. */
	if (!tw_load_relaxed(&are_processes))
		return;
	for (struct tw_session *session = tw_sessions_all(); session; session = session->next_of_all)
		if (session->tracer_pid == pid && session->queue)
			tw_tracer_lost_locked(session);
}
