/* SPDX-License-Identifier: Apache-2.0 */
/* signal.c - signals between owner and members: heartbeat, requests, closing. */
#include "base/clock.h"
#include "base/sys.h"
#include "ringbuf/inside.h"

void tw_rs_wake(struct tw_rs *rs)
{
	/* PAIR rs.wake: release; acquire in tw_rs_wait(): the owner loads it before it scans. */
	if (tw_fetch_add_acq_rel(&rs->control->wake, 1) == 0)
		tw_sys_futex_wake(&rs->control->wake, 1);
}

void tw_rs_want(struct tw_rs *rs)
{
	/* RELAXED rs.wanted: a hint for the owner, which is woken to scan. */
	tw_fetch_add_relaxed(&rs->control->wanted_count, 1);
	tw_rs_wake(rs);
}

void tw_rs_heartbeat(struct tw_rs *rs)
{
	/* RELAXED rs.heartbeat: an independent time; a stale one makes a producer wait or drop a little early. */
	tw_store_relaxed(&rs->control->heartbeat_ns, tw_clock_monotonic_ns());
}

bool tw_rs_is_stalled(struct tw_rs *rs)
{
	return tw_stall_timer_check(&rs->stall_timer, tw_rs_beat(rs), tw_clock_monotonic_ns(), TW_RS_SLICE_NS) >=
	       TW_RS_STALLED_NS;
}

void tw_rs_close(struct tw_rs *rs)
{
	/* PAIR rs.closed: release; acquire in tw_space_is_given_up() and may_answer(), before a member claims or waits. */
	tw_store_release(&rs->control->is_closed, 1);
}

void tw_rs_end_waits(struct tw_rs *rs)
{
	for (uint32_t i = 0; i < rs->ring_count; i++) {
		struct tw_rb_shared *shared = tw_rs_ring(rs, i);

		/* The memory of other rings may not be present. */
		if (tw_rs_ring_state(rs, i) != TW_RB_LIVE)
			continue;
		/* PAIR rb.waiting: seq_cst; a sleeping producer wakes and finds the set closed. */
		if (tw_exchange_seq_cst(&shared->waiting, 0))
			tw_sys_futex_wake(&shared->waiting, 1);
	}
	for (uint32_t i = 0; i < rs->image_count; i++) {
		struct tw_rs_image_head *head = (struct tw_rs_image_head *)(void *)rs->images[i].memory;

		/* RELAXED rs.waiters: a hint; a waiter that is missed checks again after a slice. */
		if (head && tw_load_relaxed(&head->ring_waiters))
			tw_sys_futex_wake(&head->recycled, INT32_MAX);
	}
}

void tw_rs_wait(struct tw_rs *rs, uint64_t timeout_ns)
{
	/* PAIR rs.wake: acquire; release in tw_rs_wake().  The scan that follows sees requests made before the wake. */
	if (tw_load_acquire(&rs->control->wake) == 0)
		tw_sys_futex_wait(&rs->control->wake, 0, timeout_ns);
	/* PAIR rs.wake: acquire and release; a request from here on ends the next wait. */
	tw_exchange_acq_rel(&rs->control->wake, 0);
}

/* ---- delivery of everything committed ---- */

uint32_t tw_rs_delivery_want(struct tw_rs *rs)
{
	/*
	 * PAIR rs.delivery: release; acquire in tw_rs_delivery_poll().  Everything that this thread has committed is
	 * visible with the request.
	 */
	uint32_t number = tw_fetch_add_acq_rel(&rs->control->delivery_wanted, 1) + 1;

	tw_rs_wake(rs);
	return number;
}

bool tw_rs_delivery_wait(struct tw_rs *rs, uint32_t number, uint64_t timeout_ns)
{
	/* PAIR rs.delivered: acquire; release in tw_rs_delivery_done().  The events have been taken. */
	uint32_t answered = tw_load_acquire(&rs->control->delivered);

	if (tw_rs_is_answered(answered, number) || !timeout_ns)
		return tw_rs_is_answered(answered, number);
	tw_sys_futex_wait(&rs->control->delivered, answered, timeout_ns);
	/* PAIR rs.delivered: acquire; as above. */
	return tw_rs_is_answered(tw_load_acquire(&rs->control->delivered), number);
}

uint64_t tw_rs_delivered_ticks(const struct tw_rs *rs)
{
	/* RELAXED rs.delivered: behind tw_rs_delivery_wait(); that of a later delivery is as true for what is there then. */
	return tw_load_relaxed(&rs->control->delivered_ticks);
}

bool tw_rs_delivery_poll(const struct tw_rs *rs, uint32_t *number)
{
	/* PAIR rs.delivery: acquire; release in tw_rs_delivery_want().  The scan that follows sees all commits before the request. */
	*number = tw_load_acquire(&rs->control->delivery_wanted);
	return !tw_rs_is_answered(rs->delivered, *number);
}

void tw_rs_delivery_done(struct tw_rs *rs, uint32_t number, uint64_t waiting_ticks)
{
	rs->delivered = number;
	/* RELAXED rs.delivered: the number, which is stored behind it, shows it. */
	tw_store_relaxed(&rs->control->delivered_ticks, waiting_ticks);
	/* PAIR rs.delivered: release; acquire in tw_rs_delivery_wait(). */
	tw_store_release(&rs->control->delivered, number);
	tw_sys_futex_wake(&rs->control->delivered, INT32_MAX);
}
