/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.c - the life of sessions: create, put, clear.
 *
 * put never waits: putting the last handle only marks the session (handles == 0).  The next change, the session's
 * writer, or tw_progress() clears it.
 */
#include "pipeline/thread/thread.h"
#include "session/definitions.h"
#include "session/places.h"
#include "session/queue.h"
#include "session/registry.h"
#include "session/send_receive.h"
#include "session/seq/seq.h"
#include "session/tracee.h"
#include "session/tracer_gone.h"
#include "session/watched.h"
#include "session/writer.h"
#include "session/tracer_module.h"
#include "progress/progress.h"

#include <stdlib.h>
#include <string.h>

static _Atomic bool has_dropped; /* since the last check */

/* ---- making ---- */

/* For a session that cannot get a slot any more. */
static bool has_slot(struct tw_session *session)
{
	bool is_it;

	tw_registry_lock();
	is_it = session->slot != TW_SESSION_NO_SLOT;
	tw_registry_unlock();
	return is_it;
}

static void free_session(struct tw_session *session)
{
	struct tw_session_place *set;

	tw_definitions_fini(session);
	for (uint32_t id = 0; (set = tw_session_next_place(session, &id)); id++) {
		tw_counter_destroy(set->counter);
		tw_counts_destroy(set->times.now);
		tw_counts_destroy(set->memories.now);
	}
	for (uint32_t i = 0; i < session->chunk_count; i++)
		free(session->set_chunks[i]);
	free(session->set_chunks);
	tw_queue_destroy(session->queue);
	tw_tracer_module_destroy(session->module);
	free(session->tracer_path);
	free(session);
}

/* Message events need no breakpoint, but they need the gate, which opens when the permit is first seized. */
static void open_gate(void)
{
	struct tw_permit *permit;

	/* RELAXED bp.active: 0 only at the start of the program, or in a forked child, which this does not change. */
	if (!tw_load_relaxed(&tw_bp_gate.active) && !tw_permit_seize(&permit))
		tw_permit_drop(permit);
}

static int make(const char *name, struct tw_session **out)
{
	struct tw_session *session;
	size_t bytes = name ? strlen(name) : sizeof session->name;

	/* Session info shows the name as an atom. */
	if (bytes >= sizeof session->name || tw_term_is_none(tw_term_atom(name, bytes)))
		return TW_EBADARG;
	tw_session_init();
	open_gate();
	session = calloc(1, sizeof *session);
	if (!session)
		return TW_ENOMEM;
	memcpy(session->name, name, bytes);
	/* Its writer may look before the session is in the lists. */
	session->slot = TW_SESSION_NO_SLOT;
	session->id = tw_registry_take_id();
	/* RELAXED session.count: no other thread has the session yet. */
	tw_store_relaxed(&session->references, 2);
	/* RELAXED session.count: as above. */
	tw_store_relaxed(&session->handles, 1);
	*out = session;
	return 0;
}

int tw_session_make(const char *name, struct tw_rs *rs, struct tw_session **out)
{
	struct tw_session *session;
	int error = make(name, &session);

	if (error)
		return error;
	session->rs = rs;
	if (rs)
		error = tw_define_image(session);
	if (!error) {
		tw_registry_lock();
		/* The owner of foreign rings may need the session's bit. */
		if (rs)
			error = tw_session_assign_slot_locked(session);
		if (!error)
			tw_registry_add(session);
		tw_registry_unlock();
	}
	if (error) {
		free_session(session);
		return error;
	}
	*out = session;
	return 0;
}

int tw_session_continue_in_child(struct tw_session *session)
{
	struct tw_permit *permit;
	int error;

	error = tw_define_image(session);
	if (!error)
		error = tw_permit_seize(&permit);
	if (error)
		return error;
	error = tw_definitions_continue(session, permit);
	if (!error && tw_session_shares_counts(session))
		error = tw_counters_continue_in_child(session->rs);
	if (!error)
		tw_bp_gate_open();
	tw_permit_drop(permit);
	return error;
}

static bool is_tracer_sound(const struct tw_tracer *tracer)
{
	switch (tracer->kind) {
	case TW_TRACER_NONE:
	case TW_TRACER_QUEUE: return true;
	case TW_TRACER_STREAM: return tracer->stream_fd >= 0;
	case TW_TRACER_CAPTURE: return tracer->capture_path;
	case TW_TRACER_MODULE: return tracer->module || tracer->module_path;
	default: return false;
	}
}

static int start_tracer(const struct tw_tracer *tracer, struct tw_session *session)
{
	if (tracer->kind == TW_TRACER_QUEUE)
		return tw_queue_start(tracer, session);
	if (tracer->kind == TW_TRACER_STREAM)
		return tw_session_writer_start(tracer, session);
	if (tracer->kind == TW_TRACER_MODULE)
		return tw_tracer_module_start(tracer, session);
	session->tracer_path = strdup(tracer->capture_path);
	return session->tracer_path ? tw_session_writer_start(tracer, session) : TW_ENOMEM;
}

/* A tracer that does not exist is gone from the beginning. */
static void publish(struct tw_session *session)
{
	tw_registry_lock();
	tw_registry_add(session);
	if (session->is_tracer_fixed && !tw_tracee_find(session->tracer_pid))
		tw_tracer_lost_locked(session);
	tw_registry_unlock();
}

TW_API int tw_session_create(const char *name, const struct tw_tracer *tracer, struct tw_session **out)
{
	struct tw_session *session;
	int error;

	if (!out)
		return TW_EBADARG;
	if (tracer && !is_tracer_sound(tracer))
		return TW_EBADARG;
	if (tw_progress_is_reading())
		return TW_EDEADLK;
	tw_sessions_clear_dropped();
	if (!tracer || tracer->kind == TW_TRACER_NONE)
		return tw_session_make(name, NULL, out);
	error = make(name, &session);
	if (error)
		return error;
	error = start_tracer(tracer, session);
	if (error)
		goto free_session;
	error = session->rs ? tw_define_image(session) : 0;
	if (error)
		goto stop_writer;
	publish(session);
	*out = session;
	return 0;
stop_writer:
	if (session->writer)
		tw_session_writer_stop(session->writer);
free_session:
	free_session(session);
	return error;
}

/* ---- handles ---- */

static void drop_reference(struct tw_session *session)
{
	/*
	 * PAIR session.references: acquire and release; release in drop_reference() of every other thread, acquire in
	 * drop_reference() of the last.  A thread's uses of the session are over; the last one frees it after all uses.
	 */
	if (tw_fetch_sub_acq_rel(&session->references, 1) == 1)
		free_session(session);
}

TW_API void tw_session_put(struct tw_session *session)
{
	if (!session)
		return;
	/* PAIR session.handles: release; acquire in tw_session_clear_if_dropped().  Uses of the handle are over. */
	if (tw_fetch_sub_acq_rel(&session->handles, 1) == 1 && tw_session_is_alive(session)) {
		/* PAIR session.dropped: release; acquire in tw_sessions_clear_dropped(): it finds handles at 0. */
		tw_store_release(&has_dropped, true);
	}
	drop_reference(session);
}

TW_API tw_session_weak tw_session_weak_of(const struct tw_session *session)
{
	return session->id;
}

TW_API const char *tw_session_name(const struct tw_session *session)
{
	return session->name;
}

/* ---- clearing ---- */

static bool win(struct tw_session *session)
{
	uint32_t alive = TW_SESSION_ALIVE;

	/* PAIR session.state: acquire and release; acquire in tw_session_is_alive(). The thread that succeeds clears. */
	return tw_cas_acq_rel(&session->state, &alive, TW_SESSION_CLEARING);
}

/* Returns when no call of tw_delivered() or its wait uses the ring set any more. */
static void wait_for_delivery_users(struct tw_session *session)
{
	/*
	 * PAIR session.users: acquire and release, with enter() and leave() of delivered.c.  A change that changes nothing: a load
	 * may come before the change of the state, and miss a user that has not seen it.
	 */
	while (tw_fetch_add_acq_rel(&session->delivery_users, 0))
		tw_sys_sleep(100000);
}

/*
 * 1 breakpoints off, by one switch	2 flags off, for all and for new processes
 * 3 wait until no hit knows the session	4 rings ended, waiters woken	5 writer stopped, capture complete
 * 6 bit freed
 */
void tw_session_clear(struct tw_session *session)
{
	struct tw_permit *permit;
	int cancel_state, error;
	bool has_bit;

	/* Other threads wait until the session is cleared. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	error = tw_permit_seize(&permit);
	TW_ASSERT(!error);
	has_bit = has_slot(session);
	if (has_bit) {
		tw_seq_tell(session);
		/* PROGRESS hit.alive: no frame's end knows the session after the wait below. */
		tw_fetch_and_seq_cst(&tw_hit_alive, ~(UINT64_C(1) << session->slot));
		tw_session_stage_clear_all(session, permit);
		tw_watched_end(permit);
		tw_bp_commit(permit);
		tw_tracees_forget(session->slot);
	}
	if (has_bit && (session->rs || session->module))
		tw_progress_wait();
	if (session->rs)
		tw_rs_close(session->rs);
	if (has_bit && session->rs)
		tw_threads_end_rings(session->slot);
	tw_permit_drop(permit);
	wait_for_delivery_users(session);
	if (session->writer)
		tw_session_writer_stop(session->writer);
	if (has_bit)
		tw_session_forget_patterns(session);
	tw_registry_remove(session);
	/* PAIR session.state: release; acquire in wait_until_dead() and wait_for_one(). All its state is cleared. */
	tw_store_release(&session->state, TW_SESSION_DEAD);
	tw_sys_futex_wake(&session->state, INT32_MAX);
	/* In a forked child the rings are the parent's. */
	if (session->queue && session->rs)
		tw_rs_wake(session->rs);
	drop_reference(session);
	pthread_setcancelstate(cancel_state, NULL);
}

/* Waits for another thread that destroys the session, so that it is cleared for all callers on return. */
static void wait_until_dead(struct tw_session *session)
{
	/* PAIR session.state: acquire; release in tw_session_clear(). */
	while (tw_load_acquire(&session->state) == TW_SESSION_CLEARING)
		tw_sys_futex_wait(&session->state, TW_SESSION_CLEARING, UINT64_MAX);
}

TW_API int tw_session_destroy(struct tw_session *session)
{
	if (!session)
		return TW_EBADARG;
	if (tw_progress_is_reading() || tw_permit_is_mine())
		return TW_EDEADLK;
	if (!win(session)) {
		wait_until_dead(session);
		return 0;
	}
	tw_session_clear(session);
	return 1;
}

TW_API int tw_session_destroy_weak(tw_session_weak weak)
{
	struct tw_session *session;
	int result;

	if (tw_session_lock(weak, &session) < 0)
		return TW_EBADARG;
	result = tw_session_destroy(session);
	tw_session_put(session);
	return result;
}

void tw_session_clear_if_dropped(struct tw_session *session)
{
	/* PAIR session.handles: acquire; release in tw_session_put(). */
	if (tw_load_acquire(&session->handles) == 0 && win(session))
		tw_session_clear(session);
}

/* Brings one session without handles to clearing; NULL: none. */
static struct tw_session *win_dropped(void)
{
	struct tw_session *found = NULL;

	tw_registry_lock();
	for (struct tw_session *session = tw_sessions_all(); session && !found; session = session->next_of_all) {
		/* PAIR session.handles: acquire; release in tw_session_put(). */
		if (tw_load_acquire(&session->handles) == 0 && win(session))
			found = session;
	}
	tw_registry_unlock();
	return found;
}

/*
 * A flag, not a count: put sets it after the handles are 0, so a thread that clears the flag and then checks misses
 * no session.  (A count went below 0 when a session was cleared before its put had counted it; the next drop then
 * made it 0, and that session was never cleared.)
 */
int tw_sessions_clear_dropped(void)
{
	struct tw_session *session;
	int cleared = 0;

	/* RELAXED session.look: a check before the exchange, which decides. */
	if (!tw_load_relaxed(&has_dropped) || tw_permit_is_mine())
		return 0;
	/* PAIR session.dropped: acquire; release in tw_session_put(). */
	if (tw_progress_is_reading() || !tw_exchange_acq_rel(&has_dropped, false))
		return 0;
	while ((session = win_dropped())) {
		tw_session_clear(session);
		cleared++;
	}
	return cleared;
}

TW_API int tw_progress(void)
{
	return tw_sessions_clear_dropped();
}
