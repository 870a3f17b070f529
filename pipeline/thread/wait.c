/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wait.c - threads that wait, where `block` was asked for: outside of the read section, with a stall timer that ends
 * the wait.
 *
 * During a wait anything may change: the session may be destroyed, the place may no longer be traced. Thus a thread
 * checks after each wait which sessions still want its hit.
 */
#include "pipeline/thread/wait.h"
#include "pipeline/thread/space.h"
#include "pipeline/thread/thread.h"
#include "base/clock.h"
#include "base/filter.h"
#include "base/sys.h"
#include "progress/read_side.h"

/* One round of the owner counts as this much at most. */
#define RING_ROUND_NS UINT64_C(5000000)

/*
 * The sessions that still want this hit after a wait outside of the read section. `epoch` is the one before the wait.
 * Called inside a read section.
 */
static uint64_t wanted_now(const struct tw_hit_tls *t, const struct tw_recheck *recheck, uint64_t epoch)
{
	/* PAIR bp.active: acquire; as in hit_inside(). */
	uint32_t active = tw_load_acquire(&tw_bp_gate.active);
	uint64_t wanted = active ? ~UINT64_C(0) : 0;

	if (active && recheck->place)
		wanted = recheck->place->gen[active - 1].sessions;
	if (recheck->wants) {
		/* PROGRESS hit.wants: as in hit(). */
		wanted &= tw_load_acquire(recheck->wants);
	}
	return wanted & ~tw_hit_newer_than(epoch);
}

static uint64_t epoch_now(void)
{
	/* PAIR hit.epoch: acquire; a thread that sees the session's bit has seen its epoch. */
	return tw_load_acquire(&tw_hit_epoch);
}

/* The owner's own time since the last call. */
static uint64_t rounds_ns(const struct tw_rs *rs, uint64_t *beat)
{
	uint64_t before = *beat;

	*beat = tw_rs_beat(rs);
	return *beat - before < RING_ROUND_NS ? *beat - before : RING_ROUND_NS;
}

/* The time that a slice of waiting for a ring counts as: a slice ends early only if a ring is available. */
#define RING_SLICE_NS UINT64_C(5000000)

/* Leaves the read section: from here on until wake() the hit uses nothing that may be freed. */
static void fall_asleep(struct tw_ring_work *w)
{
	w->epoch = epoch_now();
	w->is_waiting = true;
	/* PAIR hit.waiting: seq_cst; is_anybody_waiting() reads it after the session's bits are gone. */
	tw_store_seq_cst(&w->t->thread->waiting_session, w->session + 1);
	tw_progress_exit(&w->t->thread->reader);
}

/* Enters the read section again; returns the sessions that still want the hit. */
static uint64_t wake(struct tw_ring_work *w)
{
	uint64_t wanted;

	w->is_waiting = false;
	tw_progress_enter(&w->t->thread->reader);
	wanted = wanted_now(w->t, w->recheck, w->epoch);
	*w->todo &= wanted;
	return wanted;
}

static void is_awake(struct tw_ring_work *w)
{
	/*
	 * PAIR hit.waiting: seq_cst; as above: from here on the thread ring is used only if the session still has its
	 * bit.
	 */
	tw_store_seq_cst(&w->t->thread->waiting_session, 0);
}

/*
 * The owner frees rings of threads that ended. If the living threads hold as many rings as the cap allows, one of
 * them may be waiting for this thread: so the wait for a ring below the cap ends after some of the owner's own time,
 * in which it has gone round often. There is one such attempt: if it fails, there is no memory, or the table is full.
 */
enum tw_ring_wait tw_ring_wait_step(struct tw_ring_work *w)
{
	struct tw_thread_ring *ring = &w->t->thread->rings[w->session];
	struct tw_rs *rs = tw_hit_sessions[w->session].rs;
	uint64_t wanted;

	if (w->is_waiting) {
		tw_rs_end_ring_wait(rs);
		w->spent_ns += rounds_ns(rs, &w->beat);
		wanted = wake(w);
		is_awake(w);
		return wanted >> w->session & 1 ? TW_RING_MAY_BE_THERE : TW_RING_UNWANTED;
	}
	if (rs->config.policy != TW_RB_BLOCK || ring->has_waited_for_ring || !tw_thread_may_call_system() ||
	    !tw_rs_is_own_process(rs))
		return TW_RING_IN_VAIN;
	if (w->spent_ns >= TW_RING_WAIT_NS || tw_space_is_given_up(rs)) {
		ring->has_waited_for_ring = w->spent_ns >= TW_RING_WAIT_NS;
		return TW_RING_IN_VAIN;
	}
	w->beat = tw_rs_beat(rs);
	w->has_waited = true;
	fall_asleep(w);
	w->sleep_word = tw_rs_begin_ring_wait(rs);
	w->sleep_value = w->seen;
	w->sleep_ns = RING_SLICE_NS;
	return TW_RING_SLEEPS;
}

/* Space without a wait, or the reason why there is none; ASLEEP: a wait may help. */
static enum tw_space space_at_once(struct tw_ring_work *w)
{
	struct tw_thread_ring *ring = &w->t->thread->rings[w->session];
	struct tw_rs *rs = tw_hit_sessions[w->session].rs;

	/* Only memory is missing: in its first round a ring has space. */
	if (tw_rb_lacks_memory(&ring->producer, w->bytes))
		return tw_space_populate(&ring->producer, rs, w->ticks) ? TW_SPACE_GROWN : TW_SPACE_NONE;
	if (tw_space_grow(&ring->producer, rs, w->ticks))
		return TW_SPACE_GROWN;
	if (ring->producer.policy == TW_RB_BLOCK && tw_thread_may_call_system())
		return TW_SPACE_ASLEEP;
	tw_rb_refuse(&ring->producer, TW_RB_LOST_FULL, w->ticks);
	return TW_SPACE_NONE;
}

enum tw_space tw_space_step_of(struct tw_ring_work *w)
{
	struct tw_thread_ring *ring = &w->t->thread->rings[w->session];
	enum tw_space_step step;
	enum tw_space space;
	uint64_t wanted;

	if (!w->is_waiting) {
		space = space_at_once(w);
		if (space != TW_SPACE_ASLEEP)
			return space;
		w->run_stamp = ring->run_stamp;
		w->space = (struct tw_space_wait){0};
		tw_rb_tell_waiting(&ring->producer, w->ticks);
		fall_asleep(w);
	}
	step = tw_space_wait_step(&ring->producer, tw_hit_sessions[w->session].rs, w->bytes + TW_OWN_TIME_BYTES,
				  &w->space);
	if (step == TW_SPACE_SLEEPS) {
		w->sleep_word = &ring->producer.shared->waiting;
		w->sleep_value = TW_RB_IS_WAITING;
		w->sleep_ns = w->space.sleep_ns;
		return TW_SPACE_ASLEEP;
	}
	wanted = wake(w);
	space = step == TW_SPACE_THERE ? TW_SPACE_WAITED : TW_SPACE_NONE;
	if (!(wanted >> w->session & 1) || ring->run_stamp != w->run_stamp || !ring->producer.shared) {
		space = TW_SPACE_NONE;
		if (ring->producer.shared)
			tw_rb_tell_waiting(&ring->producer, 0);
	} else if (space == TW_SPACE_NONE)
		tw_rb_refuse(&ring->producer, TW_RB_LOST_FULL, w->ticks);
	is_awake(w);
	return space;
}
