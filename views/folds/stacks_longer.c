/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stacks_longer.c - reads the events once in advance, and finds the calls that took at least so long.
 *
 * A call is known by its number on its stack: both readings count alike. Its bit says whether it is long, so that the
 * second reading knows it when it begins.
 */
#include "views/folds/stacks_foresee.h"
#include "views/folds/pass.h"
#include "base/grow.h"

#include "tracewheel/error.h"

#include <stdlib.h>

struct finding {
	struct tw_stacks stacks;
	struct tw_stacks *of;
	bool has_no_memory;
};

static bool mark(struct tw_stacks *stacks, const struct tw_stack *stack, uint64_t serial)
{
	if (!tw_grow_to(stacks->longer, stacks->longer_count, stack->number))
		return false;
	struct tw_stack_longer *longer = &stacks->longer[stack->number];
	if (serial / 64 > UINT32_MAX - 1 || !tw_grow_to(longer->bits, longer->count, (uint32_t)(serial / 64)))
		return false;
	longer->bits[serial / 64] |= UINT64_C(1) << serial % 64;
	return true;
}

static void on_end(void *context, struct tw_stack *stack, enum tw_frame_end how, const struct tw_frame_time *time)
{
	struct finding *finding = context;
	(void)how;
	if (time->total_ns >= finding->of->least_ns &&
	    !mark(finding->of, stack, stack->frames[stack->depth - 1].serial))
		finding->has_no_memory = true;
}

static int see(void *self, const struct tw_capture_event *event)
{
	struct finding *finding = self;
	struct tw_step step;
	return tw_stacks_event(&finding->stacks, event, &step) && !finding->has_no_memory ? 0 : TW_ENOMEM;
}

int tw_stacks_find_longer(struct tw_stacks *stacks, const struct tw_capture_filter *filter)
{
	struct finding finding = {.of = stacks};
	struct tw_fold fold = {.self = &finding, .filter = *filter, .see = see};
	if (!tw_places_have_durations(stacks->places))
		return TW_ENOTSUP;
	int error = tw_stacks_init(&finding.stacks, stacks->capture, stacks->places);
	finding.stacks.calls = (struct tw_stacks_calls){.end = on_end, .context = &finding};
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
	return error ? error : finding.has_no_memory ? TW_ENOMEM : 0;
}

/* ---- calls that are left out ---- */

bool tw_stacks_hides_next(const struct tw_stacks *stacks, const struct tw_stack *stack)
{
	if (!stacks->least_ns)
		return false;
	if (stack->hidden_count || stack->number >= stacks->longer_count)
		return true;
	const struct tw_stack_longer *longer = &stacks->longer[stack->number];
	uint64_t serial = stack->serials + 1;
	return serial / 64 >= longer->count || !(longer->bits[serial / 64] >> serial % 64 & 1);
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

bool tw_stacks_end_hidden(struct tw_stack *stack, uint32_t function)
{
	for (uint32_t at = stack->hidden_count; at-- > 0;) {
		if (stack->hidden[at].function == function) {
			stack->hidden_count = at;
			return true;
		}
	}
	return false;
}
