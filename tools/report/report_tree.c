/* SPDX-License-Identifier: Apache-2.0 */
/* report_tree.c - the tree of calls: `report --tree`. */
#include "tools/report/report.h"
#include "views/folds/calltree_locks.h"

#include <stdlib.h>

/* Smaller shares of the whole are not shown, unless all nodes are requested. */
#define TREE_SHARE 0.005
#define TREE_DEPTH 200
/* A narrower screen has space for the time off alone, if threads have states. */
#define NODE_STATES_FROM 110

struct tree_view {
	const struct tw_screen *screen;
	const struct tw_calltree *tree;
	uint64_t least_ns;
	bool is_all;
	bool has_off, has_states, has_locks;
};

/* Of a node, or of several that are not shown. */
struct node_sums {
	uint64_t total_ns, self_ns, lock_ns, calls;
	struct tw_state_sums states;
};

static struct node_sums sums_of(const struct tw_calltree *tree, uint32_t number)
{
	const struct tw_call_node *node = &tree->nodes[number];
	struct node_sums sums = {.total_ns = node->total_ns, .self_ns = node->self_ns, .calls = node->calls};
	if (number < tree->node_lock_capacity)
		sums.lock_ns = tree->node_lock_ns[number];
	if (number < tree->node_state_capacity)
		sums.states = tree->node_states[number].total;
	/* A process has those of its outermost nodes. */
	for (uint32_t at = node->is_process ? node->first_child : 0; at; at = tree->nodes[at].next_sibling) {
		sums.lock_ns += at < tree->node_lock_capacity ? tree->node_lock_ns[at] : 0;
		if (at < tree->node_state_capacity)
			tw_state_sums_add(&sums.states, &tree->node_states[at].total);
	}
	return sums;
}

static void put_more(const struct tree_view *view, int width, uint64_t ns, bool is_known)
{
	char figure[TW_FIGURE_BYTES];
	tw_out_format(view->screen->out, "%*s", width, is_known ? tw_figure_duration(figure, ns) : "-");
}

/* A process has no own time, and of several nodes it is not shown. */
enum self { SELF, NO_SELF, SELF_OF_SEVERAL };

static void put_node_sums(const struct tree_view *view, const struct node_sums *sums, enum self self, bool is_lossy)
{
	const struct tw_screen *screen = view->screen;
	const uint64_t *states = sums->states.ns;
	bool is_known = tw_state_sums_all(&sums->states) != 0;
	char figure[TW_FIGURE_BYTES];
	tw_report_put_weight(screen, view->tree, sums->total_ns, true, is_lossy);
	if (view->tree->is_by_stack) {
		tw_report_put_weight(screen, view->tree, self == SELF_OF_SEVERAL ? sums->calls : sums->self_ns,
				     self != NO_SELF, is_lossy);
		return;
	}
	if (self != SELF_OF_SEVERAL)
		tw_report_put_weight(screen, view->tree, sums->self_ns, self == SELF, is_lossy);
	else
		tw_out_format(screen->out, "%9s", "");
	if (view->has_states) {
		put_more(view, 9, states[TW_STATE_RAN], is_known);
		put_more(view, 11, states[TW_STATE_PREEMPTED], is_known);
	}
	if (view->has_off)
		put_more(view, 9, states[TW_STATE_OFF], is_known);
	if (view->has_locks)
		put_more(view, 10, sums->lock_ns, true);
	tw_out_format(screen->out, "%13s", tw_figure_count(figure, sums->calls));
}

static int node_columns(const struct tree_view *view)
{
	return (view->tree->is_by_stack ? 10 + 10 + 2 : 9 + 9 + 13 + 2) + (view->has_states ? 9 + 11 : 0) +
	       (view->has_off ? 9 : 0) + (view->has_locks ? 10 : 0);
}

static void put_node(const struct tree_view *view, uint32_t number, int depth)
{
	const struct tw_call_node *node = &view->tree->nodes[number];
	char text[200];
	int used = node_columns(view) + 1;
	size_t count, hidden = 0;
	struct node_sums rest = {0};
	uint32_t *children = tw_calltree_children(view->tree, number, &count);
	if (depth >= 0) {
		int indent = depth * 2, capacity = view->screen->columns - used - 16;
		const struct node_sums sums = sums_of(view->tree, number);
		put_node_sums(view, &sums, node->is_process ? NO_SELF : SELF, node->is_lossy);
		tw_out_format(view->screen->out, "  %*s", indent < capacity ? indent : capacity, "");
		tw_screen_name(view->screen, tw_calltree_name(view->tree, number),
			       view->screen->columns - used - (indent < capacity ? indent : capacity));
	}
	for (size_t i = 0; children && i < count; i++) {
		const struct tw_call_node *child = &view->tree->nodes[children[i]];
		if (depth < TREE_DEPTH && (view->is_all || child->total_ns >= view->least_ns)) {
			put_node(view, children[i], depth + 1);
			continue;
		}
		const struct node_sums sums = sums_of(view->tree, children[i]);
		hidden++;
		rest.total_ns += sums.total_ns;
		rest.lock_ns += sums.lock_ns;
		rest.calls += sums.calls;
		tw_state_sums_add(&rest.states, &sums.states);
	}
	if (hidden && depth < 20) {
		put_node_sums(view, &rest, SELF_OF_SEVERAL, false);
		tw_out_format(view->screen->out, "  %*s(%s more)\n", (depth + 1) * 2, "",
			      tw_figure_count(text, hidden));
	}
	free(children);
}

static void put_titles(const struct tree_view *view)
{
	const struct tw_screen *screen = view->screen;
	/* A tree of stacks has wider columns, and one less: calls are a function's own events. */
	if (view->tree->is_by_stack) {
		tw_out_format(screen->out, "\n%s%10s%10s  call stacks", tw_screen_bold(screen), "events", "calls");
		return;
	}
	tw_out_format(screen->out, "\n%s%9s%9s", tw_screen_bold(screen), "total", "self");
	if (view->has_states)
		tw_out_format(screen->out, "%9s%11s", "ran", "preempted");
	if (view->has_off)
		tw_out_format(screen->out, "%9s", "off");
	if (view->has_locks)
		tw_out_format(screen->out, "%10s", "in locks");
	tw_out_format(screen->out, "%13s  call tree", "calls");
}

void tw_report_tree(const struct tw_screen *screen, const struct tw_calltree *tree, size_t top)
{
	struct tree_view view = {.screen = screen,
				 .tree = tree,
				 .is_all = top == 0,
				 .least_ns = (uint64_t)((double)tree->nodes[TW_CALLTREE_ROOT].total_ns * TREE_SHARE)};
	view.has_off = !tree->is_by_stack && tree->stacks.has_states;
	view.has_states = view.has_off && (!screen->cuts_names || screen->columns >= NODE_STATES_FROM);
	view.has_locks = !tree->is_by_stack && tree->lock_ns && tw_calltree_knows_locks(tree);
	put_titles(&view);
	tw_out_format(screen->out, "%s%s\n", top ? ": nodes with 0.5 % or more of all" : "", tw_screen_plain(screen));
	put_node(&view, TW_CALLTREE_ROOT, -1);
}
