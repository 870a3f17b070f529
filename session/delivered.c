/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delivered.c - marks that follow events.
 *
 * A reference is the session's number in the high half and the number of the request in the low one.  The
 * consumer of a capture or a stream answers a request by draining every ring once: request and answer stand in
 * the shared header of the ring set, so the consumer may be another process.
 */
#include "base/clock.h"
#include "progress/progress.h"
#include "session/queue.h"
#include "session/tracee.h"
#include "tracewheel/queue.h"

/* Interval at which a wait checks that the consumer and the session still exist. */
#define SLICE_NS UINT64_C(5000000)

static bool is_consumer_gone(struct tw_session *session)
{
	const struct tw_rs_config *config = &session->rs->config;

	/* PAIR session.tracer_gone: acquire; release in tw_tracer_lost_locked(). */
	if (tw_load_acquire(&session->is_tracer_gone))
		return true;
	return !session->queue && !session->writer &&
	       tw_sys_is_process_gone(config->owner_process_id, config->owner_start_time);
}

/* The ring set of a live session is kept while `delivery_users` is not 0.  TW_EDEAD: the session is not alive. */
static int enter(struct tw_session *session)
{
	/*
	 * PAIR session.users: acquire and release, with wait_for_delivery_users(), which changes the count as well: either it sees
	 * this user, or its change came first, and this thread sees the state that was set before.
	 */
	tw_fetch_add_acq_rel(&session->delivery_users, 1);
	return tw_session_is_alive(session) ? 0 : TW_EDEAD;
}

static void leave(struct tw_session *session)
{
	/* PAIR session.users: release; acquire in wait_for_delivery_users(). This use of the ring set comes before its end. */
	tw_fetch_add_acq_rel(&session->delivery_users, UINT32_MAX);
}

static int ask(struct tw_session *session, tw_pid pid, uint32_t *number)
{
	*number = 0;
	/* Without a tracer all events have been delivered. */
	if (session->module && !session->rs) {
		/* The callbacks of all events made before are over when every hit is. */
		tw_progress_wait();
		return 0;
	}
	if (!session->rs)
		return 0;
	if (is_consumer_gone(session))
		return TW_EPIPE;
	if (session->queue)
		return tw_queue_ask(session, pid, number);
	*number = tw_rs_delivery_want(session->rs);
	return 0;
}

TW_API int tw_delivered(struct tw_session *session, tw_pid pid, uint64_t *reference)
{
	uint32_t number;
	int error;

	if (!session || !reference || (pid != TW_PID_ALL && !tw_tracee_has_been(pid)))
		return TW_EBADARG;
	if (tw_progress_is_reading())
		return TW_EDEADLK;
	error = enter(session);
	if (!error)
		error = ask(session, pid, &number);
	leave(session);
	if (!error)
		*reference = session->id << 32 | number;
	return error;
}

static int wait_once(struct tw_session *session, uint32_t number, uint64_t timeout_ns)
{
	bool is_there;

	if (!session->rs)
		return 0;
	is_there = session->queue ? tw_queue_wait_answer(session->queue, number, timeout_ns)
				  : tw_rs_delivery_wait(session->rs, number, timeout_ns);
	if (is_there)
		return 0;
	return is_consumer_gone(session) ? TW_EPIPE : TW_ETIMEDOUT;
}

TW_API int tw_delivered_wait(struct tw_session *session, uint64_t reference, uint64_t timeout_ns)
{
	uint64_t now = tw_clock_monotonic_ns();
	uint64_t until = timeout_ns > UINT64_MAX - now ? UINT64_MAX : now + timeout_ns;
	int error;

	if (!session || reference >> 32 != (session->id & UINT32_MAX))
		return TW_EBADARG;
	if (tw_progress_is_reading())
		return TW_EDEADLK;
	do {
		uint64_t left = until - now;

		error = enter(session);
		if (!error)
			error = wait_once(session, (uint32_t)reference, left < SLICE_NS ? left : SLICE_NS);
		leave(session);
		now = tw_clock_monotonic_ns();
	} while (error == TW_ETIMEDOUT && now < until);
	return error;
}
