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

/* ---- the message ---- */

static void append(struct tw_rs_trigger_call *call, size_t *used, const char *text)
{
	while (*text && *used + 1 < sizeof call->function)
		call->function[(*used)++] = *text++;
}

static void tell_there(void *arg)
{
	const struct tw_trigger_met *met = arg;
	const struct tw_function *function = met->place->function;
	const struct tw_thread *thread = tw_hit_tls.thread;
	const struct tw_tracee *own = thread->own_tracee;
	/* Now: the records of the call, which are behind it, come before. */
	struct tw_rs_trigger_call call = {.ticks = tw_clock_ticks(),
					  .begin_ticks = met->begin_ticks,
					  .own_ticks = met->begin_ticks ? tw_trigger_own_since(thread->own_ticks,
											       met->begin_own_ticks)
									: 0,
					  .process_id = tw_hit_host.pinned_rs->own.process_id,
					  .thread_id = own ? own->thread_id : 0};
	size_t used = 0;

	append(&call, &used, function->module->name);
	append(&call, &used, ":");
	append(&call, &used, function->name);
	tw_rs_trigger_tell(tw_hit_host.pinned_rs, &call, tw_thread_may_call_system());
	tw_rs_trigger_pass_over(tw_hit_host.pinned_rs, met->others);
}

void tw_trigger_tell(const struct tw_trigger_met *met, uint64_t *slot)
{
	if (!tw_frame_begin(FRAME(slot), 0))
		return;
	tw_own_stack_call(tell_there, (void *)(uintptr_t)met);
	tw_frame_end();
}

/* ---- calls ---- */

/* The shadow of the slot is mapped. */
static const char *open_frame(const struct tw_place *place, const uint64_t *words, uint64_t *slot,
			      const char *resume_at)
{
	const struct tw_call_condition *trigger = trigger_of(place);
	struct tw_trigger_frame frame = {.place = place,
					 .begin_ticks = tw_clock_ticks(),
					 .more = TW_TRIGGER_FRAME | tw_hit_tls.thread->own_ticks
									    << TW_TRIGGER_OWN_SHIFT};

	for (unsigned i = 0; i < trigger->kept_count; i++)
		frame.kept[i] = words[trigger->kept[i]];
	tw_returns_open(slot, (const tw_return_word *)&frame, false, tw_unwind_is_known(), &resume_at);
	return resume_at;
}

const char *tw_trigger_call(struct tw_place *place, const uint64_t *words, uint64_t *slot, const char *resume_at)
{
	const struct tw_call_condition *trigger = trigger_of(place);
	struct tw_hit_tls *t = &tw_hit_tls;
	struct tw_trigger_met met = {0};
	bool opens;

	if (!trigger || !tw_hit_begin(t, FRAME(slot)))
		return resume_at;
	tw_progress_enter(&t->thread->reader);
	opens = is_traced(t) && trigger->is_of_end && !place->is_unwatched && tw_native_is_watching() &&
		(tw_returns_has_shadow(slot) || tw_returns_map(slot));
	if (is_traced(t) && !trigger->is_of_end && tw_condition_is_met(trigger, place, words, TW_ARGS_MAX))
		met.place = place;
	if (opens)
		resume_at = open_frame(place, words, slot, resume_at);
	tw_progress_exit(&t->thread->reader);
	tw_hit_end(t);
	if (met.place)
		tw_trigger_tell(&met, slot);
	return resume_at;
}

/* ---- ends ---- */

void tw_trigger_end(const struct tw_trigger_frame *frame, uint64_t *slot, uint64_t value, struct tw_trigger_met *met)
{
	const struct tw_call_condition *trigger = trigger_of(frame->place);
	uint64_t registers[TW_ARGS_MAX], own = frame->more >> TW_TRIGGER_OWN_SHIFT;
	struct tw_condition_end end = {.registers = registers, .value = value};
	struct tw_hit_tls *t = &tw_hit_tls;

	end.ticks = tw_clock_ticks() - frame->begin_ticks;
	if (!trigger || !trigger->is_of_end || frame->begin_ticks < trigger->since_ticks ||
	    t->state != TW_THREAD_READY || !tw_frame_begin(FRAME(slot), 0))
		return;
	for (unsigned i = 0; i < trigger->kept_count; i++)
		registers[trigger->kept[i]] = frame->kept[i];
	end.ticks -= tw_trigger_own_since(t->thread->own_ticks, own);
	if (is_traced(t) && tw_condition_is_met_by_end(trigger, frame->place, &end))
		*met = (struct tw_trigger_met){frame->place, frame->begin_ticks, own,
					       met->others + (met->place != NULL)};
	tw_frame_end();
}
