/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calltree_calls.c - the fold that fills a call tree.
 *
 * Nearly all records are calls and returns of which nothing special is to be known. Those of a span are taken in one loop (see_plain()),
 * which makes no events of them; any other goes the way of all events (see()).
 */
#include "views/folds/calltree_inside.h"
#include "views/folds/stacks_plain.h"
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

static inline __attribute__((always_inline)) void begin_call(struct tw_calltree *tree, struct tw_stack *stack)
{
	struct tw_stack_frame *frame = &stack->frames[stack->depth - 1];
	frame->node = tw_calltree_last_child(tree, tw_calltree_above(tree, stack, stack->depth - 1), frame->function);
	tree->nodes[frame->node].calls++;
	tree->functions[frame->function].calls++;
	tree->functions[frame->function].paid.calls++;
	tw_calltree_add_part(tree, frame->node, stack, 1, 0, 0);
	if (stack->depth > 1)
		tree->functions[stack->frames[stack->depth - 2].function].paid.callees++;
}

static void on_begin(void *context, struct tw_stack *stack)
{
	begin_call(context, stack);
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

static inline __attribute__((always_inline)) void end_call(struct tw_calltree *tree, struct tw_stack *stack,
							   enum tw_frame_end how, const struct tw_frame_time *time)
{
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

static void on_end(void *context, struct tw_stack *stack, enum tw_frame_end how, const struct tw_frame_time *time)
{
	end_call(context, stack, how, time);
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
	tree->stacks.calls = (struct tw_stacks_calls){on_begin, on_end, on_moment, tree, on_split};
}

static int begin(void *self, uint64_t from_ns)
{
	struct tw_calltree *tree = self;
	tree->is_in_part = true;
	if (from_ns && tw_places_have_durations(&tree->places))
		begin_part(tree, from_ns);
	else if (!tree->is_by_stack)
		tree->stacks.calls = (struct tw_stacks_calls){on_begin, on_end, on_moment, tree, on_split};
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

/* The kind of nearly every record of a span: a call, or the return of the innermost one, on a stack that is plain. */
struct plain {
	struct tw_stack *stack; /* NULL: every event is a special one */
	struct tw_cost_last *last;
	const struct tw_places_image *image;
};

static struct plain plain_of(const struct tw_calltree *tree, const struct tw_capture_span *span)
{
	struct tw_stack *stack = span->stream < tree->stacks.stream_count ? tree->stacks.streams[span->stream] : NULL;
	uint32_t id = span->tracee_id ? span->tracee_id : span->stream;
	if (!stack || stack->tracee_id != id || stack->has_tracee != (span->tracee_id != 0) ||
	    !tw_stack_is_plain(&tree->stacks, stack) || tree->on_event || tree->call_stacks.pending ||
	    span->stream >= tree->cost.stream_count || span->image >= tree->places.image_count)
		return (struct plain){NULL, NULL, NULL};
	stack->is_call_chosen = true;
	return (struct plain){stack, &tree->cost.last[span->stream], &tree->places.images[span->image]};
}

/* False: the call is a special one. */
static inline __attribute__((always_inline)) bool plain_call(struct tw_calltree *tree, const struct plain *plain,
							     uint32_t place, uint64_t ns)
{
	struct tw_stack *stack = plain->stack;
	if (place >= plain->image->count || plain->image->is_moment[place] || !tw_stack_has_space(stack))
		return false;
	const struct tw_step step = {.kind = TW_STEP_CALL, .stack = stack, .depth = stack->depth};
	tw_stack_push(stack, plain->image->function[place], ns);
	begin_call(tree, stack);
	if (!tw_tracer_cost_step(&tree->cost, plain->last, &step, ns))
		tree->has_no_memory = true;
	return true;
}

static inline __attribute__((always_inline)) bool plain_return(struct tw_calltree *tree, const struct plain *plain,
							       uint32_t place, uint64_t ns)
{
	struct tw_stack *stack = plain->stack;
	if (place >= plain->image->count || !tw_stack_returns(stack, plain->image->function[place]))
		return false;
	struct tw_stack_frame *frame = &stack->frames[stack->depth - 1];
	struct tw_frame_time time = tw_stack_frame_time(stack, frame, ns);
	time.is_exact = !frame->before_ns;
	end_call(tree, stack, TW_FRAME_RETURNED, &time);
	stack->depth--;
	if (stack->depth)
		frame[-1].inner_ns += time.total_ns;
	const struct tw_step step = {.kind = TW_STEP_RETURN,
				     .stack = stack,
				     .depth = stack->depth,
				     .function = frame->function};
	if (!tw_tracer_cost_step(&tree->cost, plain->last, &step, ns))
		tree->has_no_memory = true;
	return true;
}

/* Returns the first record that is a special one, or the end. */
static const struct tw_capture_record *see_plain(struct tw_calltree *tree, const struct plain *plain,
						 const struct tw_capture_record *record,
						 const struct tw_capture_record *end, uint64_t *records)
{
	static const uint64_t never = UINT64_MAX;
	const uint64_t *slice_ns = tree->parts ? &tree->parts->next_ns : &never;
	struct tw_capture_clock clock = tree->clock;
	uint64_t last_ns = plain->stack->last_ns, count = 0;
	for (; record < end; record = tw_capture_record_next(record), count++) {
		if (__builtin_expect(!tw_capture_clock_has(&clock, record->ticks), 0)) {
			tw_capture_clock_at(tree->capture, record->ticks, &tree->clock);
			clock = tree->clock;
		}
		/* The kind, with the bit of a record that has processor time before its payload. */
		unsigned kind = (unsigned)(record->head & 0xff);
		uint64_t ns = tw_capture_clock_ns(&clock, record->ticks);
		if (ns >= *slice_ns ||
		    !(kind == TW_CAPTURE_CALL	       ? plain_call(tree, plain, tw_capture_record_id(record), ns)
		      : kind == TW_CAPTURE_RETURN_FROM ? plain_return(tree, plain, tw_capture_record_id(record), ns)
						       : false))
			break;
		last_ns = ns > last_ns ? ns : last_ns;
	}
	plain->stack->last_ns = last_ns;
	tree->events += count;
	*records += count;
	return record;
}

static int see_span(void *self, struct tw_capture_events *events, const struct tw_capture_span *span, uint64_t *records)
{
	struct tw_calltree *tree = self;
	struct tw_capture_event event;
	uint64_t sequence = span->first_sequence;
	int error = 0;
	for (const struct tw_capture_record *record = span->first; record < span->end && !error;) {
		struct plain plain = plain_of(tree, span);
		if (plain.stack) {
			uint64_t before = *records;
			record = see_plain(tree, &plain, record, span->end, records);
			sequence += *records - before;
		}
		if (record < span->end && tw_capture_span_event(events, span, record, sequence, &event))
			error = see(tree, &event);
		if (record < span->end) {
			sequence += tw_capture_record_sequences(record);
			record = tw_capture_record_next(record);
			++*records;
		}
	}
	return error ? error : tree->has_no_memory ? TW_ENOMEM : 0;
}

void tw_calltree_fold(struct tw_calltree *tree, struct tw_fold *fold)
{
	*fold = (struct tw_fold){.self = tree, .begin = begin, .see = see, .see_span = see_span};
}
