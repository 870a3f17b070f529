/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ready.c - threads that are not ready for a hit: they join, are nested in another hit, or have left; then calls are
 * counted.
 */
#include "pipeline/hit/count.h"
#include "pipeline/hit/hit.h"
#include "pipeline/thread/thread.h"
#include "breakpoints/own_stack.h"
#include "base/clock.h"
#include "base/filter.h"

enum tw_thread_state tw_hit_make_ready(struct tw_hit_tls *t, const void *frame)
{
	/* The functions of libc that our work calls may be traced; no code of the program runs there. */
	if (tw_own_stack_has(frame))
		return TW_THREAD_JOINING;
	if (tw_hit_is_under_way()) {
		if (!tw_hit_was_abandoned(t, frame))
			return TW_THREAD_IN_HIT;
		tw_hit_leave_abandoned(t);
	} else if (t->state >= TW_THREAD_ENDED && t->state <= TW_THREAD_NO_CLOCK) {
		return (enum tw_thread_state)t->state;
	} else if (t->state == TW_THREAD_BUSY) {
		return tw_thread_classify_call(t, frame);
	} else if (t->state == TW_THREAD_JOINING) {
		/* A call of our own. */
		return TW_THREAD_JOINING;
	} else if (!tw_thread_may_call_system()) {
		/* Joining takes system calls; the thread counts as one without a ring. */
		return TW_THREAD_UNABLE;
	} else if (!tw_hit_join()) {
		/* A child of vfork() in this memory, which is counted; a thread for which no stack was free; or one that cannot join. */
		return t->state != TW_THREAD_NEW    ? TW_THREAD_JOINING
		       : tw_thread_is_own_process() ? TW_THREAD_UNABLE
						    : TW_THREAD_VFORKED;
	}
	return TW_THREAD_NEW;
}

uint64_t tw_hit_losing(const struct tw_bp_generation *generation)
{
	uint64_t bit = tw_hit_host.pinned_rs ? UINT64_C(1) << tw_hit_host.pinned_session : 0;
	const struct tw_bp_part *longer = tw_bp_longer_part(generation, bit);

	if (!generation->only_counter && !longer)
		return generation->sessions;
	tw_counter_add(longer ? longer->counter : generation->only_counter, 1);
	return longer ? generation->sessions & ~bit : 0;
}

void tw_hit_count_nested(struct tw_hit_tls *t, uint64_t sessions)
{
	uint64_t ticks = tw_clock_ticks();

	for (uint64_t todo = sessions; todo; todo &= todo - 1) {
		unsigned session = (unsigned)__builtin_ctzll(todo);
		struct tw_thread_ring *ring = &t->thread->rings[session];

		if (tw_hit_sessions[session].module)
			/* RELAXED hit.module_counts: numbers for people; nothing depends on them. */
			tw_fetch_add_relaxed(&tw_hit_sessions[session].module_counts[TW_MODULE_NESTED], 1);
		/* The rings of the agent's session count it as well: the recorder reads them. */
		if (ring->producer.shared)
			tw_rb_refuse(&ring->producer, TW_RB_LOST_NESTED, ticks);
		else if (tw_hit_sessions[session].rs)
			tw_rs_count_no_ring(tw_hit_sessions[session].rs, ticks);
	}
}

/*
 * After its last destructor a thread has no ring and no read side; this function uses only what is never freed. It
 * may see half of a change in progress, and then count or not count a call for a session that comes or goes.
 */
void tw_hit_count_pinned(uint64_t sessions, enum tw_thread_state state)
{
	/* RELAXED hit.no_clock: a single time, nearly right. */
	uint64_t ticks = state == TW_THREAD_NO_CLOCK ? tw_load_relaxed(&tw_hit_no_clock_ticks) : tw_clock_ticks();

	/* RELAXED hit.modules: a change in progress may be seen half. */
	for (uint64_t todo = sessions & tw_load_relaxed(&tw_hit_modules); todo; todo &= todo - 1) {
		struct tw_hit_session *session = &tw_hit_sessions[__builtin_ctzll(todo)];

		/* RELAXED hit.module_counts: numbers for people; nothing depends on them. */
		tw_fetch_add_relaxed(&session->module_counts[TW_MODULE_NO_THREAD], 1);
	}
	if (!tw_hit_host.pinned_rs || !(sessions >> tw_hit_host.pinned_session & 1))
		return;
	if (state == TW_THREAD_ENDED)
		tw_rs_count_ended(tw_hit_host.pinned_rs, ticks);
	else if (state == TW_THREAD_VFORKED)
		tw_rs_count_vfork(tw_hit_host.pinned_rs, ticks);
	else
		tw_rs_count_no_ring(tw_hit_host.pinned_rs, ticks);
}
