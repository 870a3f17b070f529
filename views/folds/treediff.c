/* SPDX-License-Identifier: Apache-2.0 */
/* treediff.c - two runs as one tree of calls. */
#include "views/folds/treediff.h"
#include "base/grow.h"

#include <stdlib.h>
#include <string.h>

static unsigned run_count(const struct tw_treediff *diff)
{
	return diff->captures[TW_OLD] + diff->captures[TW_NEW];
}

/* The own times of a node in the captures of a side. */
static double *runs_of(const struct tw_treediff *diff, uint32_t node, unsigned side)
{
	return &diff->runs[(size_t)node * run_count(diff) + (side == TW_NEW ? diff->captures[TW_OLD] : 0)];
}

static bool has_room(struct tw_treediff *diff, uint32_t node)
{
	return tw_grow_to(diff->nodes, diff->node_capacity, node) &&
	       tw_grow_to(diff->runs, diff->run_capacity, ((size_t)node + 1) * run_count(diff));
}

static void add_sums(struct tw_treediff *diff, unsigned side, uint32_t to, const struct tw_calltree *tree,
		     uint32_t number)
{
	const struct tw_call_node *node = &tree->nodes[number];
	struct tw_treediff_node *sum = &diff->nodes[to];
	const struct tw_spread *spread = number < tree->node_spread_capacity ? tree->node_spreads[number] : NULL;
	sum->is_called[side] = true;
	sum->sides[side].calls += node->calls;
	sum->sides[side].total_ns += node->total_ns;
	sum->sides[side].self_ns += node->self_ns;
	/* Functions of one readable name may be several nodes: their estimate is that of the sum only if there is one. */
	sum->self[side] = spread && !runs_of(diff, to, side)[diff->added[side]]
				  ? tw_spread_sum(spread, node->self_ns)
				  : (struct tw_estimate){.value = (double)sum->sides[side].self_ns};
	runs_of(diff, to, side)[diff->added[side]] += (double)node->self_ns;
	diff->tree.nodes[to].is_lossy |= node->is_lossy;
}

/* @numbers: by function of the tree, its number here. */
static bool add_below(struct tw_treediff *diff, unsigned side, const struct tw_calltree *tree, uint32_t from,
		      uint32_t to, const uint32_t *numbers)
{
	size_t count;
	uint32_t *children = tw_calltree_children(tree, from, &count);
	bool is_added = children && has_room(diff, to);
	if (is_added)
		add_sums(diff, side, to, tree, from);
	for (size_t i = 0; is_added && i < count; i++) {
		uint32_t child = tw_calltree_child(&diff->tree, to, numbers[tree->nodes[children[i]].function]);
		is_added = !diff->tree.has_no_memory && add_below(diff, side, tree, children[i], child, numbers);
	}
	free(children);
	return is_added;
}

bool tw_treediff_add(struct tw_treediff *diff, unsigned side, const struct tw_calltree *tree)
{
	const struct tw_places *places = &tree->places;
	if (!diff->tree.node_count && !tw_calltree_init(&diff->tree))
		return false;
	if (!diff->program[side])
		diff->program[side] = tw_difference_program(tree->capture);
	uint32_t *numbers = malloc((places->function_count + (size_t)1) * sizeof *numbers);
	bool is_added = numbers != NULL;
	for (uint32_t i = 0; is_added && i < places->function_count; i++) {
		const char *key = tw_difference_key(places->names[i].text, diff->program[side]);
		numbers[i] = tw_places_find(&diff->tree.places, &diff->by_name, key, strlen(key),
					    places->names[i].lacks_arity);
		is_added = numbers[i] != TW_PLACES_NONE;
	}
	is_added = is_added && add_below(diff, side, tree, TW_CALLTREE_ROOT, TW_CALLTREE_ROOT, numbers);
	free(numbers);
	diff->added[side]++;
	diff->is_by_stack |= tree->is_by_stack;
	diff->is_full |= tree->is_full || diff->tree.is_full;
	return is_added;
}

static void finish_node(struct tw_treediff *diff, uint32_t number)
{
	struct tw_treediff_node *node = &diff->nodes[number];
	struct tw_estimate self[TW_SIDES];
	double noise;
	for (unsigned side = 0; side < TW_SIDES; side++) {
		unsigned captures = diff->captures[side];
		self[side] = tw_difference_estimate(node->is_called[side], runs_of(diff, number, side), captures,
						    &node->self[side]);
		node->sides[side].calls = (node->sides[side].calls + captures / 2) / captures;
		node->sides[side].total_ns /= captures;
		node->sides[side].self_ns /= captures;
	}
	node->has_noise = tw_estimates_noise(&self[TW_OLD], &self[TW_NEW], &noise);
	node->noise_ns = (uint64_t)noise;
	struct tw_call_node *shown = &diff->tree.nodes[number];
	shown->calls = node->sides[TW_NEW].calls;
	shown->total_ns = node->sides[TW_NEW].total_ns;
	shown->self_ns = node->sides[TW_NEW].self_ns;
}

bool tw_treediff_finish(struct tw_treediff *diff)
{
	const char *program = diff->program[TW_NEW] ? diff->program[TW_NEW] : diff->program[TW_OLD];
	bool is_named = true;
	if (!has_room(diff, diff->tree.node_count))
		return false;
	for (uint32_t i = 0; i < diff->tree.node_count; i++)
		finish_node(diff, i);
	for (uint32_t i = 0; is_named && i < diff->tree.places.function_count; i++) {
		struct tw_name *name = &diff->tree.places.names[i];
		is_named = tw_difference_name(&name->text, program);
		name->bytes = (uint32_t)strlen(name->text);
	}
	return is_named;
}

void tw_treediff_free(struct tw_treediff *diff)
{
	tw_calltree_free(&diff->tree);
	tw_map_fini(&diff->by_name);
	free(diff->nodes);
	free(diff->runs);
	free(diff->program[TW_OLD]);
	free(diff->program[TW_NEW]);
	*diff = (struct tw_treediff){0};
}
