/* SPDX-License-Identifier: Apache-2.0 */
/* residues.c - sums of one segment, and its calls that cross its borders. */
#include "views/folds/residues.h"
#include "views/folds/stacks_foresee.h"
#include "base/grow.h"

#include "tracewheel/error.h"

#include <stdlib.h>

static struct tw_residue_stack *stack_of(struct tw_residues *residues, const struct tw_stack *stack)
{
	if (!tw_grow_to(residues->stacks, residues->capacity, stack->number)) {
		residues->has_no_memory = true;
		return NULL;
	}
	if (residues->count <= stack->number)
		residues->count = stack->number + 1;
	residues->stacks[stack->number].stack = stack;
	return &residues->stacks[stack->number];
}

/* The node of the process that a stack is; TW_CALLTREE_ROOT: it has made no call. */
static uint32_t process_of(const struct tw_calltree *tree, const struct tw_stack *stack)
{
	return stack->number < tree->process_capacity ? tree->process_nodes[stack->number] : TW_CALLTREE_ROOT;
}

/* The time of outermost calls that have ended. */
static uint64_t outer_ns(const struct tw_calltree *tree, const struct tw_stack *stack)
{
	uint32_t process = process_of(tree, stack);
	uint64_t sum = 0;
	if (process == TW_CALLTREE_ROOT)
		return 0;
	for (uint32_t at = tree->nodes[process].first_child; at; at = tree->nodes[at].next_sibling)
		sum += tree->nodes[at].total_ns;
	return sum;
}

static uint32_t process_above(const struct tw_calltree *tree, uint32_t node)
{
	while (node >= TW_CALLTREE_FIRST && !tree->nodes[node].is_process)
		node = tree->nodes[node].parent;
	return node;
}

/* The total of a function on a stack so far. */
static uint64_t within_ns(const struct tw_calltree *tree, const struct tw_stack *stack, uint32_t function)
{
	uint32_t process = process_of(tree, stack);
	uint64_t sum = 0;
	if (process == TW_CALLTREE_ROOT || !tree->functions[function].calls)
		return 0;
	for (uint32_t i = TW_CALLTREE_FIRST; i < tree->node_count; i++) {
		const struct tw_call_node *node = &tree->nodes[i];
		if (!node->is_process && !node->is_recursive && node->function == function &&
		    process_above(tree, i) == process)
			sum += node->total_ns;
	}
	return sum;
}

static void on_unmatched(void *context, const struct tw_stack *stack, uint32_t function, enum tw_frame_end how,
			 uint64_t ns)
{
	struct tw_residues *residues = context;
	struct tw_residue_stack *of = stack_of(residues, stack);
	if (!of)
		return;
	if (of->count == TW_RESIDUES_MAX) {
		of->dropped++;
		return;
	}
	if (!tw_grow(of->returns, of->count, of->capacity)) {
		residues->has_no_memory = true;
		return;
	}
	uint64_t outer = outer_ns(&residues->tree, stack);
	of->returns[of->count++] = (struct tw_residue_return){.function = function,
							      .is_exception = how == TW_FRAME_EXCEPTION,
							      .at_ns = ns,
							      .own_ns = tw_own_sum_until(&stack->own, ns),
							      .inner_ns = outer - of->outer_ns,
							      .within_ns = within_ns(&residues->tree, stack, function)};
	of->outer_ns = outer;
}

/* The sums of each stack by function. */
static void sum_up(struct tw_residues *residues)
{
	const struct tw_calltree *tree = &residues->tree;
	for (uint32_t i = TW_CALLTREE_FIRST; i < tree->node_count; i++) {
		const struct tw_call_node *node = &tree->nodes[i];
		uint32_t process = process_above(tree, i);
		if (node->is_process || node->is_recursive || !node->total_ns || process < TW_CALLTREE_FIRST)
			continue;
		/* The function of a process is the number of its stack. */
		uint32_t number = tree->nodes[process].function;
		struct tw_residue_stack *of = number < residues->count ? &residues->stacks[number] : NULL;
		if (of && !of->totals)
			of->totals = calloc(tree->function_count, sizeof *of->totals);
		if (of && of->totals)
			of->totals[node->function] += node->total_ns;
		else
			residues->has_no_memory = true;
	}
}

/* Takes in what is open at the end, without ending it. */
static void finish(struct tw_residues *residues)
{
	struct tw_stacks *stacks = &residues->tree.stacks;
	tw_stacks_find_ends(stacks);
	for (uint32_t i = 0; i <= stacks->mask; i++) {
		for (struct tw_stack *stack = stacks->slots[i]; stack; stack = stack->next) {
			struct tw_residue_stack *of = stack_of(residues, stack);
			if (!of)
				return;
			of->inner_ns = outer_ns(&residues->tree, stack) - of->outer_ns;
			of->last_ns = stack->end_ns > stack->last_ns ? stack->end_ns : stack->last_ns;
			of->own_ns = tw_own_sum_until(&stack->own, UINT64_MAX);
		}
	}
	sum_up(residues);
}

/*
 * A segment may lack the returns of calls that the next one has: where returns were asked for, each place has them that can have any.
 */
static void expect_returns(struct tw_places *places, const struct tw_capture *capture)
{
	for (uint32_t image = 0; places->has_returns && image < places->image_count; image++) {
		for (uint32_t id = 0; id < places->images[image].count; id++) {
			const struct tw_capture_place *place = tw_capture_place(capture, image, id);
			places->images[image].is_moment[id] = !place || place->has_no_end;
		}
	}
}

/* @count: of presumed places; NULL: they are known. */
static int read_events(struct tw_residues *residues, struct tw_capture *capture, const struct tw_count *count)
{
	const struct tw_capture_filter all = {.wants_own_time = true};
	struct tw_calltree *tree = &residues->tree;
	struct tw_fold fold;
	tree->is_by_process = true;
	tree->on_unmatched = on_unmatched;
	tree->context = residues;
	expect_returns(&tree->places, capture);
	int error = tw_calltree_begin(tree, capture, &all, &fold);
	if (!error && count)
		return tw_pass_counted(capture, &fold, 1, count, NULL);
	return error ? error : tw_pass_one(capture, &fold, NULL);
}

int tw_residues_make(struct tw_residues *residues, struct tw_capture *capture)
{
	const struct tw_capture_filter all = {.wants_own_time = true};
	struct tw_places *places = &residues->tree.places;
	struct tw_count count;
	*residues = (struct tw_residues){0};
	int error = tw_places_presume(places, capture, &all, &count);
	bool is_presumed = error == 1;
	if (is_presumed)
		error = read_events(residues, capture, &count);
	/* Which places return is expected either way: only the kinds of events decide. */
	if (is_presumed && (error == TW_ENOTSUP || (!error && !tw_places_hold(places, true)))) {
		tw_residues_free(residues);
		is_presumed = false;
		error = 0;
	}
	if (!error && !is_presumed)
		error = tw_places_make(places, capture, &all);
	if (!error && !is_presumed)
		error = read_events(residues, capture, NULL);
	if (!error)
		finish(residues);
	return error ? error : residues->tree.has_no_memory || residues->has_no_memory ? TW_ENOMEM : 0;
}

void tw_residues_free(struct tw_residues *residues)
{
	for (uint32_t i = 0; i < residues->count; i++) {
		free(residues->stacks[i].returns);
		free(residues->stacks[i].totals);
	}
	free(residues->stacks);
	tw_calltree_free(&residues->tree);
	*residues = (struct tw_residues){0};
}
