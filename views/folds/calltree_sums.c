/* SPDX-License-Identifier: Apache-2.0 */
/* calltree_sums.c - what views read of a tree of calls: pairs of caller and function, children in order, names. */
#include "views/folds/calltree.h"
#include "base/search.h"

#include <stdlib.h>

static int by_pair(const void *a, const void *b)
{
	const struct tw_call_edge *x = a, *y = b;
	return TW_ORDER(x->callee, y->callee) ?: TW_ORDER(x->caller, y->caller);
}

/* Did put_callers() move all calls of a node to others, or does it wait? */
static bool is_left(const struct tw_calltree *tree, const struct tw_call_node *node)
{
	return node->is_hidden || (tree->call_stacks.pending && !node->calls && !node->total_ns && !node->first_child);
}

struct tw_call_edge *tw_calltree_edges(const struct tw_calltree *tree, size_t *count)
{
	struct tw_call_edge *edges = malloc(((size_t)tree->node_count + 1) * sizeof *edges);
	size_t used = 0, kept = 0;
	if (!edges)
		return NULL;
	for (uint32_t i = TW_CALLTREE_FIRST; i < tree->node_count; i++) {
		const struct tw_call_node *node = &tree->nodes[i], *parent = &tree->nodes[node->parent];
		if (node->is_process || is_left(tree, node))
			continue;
		bool is_outermost = node->parent < TW_CALLTREE_FIRST || parent->is_process;
		edges[used++] = (struct tw_call_edge){.caller = is_outermost ? TW_PLACES_NONE : parent->function,
						      .callee = node->function,
						      .calls = node->calls,
						      .total_ns = node->is_recursive ? 0 : node->total_ns,
						      .self_ns = node->self_ns,
						      .is_lossy = node->is_lossy};
	}
	qsort(edges, used, sizeof *edges, by_pair);
	for (size_t i = 0; i < used; i++) {
		if (kept && by_pair(&edges[kept - 1], &edges[i]) == 0) {
			edges[kept - 1].calls += edges[i].calls;
			edges[kept - 1].total_ns += edges[i].total_ns;
			edges[kept - 1].self_ns += edges[i].self_ns;
			edges[kept - 1].is_lossy |= edges[i].is_lossy;
		} else {
			edges[kept++] = edges[i];
		}
	}
	*count = kept;
	return edges;
}

static int by_weight(const void *a, const void *b, void *context)
{
	const struct tw_call_node *nodes = context;
	const struct tw_call_node *x = &nodes[*(const uint32_t *)a], *y = &nodes[*(const uint32_t *)b];
	return TW_ORDER(y->total_ns, x->total_ns) ?: TW_ORDER(y->calls, x->calls) ?: TW_ORDER(x->function, y->function);
}

uint32_t *tw_calltree_children(const struct tw_calltree *tree, uint32_t node, size_t *count)
{
	size_t used = 0;
	for (uint32_t at = tree->nodes[node].first_child; at; at = tree->nodes[at].next_sibling)
		used++;
	uint32_t *children = malloc((used + 1) * sizeof *children);
	if (!children)
		return NULL;
	used = 0;
	for (uint32_t at = tree->nodes[node].first_child; at; at = tree->nodes[at].next_sibling) {
		if (!is_left(tree, &tree->nodes[at]))
			children[used++] = at;
	}
	*count = used;
	qsort_r(children, used, sizeof *children, by_weight, tree->nodes);
	return children;
}

static struct tw_stack *find_stack(const struct tw_calltree *tree, uint32_t number)
{
	for (struct tw_stack *stack = NULL; (stack = tw_stacks_next(&tree->stacks, stack));) {
		if (stack->number == number)
			return stack;
	}
	return NULL;
}

const char *tw_calltree_name(const struct tw_calltree *tree, uint32_t node)
{
	const struct tw_call_node *at = &tree->nodes[node];
	if (node == TW_CALLTREE_ROOT)
		return "all";
	if (node == TW_CALLTREE_BEYOND)
		return "(beyond the limit of the tree)";
	if (!at->is_process)
		return tree->places.names[at->function].text;
	if (tree->is_by_kind)
		return tree->kinds[at->function].text;
	struct tw_stack *stack = find_stack(tree, at->function);
	return stack ? tw_stacks_name(&tree->stacks, stack) : "";
}
