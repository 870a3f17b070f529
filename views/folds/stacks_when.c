/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stacks_when.c - which calls are selected, by their length and by conditions.
 *
 * A condition that is decided at the end of a call needs a reading of the events in advance. There a call is known by its number on its stack, which
 * both readings count alike; two bits say whether it is shown and whether it is chosen, so that the second reading knows it when it begins.
 */
#include "views/folds/stacks_foresee.h"
#include "views/folds/pass.h"
#include "base/grow.h"

#include "tracewheel/error.h"

#include <stdlib.h>

enum { SHOWN = 1, CHOSEN = 2 };

/* The meanings of a frame's mark; from there on the number of what is kept of the call. */
enum { MARK_DECIDED, MARK_CHOSEN_IF_LONG, MARK_KEPT };

struct finding {
	struct tw_stacks stacks;
	struct tw_stacks *of;
	struct tw_when_call *kept;
	uint32_t *free; /* numbers of those that are not in use */
	uint32_t kept_count, kept_capacity, free_count, free_capacity;
	bool has_no_memory;
};

static void select_call(struct finding *finding, const struct tw_stack *stack, uint64_t bits)
{
	struct tw_stacks *of = finding->of;
	uint64_t serial = stack->frames[stack->depth - 1].serial, at = serial / 32;
	if (!tw_grow_to(of->selected, of->selected_count, stack->number) || at > UINT32_MAX - 1 ||
	    !tw_grow_to(of->selected[stack->number].bits, of->selected[stack->number].count, (uint32_t)at))
		finding->has_no_memory = true;
	else
		of->selected[stack->number].bits[at] |= bits << serial % 32 * 2;
}

/* A number for what is kept of a call. */
static bool keep_call(struct finding *finding, const struct tw_when_call *call, uint32_t *number)
{
	if (finding->free_count) {
		*number = finding->free[--finding->free_count];
	} else if (tw_grow(finding->kept, finding->kept_count, finding->kept_capacity)) {
		*number = finding->kept_count++;
	} else {
		finding->has_no_memory = true;
		return false;
	}
	finding->kept[*number] = *call;
	return true;
}

static void on_begin(void *context, struct tw_stack *stack)
{
	struct finding *finding = context;
	struct tw_when *when = finding->of->when;
	struct tw_stack_frame *frame = &stack->frames[stack->depth - 1];
	struct tw_when_call call;
	enum tw_when_truth truth = tw_when_begin(when, finding->stacks.event, &call);
	uint32_t number;
	frame->mark = MARK_DECIDED;
	when->decided += truth != TW_WHEN_UNKNOWN;
	if (!when->least_ns && truth == TW_WHEN_TRUE)
		select_call(finding, stack, SHOWN | CHOSEN);
	else if (!when->least_ns && finding->of->chooses)
		select_call(finding, stack, SHOWN);
	if (when->least_ns && truth == TW_WHEN_TRUE)
		frame->mark = MARK_CHOSEN_IF_LONG;
	else if ((truth == TW_WHEN_UNKNOWN || (when->least_ns && finding->of->chooses)) &&
		 keep_call(finding, &call, &number))
		frame->mark = MARK_KEPT + number;
}

static void on_end(void *context, struct tw_stack *stack, enum tw_frame_end how, const struct tw_frame_time *time)
{
	struct finding *finding = context;
	struct tw_when *when = finding->of->when;
	const struct tw_stack_frame *frame = &stack->frames[stack->depth - 1];
	bool is_long = time->total_ns >= when->least_ns,
	     is_over = how == TW_FRAME_RETURNED || how == TW_FRAME_EXCEPTION;
	const struct tw_when_end end = {is_over ? finding->stacks.event : NULL, time->total_ns,
					how == TW_FRAME_EXCEPTION};
	if (frame->mark == MARK_CHOSEN_IF_LONG && is_long)
		select_call(finding, stack, SHOWN | CHOSEN);
	if (frame->mark < MARK_KEPT)
		return;
	uint32_t number = frame->mark - MARK_KEPT;
	enum tw_when_truth truth = is_long ? tw_when_end(when, &finding->kept[number], &end) : TW_WHEN_FALSE;
	if (truth == TW_WHEN_TRUE)
		select_call(finding, stack, SHOWN | CHOSEN);
	else if (is_long && finding->of->chooses)
		select_call(finding, stack, SHOWN);
	tw_when_count(when, truth);
	if (tw_grow(finding->free, finding->free_count, finding->free_capacity))
		finding->free[finding->free_count++] = number;
	else
		finding->has_no_memory = true;
}

static int see(void *self, const struct tw_capture_event *event)
{
	struct finding *finding = self;
	struct tw_step step;
	return tw_stacks_event(&finding->stacks, event, &step) && !finding->has_no_memory ? 0 : TW_ENOMEM;
}

int tw_stacks_find_selected(struct tw_stacks *stacks, const struct tw_capture_filter *filter)
{
	struct finding finding = {.of = stacks};
	struct tw_fold fold = {.self = &finding, .filter = *filter, .see = see};
	if (!tw_when_is_late(stacks->when))
		return 0;
	if (!tw_places_have_durations(stacks->places))
		return TW_ENOTSUP;
	int error = tw_stacks_init(&finding.stacks, stacks->capture, stacks->places);
	finding.stacks.calls = (struct tw_stacks_calls){.begin = on_begin, .end = on_end, .context = &finding};
	/* Lent: calls end in losses there as here. */
	finding.stacks.verdicts = stacks->verdicts;
	finding.stacks.verdict_count = stacks->verdict_count;
	if (error == 0)
		error = tw_pass_one(stacks->capture, &fold, NULL);
	if (error == 0)
		tw_stacks_finish(&finding.stacks, filter->to_ns);
	finding.stacks.verdicts = NULL;
	finding.stacks.verdict_count = 0;
	tw_stacks_free(&finding.stacks);
	free(finding.kept);
	free(finding.free);
	return error ? error : finding.has_no_memory || stacks->when->has_no_memory ? TW_ENOMEM : 0;
}

/* ---- calls that are left out ---- */

static unsigned selected(const struct tw_stacks *stacks, const struct tw_stack *stack)
{
	uint64_t serial = stack->serials + 1;
	const struct tw_stack_selected *calls =
		stack->number < stacks->selected_count ? &stacks->selected[stack->number] : NULL;
	return calls && serial / 32 < calls->count ? calls->bits[serial / 32] >> serial % 32 * 2 & 3 : 0;
}

/* Decides by what is known as the call begins. */
static unsigned decide_now(struct tw_stacks *stacks)
{
	struct tw_when_call call;
	enum tw_when_truth truth = tw_when_begin(stacks->when, stacks->event, &call);
	tw_when_count(stacks->when, truth);
	return truth == TW_WHEN_TRUE ? SHOWN | CHOSEN : SHOWN;
}

bool tw_stacks_hides_next(struct tw_stacks *stacks, struct tw_stack *stack, bool has_end)
{
	stack->is_call_chosen = true;
	if (!tw_when_selects(stacks->when))
		return false;
	/* A call without a recorded end has no duration: it is short. */
	unsigned bits = has_end && tw_when_is_late(stacks->when) ? selected(stacks, stack)
			: !has_end && stacks->when->least_ns	 ? 0
								 : decide_now(stacks);
	stack->is_call_chosen = (bits & CHOSEN) != 0;
	return !(bits & (stacks->chooses ? SHOWN : CHOSEN));
}

bool tw_stacks_hide(struct tw_stacks *stacks, struct tw_step *step)
{
	struct tw_stack *stack = step->stack;
	step->kind = TW_STEP_HIDDEN;
	stack->serials++;
	stacks->hidden++;
	if (!tw_grow(stack->hidden, stack->hidden_count, stack->hidden_capacity))
		return false;
	stack->hidden[stack->hidden_count++] = (struct tw_stack_hidden){stack->serials, step->function};
	return true;
}

uint64_t tw_stacks_find_hidden(const struct tw_stack *stack, uint32_t function)
{
	for (uint32_t at = stack->hidden_count; at-- > 0;) {
		if (stack->hidden[at].function == function)
			return stack->hidden[at].serial;
	}
	return 0;
}

void tw_stacks_end_hidden(struct tw_stack *stack, uint64_t serial)
{
	while (stack->hidden_count && stack->hidden[stack->hidden_count - 1].serial > serial)
		stack->hidden_count--;
}
