/* SPDX-License-Identifier: Apache-2.0 */
/*
 * left.c - hits, and our own work, that a signal handler interrupts: was it left by a jump, and who made the current
 * call?
 *
 * Nothing here makes system calls that a filter may forbid, except for our own work, which makes system calls anyway.
 * A hit counts as left only on proof; docs/decisions/0012 says why.
 */
#include "pipeline/hit/hit.h"
#include "pipeline/thread/thread.h"
#include "base/filter.h"
#include "progress/read_side.h"

#define NO_VECTORS __attribute__((target("general-regs-only")))

enum stack { STACK_UNKNOWN, STACK_OWN, STACK_SIGNAL };

/* The signal stack is tested first: it may be an array on the thread's own stack. */
NO_VECTORS static enum stack stack_of(const struct tw_thread *thread, uintptr_t at)
{
	if (at >= tw_thread_signal_stack.low && at < tw_thread_signal_stack.high)
		return STACK_SIGNAL;
	return at >= thread->stack_low && at < thread->stack_high ? STACK_OWN : STACK_UNKNOWN;
}

/*
 * Is a frame certainly gone, now that the thread runs at `now`? It is if both lie on one stack and the frame is
 * deeper. If they lie on two, either may continue later (coroutines, also those that a handler switches between), except
 * that a handler's stack is only left by a jump, unless its flags allow handlers to switch away from it.
 */
NO_VECTORS static bool is_left(const struct tw_thread *thread, uintptr_t frame, uintptr_t now)
{
	enum stack from = stack_of(thread, frame), to = stack_of(thread, now);

	if (from == to)
		return from != STACK_UNKNOWN && frame < now;
	return from == STACK_SIGNAL && to == STACK_OWN && !tw_thread_signal_stack.is_disarmed_in_handlers;
}

NO_VECTORS bool tw_hit_was_abandoned(const struct tw_hit_tls *t, const void *frame)
{
	uintptr_t before = t->state, now = (uintptr_t)frame;

	/* Two calls in progress have two frames, on any stacks. */
	if (now == before)
		return true;
	if (!is_left(t->thread, before, now))
		return false;
	if (tw_thread_hears_signal_stacks)
		return true;
	if (!tw_thread_may_call_system())
		return false;
	/* A signal stack may have been set since, perhaps on the thread's own stack. */
	tw_sys_signal_stack(&tw_thread_signal_stack);
	return is_left(t->thread, before, now);
}

NO_VECTORS void tw_hit_give_back(struct tw_hit_tls *t)
{
	t->tracee = t->thread->saved_tracee;
	t->thread->saved_tracee = NULL;
	t->run_stamp++;
	t->run_seq = t->tracee == &tw_hit_nobody ? 0 : TW_RUN_DUE;
}

/* A handler jumped out of a hit, at any instruction: perhaps inside its read section, perhaps while waiting. */
NO_VECTORS void tw_hit_leave_abandoned(struct tw_hit_tls *t)
{
	/* PAIR hit.waiting: seq_cst; a thread that destroys the session waits for this. */
	tw_store_seq_cst(&t->thread->waiting_session, 0);
	if (tw_progress_is_inside(&t->thread->reader))
		tw_progress_exit(&t->thread->reader);
	if (t->thread->saved_tracee)
		tw_hit_give_back(t);
	t->thread->one.stamp = 0;
	t->state = TW_THREAD_READY;
}

void tw_thread_jumps(uintptr_t to)
{
	struct tw_hit_tls *t = &tw_hit_tls;

	if (tw_hit_is_under_way() && is_left(t->thread, t->state, to))
		tw_hit_leave_abandoned(t);
	else if (t->state == TW_THREAD_BUSY && is_left(t->thread, t->thread->busy_frame, to))
		tw_thread_end_own_work(true);
}

/* ---- our own work, and handlers that interrupt it ---- */

bool tw_thread_begin_own_work(const void *frame)
{
	struct tw_hit_tls *t = &tw_hit_tls;

	if (t->state != TW_THREAD_READY)
		return false;
	tw_sys_blocked_signals(&t->thread->busy_signals);
	t->thread->busy_frame = (uintptr_t)frame;
	tw_compiler_barrier();
	t->state = TW_THREAD_BUSY;
	return true;
}

void tw_thread_end_own_work(bool has_begun)
{
	struct tw_hit_tls *t = &tw_hit_tls;

	if (!has_begun)
		return;
	t->thread->busy_frame = 0;
	tw_hit_end(t);
}

/*
 * Words that the kernel pushes for a handler: %rsp, %rip, the flags, and the four segment selectors, which are
 * constant.
 */
#define SEGMENTS    UINT64_C(0x002b000000000033)
#define FLAGS_MAX   UINT64_C(0x400000)
#define FLAG_ALWAYS UINT64_C(0x2)
#define SCAN_BYTES  UINT64_C(0x20000)

/* Is there a signal frame between two frames of one stack? */
NO_VECTORS __attribute__((no_sanitize("address"))) static bool has_signal_frame(uintptr_t from, uintptr_t to)
{
	if (to - from > SCAN_BYTES)
		to = from + SCAN_BYTES;
	for (const uint64_t *at = (const uint64_t *)(from & ~(uintptr_t)7) + 3; (uintptr_t)at < to; at++)
		if (tw_unlikely(*at == SEGMENTS) && at[-3] > (uintptr_t)at && at[-3] <= to && (at[-1] & FLAG_ALWAYS) &&
		    at[-1] < FLAGS_MAX)
			return true;
	return false;
}

/*
 * Both frames must lie on one known stack: between two stacks there may be no memory.  On other stacks (coroutines), a
 * call of ours cannot be told from one of a handler, which must not be overlooked.
 */
NO_VECTORS bool tw_hit_is_own_call(const struct tw_hit_tls *t, const void *frame)
{
	uintptr_t before = t->state, now = (uintptr_t)frame;
	enum stack stack = stack_of(t->thread, before);

	return now < before && before - now <= SCAN_BYTES && stack != STACK_UNKNOWN &&
	       stack == stack_of(t->thread, now) && !has_signal_frame(now, before);
}

/*
 * A handler either runs on a stack of its own, or has its signal blocked, or is recognised by the words that the
 * kernel pushed.
 */
NO_VECTORS enum tw_thread_state tw_thread_classify_call(struct tw_hit_tls *t, const void *frame)
{
	struct tw_thread *thread = t->thread;
	uintptr_t now = (uintptr_t)frame;
	uint64_t signals;

	if (is_left(thread, thread->busy_frame, now)) {
		thread->busy_frame = 0;
	} else if (stack_of(thread, now) == stack_of(thread, thread->busy_frame)) {
		tw_sys_blocked_signals(&signals);
		if (signals == thread->busy_signals &&
		    (now >= thread->busy_frame || !has_signal_frame(now, thread->busy_frame)))
			return TW_THREAD_JOINING;
	}
	t->state = TW_THREAD_READY;
	return TW_THREAD_NEW;
}
