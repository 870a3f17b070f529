/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread_ring.c - a thread's end of a session: its ring, switch records, space, and records of the time that these
 * took.
 *
 * Runs in the middle of hits: errno and the vector registers are kept, and all signals are blocked where a ring is
 * claimed.
 */
#include "pipeline/hit/hit.h"
#include "pipeline/thread/thread.h"
#include "pipeline/thread/space.h"
#include "pipeline/thread/wait.h"
#include "base/clock.h"
#include "base/filter.h"
#include "base/quiet.h"
#include "base/sys.h"
#include "breakpoints/patch.h"

#include <errno.h>
#include <string.h>

static bool try_claim_ring(struct tw_hit_tls *t, unsigned session, bool may_pass_cap)
{
	const struct tw_hit_session *s = &tw_hit_sessions[session];
	struct tw_rs_claim who = {.session_index = s->session_index,
				  .scheduler_id = t->thread->scheduler_id,
				  .tracee_id = t->tracee->tracee_id,
				  .thread_start_ticks = t->thread->start_ticks,
				  .may_pass_cap = may_pass_cap};
	struct tw_quiet quiet;
	bool has_ring;

	if (!tw_thread_may_call_system())
		return false;
	tw_quiet_begin(&quiet);
	if (tw_hit_host.describe)
		tw_hit_host.describe(t->tracee, session);
	has_ring = tw_rs_ring_claim(s->rs, &who, &t->thread->rings[session].producer);
	tw_quiet_end(&quiet);
	return has_ring;
}

/* The time for which a thread without a ring counts its events before it tries to claim one again. */
#define RETRY_US 1000

static bool claim_ring(struct tw_hit_tls *t, const struct tw_recheck *recheck, unsigned session, uint64_t ticks,
		       uint64_t *todo, bool *has_waited)
{
	struct tw_thread_ring *ring = &t->thread->rings[session];
	struct tw_rs *rs = tw_hit_sessions[session].rs;
	enum tw_ring_wait wait = TW_RING_MAY_BE_THERE;
	uint64_t spent_ns = 0;
	bool has_ring = false;

	while (!has_ring && wait == TW_RING_MAY_BE_THERE) {
		uint32_t seen = tw_rs_recycled(rs);

		has_ring = try_claim_ring(t, session, spent_ns >= TW_RING_WAIT_NS);
		if (!has_ring) {
			wait = tw_wait_for_ring(t, recheck, session, seen, &spent_ns, todo);
			*has_waited |= wait == TW_RING_MAY_BE_THERE;
		}
	}
	if (!has_ring && wait != TW_RING_UNWANTED && tw_thread_may_call_system() && !tw_rs_is_own_process(rs)) {
		/* A child of vfork(): the time of the next attempt is its parent's. */
		tw_rs_count_vfork(rs, ticks);
	} else if (!has_ring && wait != TW_RING_UNWANTED) {
		tw_rs_count_no_ring(rs, ticks);
		ring->retry_ticks = tw_clock_ticks() + tw_clock_ticks_of_us(RETRY_US);
	}
	return has_ring;
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

/* The least own time that is recorded; less is the cost of a hit. */
#define SETUP_US 20

static void tell_own_time(struct tw_thread_ring *ring, enum tw_space capacity, uint64_t ticks)
{
	if (capacity == TW_SPACE_GROWN && tw_clock_ticks() - ticks < tw_clock_ticks_of_us(SETUP_US))
		return;
	if (capacity != TW_SPACE_NONE)
		tw_space_tell(&ring->producer, capacity == TW_SPACE_GROWN ? TW_OWN_TIME_SETUP : TW_OWN_TIME_WAIT,
			      ticks);
}

static bool catch_up(struct tw_hit_tls *t, const struct tw_recheck *recheck, unsigned session, uint64_t ticks,
		     uint64_t *todo)
{
	struct tw_thread_ring *ring = &t->thread->rings[session];
	int saved_errno = errno;
	bool is_new, has_waited = false;
	enum tw_rb_outcome outcome = TW_RB_OK;
	enum tw_space capacity = TW_SPACE_NONE;

	if (ring->is_inherited)
		memset(ring, 0, sizeof *ring);
	is_new = !ring->producer.shared;
	if (is_new && !claim_ring(t, recheck, session, ticks, todo, &has_waited)) {
		errno = saved_errno;
		return false;
	}
	/* If the ring is new and the thread is its own process, no switch record is needed. */
	if (!is_new || t->run_seq) {
		if (!is_new && tw_hit_host.describe)
			tw_hit_host.describe(t->tracee, session);
		outcome = put_switch(t, ring, ticks);
		if (outcome == TW_RB_WAIT)
			capacity = tw_wait_for_space(t, recheck, session, TW_SWITCH_BYTES, ticks, todo);
		if (capacity != TW_SPACE_NONE)
			outcome = put_switch(t, ring, ticks);
	}
	if (is_new)
		capacity = has_waited ? TW_SPACE_WAITED : TW_SPACE_GROWN;
	/* The tracee that the switch names has waited. */
	if (outcome == TW_RB_OK)
		tell_own_time(ring, capacity, ticks);
	if (outcome == TW_RB_OK)
		ring->run_stamp = t->run_stamp;
	errno = saved_errno;
	return outcome == TW_RB_OK;
}

/* Called perhaps through a trampoline: then the vector registers are the program's. */
struct catch_up {
	struct tw_hit_tls *t;
	const struct tw_recheck *recheck;
	unsigned session;
	uint32_t bytes;
	uint64_t ticks;
	uint64_t *todo;
	bool result;
};

static void catch_up_keeping_vectors(void *arg)
{
	struct catch_up *c = arg;

	c->result = catch_up(c->t, c->recheck, c->session, c->ticks, c->todo);
}

bool tw_thread_ring_catch_up(struct tw_hit_tls *t, const struct tw_recheck *recheck, unsigned session, uint64_t ticks,
			     uint64_t *todo)
{
	struct catch_up c = {t, recheck, session, 0, ticks, todo, false};
	const struct tw_thread_ring *ring = &t->thread->rings[session];

	/*
	 * The last attempt to get a ring failed a moment ago: no system call, and no need to save the program's
	 * vector registers.
	 */
	if (!ring->producer.shared && ticks < ring->retry_ticks) {
		tw_rs_count_no_ring(tw_hit_sessions[session].rs, ticks);
		return false;
	}
	tw_patch_call_keeping_vectors(catch_up_keeping_vectors, &c);
	return c.result;
}

static void wait_keeping_vectors(void *arg)
{
	struct catch_up *c = arg;

	enum tw_space capacity = tw_wait_for_space(c->t, c->recheck, c->session, c->bytes, c->ticks, c->todo);

	tell_own_time(&c->t->thread->rings[c->session], capacity, c->ticks);
	c->result = capacity != TW_SPACE_NONE;
}

bool tw_thread_ring_wait(struct tw_hit_tls *t, const struct tw_recheck *recheck, unsigned session, uint32_t bytes,
			 uint64_t ticks, uint64_t *todo)
{
	struct catch_up c = {t, recheck, session, bytes, ticks, todo, false};

	tw_patch_call_keeping_vectors(wait_keeping_vectors, &c);
	return c.result;
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
	if (!ring->producer.shared && try_claim_ring(t, session, false) && !t->run_seq)
		ring->run_stamp = t->run_stamp;
	tw_sys_restore_signals(&signals);
}
