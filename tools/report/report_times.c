/* SPDX-License-Identifier: Apache-2.0 */
/* report_times.c - durations of calls: by function, by caller, as a tree. */
#include "tools/report/report.h"
#include "views/names/missing.h"
#include "base/search.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

/* A narrower screen has no space for all columns, if threads have states. */
#define STATE_COLUMNS_FROM 100
#define STATE_COLUMNS_FEW  "total,ran,preempted,off,calls"
#define LOCK_COLUMNS_FEW   "total,ran,off,in_locks,calls"

/* Prints a sum in a column, marked if it contains losses. */
static void put_sum(const struct tw_screen *screen, uint64_t ns, bool is_known, bool is_lossy)
{
	char figure[TW_FIGURE_BYTES];
	const char *text = is_known ? tw_figure_duration(figure, ns) : "-";
	tw_out_format(screen->out, "%*s%s", 9 - (int)strlen(text), is_known && is_lossy ? "?" : "", text);
}

void tw_report_put_weight(const struct tw_screen *screen, const struct tw_calltree *tree, uint64_t weight,
			  bool is_known, bool is_lossy)
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
	tw_report_put_weight(screen, tree, total, true, is_lossy);
	tw_report_put_weight(screen, tree, self, has_self, is_lossy);
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

/* The position at which the columns up to that of the calls end; -1: it is not shown. */
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

/* The columns that are shown. */
static void choose_columns(const struct tw_screen *screen, const struct tw_report_order *order,
			   const struct tw_table *table, struct tw_table_shape *shape)
{
	int columns = screen->cuts_names ? screen->columns : INT_MAX;
	const struct tw_column *sort = tw_report_sort(order->sort);
	bool has_states = tw_table_column(table, "ran", 3), has_locks = tw_table_column(table, "in_locks", 8);
	if (order->columns)
		tw_table_choose(&tw_report_columns, order->columns, shape);
	else if (has_states && columns < STATE_COLUMNS_FROM && !order->sort)
		tw_table_choose(&tw_report_columns, has_locks ? LOCK_COLUMNS_FEW : STATE_COLUMNS_FEW, shape);
	else
		tw_table_fit(table, columns, sort, shape);
}

void tw_report_put_rows(const struct tw_screen *screen, const struct tw_report_row *rows, size_t count,
			const struct tw_report_order *order, const char *title, const char *one, const char *more)
{
	char figure[TW_FIGURE_BYTES];
	struct tw_table_shape shape;
	const struct tw_table table = tw_report_table_of(rows, count);
	choose_columns(screen, order, &table, &shape);
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
	struct tw_table table = tw_report_table_of(rows, rows ? count : 0);
	if (!has_times)
		table.count = TW_REPORT_COLUMNS_WITHOUT_TIMES;
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
	return TW_ORDER(y->total_ns, x->total_ns) ?: TW_ORDER(y->calls, x->calls);
}

/* The edges into a function; most time first. */
static struct tw_call_edge *edges_into(struct tw_call_edge *edges, size_t count, uint32_t function, size_t *found)
{
	size_t first = tw_search(i, count, edges[i].callee < function);
	*found = tw_search(i, count, edges[i].callee <= function) - first;
	qsort(edges + first, *found, sizeof *edges, by_edge_weight);
	return edges + first;
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

/* ---- limits of the times ---- */

/* Names the functions whose ends are not recorded, those with most calls first. */
static void put_endless(const struct tw_screen *screen, const struct tw_calltree *tree)
{
	enum { SHOWN = 3 };
	uint32_t most[SHOWN];
	size_t functions = 0, shown = 0;
	uint64_t calls = 0;
	char figure[TW_FIGURE_BYTES];
	if (tree->is_by_stack || !tw_places_have_returns(&tree->places))
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

/* Less than this part of the time is of no interest: clocks differ by some nanoseconds. */
#define UNKNOWN_PART 1000

static void put_unknown_states(const struct tw_screen *screen, const struct tw_calltree *tree)
{
	uint64_t known_ns = tw_state_sums_all(&tree->states);
	uint64_t unknown_ns = tree->outermost_ns > known_ns ? tree->outermost_ns - known_ns : 0;
	struct tw_capture_account account;
	char duration[TW_FIGURE_BYTES], figure[TW_FIGURE_BYTES], lost[TW_FIGURE_BYTES + 64] = "";
	if (!tree->stacks.has_states || unknown_ns < tree->outermost_ns / UNKNOWN_PART + 1)
		return;
	tw_capture_account(tree->capture, &account);
	if (account.switches_lost)
		snprintf(lost, sizeof lost, "; %s lost",
			 tw_figure_of(figure, account.switches_lost, "context switch was", "context switches were"));
	tw_out_format(
		screen->out,
		"ran, preempted and off are without %s of total, in which the states of threads are not known%s.\n",
		tw_figure_duration(duration, unknown_ns), lost);
}

void tw_report_honestly(const struct tw_screen *screen, const struct tw_calltree *tree)
{
	const struct tw_stacks *stacks = &tree->stacks;
	char figure[TW_FIGURE_BYTES], places[TW_MISSING_TEXT_BYTES];
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
		tw_out_format(out, "%s%s:%s sums with %s in them have a ?; calls around them are not in min to max.\n",
			      stacks->losses > stacks->replaced ? tw_screen_red(screen) : "",
			      tw_missing_places(stacks->losses, stacks->replaced, places),
			      stacks->losses > stacks->replaced ? tw_screen_plain(screen) : "",
			      stacks->losses > stacks->replaced ? "losses" : "such places");
	if (stacks->lost)
		tw_out_format(out, "%s call%s end%s in losses, as far as is known: counted up to there.\n",
			      tw_figure_count(figure, stacks->lost), stacks->lost == 1 ? "" : "s",
			      stacks->lost == 1 ? "s" : "");
	put_unknown_states(screen, tree);
	tw_report_in_locks(screen, tree);
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
			      tree->is_by_stack ? TW_REPORT_COLUMNS_WITHOUT_TIMES : tw_report_columns.count, &rows[i]);
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
	tw_tracer_cost_json(json, tree->cost.ns);
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
