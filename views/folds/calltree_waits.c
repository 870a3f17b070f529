/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calltree_waits.c - takes the calls that wait, and all in them, out of a finished tree, with their time in the calls around:
 *
 *	 30.0 s  main           2.0 s  main
 *	 29.9 s  | loop         1.9 s  | loop
 *	 28.0 s  | | epoll_wait
 *	  1.9 s  | | handle     1.9 s  | | handle
 */
#include "views/folds/calltree.h"

#include "views/names/waits.h"

bool tw_calltree_waits(const struct tw_calltree *tree, uint32_t function)
{
	return tw_function_waits(tree->places.functions[function]);
}

static uint64_t less(uint64_t from, uint64_t ns)
{
	return from > ns ? from - ns : 0;
}

static const struct tw_state_sums *states_of(const struct tw_calltree *tree, const struct tw_call_node *node)
{
	static const struct tw_state_sums none;
	size_t number = (size_t)(node - tree->nodes);
	return number < tree->node_state_capacity ? &tree->node_states[number].total : &none;
}

static void hide_node(struct tw_calltree *tree, struct tw_call_node *node)
{
	struct tw_call_function *function = &tree->functions[node->function];
	function->calls = less(function->calls, node->calls);
	function->self_ns = less(function->self_ns, node->self_ns);
	if (!node->is_recursive) {
		function->total_ns = less(function->total_ns, node->total_ns);
		tw_state_sums_take(&function->states, states_of(tree, node));
	}
	node->is_hidden = true;
	node->calls = node->total_ns = node->self_ns = 0;
}

void tw_calltree_hide_waits(struct tw_calltree *tree)
{
	/* Nodes lie behind those above them. */
	for (uint32_t i = TW_CALLTREE_FIRST; i < tree->node_count; i++) {
		struct tw_call_node *node = &tree->nodes[i], *above = &tree->nodes[node->parent];
		if (node->is_process)
			continue;
		if (above->is_hidden) {
			hide_node(tree, node);
			continue;
		}
		if (!tw_calltree_waits(tree, node->function))
			continue;
		tree->hidden_waits += node->calls;
		tree->hidden_wait_ns += node->total_ns;
		for (uint32_t at = node->parent; at >= TW_CALLTREE_FIRST && !tree->nodes[at].is_process;
		     at = tree->nodes[at].parent) {
			struct tw_call_node *caller = &tree->nodes[at];
			caller->total_ns = less(caller->total_ns, node->total_ns);
			if (caller->is_recursive)
				continue;
			tree->functions[caller->function].total_ns =
				less(tree->functions[caller->function].total_ns, node->total_ns);
			tw_state_sums_take(&tree->functions[caller->function].states, states_of(tree, node));
		}
		hide_node(tree, node);
	}
	for (uint32_t i = 0; i < tree->places.function_count; i++)
		if (tw_calltree_waits(tree, i))
			tree->functions[i].before = 0;
}
