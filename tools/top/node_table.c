/* SPDX-License-Identifier: Apache-2.0 */
/* node_table.c - the processes of an Erlang node as a table that is shown: node.h. */
#include "tools/top/node.h"
#include "tools/common/erlang_helper.h"

#include "base/grow.h"
#include "base/search.h"

#include "tracewheel/error.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- rows ---- */

static void clear(struct tw_node_rows *rows)
{
	for (uint32_t i = 0; i < rows->count; i++)
		free(rows->rows[i].line);
	rows->count = 0;
}

static void exchange(struct tw_node_rows *a, struct tw_node_rows *b)
{
	struct tw_node_rows kept = *a;
	*a = *b;
	*b = kept;
}

/* Numbers, and behind them texts, each after a tabulator. */
static int take_row(struct tw_node_rows *rows, const char *text)
{
	struct tw_node_row row = {.line = strdup(text)};
	char *rest = row.line, *numbers;
	if (!row.line || !tw_grow(rows->rows, rows->count, rows->capacity)) {
		free(row.line);
		return TW_ENOMEM;
	}
	numbers = strsep(&rest, "\t");
	for (int i = 0; i < TW_NODE_TEXTS; i++)
		row.texts[i] = rest ? strsep(&rest, "\t") : "";
	row.all = strtoull(numbers, &numbers, 10);
	row.last = strtoull(numbers, &numbers, 10);
	row.us = strtoull(numbers, &numbers, 10);
	row.mailbox = strtoull(numbers, &numbers, 10);
	row.memory_bytes = strtoull(numbers, &numbers, 10);
	rows->rows[rows->count++] = row;
	return 0;
}

static double rate_of(const struct tw_node *node, const struct tw_node_row *row)
{
	/* Functions are all looked at once a round. */
	double seconds = row->us ? (double)row->us / 1e6 : (double)node->now.round_ns / 1e9;
	return row->last && seconds > 0 ? (double)row->last / seconds : 0;
}

static bool is_wanted(const struct tw_node *node, const struct tw_node_row *row)
{
	for (int i = 0; i < TW_NODE_TEXTS; i++)
		if (strstr(row->texts[i], node->filter))
			return true;
	return false;
}

static int by_order(const void *a, const void *b, void *arg)
{
	const struct tw_node_row *x = *(const struct tw_node_row *const *)a, *y = *(const struct tw_node_row *const *)b;
	const struct tw_node *node = arg;
	double x_rate = rate_of(node, x), y_rate = rate_of(node, y);
	int result = node->order == TW_NODE_BY_RATE	 ? TW_ORDER(y_rate, x_rate)
		     : node->order == TW_NODE_BY_MAILBOX ? TW_ORDER(y->mailbox, x->mailbox)
		     : node->order == TW_NODE_BY_MEMORY	 ? TW_ORDER(y->memory_bytes, x->memory_bytes)
							 : 0;
	/* Those without a name are behind those that have one. */
	if (node->order == TW_NODE_BY_NAME)
		result = TW_ORDER(!*x->texts[TW_NODE_NAME], !*y->texts[TW_NODE_NAME])
				 ?: strcmp(x->texts[TW_NODE_NAME], y->texts[TW_NODE_NAME]);
	else if (!result)
		result = TW_ORDER(y->all, x->all);
	return result ? result : strcmp(x->texts[TW_NODE_PID], y->texts[TW_NODE_PID]);
}

static int arrange(void *table)
{
	struct tw_node *node = table;
	const struct tw_node_rows *rows = node->shows_functions ? &node->functions : &node->processes;
	node->shown_count = 0;
	for (uint32_t i = 0; i < rows->count; i++) {
		if (!is_wanted(node, &rows->rows[i]))
			continue;
		if (!tw_grow(node->shown, node->shown_count, node->shown_capacity))
			return TW_ENOMEM;
		node->shown[node->shown_count++] = &rows->rows[i];
	}
	if (node->shown_count)
		qsort_r(node->shown, node->shown_count, sizeof *node->shown, by_order, node);
	return 0;
}

/* ---- lines of the helper ---- */

static void take_numbers(struct tw_node_round *round, char *text)
{
	round->all_ns = strtoull(text, &text, 10);
	round->round_ns = strtoull(text, &text, 10);
	round->processes = strtoull(text, &text, 10);
	round->known = strtoull(text, &text, 10);
}

static void end(struct tw_node *node, int code, const char *text)
{
	node->code = code;
	snprintf(node->end, sizeof node->end, "%s", text);
}

/* Returns what it was, or an error. */
static int take_line(struct tw_node *node, char *line, bool is_dropped)
{
	char *text = strchr(line, ' ');
	if (text)
		*text++ = 0;
	else
		text = line + strlen(line);
	if (strcmp(line, "process") == 0)
		return take_row(&node->coming_processes, text) ?: TW_TOP_PIECE;
	if (strcmp(line, "function") == 0)
		return take_row(&node->coming_functions, text) ?: TW_TOP_PIECE;
	if (strcmp(line, "round") == 0) {
		clear(&node->coming_processes);
		clear(&node->coming_functions);
		take_numbers(&node->coming, text);
	} else if (strcmp(line, "end") == 0) {
		if (is_dropped)
			return TW_TOP_PIECE;
		exchange(&node->processes, &node->coming_processes);
		exchange(&node->functions, &node->coming_functions);
		node->now = node->coming;
		return arrange(node) ?: TW_TOP_ROUND;
	} else if (strcmp(line, "watching") == 0) {
		node->is_watching = true;
	} else if (strcmp(line, "lost") == 0) {
		end(node, TW_EXIT_FAILURE, "the connection to the node is lost.");
	} else if (strcmp(line, "killed") == 0) {
		end(node, TW_EXIT_FAILURE, "the process that looks at others was killed in the node.");
	} else if (strcmp(line, "failed") == 0) {
		int code = (int)strtol(text, &text, 10);
		end(node, code, *text ? text + 1 : text);
	}
	return TW_TOP_PIECE;
}

static int take_lines(struct tw_node *node, bool is_dropped)
{
	int result = TW_TOP_PIECE;
	char *line = node->input, *line_end;
	while ((line_end = memchr(line, '\n', node->input_bytes - (size_t)(line - node->input)))) {
		*line_end = 0;
		int taken = take_line(node, line, is_dropped);
		if (taken < 0)
			return taken;
		result = taken == TW_TOP_ROUND ? TW_TOP_ROUND : result;
		line = line_end + 1;
	}
	node->input_bytes -= (size_t)(line - node->input);
	memmove(node->input, line, node->input_bytes);
	return result;
}

int tw_node_read(struct tw_node *node, int fd, bool is_dropped)
{
	ssize_t bytes;
	if (node->input_bytes == node->input_capacity) {
		void *grown = tw_grown(node->input, &node->input_capacity, 4096);
		if (!grown)
			return TW_ENOMEM;
		node->input = grown;
	}
	do
		bytes = read(fd, node->input + node->input_bytes, node->input_capacity - node->input_bytes);
	while (bytes < 0 && errno == EINTR);
	if (bytes <= 0)
		return TW_TOP_ENDED;
	node->input_bytes += (size_t)bytes;
	return take_lines(node, is_dropped);
}

void tw_node_free(struct tw_node *node)
{
	struct tw_node_rows *const all[] = {&node->processes, &node->functions, &node->coming_processes,
					    &node->coming_functions};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		clear(all[i]);
		free(all[i]->rows);
	}
	free(node->shown);
	free(node->input);
}

/* ---- as text ---- */

static int take(const struct tw_top_view *view, bool is_paused)
{
	return tw_node_read(view->table, view->fd, is_paused);
}

static const char *const orders[] = {[TW_NODE_BY_RATE] = "rate",
				     [TW_NODE_BY_REDUCTIONS] = "reductions",
				     [TW_NODE_BY_MAILBOX] = "mailbox",
				     [TW_NODE_BY_MEMORY] = "memory",
				     [TW_NODE_BY_NAME] = "name"};

enum tw_node_order tw_node_order_named(const char *name)
{
	enum tw_node_order order = 0;
	while (order < TW_NODE_ORDERS && strcmp(orders[order], name) != 0)
		order++;
	return order;
}

static const char *order_name(const void *table)
{
	return orders[((const struct tw_node *)table)->order];
}

static void next_order(void *table)
{
	struct tw_node *node = table;
	node->order = (node->order + 1) % TW_NODE_ORDERS;
}

static void swap(void *table)
{
	struct tw_node *node = table;
	node->shows_functions = node->has_functions && !node->shows_functions;
}

static bool next_part(void *table)
{
	struct tw_node *node = table;
	swap(node);
	return arrange(node) == 0 && node->shows_functions;
}

static void reset(void *table)
{
	(void)table;
	tw_erlang_helper_tell("reset\n");
}

static const char *head(const void *table, char text[TW_TOP_LINE_BYTES])
{
	const struct tw_node *node = table;
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES];
	int used = snprintf(text, TW_TOP_LINE_BYTES, "%.1f s: %s", (double)node->now.all_ns / 1e9,
			    tw_figure_of(a, node->now.processes, "process", "processes"));
	if (node->now.known < node->now.processes)
		snprintf(text + used, TW_TOP_LINE_BYTES - (size_t)used, ", of which %s were asked",
			 tw_figure_count(b, node->now.known));
	return text;
}

static const char *titles(const void *table, char text[TW_TOP_LINE_BYTES])
{
	const struct tw_node *node = table;
	if (node->shows_functions)
		snprintf(text, TW_TOP_LINE_BYTES, "%12s %15s  function", "calls/s", "calls");
	else
		snprintf(text, TW_TOP_LINE_BYTES, "%12s %15s %9s %9s  %-12s %-20s %-28s label", "reductions/s",
			 "reductions", "mailbox", "memory", "process", "name", "initial-call");
	return text;
}

static const char *line(const void *table, uint32_t number, char text[TW_TOP_LINE_BYTES])
{
	const struct tw_node *node = table;
	const struct tw_node_row *row = node->shown[number];
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES], c[TW_FIGURE_BYTES], d[TW_FIGURE_BYTES], clean[TW_NODE_TEXTS][128];
	for (int i = 0; i < TW_NODE_TEXTS; i++)
		clean[i][tw_clean(row->texts[i], strlen(row->texts[i]), clean[i], sizeof clean[i] - 1)] = 0;
	const char *rate = tw_figure_count(a, (uint64_t)(rate_of(node, row) + 0.5)),
		   *all = tw_figure_count(b, row->all);
	if (node->shows_functions)
		snprintf(text, TW_TOP_LINE_BYTES, "%12s %15s  %s", rate, all, clean[TW_NODE_PID]);
	else
		snprintf(text, TW_TOP_LINE_BYTES, "%12s %15s %9s %9s  %-12s %-20s %-28s %s", rate, all,
			 tw_figure_count(c, row->mailbox), tw_figure_bytes(d, row->memory_bytes), clean[TW_NODE_PID],
			 clean[TW_NODE_NAME], clean[TW_NODE_INITIAL_CALL], clean[TW_NODE_LABEL]);
	for (size_t bytes = strlen(text); bytes > 0 && text[bytes - 1] == ' ';)
		text[--bytes] = 0;
	return text;
}

static uint32_t row_count(const void *table)
{
	return ((const struct tw_node *)table)->shown_count;
}

static bool is_active(const void *table, uint32_t row)
{
	return ((const struct tw_node *)table)->shown[row]->last > 0;
}

/* ---- as JSON ---- */

static void put_process(struct tw_json *json, const struct tw_node *node, const struct tw_node_row *row)
{
	static const char *const names[] = {"pid", "name", "initial_call", "behaviour", "application", "label"};
	tw_json_open(json, NULL, '{');
	for (int i = 0; i < TW_NODE_TEXTS; i++)
		if (*row->texts[i])
			tw_json_string(json, names[i], row->texts[i]);
	tw_json_u64(json, "reductions", row->all);
	tw_json_u64(json, "new_reductions", row->last);
	tw_json_double(json, "reductions_per_second", rate_of(node, row));
	tw_json_u64(json, "mailbox", row->mailbox);
	tw_json_u64(json, "memory", row->memory_bytes);
	tw_json_close(json, '}');
}

static void put_functions(struct tw_json *json, const struct tw_node *node)
{
	tw_json_open(json, "functions", '[');
	for (uint32_t i = 0; i < node->functions.count; i++) {
		const struct tw_node_row *row = &node->functions.rows[i];
		tw_json_open(json, NULL, '{');
		tw_json_string(json, "name", row->texts[TW_NODE_PID]);
		tw_json_u64(json, "calls", row->all);
		tw_json_u64(json, "new_calls", row->last);
		tw_json_double(json, "calls_per_second", rate_of(node, row));
		tw_json_close(json, '}');
	}
	tw_json_close(json, ']');
}

static void put_json(const void *table, struct tw_json *json, uint32_t count)
{
	const struct tw_node *node = table;
	tw_json_double(json, "seconds", (double)node->now.all_ns / 1e9);
	tw_json_double(json, "round_seconds", (double)node->now.round_ns / 1e9);
	tw_json_u64(json, "processes", node->now.processes);
	tw_json_u64(json, "asked", node->now.known);
	tw_json_open(json, "rows", '[');
	for (uint32_t i = 0; i < count; i++)
		put_process(json, node, node->shown[i]);
	tw_json_close(json, ']');
	if (node->has_functions)
		put_functions(json, node);
}

const struct tw_top_kind tw_top_of_node = {.keys = " q quit  s sort  t functions  r reset  p pause  / filter ",
					   .take = take,
					   .head = head,
					   .titles = titles,
					   .line = line,
					   .json = put_json,
					   .row_count = row_count,
					   .is_active = is_active,
					   .order_name = order_name,
					   .next_order = next_order,
					   .swap = swap,
					   .next_part = next_part,
					   .reset = reset,
					   .arrange = arrange};
