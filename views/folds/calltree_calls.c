/* SPDX-License-Identifier: Apache-2.0 */
/* calltree_calls.c - the fold that fills a call tree. */
#include "views/folds/calltree_inside.h"
#include "views/names/missing.h"
#include "base/grow.h"

#include "tracewheel/error.h"

#include <stdlib.h>

static void on_split(void *context, struct tw_stack *stack, uint32_t depth, int64_t self_ns, int64_t out_ns)
{
	if (self_ns || out_ns)
		tw_calltree_add_part(context, stack->frames[depth].node, stack, 0, self_ns, out_ns);
}

/* All slices that end before a time. */
void tw_calltree_split_until(struct tw_calltree *tree, uint64_t ns)
{
	while (tree->parts->next_ns <= ns) {
		uint64_t end_ns = tree->parts->next_ns;
		tw_stacks_split(&tree->stacks, end_ns);
		/* Else two slices became one meanwhile, of which this was the first half. */
		if (tree->parts->next_ns == end_ns)
			tw_parts_next(tree->parts);
	}
}

static inline __attribute__((always_inline)) void begin_call(void *context, struct tw_stack *stack)
{
	struct tw_calltree *tree = context;
	struct tw_stack_frame *frame = &stack->frames[stack->depth - 1];
	frame->node = tw_calltree_last_child(tree, tw_calltree_above(tree, stack, stack->depth - 1), frame->function);
	tree->nodes[frame->node].calls++;
	tree->functions[frame->function].calls++;
	tree->functions[frame->function].paid.calls++;
	tw_calltree_add_part(tree, frame->node, stack, 1, 0, 0);
	if (stack->depth > 1)
		tree->functions[stack->frames[stack->depth - 2].function].paid.callees++;
}

/* Adds the time of an outermost call to the callers that put_callers() gave it. */
static void add_to_callers(struct tw_calltree *tree, uint32_t node, const struct tw_frame_time *time)
{
	for (uint32_t at = tree->nodes[node].parent; at >= TW_CALLTREE_FIRST && !tree->nodes[at].is_process;
	     at = tree->nodes[at].parent) {
		struct tw_call_node *caller = &tree->nodes[at];
		caller->total_ns += time->total_ns;
		if (!caller->is_recursive)
			tree->functions[caller->function].total_ns += time->total_ns;
		if (!caller->is_recursive && time->states)
			tw_state_sums_add(&tree->functions[caller->function].states, &time->states->total);
	}
}

/* How the time of a node divides. False: no memory. */
static bool add_states(struct tw_calltree *tree, uint32_t node, bool is_outermost, const struct tw_frame_time *time)
{
	tree->outermost_ns += is_outermost ? time->total_ns : 0;
	if (!time->states)
		return true;
	if (is_outermost)
		tw_state_sums_add(&tree->states, &time->states->total);
	if (!tw_grow_to(tree->node_states, tree->node_state_capacity, node))
		return false;
	tw_state_sums_add(&tree->node_states[node].total, &time->states->total);
	tw_state_sums_add(&tree->node_states[node].self, &time->states->self);
	return true;
}

static bool add_spread(struct tw_spread **spread, uint64_t self_ns)
{
	if (!*spread && !(*spread = calloc(1, sizeof **spread)))
		return false;
	tw_spread_add(*spread, self_ns);
	return true;
}

static bool add_node_spread(struct tw_calltree *tree, uint32_t node, uint64_t self_ns)
{
	if (!tw_grow_to(tree->node_spreads, tree->node_spread_capacity, node))
		return false;
	if (!tree->node_spreads[node] && tree->node_spread_count++ >= TW_CALLTREE_SPREADS_MAX)
		return true;
	return add_spread(&tree->node_spreads[node], self_ns);
}

static inline __attribute__((always_inline)) void end_call(void *context, struct tw_stack *stack, enum tw_frame_end how,
							   const struct tw_frame_time *time)
{
	struct tw_calltree *tree = context;
	const struct tw_stack_frame *frame = &stack->frames[stack->depth - 1];
	struct tw_call_node *node = &tree->nodes[frame->node];
	struct tw_call_function *function = &tree->functions[frame->function];
	node->total_ns += time->total_ns;
	node->self_ns += time->self_ns;
	tw_calltree_add_part(tree, frame->node, stack, 0, (int64_t)(time->self_ns - frame->split_self_ns),
			     (int64_t)(time->total_ns - time->self_ns - frame->inner_ns - frame->split_out_ns));
	/* The calls inside a call that was cut are not known. */
	if (time->is_lossy || how == TW_FRAME_CUT)
		node->is_lossy = true;
	if (stack->depth == 1)
		add_to_callers(tree, frame->node, time);
	if (!add_states(tree, frame->node, stack->depth == 1, time))
		tree->has_no_memory = true;
	if (!tw_call_function_end(function, how, time, node->is_recursive))
		tree->has_no_memory = true;
	if (tree->has_spread && !add_spread(&function->spread, time->self_ns))
		tree->has_no_memory = true;
	if (tree->has_node_spread && !add_node_spread(tree, frame->node, time->self_ns))
		tree->has_no_memory = true;
}

static void on_moment(void *context, struct tw_stack *stack, uint32_t function)
{
	struct tw_calltree *tree = context;
	uint32_t node = tw_calltree_child(tree, tw_calltree_above(tree, stack, stack->depth), function);
	tree->nodes[node].calls++;
	tree->functions[function].calls++;
	tree->functions[function].no_end++;
	tw_calltree_add_part(tree, node, stack, 1, 0, 0);
	if (stack->depth)
		tree->functions[stack->frames[stack->depth - 1].function].paid.moments++;
}

static void on_unmatched(void *context, struct tw_stack *stack, uint32_t function, enum tw_frame_end how, uint64_t ns)
{
	struct tw_calltree *tree = context;
	if (tree->on_unmatched)
		tree->on_unmatched(tree->context, stack, function, how, ns);
}

static struct tw_stacks_calls calls_of(struct tw_calltree *tree)
{
	return (struct tw_stacks_calls){begin_call, end_call, on_moment, tree, on_split, on_unmatched};
}

/* ---- events ---- */

/* Calls that are open at the beginning of the selection have their time counted from there. */
static void begin_part(struct tw_calltree *tree, uint64_t from_ns)
{
	tw_stacks_begin(&tree->stacks, from_ns);
	for (struct tw_stack *stack = NULL; (stack = tw_stacks_next(&tree->stacks, stack));) {
		for (uint32_t depth = 0; depth < stack->depth; depth++) {
			struct tw_stack_frame *frame = &stack->frames[depth];
			frame->node = tw_calltree_child(tree, tw_calltree_above(tree, stack, depth), frame->function);
			tree->functions[frame->function].before++;
		}
	}
	tree->stacks.calls = calls_of(tree);
}

static int begin(void *self, uint64_t from_ns)
{
	struct tw_calltree *tree = self;
	tree->is_in_part = true;
	if (from_ns && tw_places_have_durations(&tree->places))
		begin_part(tree, from_ns);
	else if (!tree->is_by_stack)
		tree->stacks.calls = calls_of(tree);
	return tree->has_no_memory ? TW_ENOMEM : 0;
}

static void add_loss(struct tw_calltree *tree, const struct tw_capture_event *event)
{
	struct tw_missing_loss loss;
	tw_missing_loss(tree->capture, event, &loss);
	tree->lost += loss.sum;
}

static int see(void *self, const struct tw_capture_event *event)
{
	struct tw_calltree *tree = self;
	struct tw_step step;
	if (tree->parts && tree->is_in_part)
		tw_calltree_split_until(tree, event->time_ns);
	if (!tw_stacks_event(&tree->stacks, event, &step) || !tw_tracer_cost_event(&tree->cost, event, &step))
		return TW_ENOMEM;
	if (!tree->is_in_part)
		return 0;
	if (event->kind == TW_CAPTURE_LOSS)
		add_loss(tree, event);
	else
		tree->events += event->kind != TW_CAPTURE_OWN_TIME && event->kind != TW_CAPTURE_THREAD_STATE;
	if (tree->on_event && !tree->on_event(tree->context, event, &step))
		return TW_ENOMEM;
	if (tree->call_stacks.pending)
		tw_calltree_stack_event(tree, event, &step);
	return tree->has_no_memory ? TW_ENOMEM : 0;
}

/* ---- records ---- */

static const struct tw_plain_calls plain = {.begin = begin_call, .end = end_call};

static int see_span(void *self, struct tw_fold_span *span)
{
	struct tw_calltree *tree = self;
	uint64_t before = tree->spans.plain;
	bool takes_plain = !tree->on_event && !tree->call_stacks.pending;
	tree->spans.special_ns = tree->parts ? &tree->parts->next_ns : NULL;
	int error = tw_stacks_span(&tree->spans, tree, &plain, takes_plain, span);
	tree->events += tree->spans.plain - before;
	return error ? error : tree->has_no_memory ? TW_ENOMEM : 0;
}

void tw_calltree_fold(struct tw_calltree *tree, struct tw_fold *fold)
{
	*fold = (struct tw_fold){.self = tree, .begin = begin, .see = see, .see_span = see_span};
	tree->spans = (struct tw_stacks_spans){.stacks = &tree->stacks, .cost = &tree->cost};
}
