/* SPDX-License-Identifier: Apache-2.0 */
/* trigger.c - calls for which a snapshot is written.  Compiled without vector registers, as hit.c. */
#include "pipeline/hit/trigger.h"
#include "base/clock.h"
#include "base/filter.h"
#include "breakpoints/own_stack.h"
#include "breakpoints/returns.h"
#include "breakpoints/unwind.h"
#include "pipeline/hit/native.h"
#include "pipeline/thread/thread.h"
#include "progress/read_side.h"

_Static_assert(sizeof(struct tw_trigger_frame) == TW_RETURNS_WORDS * sizeof(uint64_t), "fits an entry");
_Static_assert(offsetof(struct tw_trigger_frame, place) == offsetof(struct tw_frame_wants, place), "as any frame");
_Static_assert(offsetof(struct tw_trigger_frame, more) == offsetof(struct tw_frame_wants, more), "as any frame");

/* As in native.c: identifies a call during its hits. */
#define FRAME(slot) ((void *)((slot)-1))

static const struct tw_call_condition *trigger_of(const struct tw_place *place)
{
	/* PAIR bp.trigger: acquire; release in tw_bp_place_set_trigger(). */
	return tw_load_acquire(&place->trigger);
}

/* Is the thread's process recorded by the session of the command? */
static bool is_traced(const struct tw_hit_tls *t)
{
	/* PROGRESS hit.wants: as in hit(). */
	return tw_hit_host.pinned_rs && tw_load_relaxed(&t->tracee->wants_call) & UINT64_C(1)
											  << tw_hit_host.pinned_session;
}

/* The tracer's own time since the call began. */
static uint64_t own_ticks_since(const struct tw_trigger_frame *frame)
{
	return tw_trigger_own_since(tw_hit_tls.thread->own_ticks, frame->more >> TW_TRIGGER_OWN_SHIFT);
}

/* ---- the message ---- */

static void append(struct tw_rs_trigger_call *call, size_t *used, const char *text)
{
	while (*text && *used + 1 < sizeof call->function)
		call->function[(*used)++] = *text++;
}

struct telling {
	const struct tw_place *place;
	const struct tw_trigger_frame *frame; /* NULL: the call has just begun */
	uint64_t others;
};

static void tell_there(void *arg)
{
	const struct telling *telling = arg;
	const struct tw_trigger_frame *frame = telling->frame;
	const struct tw_function *function = telling->place->function;
	const struct tw_thread *thread = tw_hit_tls.thread;
	const struct tw_tracee *own = thread->own_tracee;
	/* Now: the records of the call, which are behind it, come before. */
	struct tw_rs_trigger_call call = {.ticks = tw_clock_ticks(),
					  .begin_ticks = frame ? frame->begin_ticks : 0,
					  .own_ticks = frame ? own_ticks_since(frame) : 0,
					  .process_id = tw_hit_host.pinned_rs->own.process_id,
					  .thread_id = own ? own->thread_id : 0};
	size_t used = 0;

	append(&call, &used, function->module->name);
	append(&call, &used, ":");
	append(&call, &used, function->name);
	tw_rs_trigger_tell(tw_hit_host.pinned_rs, &call, tw_thread_may_call_system());
	tw_rs_trigger_pass_over(tw_hit_host.pinned_rs, telling->others);
}

static __attribute__((noinline)) void tell(const struct tw_place *place, const struct tw_trigger_frame *frame,
					   uint64_t others, uint64_t *slot)
{
	struct telling telling = {place, frame, others};

	if (!tw_frame_begin(FRAME(slot), 0))
		return;
	tw_own_stack_call(tell_there, &telling);
	tw_frame_end();
}

void tw_trigger_tell(struct tw_trigger_met met, uint64_t *slot)
{
	tell(met.frame->place, met.frame, met.others, slot);
}

/* ---- calls ---- */

/* Enters a hit and its read section; false: there is none, or the process is not recorded. */
static bool begin(struct tw_hit_tls *t, uint64_t *slot)
{
	if (!tw_hit_begin(t, FRAME(slot)))
		return false;
	tw_progress_enter(&t->thread->reader);
	if (is_traced(t))
		return true;
	tw_progress_exit(&t->thread->reader);
	tw_hit_end(t);
	return false;
}

static void end(struct tw_hit_tls *t)
{
	tw_progress_exit(&t->thread->reader);
	tw_hit_end(t);
}

static __attribute__((noinline)) const char *decide(const struct tw_call_condition *trigger, struct tw_place *place,
						    const uint64_t *words, uint64_t *slot, const char *resume_at)
{
	bool is_met;

	if (!begin(&tw_hit_tls, slot))
		return resume_at;
	is_met = tw_condition_is_met(trigger, place, words, TW_ARGS_MAX);
	end(&tw_hit_tls);
	if (is_met)
		tell(place, NULL, 0, slot);
	return resume_at;
}

static __attribute__((noinline)) const char *decide_later(const struct tw_call_condition *trigger,
							  const struct tw_place *place, const uint64_t *words,
							  uint64_t *slot, const char *resume_at)
{
	struct tw_hit_tls *t = &tw_hit_tls;
	struct tw_trigger_frame *frame;

	if (place->is_unwatched || !tw_native_is_watching() || !begin(t, slot))
		return resume_at;
	/* As in longer_frame.h: not on the stack. */
	frame = (void *)(tw_return_word *)t->thread->callers;
	*frame = (struct tw_trigger_frame){.place = place,
					   .begin_ticks = tw_clock_ticks(),
					   .more = TW_TRIGGER_FRAME | t->thread->own_ticks << TW_TRIGGER_OWN_SHIFT};
	for (unsigned i = 0; i < trigger->kept_count; i++)
		frame->kept[i] = words[trigger->kept[i]];
	if (tw_returns_has_shadow(slot) || tw_returns_map(slot))
		tw_returns_open(slot, (const tw_return_word *)frame, false, tw_unwind_is_known(), &resume_at);
	end(t);
	return resume_at;
}

const char *tw_trigger_call(struct tw_place *place, const uint64_t *words, uint64_t *slot, const char *resume_at)
{
	const struct tw_call_condition *trigger = trigger_of(place);

	if (!trigger)
		return resume_at;
	return trigger->is_of_end ? decide_later(trigger, place, words, slot, resume_at)
				  : decide(trigger, place, words, slot, resume_at);
}

/* ---- ends ---- */

/* In a hit, which it leaves. */
static __attribute__((noinline)) bool decide_end(const struct tw_trigger_frame *frame, uint64_t ticks, uint64_t value)
{
	const struct tw_call_condition *trigger = trigger_of(frame->place);
	uint64_t *registers = tw_hit_tls.thread->callers;
	bool is_met = trigger && is_traced(&tw_hit_tls);

	for (unsigned i = 0; is_met && i < trigger->kept_count; i++)
		registers[trigger->kept[i]] = frame->kept[i];
	is_met =
		is_met && tw_condition_is_met_by_end(trigger, frame->place,
						     &(struct tw_condition_end){.registers = registers,
										.ticks = ticks - own_ticks_since(frame),
										.value = value});
	tw_frame_end();
	return is_met;
}

static __attribute__((noinline)) bool is_met_by_end(const struct tw_trigger_frame *frame, uint64_t *slot,
						    uint64_t value)
{
	const struct tw_call_condition *trigger = trigger_of(frame->place);
	uint64_t ticks = tw_clock_ticks() - frame->begin_ticks;

	if (!trigger || !trigger->is_of_end || frame->begin_ticks < trigger->since_ticks ||
	    tw_hit_tls.state != TW_THREAD_READY || !tw_frame_begin(FRAME(slot), 0))
		return false;
	return decide_end(frame, ticks, value);
}

struct tw_trigger_met tw_trigger_end(const struct tw_return_entry *entry, uint64_t *slot, uint64_t value)
{
	struct tw_trigger_met met = {0};

	for (unsigned number = tw_returns_count(entry); number-- > 0;) {
		const struct tw_frame_wants *wants = (const struct tw_frame_wants *)tw_returns_frame(entry, number);

		if (wants->place && tw_trigger_is(wants) &&
		    is_met_by_end((const struct tw_trigger_frame *)wants, slot, value)) {
			met.others += met.frame != NULL;
			met.frame = (const struct tw_trigger_frame *)wants;
		}
	}
	return met;
}
