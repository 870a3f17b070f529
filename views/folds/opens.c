/* SPDX-License-Identifier: Apache-2.0 */
/* opens.c - remembers for each open call the event that it began with. */
#include "views/folds/opens.h"
#include "base/grow.h"
#include "base/search.h"
#include "views/folds/pass.h"
#include "views/folds/stacks.h"

#include "tracewheel/error.h"

#include <stdlib.h>

/* Of one process: by depth its open calls, its last schedule, and the last state of its thread. */
struct begun {
	struct tw_cut_event *calls;
	size_t count, capacity;
	struct tw_cut_event schedule, state;
	bool has_schedule, has_state;
};

struct opens {
	struct tw_stacks stacks;
	struct tw_cut_event *events;
	size_t count, capacity;
};

static bool is_schedule(unsigned kind)
{
	return kind == TW_CAPTURE_IN || kind == TW_CAPTURE_OUT || kind == TW_CAPTURE_IN_EXITING ||
	       kind == TW_CAPTURE_OUT_EXITING;
}

static int see(void *self, const struct tw_capture_event *event)
{
	const struct tw_cut_event here = {event->stream, event->sequence};
	struct opens *opens = self;
	struct tw_step step;
	if (!tw_stacks_event(&opens->stacks, event, &step))
		return TW_ENOMEM;
	if (!step.stack->user)
		step.stack->user = calloc(1, sizeof(struct begun));
	struct begun *begun = step.stack->user;
	if (!begun)
		return TW_ENOMEM;
	if (is_schedule(event->kind)) {
		begun->schedule = here;
		begun->has_schedule = true;
	}
	if (event->kind == TW_CAPTURE_THREAD_STATE) {
		begun->state = here;
		begun->has_state = true;
	}
	if (step.kind != TW_STEP_CALL || step.depth >= step.stack->depth)
		return 0;
	for (begun->count = step.depth; begun->count >= begun->capacity;)
		if (!tw_grow(begun->calls, begun->count, begun->capacity))
			return TW_ENOMEM;
	begun->calls[step.depth] = here;
	return 0;
}

static bool add(struct opens *opens, struct tw_cut_event event)
{
	if (!tw_grow(opens->events, opens->count, opens->capacity))
		return false;
	opens->events[opens->count++] = event;
	return true;
}

static int compare(const void *a, const void *b)
{
	const struct tw_cut_event *x = a, *y = b;
	return TW_ORDER(x->stream, y->stream) ?: TW_ORDER(x->sequence, y->sequence);
}

/* Takes what each process has, and frees it. */
static int collect(struct opens *opens, uint64_t from_ns)
{
	bool has_memory = true;
	tw_stacks_begin(&opens->stacks, from_ns);
	for (struct tw_stack *stack = NULL; (stack = tw_stacks_next(&opens->stacks, stack));) {
		struct begun *begun = stack->user;
		for (uint32_t depth = 0; begun && depth < stack->depth; depth++)
			has_memory &= add(opens, begun->calls[depth]);
		if (begun && begun->has_schedule)
			has_memory &= add(opens, begun->schedule);
		if (begun && begun->has_state)
			has_memory &= add(opens, begun->state);
	}
	if (opens->count)
		qsort(opens->events, opens->count, sizeof *opens->events, compare);
	return has_memory ? 0 : TW_ENOMEM;
}

static void forget(struct opens *opens)
{
	for (struct tw_stack *stack = NULL; (stack = tw_stacks_next(&opens->stacks, stack));) {
		struct begun *begun = stack->user;
		if (begun)
			free(begun->calls);
		free(begun);
	}
	tw_stacks_free(&opens->stacks);
}

static int find_events(struct tw_opens *out, struct tw_capture *capture, const struct tw_capture_filter *filter,
		       const struct tw_places *places)
{
	struct opens opens = {.count = 0};
	struct tw_fold fold = {.self = &opens, .filter = *filter, .see = see};
	struct tw_capture_filter all = *filter;
	all.from_ns = fold.filter.from_ns = 0;
	fold.filter.to_ns = filter->from_ns;
	all.wants_thread_states = fold.filter.wants_thread_states = true;
	int error = tw_stacks_init(&opens.stacks, capture, places);
	if (!error)
		error = tw_stacks_foresee(&opens.stacks, &all);
	if (!error)
		error = tw_pass_one(capture, &fold, "finding open calls");
	if (!error)
		error = collect(&opens, filter->from_ns);
	forget(&opens);
	out->events = opens.events;
	out->event_count = opens.count;
	return error;
}

/* The calls of a function are given once, at its first place. */
static int take_places(struct tw_opens *out, struct tw_places *places)
{
	size_t capacity = 0;
	for (uint32_t i = 0; i < places->image_count; i++) {
		for (uint32_t id = 0; id < places->images[i].count; id++) {
			uint32_t function = places->images[i].function[id];
			uint64_t *calls = function < places->calls_count ? &places->whole_calls[function] : NULL;
			if (!calls || (!*calls && places->images[i].is_moment[id]))
				continue;
			if (!tw_grow(out->places, out->place_count, capacity))
				return TW_ENOMEM;
			out->places[out->place_count++] =
				(struct tw_capture_whole_place){i, id, places->images[i].is_moment[id], *calls};
			*calls = 0;
		}
	}
	return 0;
}

int tw_opens_find(struct tw_opens *out, struct tw_capture *capture, const struct tw_capture_filter *filter)
{
	struct tw_places places = {0};
	*out = (struct tw_opens){0};
	int error = tw_places_make(&places, capture, filter);
	if (!error && filter->from_ns)
		error = find_events(out, capture, filter, &places);
	memcpy(out->kinds, places.kinds, sizeof out->kinds);
	if (!error)
		error = take_places(out, &places);
	tw_places_free(&places);
	return error;
}

void tw_opens_free(struct tw_opens *opens)
{
	free(opens->events);
	free(opens->places);
	*opens = (struct tw_opens){0};
}
