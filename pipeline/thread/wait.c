/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wait.c - threads that wait, where `block` was asked for: outside of the read section, with a stall timer that ends
 * the wait.
 *
 * During a wait anything may change: the session may be destroyed, the place may no longer be traced. Thus a thread
 * checks after each wait which sessions still want its hit.
 */
#include "pipeline/thread/space.h"
#include "pipeline/thread/thread.h"
#include "pipeline/thread/wait.h"
#include "base/clock.h"
#include "base/filter.h"
#include "base/sys.h"
#include "progress/read_side.h"

#include <errno.h>

/* One round of the owner counts as this much at most. */
#define RING_ROUND_NS UINT64_C(5000000)

/*
 * The sessions that still want this hit after a wait outside of the read section. `epoch` is the one before the wait.
 * Called inside a read section.
 */
static uint64_t still_wanted(const struct tw_hit_tls *t, const struct tw_recheck *recheck, uint64_t epoch)
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

/*
 * The owner frees rings of threads that ended. If the living threads hold as many rings as the cap allows, one of
 * them may be waiting for this thread: so the wait for a ring below the cap ends after some of the owner's own time,
 * in which it has gone round often. There is one such attempt: if it fails, there is no memory, or the table is full.
 */
enum tw_ring_wait tw_wait_for_ring(struct tw_hit_tls *t, const struct tw_recheck *recheck, unsigned session,
				   uint32_t seen, uint64_t *spent_ns, uint64_t *todo)
{
	struct tw_thread_ring *ring = &t->thread->rings[session];
	struct tw_rs *rs = tw_hit_sessions[session].rs;
	uint64_t beat = tw_rs_beat(rs), epoch = epoch_now(), wanted;

	if (rs->config.policy != TW_RB_BLOCK || ring->has_waited_for_ring || !tw_thread_may_call_system() ||
	    !tw_rs_is_own_process(rs))
		return TW_RING_IN_VAIN;
	if (*spent_ns >= TW_RING_WAIT_NS || tw_space_is_given_up(rs)) {
		ring->has_waited_for_ring = *spent_ns >= TW_RING_WAIT_NS;
		return TW_RING_IN_VAIN;
	}
	/* PAIR hit.waiting: seq_cst; as in tw_wait_for_space(). */
	tw_store_seq_cst(&t->thread->waiting_session, session + 1);
	tw_progress_exit(&t->thread->reader);
	tw_rs_wait_ring(rs, seen, RING_SLICE_NS);
	*spent_ns += rounds_ns(rs, &beat);
	tw_progress_enter(&t->thread->reader);
	wanted = still_wanted(t, recheck, epoch);
	*todo &= wanted;
	/* PAIR hit.waiting: seq_cst; as in tw_wait_for_space(). */
	tw_store_seq_cst(&t->thread->waiting_session, 0);
	return wanted >> session & 1 ? TW_RING_MAY_BE_THERE : TW_RING_UNWANTED;
}

enum tw_space tw_wait_for_space(struct tw_hit_tls *t, const struct tw_recheck *recheck, unsigned session,
				uint32_t bytes, uint64_t ticks, uint64_t *todo)
{
	struct tw_thread_ring *ring = &t->thread->rings[session];
	struct tw_rs *rs = tw_hit_sessions[session].rs;
	int saved_errno = errno;
	uint64_t run_stamp = ring->run_stamp, epoch = epoch_now(), wanted;
	bool has_space;

	/* Only memory is missing: in its first round a ring has space. */
	if (tw_rb_lacks_memory(&ring->producer, bytes)) {
		has_space = tw_space_populate(&ring->producer, rs, ticks);
		errno = saved_errno;
		return has_space ? TW_SPACE_GROWN : TW_SPACE_NONE;
	}
	if (tw_space_grow(&ring->producer, rs, ticks)) {
		errno = saved_errno;
		return TW_SPACE_GROWN;
	}
	if (ring->producer.policy != TW_RB_BLOCK || !tw_thread_may_call_system()) {
		tw_rb_refuse(&ring->producer, TW_RB_LOST_FULL, ticks);
		errno = saved_errno;
		return TW_SPACE_NONE;
	}
	/* PAIR hit.waiting: seq_cst; is_anybody_waiting() reads it after the session's bits are gone. */
	tw_store_seq_cst(&t->thread->waiting_session, session + 1);
	tw_progress_exit(&t->thread->reader);
	has_space = tw_space_wait(&ring->producer, rs, bytes + TW_OWN_TIME_BYTES);
	tw_progress_enter(&t->thread->reader);
	wanted = still_wanted(t, recheck, epoch);
	*todo &= wanted;
	if (!(wanted >> session & 1) || ring->run_stamp != run_stamp || !ring->producer.shared)
		has_space = false;
	else if (!has_space)
		tw_rb_refuse(&ring->producer, TW_RB_LOST_FULL, ticks);
	/*
	 * PAIR hit.waiting: seq_cst; as above: from here on the thread ring is used only if the session still has its
	 * bit.
	 */
	tw_store_seq_cst(&t->thread->waiting_session, 0);
	errno = saved_errno;
	return has_space ? TW_SPACE_WAITED : TW_SPACE_NONE;
}
