/* SPDX-License-Identifier: Apache-2.0 */
/* report_times.c - durations of calls: by function, by caller, as a tree. */
#include "tools/report/report.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

/* Smaller shares of the whole are not shown in a tree, unless all nodes are requested. */
#define TREE_SHARE 0.005
#define TREE_DEPTH 200

/*
 * The columns, in the order of JSON and CSV: key, title, unit, width, place on the screen, from how many columns of it on, are
 * hidden rows summed up; value; is it unknown, is it marked.
 */
#define HAS_NO_TIMES (!sums->took.count && !sums->total_ns && !sums->self_ns)
#define IS_DOUBTFUL  (sums->lossy || sums->cut)
/* clang-format off */
#define COLUMNS(column) \
	column(calls, "calls", TW_UNIT_COUNT, 13, 3, 0, true, sums->calls, false, false) \
	column(share, "share", TW_UNIT_SHARE, 9, 0, 0, true, row->share, false, false) \
	column(returned, "returned", TW_UNIT_COUNT, 13, 0, 0, true, sums->took.count, false, false) \
	column(exceptions, "exceptions", TW_UNIT_COUNT, 13, 0, 0, true, sums->exceptions, false, false) \
	column(cut, "cut", TW_UNIT_COUNT, 10, 0, 0, true, sums->cut, false, false) \
	column(no_end, "no end", TW_UNIT_COUNT, 10, 0, 0, true, sums->no_end, false, false) \
	column(no_end_inside, "inside", TW_UNIT_COUNT, 10, 0, 0, true, sums->paid.moments, false, false) \
	column(lossy, "lossy", TW_UNIT_COUNT, 10, 0, 0, true, sums->lossy, false, false) \
	column(in_losses, "in losses", TW_UNIT_DURATION, 11, 0, 0, false, sums->lossy_ns, false, false) \
	column(open, "open", TW_UNIT_COUNT, 10, 0, 0, true, sums->open, false, false) \
	column(before, "before", TW_UNIT_COUNT, 10, 0, 0, true, sums->before, false, false) \
	column(total, "total", TW_UNIT_DURATION, 9, 1, 0, false, sums->total_ns, HAS_NO_TIMES, IS_DOUBTFUL) \
	column(self, "self", TW_UNIT_DURATION, 9, 2, 50, true, sums->self_ns, HAS_NO_TIMES, \
	       IS_DOUBTFUL || sums->paid.moments) \
	column(tracer_ns, "tracer", TW_UNIT_NS, 9, 0, 0, true, row->tracer_ns, HAS_NO_TIMES, false) \
	column(min, "min", TW_UNIT_DURATION, 9, 4, 100, false, sums->took.min, !sums->took.count, false) \
	column(median, "median", TW_UNIT_DURATION, 9, 5, 72, false, row->median_ns, !sums->took.count, false) \
	column(p99, "p99", TW_UNIT_DURATION, 9, 6, 100, false, row->p99_ns, !sums->took.count, false) \
	column(max, "max", TW_UNIT_DURATION, 9, 7, 72, false, sums->took.max, !sums->took.count, false)
/* clang-format on */

#define CELL(key, title, unit, width, place, from, is_summed, number, unknown, doubtful)         \
	static struct tw_cell cell_##key(const void *at)                                         \
	{                                                                                        \
		const struct tw_report_row *row = at;                                            \
		const struct tw_call_function *sums = row->sums;                                 \
		(void)sums;                                                                      \
		return (struct tw_cell){.value = (uint64_t)(number),                             \
					.share = (unit) == TW_UNIT_SHARE ? (double)(number) : 0, \
					.is_unknown = (unknown),                                 \
					.mark = (doubtful)				? '?'    \
						: (place) && (place) <= 2 && row->waits ? '*'    \
											: 0};    \
	}
COLUMNS(CELL)
#define COLUMN(key, title, unit, width, place, from, is_summed, number, unknown, doubtful) \
	{#key, title, unit, width, place, from, is_summed, cell_##key, false},
static const struct tw_column columns[] = {COLUMNS(COLUMN)};
const struct tw_table tw_report_columns = {columns, sizeof columns / sizeof *columns};
/* Of a tree that is made of stacks, which has no times. */
enum { COLUMNS_WITHOUT_TIMES = 2 };

const struct tw_column *tw_report_sort(const char *key)
{
	return tw_table_column(&tw_report_columns, key ? key : "total", strlen(key ? key : "total"));
}

static int compare_rows(const void *a, const void *b, void *sort)
{
	const struct tw_report_row *x = a, *y = b;
	int order = sort ? tw_table_compare(sort, x, y) : 0;
	if (!order && sort)
		order = (x->sums->calls < y->sums->calls) - (x->sums->calls > y->sums->calls);
	return order ? order : strcmp(x->name, y->name);
}

void tw_report_sort_rows(struct tw_report_row *rows, size_t count, const char *sort)
{
	uint64_t calls = 0;
	for (size_t i = 0; i < count; i++)
		calls += rows[i].sums->calls;
	for (size_t i = 0; i < count; i++)
		rows[i].share = calls ? (double)rows[i].sums->calls / (double)calls : 0;
	qsort_r(rows, count, sizeof *rows, compare_rows, (void *)tw_report_sort(sort));
}

struct tw_report_row *tw_report_rows(const struct tw_calltree *tree, const char *sort, size_t *count)
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
						       .waits = !tree->is_by_stack && tw_calltree_waits(tree, i),
						       .median_ns = tw_histogram_quantile(&function->took, 0.5),
						       .p99_ns = tw_histogram_quantile(&function->took, 0.99),
						       .tracer_ns = tw_tracer_cost_of(&tree->cost, &function->paid,
										      function->self_ns)};
	}
	tw_report_sort_rows(rows, *count, sort);
	return rows;
}

/* Prints a sum in a column, marked if it contains losses. */
static void put_sum(const struct tw_screen *screen, uint64_t ns, bool is_known, bool is_lossy)
{
	char figure[TW_FIGURE_BYTES];
	const char *text = is_known ? tw_figure_duration(figure, ns) : "-";
	tw_out_format(screen->out, "%*s%s", 9 - (int)strlen(text), is_known && is_lossy ? "?" : "", text);
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

/* Where the columns up to that of the calls end; -1: it is not shown. */
static int end_of_calls(const struct tw_table_shape *shape)
{
	int end = 0;
	for (unsigned i = 0; i < shape->count; i++) {
		end += shape->columns[i]->width;
		if (strcmp(shape->columns[i]->key, "calls") == 0)
			return end;
	}
	return -1;
}

static void put_row(const struct tw_screen *screen, const struct tw_report_row *row, const struct tw_table_shape *shape,
		    const char *name)
{
	char figure[TW_FIGURE_BYTES];
	int end = end_of_calls(shape);
	tw_table_cells(screen->out, shape, row);
	tw_out_format(screen->out, "  %s\n", name);
	if (row->sums->exceptions && end > 0)
		tw_out_format(screen->out, "%s%*s  of them left by an exception%s\n", tw_screen_red(screen), end,
			      tw_figure_count(figure, row->sums->exceptions), tw_screen_plain(screen));
}

void tw_report_put_rows(const struct tw_screen *screen, const struct tw_report_row *rows, size_t count,
			const struct tw_report_order *order, const char *title, const char *one, const char *more)
{
	char figure[TW_FIGURE_BYTES];
	struct tw_table_shape shape;
	if (order->columns)
		tw_table_choose(&tw_report_columns, order->columns, &shape);
	else
		tw_table_fit(&tw_report_columns, screen->cuts_names ? screen->columns : INT_MAX,
			     tw_report_sort(order->sort), &shape);
	int used = shape.width + 2;
	size_t shown = order->top && order->top < count ? order->top : count;
	struct tw_screen_names names = shown_names(screen, rows, shown, screen->columns - used - 1);
	tw_out_format(screen->out, "\n%s", tw_screen_bold(screen));
	tw_table_titles(screen->out, &shape);
	bool has_words = used + (int)(strlen(title) + sizeof " (1000 )" + strlen(more)) <= screen->columns;
	tw_out_format(screen->out, "  %s (%s%s)%s\n", title, tw_figure_count(figure, count),
		      !has_words   ? ""
		      : count == 1 ? one
				   : more,
		      tw_screen_plain(screen));
	for (size_t i = 0; i < shown; i++)
		put_row(screen, &rows[i], &shape, tw_screen_names_at(&names, i));
	if (shown < count) {
		tw_table_sums(screen->out, &shape, rows + shown, count - shown, sizeof *rows);
		tw_out_format(screen->out, "  in %s more\n", tw_figure_count(figure, count - shown));
	}
	tw_screen_names_free(&names);
}

void tw_report_functions(const struct tw_screen *screen, const struct tw_calltree *tree,
			 const struct tw_report_order *order)
{
	size_t count;
	struct tw_report_row *rows = tw_report_rows(tree, order->sort, &count);
	if (rows)
		tw_report_put_rows(screen, rows, count, order, "function", " was called", " were called");
	free(rows);
}

void tw_report_put_rows_csv(struct tw_out *out, const struct tw_report_row *rows, size_t count,
			    const struct tw_report_order *order, bool has_times)
{
	const struct tw_table table = {columns, has_times ? tw_report_columns.count : COLUMNS_WITHOUT_TIMES};
	tw_out_text(out, "name");
	tw_table_csv_titles(out, &table);
	tw_out_text(out, "\n");
	for (size_t i = 0; rows && i < count && (!order->top || i < order->top); i++) {
		tw_table_csv_text(out, rows[i].name);
		tw_table_csv(out, &table, &rows[i]);
		tw_out_text(out, "\n");
	}
}

void tw_report_functions_csv(struct tw_out *out, const struct tw_calltree *tree, const struct tw_report_order *order)
{
	size_t count;
	struct tw_report_row *rows = tw_report_rows(tree, order->sort, &count);
	tw_report_put_rows_csv(out, rows, count, order, !tree->is_by_stack);
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

void tw_report_callers(const struct tw_screen *screen, const struct tw_calltree *tree,
		       const struct tw_report_order *order)
{
	size_t top = order->top;
	char figure[TW_FIGURE_BYTES];
	enum { CALLERS = 5 };
	int used = columns_used(tree);
	size_t count, edge_count, found;
	struct tw_report_row *rows = tw_report_rows(tree, order->sort, &count);
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

/* Names the functions whose ends are not recorded, those with most calls first. */
static void put_endless(const struct tw_screen *screen, const struct tw_calltree *tree)
{
	enum { SHOWN = 3 };
	uint32_t most[SHOWN];
	size_t functions = 0, shown = 0;
	uint64_t calls = 0;
	char figure[TW_FIGURE_BYTES];
	if (tree->is_by_stack || !tree->places.kinds[TW_CAPTURE_RETURN_FROM])
		return;
	for (uint32_t i = 0; i < tree->places.function_count; i++) {
		uint64_t of_this = tree->functions[i].no_end;
		size_t at = shown < SHOWN ? shown : SHOWN;
		if (!of_this)
			continue;
		functions++;
		calls += of_this;
		for (; at && tree->functions[most[at - 1]].no_end < of_this; at--)
			if (at < SHOWN)
				most[at] = most[at - 1];
		if (at < SHOWN)
			most[at] = i;
		shown += shown < SHOWN;
	}
	if (!functions)
		return;
	tw_out_format(screen->out, "%s without a recorded end: ", tw_figure_of(figure, calls, "call is", "calls are"));
	for (size_t i = 0; i < shown; i++) {
		tw_out_text(screen->out, i ? ", " : "");
		tw_out_name(screen->out, tree->places.names[most[i]].text);
		tw_out_format(screen->out, " (%s)", tw_figure_count(figure, tree->functions[most[i]].no_end));
	}
	if (functions > shown)
		tw_out_format(screen->out, " and %s more",
			      tw_figure_of(figure, functions - shown, "function", "functions"));
	tw_out_text(screen->out, ". Their time is their callers', whose self has a ?.\n");
}

/* Of functions that wait: that they are left out, or what marks them. */
static void put_waits(const struct tw_calltree *tree, struct tw_out *out)
{
	char calls[TW_FIGURE_BYTES], time[TW_FIGURE_BYTES];
	uint64_t waits = 0, ns = 0;
	for (uint32_t i = 0; !tree->is_by_stack && i < tree->places.function_count; i++) {
		bool is_wait = (tree->functions[i].calls || tree->functions[i].before) && tw_calltree_waits(tree, i);
		waits += is_wait ? tree->functions[i].calls + tree->functions[i].before : 0;
		ns += is_wait ? tree->functions[i].total_ns : 0;
	}
	if (tree->hides_waits)
		tw_out_format(
			out,
			"Without %s, %s: totals of the calls around lack this time; min to max are of whole calls.\n",
			tw_figure_of(calls, tree->hidden_waits, "call that waits", "calls that wait"),
			tw_figure_duration(time, tree->hidden_wait_ns));
	else if (waits && ns)
		tw_out_format(out, "*: %s of functions that wait, %s; --hide-waits leaves them and their time out.\n",
			      tw_figure_of(calls, waits, "call", "calls"), tw_figure_duration(time, ns));
}

/* Of calls that are left out, or reach over a border. */
static void put_borders(const struct tw_calltree *tree, struct tw_out *out)
{
	const struct tw_stacks *stacks = &tree->stacks;
	char figure[TW_FIGURE_BYTES], when[TW_WHEN_SENTENCE_BYTES];
	if (tw_when_selects(tree->when))
		tw_out_format(out, "Calls %s, and their time is that of the calls around.\n",
			      tw_when_describe(tree->when, stacks->hidden, when));
	put_waits(tree, out);
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
}

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
	put_borders(tree, out);
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
	put_endless(screen, tree);
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

void tw_report_times_json(struct tw_json *json, const struct tw_calltree *tree, const struct tw_report_order *order)
{
	size_t count, edge_count, found, top = order->top;
	struct tw_report_row *rows = tw_report_rows(tree, order->sort, &count);
	struct tw_call_edge *edges = tw_calltree_edges(tree, &edge_count);
	tw_json_open(json, "by_function", '[');
	for (size_t i = 0; rows && edges && i < count && (!top || i < top); i++) {
		tw_json_open(json, NULL, '{');
		put_name_json(json, tree, rows[i].function);
		tw_json_function(json, tree->places.functions[rows[i].function]);
		tw_json_bool(json, "waits", rows[i].waits);
		tw_table_json(json, &tw_report_columns,
			      tree->is_by_stack ? COLUMNS_WITHOUT_TIMES : tw_report_columns.count, &rows[i]);
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
	if (tw_when_selects(tree->when))
		tw_json_u64(json, tree->when->condition_count ? "left_out" : "shorter", tree->stacks.hidden);
	if (tree->hides_waits) {
		tw_json_u64(json, "waits", tree->hidden_waits);
		tw_json_seconds(json, "waited", tree->hidden_wait_ns);
	}
	tw_json_close(json, '}');
}
