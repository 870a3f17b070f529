/* SPDX-License-Identifier: Apache-2.0 */
/* report_times.c - durations of calls: by function, by caller, as a tree. */
#include "tools/report/report.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

/* Smaller shares of the whole are not shown in a tree, unless all nodes are requested. */
#define TREE_SHARE 0.005
#define TREE_DEPTH 200

static uint64_t sort_key(const struct tw_report_row *row, enum tw_report_sort sort)
{
	switch (sort) {
	case TW_SORT_CALLS: return row->sums->calls;
	case TW_SORT_SELF: return row->sums->self_ns;
	case TW_SORT_MIN: return row->sums->took.min;
	case TW_SORT_MEDIAN: return row->median_ns;
	case TW_SORT_P99: return row->p99_ns;
	case TW_SORT_MAX: return row->sums->took.max;
	default: return row->sums->total_ns;
	}
}

static int compare_rows(const void *a, const void *b, void *context)
{
	const struct tw_report_row *x = a, *y = b;
	enum tw_report_sort sort = *(const enum tw_report_sort *)context;
	if (sort != TW_SORT_NAME) {
		uint64_t k = sort_key(x, sort), l = sort_key(y, sort);
		if (k != l)
			return k < l ? 1 : -1;
		if (x->sums->calls != y->sums->calls)
			return x->sums->calls < y->sums->calls ? 1 : -1;
	}
	return strcmp(x->name, y->name);
}

struct tw_report_row *tw_report_rows(const struct tw_calltree *tree, enum tw_report_sort sort, size_t *count)
{
	struct tw_report_row *rows = malloc((tree->places.function_count + (size_t)1) * sizeof *rows);
	if (!rows)
		return NULL;
	*count = 0;
	for (uint32_t i = 0; i < tree->places.function_count; i++) {
		const struct tw_call_function *function = &tree->functions[i];
		if (function->calls || function->before)
			rows[(*count)++] =
				(struct tw_report_row){.name = tree->places.names[i].text,
						       .function = i,
						       .sums = function,
						       .median_ns = tw_histogram_quantile(&function->took, 0.5),
						       .p99_ns = tw_histogram_quantile(&function->took, 0.99),
						       .tracer_ns = tw_tracer_cost_of(&tree->cost, &function->paid,
										      function->self_ns)};
	}
	qsort_r(rows, *count, sizeof *rows, compare_rows, &sort);
	return rows;
}

/* Prints a sum in a column, marked if it contains losses. */
static void put_sum(const struct tw_screen *screen, uint64_t ns, bool is_known, bool is_lossy)
{
	char figure[TW_FIGURE_BYTES];
	tw_out_format(screen->out, "%s%8s", is_known && is_lossy ? "?" : " ",
		      is_known ? tw_figure_duration(figure, ns) : "-");
}

/* Prints a duration in a column; nothing if no call returned. */
static void put_time(const struct tw_screen *screen, uint64_t ns, bool is_known)
{
	char figure[TW_FIGURE_BYTES];
	tw_out_format(screen->out, " %8s", is_known ? tw_figure_duration(figure, ns) : "-");
}

/* Prints the sum of a tree's node: a duration, or a number of events. */
static void put_weight(const struct tw_screen *screen, const struct tw_calltree *tree, uint64_t weight, bool is_known,
		       bool is_lossy)
{
	char figure[TW_FIGURE_BYTES];
	if (!tree->is_by_stack)
		put_sum(screen, weight, is_known, is_lossy);
	else if (weight < 10000000)
		tw_out_format(screen->out, " %9s", is_known ? tw_figure_count(figure, weight) : "-");
	else
		tw_out_format(screen->out, " %9s", is_known ? tw_figure_short(figure, (double)weight) : "-");
}

/* A tree of stacks has wider columns, and one less: calls are a function's own events. */
static void put_columns(const struct tw_screen *screen, const struct tw_calltree *tree, const char *title)
{
	if (tree->is_by_stack)
		tw_out_format(screen->out, "\n%s%10s%10s  %s", tw_screen_bold(screen), "events", "calls", title);
	else
		tw_out_format(screen->out, "\n%s%9s%9s%13s  %s", tw_screen_bold(screen), "total", "self", "calls",
			      title);
}

static void put_sums(const struct tw_screen *screen, const struct tw_calltree *tree, uint64_t total, uint64_t self,
		     bool has_self, bool is_lossy, uint64_t calls)
{
	char figure[TW_FIGURE_BYTES];
	put_weight(screen, tree, total, true, is_lossy);
	put_weight(screen, tree, self, has_self, is_lossy);
	if (!tree->is_by_stack)
		tw_out_format(screen->out, "%13s", tw_figure_count(figure, calls));
}

static int columns_used(const struct tw_calltree *tree)
{
	return tree->is_by_stack ? 10 + 10 + 2 : 9 + 9 + 13 + 2;
}

static struct tw_screen_names shown_names(const struct tw_screen *screen, const struct tw_report_row *rows,
					  size_t count, int width)
{
	const char **names = malloc((count + 1) * sizeof *names);
	for (size_t i = 0; names && i < count; i++)
		names[i] = rows[i].name;
	return tw_screen_names(screen, names, count, width);
}

/* Columns beside the total and the calls. */
enum { HAS_SELF = 1, HAS_MIN = 2, HAS_MEDIAN = 4, HAS_P99 = 8, HAS_MAX = 16 };

/*
 * min and p99 are for wide terminals; on narrow ones names take precedence. The column that is sorted by is always
 * shown.
 */
static unsigned shown_columns(const struct tw_screen *screen, enum tw_report_sort sort)
{
	int columns = screen->cuts_names ? screen->columns : INT_MAX;
	unsigned shown = columns >= 100	 ? HAS_SELF | HAS_MIN | HAS_MEDIAN | HAS_P99 | HAS_MAX
			 : columns >= 72 ? HAS_SELF | HAS_MEDIAN | HAS_MAX
			 : columns >= 50 ? HAS_SELF
					 : 0;
	static const unsigned sorted_by[] = {[TW_SORT_SELF] = HAS_SELF,
					     [TW_SORT_MIN] = HAS_MIN,
					     [TW_SORT_MEDIAN] = HAS_MEDIAN,
					     [TW_SORT_P99] = HAS_P99,
					     [TW_SORT_MAX] = HAS_MAX};
	return shown | sorted_by[sort];
}

static void put_row(const struct tw_screen *screen, const struct tw_report_row *row, unsigned columns, const char *name)
{
	const struct tw_call_function *sums = row->sums;
	char figure[TW_FIGURE_BYTES];
	bool is_known = sums->took.count != 0, has_times = is_known || sums->total_ns || sums->self_ns;
	put_sum(screen, sums->total_ns, has_times, sums->lossy || sums->cut);
	if (columns & HAS_SELF)
		put_sum(screen, sums->self_ns, has_times, sums->lossy || sums->cut);
	tw_out_format(screen->out, "%13s", tw_figure_count(figure, sums->calls));
	if (columns & HAS_MIN)
		put_time(screen, sums->took.min, is_known);
	if (columns & HAS_MEDIAN)
		put_time(screen, row->median_ns, is_known);
	if (columns & HAS_P99)
		put_time(screen, row->p99_ns, is_known);
	if (columns & HAS_MAX)
		put_time(screen, sums->took.max, is_known);
	tw_out_format(screen->out, "  %s\n", name);
	if (sums->exceptions)
		tw_out_format(screen->out, "%s%*s  of them left by an exception%s\n", tw_screen_red(screen),
			      columns & HAS_SELF ? 31 : 22, tw_figure_count(figure, sums->exceptions),
			      tw_screen_plain(screen));
}

static void put_others(const struct tw_screen *screen, const struct tw_report_row *rows, size_t count, unsigned columns)
{
	char figure[TW_FIGURE_BYTES], more[TW_FIGURE_BYTES];
	uint64_t self_ns = 0, calls = 0;
	for (size_t i = 0; i < count; i++) {
		self_ns += rows[i].sums->self_ns;
		calls += rows[i].sums->calls;
	}
	tw_out_format(screen->out, "%9s", "");
	if (columns & HAS_SELF)
		put_time(screen, self_ns, true);
	tw_out_format(screen->out, "%13s  in %s more\n", tw_figure_count(figure, calls), tw_figure_count(more, count));
}

void tw_report_functions(const struct tw_screen *screen, const struct tw_calltree *tree, enum tw_report_sort sort,
			 size_t top)
{
	char figure[TW_FIGURE_BYTES];
	static const char *const titles[] = {"     self", "      min", "   median", "      p99", "      max"};
	size_t count;
	struct tw_report_row *rows = tw_report_rows(tree, sort, &count);
	unsigned columns = shown_columns(screen, sort);
	int used = 9 + 13 + 9 * __builtin_popcount(columns) + 2;
	if (!rows)
		return;
	size_t shown = top && top < count ? top : count;
	struct tw_screen_names names = shown_names(screen, rows, shown, screen->columns - used - 1);
	tw_out_format(screen->out, "\n%s%9s%s%13s", tw_screen_bold(screen), "total",
		      columns & HAS_SELF ? titles[0] : "", "calls");
	for (unsigned i = 1; i < sizeof titles / sizeof *titles; i++)
		tw_out_text(screen->out, columns & 1u << i ? titles[i] : "");
	tw_out_format(screen->out, "  function (%s%s)%s\n", tw_figure_count(figure, count),
		      used + (int)sizeof "function (1000 were called)" > screen->columns ? ""
		      : count == 1							 ? " was called"
											 : " were called",
		      tw_screen_plain(screen));
	for (size_t i = 0; i < shown; i++)
		put_row(screen, &rows[i], columns, tw_screen_names_at(&names, i));
	if (shown < count)
		put_others(screen, rows + shown, count - shown, columns);
	tw_screen_names_free(&names);
	free(rows);
}

/* ---- by caller ---- */

struct callers {
	const struct tw_call_edge *edges; /* sorted by function */
	size_t count;
};

static int by_edge_weight(const void *a, const void *b)
{
	const struct tw_call_edge *x = a, *y = b;
	if (x->total_ns != y->total_ns)
		return x->total_ns < y->total_ns ? 1 : -1;
	return x->calls < y->calls ? 1 : x->calls > y->calls ? -1 : 0;
}

/* The edges into a function; most time first. */
static struct tw_call_edge *edges_into(struct tw_call_edge *edges, size_t count, uint32_t function, size_t *found)
{
	size_t low = 0, high = count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (edges[middle].callee < function)
			low = middle + 1;
		else
			high = middle;
	}
	*found = 0;
	while (low + *found < count && edges[low + *found].callee == function)
		++*found;
	qsort(edges + low, *found, sizeof *edges, by_edge_weight);
	return edges + low;
}

static const char *caller_name(const struct tw_calltree *tree, uint32_t caller)
{
	return caller == TW_PLACES_NONE ? "(no caller in the capture)" : tree->places.names[caller].text;
}

void tw_report_callers(const struct tw_screen *screen, const struct tw_calltree *tree, enum tw_report_sort sort,
		       size_t top)
{
	char figure[TW_FIGURE_BYTES];
	enum { CALLERS = 5 };
	int used = columns_used(tree);
	size_t count, edge_count, found;
	struct tw_report_row *rows = tw_report_rows(tree, sort, &count);
	struct tw_call_edge *edges = tw_calltree_edges(tree, &edge_count);
	put_columns(screen, tree, "callers of each function");
	tw_out_format(screen->out, "%s\n", tw_screen_plain(screen));
	size_t shown = !rows ? 0 : top && top < count ? top : count;
	struct tw_screen_names names = shown_names(screen, rows, shown, screen->columns - used - 1);
	for (size_t i = 0; edges && i < shown; i++) {
		struct tw_call_edge *into = edges_into(edges, edge_count, rows[i].function, &found);
		const struct tw_call_function *sums = rows[i].sums;
		put_sums(screen, tree, sums->total_ns, sums->self_ns, true, sums->lossy || sums->cut, sums->calls);
		tw_out_format(screen->out, "  %s\n", tw_screen_names_at(&names, i));
		for (size_t j = 0; j < found && (!top || j < CALLERS); j++) {
			put_sums(screen, tree, into[j].total_ns, into[j].self_ns, true, into[j].is_lossy,
				 into[j].calls);
			tw_out_text(screen->out, "    from ");
			tw_screen_name(screen, caller_name(tree, into[j].caller), screen->columns - used - 8);
		}
		if (top && found > CALLERS)
			tw_out_format(screen->out, "%*s    from %s more\n", used - 2, "",
				      tw_figure_count(figure, found - CALLERS));
	}
	tw_screen_names_free(&names);
	free(rows);
	free(edges);
}

/* ---- tree ---- */

struct tree_view {
	const struct tw_screen *screen;
	const struct tw_calltree *tree;
	uint64_t least_ns;
	bool is_all;
};

static void put_node(const struct tree_view *view, uint32_t number, int depth)
{
	const struct tw_call_node *node = &view->tree->nodes[number];
	char text[200];
	int used = columns_used(view->tree) + 1;
	size_t count, hidden = 0;
	uint64_t hidden_ns = 0, hidden_calls = 0;
	uint32_t *children = tw_calltree_children(view->tree, number, &count);
	if (depth >= 0) {
		int indent = depth * 2, capacity = view->screen->columns - used - 16;
		put_sums(view->screen, view->tree, node->total_ns, node->self_ns, !node->is_process, node->is_lossy,
			 node->calls);
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
		hidden++;
		hidden_ns += child->total_ns;
		hidden_calls += child->calls;
	}
	if (hidden && depth < 20) {
		put_weight(view->screen, view->tree, hidden_ns, true, false);
		if (view->tree->is_by_stack)
			put_weight(view->screen, view->tree, hidden_calls, true, false);
		else
			tw_out_format(view->screen->out, "%9s%13s", "", tw_figure_count(text, hidden_calls));
		tw_out_format(view->screen->out, "  %*s(%s more)\n", (depth + 1) * 2, "",
			      tw_figure_count(text, hidden));
	}
	free(children);
}

void tw_report_tree(const struct tw_screen *screen, const struct tw_calltree *tree, size_t top)
{
	const struct tree_view view = {.screen = screen,
				       .tree = tree,
				       .is_all = top == 0,
				       .least_ns =
					       (uint64_t)((double)tree->nodes[TW_CALLTREE_ROOT].total_ns * TREE_SHARE)};
	put_columns(screen, tree, tree->is_by_stack ? "call stacks" : "call tree");
	tw_out_format(screen->out, "%s%s\n", top ? ": nodes with 0.5 % or more of all" : "", tw_screen_plain(screen));
	put_node(&view, TW_CALLTREE_ROOT, -1);
}

/* ---- limits of the times ---- */

void tw_report_honestly(const struct tw_screen *screen, const struct tw_calltree *tree)
{
	const struct tw_stacks *stacks = &tree->stacks;
	char figure[TW_FIGURE_BYTES];
	struct tw_out *out = screen->out;
	if (tree->is_by_stack)
		tw_out_text(
			out,
			"No returns were recorded: calls within calls are known only from the call stacks, to the depth "
			"that was recorded.\n");
	if (tree->has_stack_callers)
		tw_out_text(out,
			    "Callers with 0 calls are known only from call stacks: their time is that of the recorded "
			    "calls in them, and their own is not known.\n");
	if (tree->stackless)
		tw_out_format(out, "%s call%s no stack in the capture.\n", tw_figure_count(figure, tree->stackless),
			      tree->stackless == 1 ? " has" : "s have");
	if (stacks->open)
		tw_out_format(out, "%s call%s still open at the end: counted up to %s.\n",
			      tw_figure_count(figure, stacks->open), stacks->open == 1 ? " was" : "s were",
			      tw_stacks_open_until(stacks));
	if (stacks->before)
		tw_out_format(
			out,
			"%s call%s open at the beginning of this part: %s time counts from there, and %s not in calls.\n",
			tw_figure_count(figure, stacks->before), stacks->before == 1 ? " was" : "s were",
			stacks->before == 1 ? "its" : "their", stacks->before == 1 ? "it is" : "they are");
	if (stacks->cut)
		tw_out_format(
			out,
			"%s call%s no return in the capture: %s time is %s callers', and sums with %s in them have a ?.%s\n",
			tw_figure_count(figure, stacks->cut), stacks->cut == 1 ? " has" : "s have",
			stacks->cut == 1 ? "its" : "their", stacks->cut == 1 ? "its" : "their",
			stacks->cut == 1 ? "it" : "them",
			stacks->losses || tree->places.kinds[TW_CAPTURE_EXCEPTION_FROM]
				? ""
				: " `record --exceptions` records calls that exceptions and longjmp leave.");
	if (stacks->unmatched)
		tw_out_format(out, "%s return%s no call in the capture, and %s no time.\n",
			      tw_figure_count(figure, stacks->unmatched), stacks->unmatched == 1 ? " has" : "s have",
			      stacks->unmatched == 1 ? "has" : "have");
	if (stacks->losses)
		tw_out_format(
			out,
			"%sEvents were lost at %s place%s:%s sums with losses in them have a ?; calls around them are not "
			"in min to max.\n",
			tw_screen_red(screen), tw_figure_count(figure, stacks->losses), stacks->losses == 1 ? "" : "s",
			tw_screen_plain(screen));
	if (stacks->lost)
		tw_out_format(out, "%s call%s end%s in losses, as far as is known: counted up to there.\n",
			      tw_figure_count(figure, stacks->lost), stacks->lost == 1 ? "" : "s",
			      stacks->lost == 1 ? "s" : "");
	tw_report_cost(screen, tree);
	if (tree->is_full)
		tw_out_format(out, "The call tree has more than %s nodes: the rest is in no total.\n",
			      tw_figure_count(figure, TW_CALLTREE_NODES_MAX));
	if (stacks->too_deep)
		tw_out_format(out, "%s nested deeper than %u, and not counted.\n",
			      tw_figure_of(figure, stacks->too_deep, "call was", "calls were"), TW_STACK_FRAMES_MAX);
}

/* ---- JSON ---- */

/* Empty for a caller that the capture does not have. */
static void put_name_json(struct tw_json *json, const struct tw_calltree *tree, uint32_t function)
{
	const struct tw_name none = {.text = ""},
			     *name = function == TW_PLACES_NONE ? &none : &tree->places.names[function];
	tw_json_name(json, name->text, name->bytes, name->lacks_arity);
}

static void put_times_json(struct tw_json *json, const struct tw_report_row *row)
{
	const struct tw_call_function *sums = row->sums;
	tw_json_u64(json, "returned", sums->took.count);
	tw_json_u64(json, "exceptions", sums->exceptions);
	tw_json_u64(json, "cut", sums->cut);
	tw_json_u64(json, "lossy", sums->lossy);
	tw_json_seconds(json, "in_losses", sums->lossy_ns);
	tw_json_u64(json, "open", sums->open);
	tw_json_u64(json, "before", sums->before);
	tw_json_seconds(json, "total", sums->total_ns);
	tw_json_seconds(json, "self", sums->self_ns);
	tw_json_u64(json, "tracer_ns", row->tracer_ns);
	tw_json_seconds(json, "min", sums->took.min);
	tw_json_seconds(json, "median", row->median_ns);
	tw_json_seconds(json, "p99", row->p99_ns);
	tw_json_seconds(json, "max", sums->took.max);
}

void tw_report_times_json(struct tw_json *json, const struct tw_calltree *tree, enum tw_report_sort sort, size_t top)
{
	size_t count, edge_count, found;
	struct tw_report_row *rows = tw_report_rows(tree, sort, &count);
	struct tw_call_edge *edges = tw_calltree_edges(tree, &edge_count);
	uint64_t calls = 0;
	for (size_t i = 0; rows && i < count; i++)
		calls += rows[i].sums->calls;
	tw_json_open(json, "by_function", '[');
	for (size_t i = 0; rows && edges && i < count && (!top || i < top); i++) {
		const struct tw_call_function *sums = rows[i].sums;
		tw_json_open(json, NULL, '{');
		put_name_json(json, tree, rows[i].function);
		tw_json_function(json, tree->places.functions[rows[i].function]);
		tw_json_u64(json, "calls", sums->calls);
		tw_json_double(json, "share", calls ? (double)sums->calls / (double)calls : 0);
		if (!tree->is_by_stack)
			put_times_json(json, &rows[i]);
		tw_json_open(json, "callers", '[');
		struct tw_call_edge *into = edges_into(edges, edge_count, rows[i].function, &found);
		for (size_t j = 0; j < found; j++) {
			tw_json_open(json, NULL, '{');
			put_name_json(json, tree, into[j].caller);
			tw_json_u64(json, "calls", into[j].calls);
			if (!tree->is_by_stack) {
				tw_json_seconds(json, "total", into[j].total_ns);
				tw_json_seconds(json, "self", into[j].self_ns);
			}
			tw_json_close(json, '}');
		}
		tw_json_close(json, ']');
		tw_json_close(json, '}');
	}
	tw_json_close(json, ']');
	free(rows);
	free(edges);
	if (tree->is_by_stack)
		return;
	tw_json_open(json, "tracer_per_call", '{');
	tw_json_double(json, "inside_ns", tree->cost.ns[TW_COST_INSIDE]);
	tw_json_double(json, "outside_ns", tree->cost.ns[TW_COST_OUTSIDE]);
	tw_json_double(json, "alone_ns", tree->cost.ns[TW_COST_ALONE]);
	tw_json_close(json, '}');
	tw_json_open(json, "unmatched", '{');
	tw_json_u64(json, "calls", tree->stacks.cut);
	tw_json_u64(json, "returns", tree->stacks.unmatched);
	tw_json_u64(json, "open", tree->stacks.open);
	tw_json_u64(json, "lost", tree->stacks.lost);
	tw_json_u64(json, "before", tree->stacks.before);
	tw_json_close(json, '}');
}
