/* SPDX-License-Identifier: Apache-2.0 */
/* open_calls.c - the registers of open calls.  Compiled without vector registers, as hit.c. */
#include "pipeline/hit/open_calls.h"

/* Is a a better place for a call at this frame than b?  The same frame, a free one, one that must be left, the oldest. */
static bool is_better(const struct tw_open_call *a, const struct tw_open_call *b, uintptr_t frame)
{
	if ((a->frame == frame) != (b->frame == frame))
		return a->frame == frame;
	if (!a->frame != !b->frame)
		return !a->frame;
	if ((a->frame < frame) != (b->frame < frame))
		return a->frame < frame;
	return a->order < b->order;
}

void tw_open_calls_add(struct tw_open_calls *open, const struct tw_arg_plan *plan, uintptr_t frame,
		       const uint64_t *words)
{
	struct tw_open_call *call = open->calls;

	for (unsigned i = 1; i < TW_OPEN_CALLS_MAX; i++)
		if (is_better(&open->calls[i], call, frame))
			call = &open->calls[i];
	call->plan = plan;
	call->order = ++open->order;
	for (unsigned i = 0; i < TW_ARGS_MAX; i++)
		call->words[i] = words[i];
	call->frame = frame;
}

const uint64_t *tw_open_calls_take(struct tw_open_calls *open, const struct tw_arg_plan *plan, uintptr_t frame)
{
	for (unsigned i = 0; i < TW_OPEN_CALLS_MAX; i++) {
		struct tw_open_call *call = &open->calls[i];

		if (call->frame != frame || call->plan != plan)
			continue;
		call->frame = 0;
		return call->words;
	}
	return NULL;
}
