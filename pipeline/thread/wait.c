/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wait.c - threads that wait, where `block` was asked for: outside of the read section, with a stall timer that ends
 * the wait.
 *
 * During a wait anything may change: the session may be destroyed, the place may no longer be traced. So a thread
 * checks after each wait which sessions still want its hit.
 */
#include "pipeline/thread/thread.h"
#include "pipeline/thread/wait.h"
#include "base/clock.h"
#include "base/filter.h"
#include "base/quiet.h"
#include "base/sys.h"
#include "progress/read_side.h"

#include <errno.h>

/* One round of the owner counts as this much at most. */
#define RING_ROUND_NS UINT64_C(5000000)
/*
 * After a failed attempt: the time for which a full ring does not try to grow, and one that lacks memory asks for
 * none.
 */
#define GROWTH_PAUSE_US 10000

#define TELL_SPACE_BYTES UINT64_C(256)

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

/* Nothing drains the rings of a child that continues a wait of its parent. */
static bool is_given_up(struct tw_rs *rs)
{
	/* PAIR rs.closed: acquire; release in tw_rs_close(). */
	return tw_load_acquire(&rs->control->is_closed) || tw_rs_is_stalled(rs) || !tw_thread_may_call_system() ||
	       !tw_rs_is_own_process(rs);
}

/*
 * The wait itself, outside of the read section, so that changes of breakpoints can proceed. The session may be
 * destroyed; its destroyer closes the set and waits until waiting_session is cleared. A slice counts as its nominal
 * length, however long it took; a short wait has several slices, so that one stall does not use it up.
 */
static bool wait_outside(struct tw_thread_ring *ring, struct tw_rs *rs, uint32_t bytes)
{
	uint64_t timeout_ns = rs->config.block_timeout_ns, spent_ns = 0;
	uint64_t slice_ns = !timeout_ns || timeout_ns / 8 >= TW_RS_SLICE_NS ? TW_RS_SLICE_NS : timeout_ns / 8 + 1;

	for (;;) {
		bool is_over = is_given_up(rs) || (timeout_ns && spent_ns >= timeout_ns);

		if (tw_rb_wait_space(&ring->producer, bytes, is_over ? 0 : slice_ns))
			return true;
		if (is_over)
			return false;
		spent_ns += slice_ns;
		/* The owner's processor may be stalled; waking the owner moves it to another. */
		tw_rs_wake(rs);
	}
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
	if (*spent_ns >= TW_RING_WAIT_NS || is_given_up(rs)) {
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

void tw_wait_tell(struct tw_thread_ring *ring, enum tw_own_time why, uint64_t start_ticks)
{
	struct tw_rb_producer *producer = &ring->producer;
	struct tw_rb_record *record;

	/*
	 * A ring that drops would count a refusal: so nothing is written unless there is space for this record, for
	 * the loss record and for the padding before it.
	 */
	if (!producer->shared || (producer->policy == TW_RB_DROP &&
				  producer->pos + TELL_SPACE_BYTES > producer->cached_tail_pos + producer->mask + 1))
		return;
	if (tw_rb_reserve(producer, TW_OWN_TIME_BYTES, start_ticks, (void **)&record) != TW_RB_OK)
		return;
	record->ticks = start_ticks;
	record->head = TW_RB_HEAD(TW_EVENT_OWN_TIME, TW_EVENT_FLAG_HALF, TW_OWN_TIME_BYTES, why);
	*(uint64_t *)(record + 1) = tw_clock_ticks() - start_ticks;
	/* As a switch record, no event of the program. */
	tw_rb_commit_uncounted(producer, TW_OWN_TIME_BYTES);
}

static bool try_to_grow(struct tw_thread_ring *ring, struct tw_rs *rs, uint64_t ticks)
{
	struct tw_rb_producer *producer = &ring->producer;
	struct tw_quiet quiet;
	bool has_grown;

	if (!tw_rs_may_grow(producer) || ticks < producer->growth_after_ticks)
		return false;
	producer->growth_after_ticks = ticks + tw_clock_ticks_of_us(GROWTH_PAUSE_US);
	if (!tw_thread_may_call_system())
		return false;
	tw_quiet_begin(&quiet);
	has_grown = tw_rs_ring_grow(rs, producer);
	tw_quiet_end(&quiet);
	return has_grown;
}

/* Populates the next part of a ring in its first round. */
static bool try_to_populate(struct tw_thread_ring *ring, struct tw_rs *rs, uint64_t ticks)
{
	struct tw_rb_producer *producer = &ring->producer;
	bool may_call = ticks >= producer->growth_after_ticks && tw_thread_may_call_system();

	if (tw_rs_ring_populate(rs, producer, may_call))
		return true;
	if (may_call)
		producer->growth_after_ticks = ticks + GROWTH_PAUSE_US * (tw_clock_ticks_per_second() / 1000000);
	/* In a ring that overwrites, TW_RB_LOST_FULL means something else. */
	if (producer->policy == TW_RB_OVERWRITE)
		tw_rs_count_no_ring(rs, ticks);
	else
		tw_rb_refuse(producer, TW_RB_LOST_FULL, ticks);
	return false;
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
		has_space = try_to_populate(ring, rs, ticks);
		errno = saved_errno;
		return has_space ? TW_SPACE_GROWN : TW_SPACE_NONE;
	}
	if (try_to_grow(ring, rs, ticks)) {
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
	has_space = wait_outside(ring, rs, bytes + TW_OWN_TIME_BYTES);
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
