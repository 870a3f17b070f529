/* SPDX-License-Identifier: Apache-2.0 */
/* slowest.c - finds the slowest calls, then sums up what they did. */
#include "views/folds/slowest.h"

#include "views/names/waits.h"
#include "base/grow.h"

#include "tracewheel/error.h"

#include <stdio.h>
#include <stdlib.h>

enum { CALLERS_SHOWN = 3, CALLERS_BYTES = 400 };

/* ---- the first reading ---- */

/* A call on a stack has a serial there. */
static uint64_t key_of(uint32_t stack, uint64_t serial)
{
	return (uint64_t)stack << 40 | serial;
}

/* Keeps the slowest, in order. */
static void keep(struct tw_slowest *slowest, const struct tw_slow_call *call)
{
	uint32_t at = slowest->count;
	if (at == slowest->most && call->compared_ns <= slowest->calls[at - 1].compared_ns)
		return;
	if (at < slowest->most)
		slowest->count++;
	else
		at--;
	for (; at > 0 && slowest->calls[at - 1].compared_ns < call->compared_ns; at--)
		slowest->calls[at] = slowest->calls[at - 1];
	slowest->calls[at] = *call;
}

/* Is a call, or one around it, of a function that waits? */
static bool is_wait(const struct tw_slowest *slowest, const struct tw_stack *stack)
{
	for (uint32_t i = 0; i < stack->depth; i++) {
		if (tw_function_waits(slowest->places.functions[stack->frames[i].function]))
			return true;
	}
	return false;
}

static void on_found(void *context, struct tw_stack *stack, enum tw_frame_end how, const struct tw_frame_time *time)
{
	struct tw_slowest *slowest = context;
	const struct tw_stack_frame *frame = &stack->frames[stack->depth - 1];
	/* How long a call took that has no end is not known. */
	if (how == TW_FRAME_CUT || !frame->is_chosen || (slowest->wanted && !slowest->wanted[frame->function]))
		return;
	slowest->compared++;
	const struct tw_slow_call call = {.key = key_of(stack->number, frame->serial),
					  .compared_ns = slowest->wanted ? time->total_ns : time->self_ns,
					  .start_ns = frame->start_ns,
					  .total_ns = time->total_ns,
					  .self_ns = time->self_ns,
					  .before_ns = frame->before_ns,
					  .function = frame->function,
					  .how = how,
					  .is_lossy = time->is_lossy};
	bool is_among_them =
		slowest->count < slowest->most || call.compared_ns > slowest->calls[slowest->count - 1].compared_ns;
	if (is_among_them && !slowest->wanted && slowest->hides_waits && is_wait(slowest, stack))
		return;
	keep(slowest, &call);
}

/* ---- the second reading ---- */

static uint32_t add_node(struct tw_slowest *slowest, uint32_t parent, uint32_t function)
{
	if (slowest->node_count == TW_SLOWEST_NODES_MAX) {
		slowest->is_full = true;
		return parent;
	}
	if (!tw_grow(slowest->nodes, slowest->node_count, slowest->node_capacity)) {
		slowest->has_no_memory = true;
		return parent;
	}
	uint32_t number = slowest->node_count++;
	slowest->nodes[number] = (struct tw_slow_node){.function = function};
	struct tw_slow_node *above = &slowest->nodes[parent];
	if (parent && above->last)
		slowest->nodes[above->last].next = number;
	else if (parent)
		above->first = number;
	above->last = parent ? number : 0;
	return number;
}

/* The node of this function below another; found calls have their own. */
static uint32_t child_of(struct tw_slowest *slowest, uint32_t parent, uint32_t function)
{
	uint32_t at = slowest->nodes[parent].last;
	if (at && slowest->nodes[at].function == function && !slowest->nodes[at].call)
		return at;
	for (at = slowest->nodes[parent].first; at; at = slowest->nodes[at].next)
		if (slowest->nodes[at].function == function && !slowest->nodes[at].call)
			return at;
	return add_node(slowest, parent, function);
}

static char *callers_of(const struct tw_slowest *slowest, const struct tw_stack *stack)
{
	char text[CALLERS_BYTES] = "";
	size_t used = 0;
	uint32_t depth = stack->depth - 1, from = depth > CALLERS_SHOWN ? depth - CALLERS_SHOWN : 0;
	for (uint32_t at = from; at < depth && used < sizeof text; at++)
		used += (size_t)snprintf(text + used, sizeof text - used, "%s%s",
					 at > from ? " > "
					 : from	   ? "... > "
						   : "",
					 slowest->places.names[stack->frames[at].function].text);
	return strdup(text);
}

/* The found call of a serial, of which nearly none has one. */
static inline struct tw_slow_call *call_with(const struct tw_slowest *slowest, const struct tw_stack *stack,
					     uint64_t serial)
{
	if (!(slowest->serials[serial % TW_SLOW_SERIALS / 64] >> serial % 64 & 1))
		return NULL;
	uint32_t at = tw_map_get(&slowest->by_key, key_of(stack->number, serial));
	return at == TW_MAP_NONE ? NULL : &slowest->calls[at];
}

static struct tw_slow_call *found_call(const struct tw_slowest *slowest, const struct tw_stack *stack)
{
	return call_with(slowest, stack, stack->frames[stack->depth - 1].serial);
}

static bool index_calls(struct tw_slowest *slowest)
{
	for (uint32_t i = 0; i < slowest->count; i++) {
		/* Serials have 40 bits in a key. */
		uint64_t key = slowest->calls[i].key;
		slowest->serials[key % TW_SLOW_SERIALS / 64] |= UINT64_C(1) << key % 64;
		if (!tw_map_put(&slowest->by_key, key, i))
			return false;
	}
	return true;
}

/* @call: it was found; NULL: it was not. */
static inline void begin_node(struct tw_slowest *slowest, struct tw_stack *stack, uint32_t parent,
			      struct tw_slow_call *call)
{
	struct tw_stack_frame *frame = &stack->frames[stack->depth - 1];
	frame->node = call     ? add_node(slowest, parent, frame->function)
		      : parent ? child_of(slowest, parent, frame->function)
			       : 0;
	struct tw_slow_node *node = &slowest->nodes[frame->node];
	if (!frame->node || frame->node == parent)
		return;
	if (!node->calls++)
		node->first_ns = frame->start_ns;
	if (!call)
		return;
	call->node = frame->node;
	node->call = (uint32_t)(call - slowest->calls) + 1;
	call->process = strdup(tw_stacks_name(&slowest->stacks, stack));
	call->callers = callers_of(slowest, stack);
	slowest->has_no_memory |= !call->process || !call->callers;
}

static void on_begin(void *context, struct tw_stack *stack)
{
	begin_node(context, stack, stack->depth > 1 ? stack->frames[stack->depth - 2].node : 0,
		   found_call(context, stack));
}

static void on_end(void *context, struct tw_stack *stack, enum tw_frame_end how, const struct tw_frame_time *time)
{
	struct tw_slowest *slowest = context;
	const struct tw_stack_frame *frame = &stack->frames[stack->depth - 1];
	uint32_t above = stack->depth > 1 ? stack->frames[stack->depth - 2].node : 0;
	(void)how;
	if (!frame->node || frame->node == above)
		return;
	slowest->nodes[frame->node].total_ns += time->total_ns;
	slowest->nodes[frame->node].self_ns += time->self_ns;
	if (time->states)
		tw_state_sums_add(&slowest->nodes[frame->node].states, &time->states->total);
}

static void on_moment(void *context, struct tw_stack *stack, uint32_t function)
{
	struct tw_slowest *slowest = context;
	uint32_t parent = stack->depth ? stack->frames[stack->depth - 1].node : 0;
	uint32_t number = parent ? child_of(slowest, parent, function) : 0;
	if (number && number != parent && !slowest->nodes[number].calls++)
		slowest->nodes[number].first_ns = stack->last_ns;
}

/* ---- both ---- */

struct reading {
	struct tw_slowest *slowest;
	struct tw_stacks_calls calls;
	struct tw_stacks_spans spans;
	bool has_begun;
};

static int begin(void *self, uint64_t from_ns)
{
	struct reading *reading = self;
	struct tw_slowest *slowest = reading->slowest;
	struct tw_stacks *stacks = &slowest->stacks;
	reading->has_begun = true;
	stacks->calls = reading->calls;
	if (!from_ns)
		return 0;
	tw_stacks_begin(stacks, from_ns);
	for (struct tw_stack *stack = NULL; slowest->nodes && (stack = tw_stacks_next(stacks, stack));) {
		uint32_t depth = stack->depth, parent = 0;
		for (stack->depth = 1; stack->depth <= depth; stack->depth++) {
			begin_node(slowest, stack, parent, found_call(slowest, stack));
			parent = stack->frames[stack->depth - 1].node;
		}
		stack->depth = depth;
	}
	return slowest->has_no_memory ? TW_ENOMEM : 0;
}

/* The found call that an event begins or ends; it is still among the frames when it began. */
static struct tw_slow_call *call_of(struct tw_slowest *slowest, const struct tw_step *step)
{
	const struct tw_stack_frame *frame = NULL;
	if (step->kind == TW_STEP_CALL && step->stack->depth > step->depth)
		frame = &step->stack->frames[step->depth];
	else if (step->kind == TW_STEP_RETURN)
		frame = step->frame;
	uint32_t call = frame && frame->node ? slowest->nodes[frame->node].call : 0;
	return call ? &slowest->calls[call - 1] : NULL;
}

static int see(void *self, const struct tw_capture_event *event)
{
	const struct reading *reading = self;
	struct tw_slowest *slowest = reading->slowest;
	struct tw_step step;
	if (!tw_stacks_event(&slowest->stacks, event, &step) || slowest->has_no_memory ||
	    (slowest->nodes && !tw_tracer_cost_event(&slowest->cost, event, &step)))
		return TW_ENOMEM;
	struct tw_slow_call *call =
		slowest->nodes && reading->has_begun && slowest->on_event ? call_of(slowest, &step) : NULL;
	return !call || slowest->on_event(slowest->context, call, event) ? 0 : TW_ENOMEM;
}

/* ---- records ---- */

/* A found call begins by an event of its own, for on_event(). */
static bool begins_found(const void *self, const struct tw_stack *stack)
{
	return call_with(((const struct reading *)self)->slowest, stack, stack->serials + 1);
}

static bool ends_found(const void *self, const struct tw_stack *stack)
{
	const struct tw_slowest *slowest = ((const struct reading *)self)->slowest;
	return slowest->nodes[stack->frames[stack->depth - 1].node].call;
}

static void plain_found(void *self, struct tw_stack *stack, enum tw_frame_end how, const struct tw_frame_time *time)
{
	on_found(((struct reading *)self)->slowest, stack, how, time);
}

static void plain_begin(void *self, struct tw_stack *stack)
{
	begin_node(((struct reading *)self)->slowest, stack,
		   stack->depth > 1 ? stack->frames[stack->depth - 2].node : 0, NULL);
}

static void plain_end(void *self, struct tw_stack *stack, enum tw_frame_end how, const struct tw_frame_time *time)
{
	on_end(((struct reading *)self)->slowest, stack, how, time);
}

static const struct tw_plain_calls finds = {.end = plain_found};
static const struct tw_plain_calls sums = {.begin = plain_begin,
					   .end = plain_end,
					   .wants_call = begins_found,
					   .wants_return = ends_found};

static int find_span(void *self, struct tw_fold_span *span)
{
	struct reading *reading = self;
	int error = tw_stacks_span(&reading->spans, reading, &finds, true, span);
	return error ? error : reading->slowest->has_no_memory ? TW_ENOMEM : 0;
}

static int sum_span(void *self, struct tw_fold_span *span)
{
	struct reading *reading = self;
	int error = tw_stacks_span(&reading->spans, reading, &sums, true, span);
	return error ? error : reading->slowest->has_no_memory ? TW_ENOMEM : 0;
}

/* @count: of presumed places; NULL: they are known. */
static int read_events(struct tw_slowest *slowest, const struct tw_capture_filter *filter, struct tw_stacks_calls calls,
		       const struct tw_count *count)
{
	struct reading reading = {.slowest = slowest, .calls = calls, .spans = {.stacks = &slowest->stacks}};
	struct tw_fold folds[2] = {{.self = &reading,
				    .filter = *filter,
				    .wants_before = true,
				    .begin = begin,
				    .see = see,
				    .see_span = slowest->nodes ? sum_span : find_span}};
	struct tw_fold *first = folds;
	size_t fold_count = 1;
	struct tw_capture_filter all = *filter;
	all.from_ns = 0;
	int error = tw_stacks_init(&slowest->stacks, slowest->capture, &slowest->places);
	/* The events of the calls are shown whole. */
	slowest->stacks.when = slowest->nodes ? NULL : slowest->when;
	slowest->stacks.chooses = true;
	if (error == 0)
		error = tw_stacks_foresee(&slowest->stacks, &all);
	if (error == 0 && slowest->nodes &&
	    !tw_tracer_cost_init(&slowest->cost, slowest->stacks.stream_count, slowest->places.function_count))
		error = TW_ENOMEM;
	if (error == 0 && slowest->nodes) {
		reading.spans.cost = &slowest->cost;
		folds[1] = folds[0];
		error = tw_slowest_waits_begin(slowest, filter, &folds[0]);
		fold_count = 1 + (size_t)slowest->waits.locks.places.has_any;
		first = &folds[2 - fold_count];
	}
	if (error == 0)
		error = count ? tw_pass_counted(slowest->capture, first, fold_count, count, "reading")
			      : tw_pass(slowest->capture, first, fold_count, "reading");
	if (error == 0)
		tw_stacks_finish(&slowest->stacks, filter->to_ns);
	tw_tracer_cost_finish(&slowest->cost);
	return error ? error : slowest->has_no_memory || slowest->waits.has_no_memory ? TW_ENOMEM : 0;
}

/* The first reading. @count: as above. */
static int find(struct tw_slowest *slowest, const struct tw_capture_filter *filter, const struct tw_capture_filter *all,
		const struct tw_count *count)
{
	slowest->calls = calloc(slowest->most, sizeof *slowest->calls);
	if (filter->wants_place)
		slowest->wanted = tw_places_wanted(&slowest->places, slowest->capture, filter);
	if (!slowest->calls || (filter->wants_place && !slowest->wanted))
		return TW_ENOMEM;
	int error = read_events(slowest, all, (struct tw_stacks_calls){.end = on_found, .context = slowest}, count);
	tw_stacks_free(&slowest->stacks);
	return error;
}

/* With places that are presumed. Returns 1; 0: they were wrong, and nothing is found; or an error. */
static int find_at_once(struct tw_slowest *slowest, const struct tw_capture_filter *filter,
			const struct tw_capture_filter *all)
{
	const struct tw_slowest before = *slowest;
	struct tw_count count;
	int error = slowest->when ? 0 : tw_places_presume(&slowest->places, slowest->capture, all, &count);
	if (error == 1 && tw_places_have_durations(&slowest->places)) {
		error = find(slowest, filter, all, &count);
		if (!error && tw_places_hold(&slowest->places, false)) {
			error = tw_places_end(&slowest->places);
			return error ? error : 1;
		}
	}
	tw_slowest_free(slowest);
	*slowest = before;
	return error == 1 || error == TW_ENOTSUP ? 0 : error;
}

int tw_slowest_make(struct tw_slowest *slowest, struct tw_capture *capture, const struct tw_capture_filter *filter)
{
	struct tw_capture_filter all = *filter, selected;
	all.wants_place = NULL;
	selected = all;
	all.wants_thread_states = true;
	slowest->capture = capture;
	int error = find_at_once(slowest, filter, &all);
	if (!error) {
		error = tw_places_make(&slowest->places, capture, &selected);
		if (!error && !tw_places_have_durations(&slowest->places))
			error = TW_ENOTSUP;
		error = error ? error : find(slowest, filter, &all, NULL);
	}
	error = error == 1 ? 0 : error;
	if (error == 0 && !index_calls(slowest))
		error = TW_ENOMEM;
	/* The first node stands for none. */
	if (error == 0)
		add_node(slowest, 0, TW_PLACES_UNKNOWN);
	if (error || !slowest->nodes)
		return error ? error : TW_ENOMEM;
	return read_events(slowest, &all,
			   (struct tw_stacks_calls){.begin = on_begin,
						    .end = on_end,
						    .moment = on_moment,
						    .context = slowest},
			   NULL);
}

/* The calls below a node; those without a time are calls without returns. */
static struct tw_cost_times paid_below(const struct tw_slowest *slowest, uint32_t node)
{
	struct tw_cost_times paid = {0};
	for (uint32_t at = slowest->nodes[node].first; at; at = slowest->nodes[at].next) {
		const struct tw_slow_node *below = &slowest->nodes[at];
		struct tw_cost_times more = paid_below(slowest, at);
		paid.calls += more.calls + (below->total_ns ? below->calls : 0);
		paid.callees += more.callees + (below->total_ns ? below->calls : 0);
		paid.moments += more.moments + (below->total_ns ? 0 : below->calls);
	}
	return paid;
}

uint64_t tw_slowest_tracer_ns(const struct tw_slowest *slowest, const struct tw_slow_call *call)
{
	struct tw_cost_times paid = paid_below(slowest, call->node);
	paid.calls++;
	return tw_tracer_cost_of(&slowest->cost, &paid, call->total_ns);
}

void tw_slowest_free(struct tw_slowest *slowest)
{
	for (uint32_t i = 0; i < slowest->count; i++) {
		free(slowest->calls[i].process);
		free(slowest->calls[i].callers);
	}
	free((bool *)(uintptr_t)slowest->wanted);
	free(slowest->calls);
	tw_slowest_waits_free(&slowest->waits);
	free(slowest->nodes);
	tw_map_fini(&slowest->by_key);
	tw_tracer_cost_free(&slowest->cost);
	tw_stacks_free(&slowest->stacks);
	tw_places_free(&slowest->places);
}
