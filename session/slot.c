/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slot.c - gives a session its bit when it sets something for the first time.
 *
 * Before that, hits do not know the session, so the number of sessions is not limited.
 */
#include "session/session.h"
#include "session/tracee.h"
#include "session/tracer_module.h"

/* Frames opened for an earlier session in this slot do not belong to this one.  Under the registry's lock. */
static void begin_epoch(struct tw_session *session)
{
	/* RELAXED hit.epoch: written here only. */
	uint64_t epoch = tw_load_relaxed(&tw_hit_epoch) + 1;

	/* PAIR hit.epoch: release; acquire in begin_frame() and where frames end, by threads that see a bit of this session. */
	tw_store_release(&tw_hit_sessions[session->slot].epoch, epoch);
	/* PAIR hit.epoch: release; as above. */
	tw_store_release(&tw_hit_epoch, epoch);
	/* RELAXED session.tracer_is_gone: set under the registry's lock. */
	if ((session->rs || session->module) && !tw_load_relaxed(&session->is_tracer_gone)) {
		/* PAIR hit.epoch: release; as above. */
		tw_fetch_or_seq_cst(&tw_hit_alive, UINT64_C(1) << session->slot);
	}
}

static void assign_slot(struct tw_session *session, unsigned slot)
{
	tw_registry_assign_slot(session, slot);
	tw_hit_sessions[slot].rs = session->rs;
	tw_hit_sessions[slot].module = session->module ? &session->module->hit : NULL;
	for (unsigned i = 0; i < TW_MODULE_COUNTS; i++) {
		/* RELAXED hit.module_counts: no thread has the session's bit yet. */
		tw_store_relaxed(&tw_hit_sessions[slot].module_counts[i], 0);
	}
	if (session->module) {
		/* RELAXED hit.modules: set before any tracee has the session's bit. */
		tw_fetch_or_relaxed(&tw_hit_modules, UINT64_C(1) << slot);
	}
	tw_hit_sessions[slot].session_index = (uint32_t)session->id;
	for (unsigned i = 0; i < TW_COUNT_OF(tw_hit_sessions[slot].patterns); i++) {
		/* PAIR hit.pattern: release; no thread has the session's bit yet. */
		tw_store_release(&tw_hit_sessions[slot].patterns[i], NULL);
	}
	tw_tracees_begin(session);
	begin_epoch(session);
}

int tw_session_assign_slot_locked(struct tw_session *session)
{
	if (!tw_session_is_alive(session))
		return TW_EDEAD;
	if (session->slot != TW_SESSION_NO_SLOT)
		return 0;
	for (unsigned slot = 0; slot < TW_SESSIONS_MAX; slot++) {
		if (!tw_session_at(slot)) {
			assign_slot(session, slot);
			return 0;
		}
	}
	return TW_ELIMIT;
}

int tw_session_assign_slot(struct tw_session *session)
{
	int error;

	tw_registry_lock();
	error = tw_session_assign_slot_locked(session);
	tw_registry_unlock();
	return error;
}
