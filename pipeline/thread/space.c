/* SPDX-License-Identifier: Apache-2.0 */
/* space.c - memory and space for the next record of a ring: populate, grow, wait; and a record of the time that it took. */
#include "pipeline/thread/space.h"
#include "base/clock.h"
#include "base/filter.h"
#include "base/quiet.h"
#include "base/sys.h"

/*
 * After a failed attempt: the time for which a full ring does not try to grow, and one that lacks memory asks for
 * none.
 */
#define GROWTH_PAUSE_US 10000
/* While the owner stands still, events are lost at once for so long, before it is looked at again: that takes microseconds. */
#define GIVEN_UP_PAUSE_US 1000

#define TELL_SPACE_BYTES UINT64_C(256)

bool tw_space_is_given_up(struct tw_rs *rs)
{
	/* PAIR rs.closed: acquire; release in tw_rs_close(). */
	return tw_load_acquire(&rs->control->is_closed) || tw_rs_is_stalled(rs) || !tw_thread_may_call_system() ||
	       !tw_rs_is_own_process(rs);
}

/*
 * A slice counts as its nominal length, however long it took; a short wait has several slices, so that one stall does not use
 * it up.
 */
static uint64_t slice_of(uint64_t timeout_ns)
{
	return !timeout_ns || timeout_ns / 8 >= TW_RS_SLICE_NS ? TW_RS_SLICE_NS : timeout_ns / 8 + 1;
}

/* The rest of the present slice; begins one if that is over. */
static uint64_t rest_of_slice(struct tw_space_wait *wait, struct tw_rs *rs, uint64_t slice_ns)
{
	uint64_t now = tw_clock_monotonic_ns();

	if (now < wait->until_ns)
		return wait->until_ns - now;
	if (wait->until_ns) {
		wait->spent_ns += slice_ns;
		/* The owner's processor may be stalled; waking the owner moves it to another. */
		tw_rs_wake(rs);
	}
	wait->until_ns = now + slice_ns;
	return slice_ns;
}

enum tw_space_step tw_space_wait_step(struct tw_rb_producer *producer, struct tw_rs *rs, uint32_t bytes,
				      struct tw_space_wait *wait)
{
	uint64_t timeout_ns = rs->config.block_timeout_ns;

	wait->sleep_ns = rest_of_slice(wait, rs, slice_of(timeout_ns));
	if (!tw_rb_begin_wait(producer, bytes)) {
		if (tw_space_is_given_up(rs))
			producer->wait_after_ticks = tw_clock_ticks() + tw_clock_ticks_of_us(GIVEN_UP_PAUSE_US);
		else if (!timeout_ns || wait->spent_ns < timeout_ns)
			return TW_SPACE_SLEEPS;
		tw_rb_end_wait(producer);
		tw_rb_tell_waiting(producer, 0);
		return TW_SPACE_GIVEN_UP;
	}
	tw_rb_end_wait(producer);
	return TW_SPACE_THERE;
}

bool tw_space_wait(struct tw_rb_producer *producer, struct tw_rs *rs, uint32_t bytes)
{
	struct tw_space_wait wait = {0};
	enum tw_space_step step;

	while ((step = tw_space_wait_step(producer, rs, bytes, &wait)) == TW_SPACE_SLEEPS)
		tw_sys_futex_wait(&producer->shared->waiting, TW_RB_IS_WAITING, wait.sleep_ns);
	return step == TW_SPACE_THERE;
}

void tw_space_tell(struct tw_rb_producer *producer, enum tw_own_time why, uint64_t start_ticks, uint64_t ticks)
{
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
	*(uint64_t *)(record + 1) = ticks;
	/* As a switch record, no event of the program. */
	tw_rb_commit_uncounted(producer, TW_OWN_TIME_BYTES);
}

bool tw_space_grow(struct tw_rb_producer *producer, struct tw_rs *rs, uint64_t ticks)
{
	bool has_grown;

	if (!tw_rs_may_grow(producer) || ticks < producer->growth_after_ticks)
		return false;
	producer->growth_after_ticks = ticks + tw_clock_ticks_of_us(GROWTH_PAUSE_US);
	if (!tw_thread_may_call_system())
		return false;
	tw_quiet_begin();
	has_grown = tw_rs_ring_grow(rs, producer);
	tw_quiet_end();
	return has_grown;
}

bool tw_space_populate(struct tw_rb_producer *producer, struct tw_rs *rs, uint64_t ticks)
{
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
