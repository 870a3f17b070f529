/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.c - a tracer inside the program: the receiving thread drains the rings.
 *
 * The rings are anonymous memory, drained by the receiver only.  They live until the last handle is put, so that events made
 * before a destroy can be received after it.
 */
#include "session/queue.h"
#include "base/lock.h"
#include "pipeline/live/live.h"
#include "progress/progress.h"
#include "session/tracee.h"
#include "session/tracer_gone.h"
#include "tracewheel/message.h"
#include "tracewheel/queue.h"

#include <stdlib.h>

#define RING_BYTES_DEFAULT (UINT64_C(1) << 20)
#define MESSAGES_A_BEAT	   64
/* Shortest sleep of the receiver between polls; it is woken for marks only, never for events. */
#define SLEEP_LEAST_NS UINT64_C(20000)
#define SLEEP_MOST_NS  UINT64_C(1000000)

struct request {
	struct request *next;
	tw_pid pid;
	uint32_t number;
};

struct tw_queue {
	struct tw_rs rs;
	struct tw_lock receiving; /* protects the following fields */
	struct tw_live live;
	struct request *armed; /* requests to be answered at the end of the round */
	struct tw_queue_stats stats;
	tw_pid tracer; /* tracer at the last receive */
	struct tw_quiet_lock asking;
	struct request *asked, **last_asked;
	uint32_t last_number;
	_Atomic uint32_t answered; /* number of the last mark received; a futex */
};

int tw_queue_start(const struct tw_tracer *tracer, struct tw_session *session)
{
	struct tw_rs_options options = {.ring_bytes = tracer->ring_bytes ? tracer->ring_bytes : RING_BYTES_DEFAULT,
					.cap_bytes = tracer->cap_bytes,
					.policy = (enum tw_rb_policy)tracer->on_full,
					.is_anonymous = true};
	struct tw_queue *queue;
	uint32_t image;
	int error;

	if ((unsigned)tracer->on_full > TW_ON_FULL_BLOCK)
		return TW_EBADARG;
	queue = calloc(1, sizeof *queue);
	if (!queue)
		return TW_ENOMEM;
	error = tw_rs_create(&queue->rs, &options);
	if (error)
		goto free_queue;
	error = tw_rs_image_claim(&queue->rs, &image);
	if (error)
		goto destroy_rings;
	queue->last_asked = &queue->asked;
	tw_live_init(&queue->live, &queue->rs, image);
	tw_tracers_are_processes();
	session->rs = &queue->rs;
	session->queue = queue;
	session->is_tracer_fixed = tracer->tracer_pid != 0;
	session->tracer_pid = session->last_tracer_pid = (uint32_t)tracer->tracer_pid;
	queue->tracer = tracer->tracer_pid;
	return 0;
destroy_rings:
	tw_rs_destroy(&queue->rs);
free_queue:
	free(queue);
	return error;
}

static void free_requests(struct request *request)
{
	while (request) {
		struct request *next = request->next;

		free(request);
		request = next;
	}
}

void tw_queue_destroy(struct tw_queue *queue)
{
	if (!queue)
		return;
	tw_live_fini(&queue->live);
	free_requests(queue->armed);
	free_requests(queue->asked);
	tw_rs_destroy(&queue->rs);
	free(queue);
}

/* ---- the tracer ---- */

/* Makes the process of the calling thread the tracer.  Its own flags have no effect from now on. */
static void become_tracer(struct tw_session *session, tw_pid pid)
{
	struct tw_tracee *before, *now;

	if (session->is_tracer_fixed || session->queue->tracer == pid)
		return;
	session->queue->tracer = pid;
	tw_registry_lock();
	before = session->tracer_pid ? tw_tracee_find(session->tracer_pid) : NULL;
	now = pid ? tw_tracee_find(pid) : NULL;
	session->tracer_pid = session->last_tracer_pid = (uint32_t)pid;
	if (session->slot != TW_SESSION_NO_SLOT && tw_session_is_alive(session)) {
		if (before)
			tw_flags_change(before, session->slot, true, 0);
		if (now)
			tw_flags_change(now, session->slot, true, 0);
	}
	tw_registry_unlock();
}

static bool is_gone(struct tw_session *session)
{
	/* PAIR session.tracer_gone: acquire; release in tw_tracer_lost_locked(). */
	return tw_load_acquire(&session->is_tracer_gone);
}

TW_API int tw_queue_close(struct tw_session *session)
{
	if (!session || !session->queue)
		return TW_EBADARG;
	if (tw_progress_is_reading())
		return TW_EDEADLK;
	tw_registry_lock();
	tw_tracer_lost_locked(session);
	tw_registry_unlock();
	return 0;
}

/* ---- marks ---- */

int tw_queue_ask(struct tw_session *session, tw_pid pid, uint32_t *number)
{
	struct tw_queue *queue = session->queue;
	struct request *request;

	if (is_gone(session))
		return TW_EPIPE;
	request = calloc(1, sizeof *request);
	if (!request)
		return TW_ENOMEM;
	request->pid = pid;
	tw_quiet_lock(&queue->asking);
	*number = request->number = ++queue->last_number;
	*queue->last_asked = request;
	queue->last_asked = &request->next;
	tw_quiet_unlock(&queue->asking);
	tw_rs_wake(&queue->rs);
	return 0;
}

bool tw_queue_wait_answer(struct tw_queue *queue, uint32_t number, uint64_t timeout_ns)
{
	/* PAIR queue.answered: acquire; release in answer(). */
	uint32_t answered = tw_load_acquire(&queue->answered);

	if ((int32_t)(answered - number) >= 0 || !timeout_ns)
		return (int32_t)(answered - number) >= 0;
	tw_sys_futex_wait(&queue->answered, answered, timeout_ns);
	/* PAIR queue.answered: acquire; as above. */
	return (int32_t)(tw_load_acquire(&queue->answered) - number) >= 0;
}

/* Takes all requests made before the following poll of the rings. */
static void arm(struct tw_queue *queue)
{
	tw_quiet_lock(&queue->asking);
	queue->armed = queue->asked;
	queue->asked = NULL;
	queue->last_asked = &queue->asked;
	tw_quiet_unlock(&queue->asking);
}

static int answer(struct tw_session *session, struct tw_arena *arena, struct tw_term *out)
{
	struct tw_queue *queue = session->queue;
	struct request *request = queue->armed;
	struct tw_term parts[3] = {tw_term_atom_z("trace_delivered"),
				   request->pid == TW_PID_ALL ? tw_atom(TW_ATOM_ALL)
							      : tw_term_pid(arena, (uint32_t)request->pid, 0),
				   tw_delivered_term(arena, session->id << 32 | request->number)};
	struct tw_term message = tw_term_tuple(arena, parts, 3);

	if (tw_term_is_none(message))
		return TW_ENOMEM;
	*out = message;
	queue->armed = request->next;
	/* PAIR queue.answered: release; acquire in tw_queue_wait_answer(). */
	tw_store_release(&queue->answered, request->number);
	tw_sys_futex_wake(&queue->answered, INT32_MAX);
	free(request);
	return 0;
}

/* ---- messages ---- */

static int build(const struct tw_queue *queue, const struct tw_live_event *event, struct tw_arena *arena,
		 struct tw_term *out)
{
	const struct tw_live *live = &queue->live;
	const struct tw_capture_tracee *tracee = tw_catalog_find(&live->catalog.tracees, event->event.tracee_id);
	struct tw_message_event from = {.event = &event->event,
					.pid_number = tracee ? tracee->pid_number : event->event.tracee_id,
					.pid_serial = tracee ? tracee->pid_serial : 0,
					.is_port = tracee && tracee->is_port,
					.scheduler_id = event->scheduler_id,
					.wall_ns = tw_live_wall_ns(live, event->event.time_ns)};

	if (event->event.kind >= TW_EVENT_CALL && event->event.kind <= TW_EVENT_RETURN_TO)
		from.place = tw_catalog_find(&live->catalog.places, event->event.id);
	if (event->event.kind == TW_EVENT_RETURN_TO) {
		uint64_t address = tw_message_address(&event->event);
		const struct tw_capture_module *module;
		uint32_t at = 0;

		while ((module = tw_catalog_next(&live->catalog.modules, &at)))
			if (address >= module->base_address && address < module->end_address)
				from.module = module;
	}
	return tw_message_build(&from, arena, out);
}

static void count(struct tw_queue *queue, const struct tw_live_event *event)
{
	const struct tw_capture_loss *loss;

	if (event->event.kind != TW_EVENT_LOSS) {
		queue->stats.received++;
		return;
	}
	loss = tw_capture_event_loss(&event->event);
	for (unsigned cause = 0; cause < TW_RB_CAUSES; cause++)
		queue->stats.lost[cause] += loss->lost[cause];
}

/* Takes the next available message: 1; 0: none; or TW_ENOMEM. */
static int next_message(struct tw_session *session, struct tw_arena *arena, struct tw_term *out)
{
	struct tw_queue *queue = session->queue;
	struct tw_live_event event;
	int error;

	while (tw_live_next(&queue->live, &event)) {
		bool is_own =
			queue->tracer && event.event.tracee_id == queue->tracer && event.event.kind != TW_EVENT_LOSS;

		error = is_own ? 0 : build(queue, &event, arena, out);
		if (error == TW_ENOMEM)
			return error;
		if (is_own)
			queue->stats.of_tracer++;
		else if (error)
			queue->stats.malformed++;
		else
			count(queue, &event);
		tw_live_step(&queue->live);
		if (!is_own && !error)
			return 1;
	}
	if (!queue->armed)
		return 0;
	error = answer(session, arena, out);
	return error ? error : 1;
}

/* The same, but polls the rings again if the last round is over. */
static int try_next(struct tw_session *session, struct tw_arena *arena, struct tw_term *out)
{
	struct tw_queue *queue = session->queue;
	int found = next_message(session, arena, out);

	if (found)
		return found;
	arm(queue);
	tw_rs_heartbeat(&queue->rs);
	found = tw_live_begin(&queue->live);
	return found < 0 ? found : next_message(session, arena, out);
}

/* Sleeps between two polls; TW_ETIMEDOUT when the time is over. */
static int rest(struct tw_queue *queue, uint64_t until_ns, uint64_t *sleep_ns)
{
	uint64_t now = until_ns ? tw_clock_monotonic_ns() : 0, slice = *sleep_ns;

	if (now >= until_ns)
		return TW_ETIMEDOUT;
	if (until_ns - now < slice)
		slice = until_ns - now;
	tw_rs_wait(&queue->rs, slice);
	*sleep_ns = *sleep_ns * 2 < SLEEP_MOST_NS ? *sleep_ns * 2 : SLEEP_MOST_NS;
	return 0;
}

/* Waits for the first message: 1, or an error. */
static int wait_for_one(struct tw_session *session, uint64_t timeout_ns, struct tw_arena *arena, struct tw_term *out)
{
	uint64_t now = timeout_ns && timeout_ns != UINT64_MAX ? tw_clock_monotonic_ns() : 0;
	uint64_t until = timeout_ns > UINT64_MAX - now ? UINT64_MAX : now + timeout_ns;
	uint64_t sleep_ns = SLEEP_LEAST_NS;

	for (;;) {
		/* Checked before the rings are polled, so that all events made while the session lived are found. */
		/* PAIR session.state: acquire; release in tw_session_clear(). */
		bool is_dead = tw_load_acquire(&session->state) == TW_SESSION_DEAD;
		int found;

		if (is_gone(session)) {
			if (!session->is_queue_of_parent)
				session->queue->stats.dropped += tw_live_drop(&session->queue->live);
			return TW_EPIPE;
		}
		found = try_next(session, arena, out);
		if (found)
			return found;
		if (is_dead)
			return TW_EDEAD;
		found = rest(session->queue, until, &sleep_ns);
		if (found)
			return found;
	}
}

TW_API int64_t tw_queue_receive_batch(struct tw_session *session, uint64_t timeout_ns, struct tw_arena *arena,
				      struct tw_term *messages, size_t capacity)
{
	struct tw_queue *queue = session ? session->queue : NULL;
	int64_t received = 0;
	int found;

	if (!queue || !arena || !messages || !capacity)
		return TW_EBADARG;
	if (tw_progress_is_reading())
		return TW_EDEADLK;
	if (session->is_queue_of_parent)
		return TW_EPIPE;
	tw_sessions_clear_dropped();
	tw_lock_seize(&queue->receiving);
	become_tracer(session, tw_process_self());
	found = wait_for_one(session, timeout_ns, arena, &messages[0]);
	while (found > 0) {
		/* A round may be long, and threads that wait for space must see progress. */
		if (received % MESSAGES_A_BEAT == 0)
			tw_rs_heartbeat(&queue->rs);
		if (++received == (int64_t)capacity)
			break;
		found = next_message(session, arena, &messages[received]);
	}
	tw_lock_drop(&queue->receiving);
	return received ? received : found;
}

TW_API int tw_queue_receive(struct tw_session *session, uint64_t timeout_ns, struct tw_arena *arena,
			    struct tw_term *message)
{
	int64_t received = tw_queue_receive_batch(session, timeout_ns, arena, message, 1);

	return received < 0 ? (int)received : 0;
}

TW_API int tw_queue_stats(struct tw_session *session, struct tw_queue_stats *out)
{
	if (!session || !session->queue || !out)
		return TW_EBADARG;
	if (session->is_queue_of_parent)
		return TW_EPIPE;
	tw_lock_seize(&session->queue->receiving);
	*out = session->queue->stats;
	tw_lock_drop(&session->queue->receiving);
	return 0;
}
