/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread_ring.c - a thread's end of a session: its ring, switch records, space, and records of the time that these
 * took.
 *
 * Runs in the middle of hits: errno and the vector registers are kept.  All but the sleeping is done on a stack of our own,
 * with all signals blocked.
 */
#include "pipeline/hit/hit.h"
#include "pipeline/thread/thread.h"
#include "progress/read_side.h"
#include "pipeline/thread/space.h"
#include "pipeline/thread/wait.h"
#include "base/clock.h"
#include "base/filter.h"
#include "base/quiet.h"
#include "base/sys.h"
#include "breakpoints/own_stack.h"
#include "breakpoints/patch.h"

#include <errno.h>
#include <string.h>

static bool try_claim_ring(struct tw_hit_tls *t, unsigned session, bool may_pass_cap)
{
	const struct tw_hit_session *s = &tw_hit_sessions[session];
	/* Most threads end soon, and the log of definitions only grows: the ring's header defines such a tracee. */
	bool is_own_tracee = t->tracee == t->thread->own_tracee && t->tracee->thread_id;
	struct tw_rs_claim who = {.session_index = s->session_index,
				  .scheduler_id = t->thread->scheduler_id,
				  .tracee_id = t->tracee->tracee_id,
				  .thread_start_ticks = t->thread->start_ticks,
				  .is_own_tracee = is_own_tracee,
				  .may_pass_cap = may_pass_cap};
	bool has_ring;

	if (!tw_thread_may_call_system())
		return false;
	tw_quiet_begin();
	if (!is_own_tracee && tw_hit_host.describe)
		tw_hit_host.describe(t->tracee, session);
	has_ring = tw_rs_ring_claim(s->rs, &who, &t->thread->rings[session].producer);
	if (has_ring && is_own_tracee) {
		/* RELAXED tracee.described: a tracee runs on one thread at a time, which describes it. */
		tw_fetch_or_relaxed(&t->tracee->described, UINT64_C(1) << session);
	}
	tw_quiet_end();
	return has_ring;
}

/* The time for which a thread without a ring counts its events before it tries to claim one again. */
#define RETRY_US 1000

/* Returns whether there is a ring; without one the work sleeps, or has failed. */
static bool claim_ring(struct tw_ring_work *w)
{
	struct tw_thread_ring *ring = &w->t->thread->rings[w->session];
	struct tw_rs *rs = tw_hit_sessions[w->session].rs;
	enum tw_ring_wait wait = w->is_waiting ? tw_ring_wait_step(w) : TW_RING_MAY_BE_THERE;

	while (wait == TW_RING_MAY_BE_THERE) {
		w->seen = tw_rs_recycled(rs);
		if (try_claim_ring(w->t, w->session, w->spent_ns >= TW_RING_WAIT_NS))
			return true;
		wait = tw_ring_wait_step(w);
	}
	if (wait == TW_RING_IN_VAIN && tw_thread_may_call_system() && !tw_rs_is_own_process(rs)) {
		/* A child of vfork(): the time of the next attempt is its parent's. */
		tw_rs_count_vfork(rs, w->ticks);
	} else if (wait == TW_RING_IN_VAIN) {
		tw_rs_count_no_ring(rs, w->ticks);
		ring->retry_ticks = tw_clock_ticks() + tw_clock_ticks_of_us(RETRY_US);
	}
	return false;
}

/* Writes which tracee the next records belong to. Without it they would belong to another one. */
static enum tw_rb_outcome put_switch(struct tw_hit_tls *t, struct tw_thread_ring *ring, uint64_t ticks)
{
	struct tw_rb_record *record;
	enum tw_rb_outcome outcome = tw_rb_reserve(&ring->producer, TW_SWITCH_BYTES, ticks, (void **)&record);

	tw_thread_number_run(t);
	if (outcome != TW_RB_OK)
		return outcome;
	tw_thread_fill_switch(t, record, ticks);
	/* No event: if a ring overwrites it, no event is missing. */
	tw_rb_commit_uncounted(&ring->producer, TW_SWITCH_BYTES);
	return TW_RB_OK;
}

/* However short: a set-up of some microseconds would be most of the time of a thread's first call. */
static void tell_own_time(struct tw_ring_work *w, enum tw_space capacity)
{
	struct tw_rb_producer *producer = &w->t->thread->rings[w->session].producer;
	enum tw_own_time why = capacity == TW_SPACE_GROWN ? TW_OWN_TIME_SETUP : TW_OWN_TIME_WAIT;
	uint64_t ticks = tw_clock_ticks() - w->ticks;

	if (capacity == TW_SPACE_NONE)
		return;
	w->t->thread->own_ticks += ticks;
	if (!w->t->thread->one.stamp) {
		if (!producer->shared)
			return;
		/* The event that comes behind has the same time. */
		tw_rb_keep_waiting(producer);
		tw_space_tell(producer, why, w->ticks, ticks);
		tw_rb_tell_waiting(producer, w->ticks);
		return;
	}
	/* Before a record of an earlier time it would break the order of the stream. */
	if (!w->behind.ticks)
		w->behind = (struct tw_own_time_behind){.since = w->ticks, .why = why};
	w->behind.ticks += ticks;
}

/* The needs of the first record of a run: a ring, and a switch record in it. */
static void catch_up(struct tw_ring_work *w)
{
	struct tw_hit_tls *t = w->t;
	struct tw_thread_ring *ring = &t->thread->rings[w->session];
	enum tw_space space = TW_SPACE_NONE;
	enum tw_rb_outcome outcome = TW_RB_OK;

	if (!w->is_begun && ring->is_inherited)
		memset(ring, 0, sizeof *ring);
	if (!w->is_begun)
		w->is_new = !ring->producer.shared;
	w->is_begun = true;
	if (!ring->producer.shared && !claim_ring(w))
		return;
	/* If the ring is new and the thread is its own process, no switch record is needed. */
	if (!w->is_new || t->run_seq) {
		if (!w->is_new && !w->is_waiting && tw_hit_host.describe)
			tw_hit_host.describe(t->tracee, w->session);
		outcome = w->is_waiting ? TW_RB_WAIT : put_switch(t, ring, w->ticks);
		if (outcome == TW_RB_WAIT)
			space = tw_space_step_of(w);
		if (space == TW_SPACE_ASLEEP)
			return;
		if (space != TW_SPACE_NONE)
			outcome = put_switch(t, ring, w->ticks);
	}
	if (w->is_new)
		space = w->has_waited ? TW_SPACE_WAITED : TW_SPACE_GROWN;
	w->result = outcome == TW_RB_OK;
	if (!w->result)
		return;
	/* The tracee that the switch names has waited. */
	tell_own_time(w, space);
	ring->run_stamp = t->run_stamp;
}

static void catch_up_step(void *arg)
{
	struct tw_ring_work *w = arg;
	int saved_errno = errno;

	w->sleep_word = NULL;
	catch_up(w);
	errno = saved_errno;
}

static void space_step(void *arg)
{
	struct tw_ring_work *w = arg;
	int saved_errno = errno;
	enum tw_space space;

	w->sleep_word = NULL;
	space = tw_space_step_of(w);
	if (space != TW_SPACE_ASLEEP)
		tell_own_time(w, space);
	w->result = space != TW_SPACE_NONE && space != TW_SPACE_ASLEEP;
	errno = saved_errno;
}

/* ---- in the hit, on the program's stack: the vector registers are the program's ---- */

#define NO_VECTORS __attribute__((target("general-regs-only")))

static NO_VECTORS struct tw_ring_work *begin(struct tw_hit_tls *t, const struct tw_recheck *recheck, unsigned session,
					     uint64_t ticks, uint64_t *todo)
{
	struct tw_ring_work *w = &t->thread->ring_work;

	w->t = t;
	w->recheck = recheck;
	w->todo = todo;
	w->ticks = ticks;
	w->session = session;
	w->is_begun = w->is_waiting = w->has_waited = w->result = false;
	w->spent_ns = 0;
	return w;
}

/* Nothing was done, because there was no stack for it. */
static NO_VECTORS __attribute__((noinline)) bool refuse(const struct tw_ring_work *w)
{
	struct tw_rb_producer *producer = &w->t->thread->rings[w->session].producer;

	if (producer->shared)
		tw_rb_refuse(producer, TW_RB_LOST_FULL, w->ticks);
	else
		tw_rs_count_no_ring(tw_hit_sessions[w->session].rs, w->ticks);
	return false;
}

/* The last thing that its callers do, as the refusal is of it: little of the stack may be left. */
static NO_VECTORS __attribute__((noinline)) bool work(struct tw_ring_work *w, void (*step)(void *))
{
	if (!tw_own_stack_try(step, w))
		return refuse(w);
	while (w->sleep_word) {
		tw_sys_futex_wait(w->sleep_word, w->sleep_value, w->sleep_ns);
		/* An operation that was begun is brought to its end. */
		if (!tw_own_stack_try(step, w))
			tw_patch_call_keeping_vectors(step, w);
	}
	return w->result;
}

NO_VECTORS bool tw_thread_ring_catch_up(struct tw_hit_tls *t, const struct tw_recheck *recheck, unsigned session,
					uint64_t ticks, uint64_t *todo)
{
	struct tw_thread_ring *ring = &t->thread->rings[session];
	struct tw_ring_work *w = begin(t, recheck, session, ticks, todo);

	/* The last attempt to get a ring failed a moment ago: no system call. */
	if (!ring->producer.shared && ticks < ring->retry_ticks)
		return refuse(w);
	w->bytes = TW_SWITCH_BYTES;
	return work(w, catch_up_step);
}

NO_VECTORS bool tw_thread_ring_wait(struct tw_hit_tls *t, const struct tw_recheck *recheck, unsigned session,
				    uint32_t bytes, uint64_t ticks, uint64_t *todo)
{
	struct tw_ring_work *w = begin(t, recheck, session, ticks, todo);

	w->bytes = bytes;
	return work(w, space_step);
}

static void tell_behind(void *arg)
{
	struct tw_ring_work *w = arg;
	struct tw_rb_producer *producer = &w->t->thread->rings[w->session].producer;
	int saved_errno = errno;

	tw_space_tell(producer, w->behind.why, w->behind.since, w->behind.ticks);
	w->behind.ticks = 0;
	errno = saved_errno;
}

NO_VECTORS void tw_thread_ring_tell_behind(struct tw_hit_tls *t)
{
	if (tw_unlikely(t->thread->ring_work.behind.ticks))
		tw_own_stack_try(tell_behind, &t->thread->ring_work);
}

void tw_thread_prepare(unsigned session)
{
	struct tw_hit_tls *t = &tw_hit_tls;
	struct tw_thread_ring *ring;
	uint64_t signals;

	if (!tw_thread_may_call_system() || tw_hit_is_under_way() || !tw_thread_is_own_process() || !tw_thread_join())
		return;
	ring = &t->thread->rings[session];
	/* A handler's call would claim a ring as well. */
	tw_sys_block_signals(&signals);
	/* A session that is being destroyed waits for this before it takes rings from threads. */
	tw_progress_enter(&t->thread->reader);
	/* PROGRESS hit.alive: cleared before that wait. */
	if (tw_load_acquire(&tw_hit_alive) >> session & 1 && !ring->producer.shared &&
	    try_claim_ring(t, session, false) && !t->run_seq)
		ring->run_stamp = t->run_stamp;
	tw_progress_exit(&t->thread->reader);
	tw_sys_restore_signals(&signals);
}
