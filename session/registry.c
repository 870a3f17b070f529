/* SPDX-License-Identifier: Apache-2.0 */
/* registry.c - see registry.h. */
#include "session/registry.h"
#include "base/assert.h"
#include "session/session.h"
#include "session/tracer_module.h"

static struct tw_quiet_lock registry = TW_QUIET_LOCK_INIT;
static struct tw_session *sessions;  /* all that are not dead */
static struct tw_session *with_slot; /* those of them with a bit */
static struct tw_session *by_slot[TW_SESSIONS_MAX];
static uint64_t next_id = 1;

void tw_registry_lock(void)
{
	tw_quiet_lock(&registry);
}

void tw_registry_unlock(void)
{
	tw_quiet_unlock(&registry);
}

void tw_registry_before_fork(void)
{
	tw_quiet_lock_before_fork(&registry);
}

void tw_registry_after_fork(void)
{
	tw_quiet_unlock_after_fork(&registry);
}

struct tw_session *tw_sessions(void)
{
	return with_slot;
}

struct tw_session *tw_sessions_all(void)
{
	return sessions;
}

struct tw_session *tw_session_at(unsigned slot)
{
	return by_slot[slot];
}

bool tw_session_has_slot(const struct tw_session *session)
{
	return session->slot != TW_SESSION_NO_SLOT && by_slot[session->slot] == session;
}

bool tw_session_is_alive(const struct tw_session *session)
{
	/* PAIR session.state: acquire; release in win(), by the thread that clears it. */
	return tw_load_acquire(&session->state) == TW_SESSION_ALIVE;
}

bool tw_session_takes_flags(const struct tw_session *session)
{
	/* RELAXED session.tracer_is_gone: set under the registry's lock. */
	return tw_session_is_alive(session) && !tw_load_relaxed(&session->is_tracer_gone);
}

/* ---- coming and going ---- */

uint64_t tw_registry_take_id(void)
{
	uint64_t id;

	tw_registry_lock();
	id = next_id++;
	tw_registry_unlock();
	return id;
}

void tw_registry_add(struct tw_session *session)
{
	session->next_of_all = sessions;
	sessions = session;
}

void tw_registry_assign_slot(struct tw_session *session, unsigned slot)
{
	/* Hits know a session by this bit: two sessions would get each other's events. */
	TW_ASSERT(slot < TW_SESSIONS_MAX && !by_slot[slot]);
	session->slot = slot;
	session->next = with_slot;
	with_slot = session;
	by_slot[slot] = session;
}

/* Keeps the module's counts of a session that gives up its slot. */
static void keep_counts(struct tw_session *session)
{
	for (unsigned i = 0; session->module && i < TW_MODULE_COUNTS; i++) {
		/* RELAXED hit.module_counts: numbers for people; no hit adds to them any more. */
		session->module->counts[i] = tw_load_relaxed(&tw_hit_sessions[session->slot].module_counts[i]);
	}
}

void tw_registry_remove(struct tw_session *session)
{
	tw_registry_lock();
	for (struct tw_session **p = &sessions; *p; p = &(*p)->next_of_all) {
		if (*p == session) {
			*p = session->next_of_all;
			break;
		}
	}
	for (struct tw_session **p = &with_slot; *p; p = &(*p)->next) {
		if (*p == session) {
			*p = session->next;
			break;
		}
	}
	if (session->slot != TW_SESSION_NO_SLOT) {
		keep_counts(session);
		by_slot[session->slot] = NULL;
		/* No hit reads it any more, but a forked child visits all slots. */
		tw_hit_sessions[session->slot].rs = NULL;
		tw_hit_sessions[session->slot].module = NULL;
		/* RELAXED hit.modules: no hit knows the session any more. */
		tw_fetch_and_relaxed(&tw_hit_modules, ~(UINT64_C(1) << session->slot));
	}
	tw_registry_unlock();
}

/* ---- handles ---- */

TW_API struct tw_session *tw_session_get(struct tw_session *session)
{
	/* RELAXED session.count: the caller has a handle, so neither count can be 0. */
	tw_fetch_add_relaxed(&session->handles, 1);
	/* RELAXED session.count: as above. */
	tw_fetch_add_relaxed(&session->references, 1);
	return session;
}

/* Adds a handle, unless the last one is gone already. */
static bool try_get(struct tw_session *session)
{
	/* RELAXED session.count: the compare-and-swap decides. */
	uint32_t handles = tw_load_relaxed(&session->handles);

	while (handles) {
		/* PAIR session.handles: acquire; a session whose last handle was put is never revived. */
		if (tw_cas_acq_rel(&session->handles, &handles, handles + 1)) {
			/* RELAXED session.count: not 0, the registry holds one. */
			tw_fetch_add_relaxed(&session->references, 1);
			return true;
		}
	}
	return false;
}

TW_API int tw_session_lock(tw_session_weak weak, struct tw_session **out)
{
	int error = TW_EDEAD;

	tw_registry_lock();
	for (struct tw_session *session = sessions; session; session = session->next_of_all) {
		if (session->id != weak)
			continue;
		if (tw_session_is_alive(session) && try_get(session)) {
			*out = session;
			error = 0;
		}
		break;
	}
	tw_registry_unlock();
	return error;
}

size_t tw_sessions_get_alive(struct tw_session **out, size_t capacity)
{
	size_t count = 0;

	tw_registry_lock();
	for (struct tw_session *session = sessions; session; session = session->next_of_all) {
		if (!tw_session_is_alive(session) || (count < capacity && !try_get(session)))
			continue;
		if (count < capacity)
			out[count] = session;
		count++;
	}
	tw_registry_unlock();
	return count;
}
