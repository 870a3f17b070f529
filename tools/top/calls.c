/* SPDX-License-Identifier: Apache-2.0 */
/* calls.c - the table of calls (table.h) as one that is shown, of a stream of `record` or `attach`. */
#include "tools/top/top.h"
#include "views/names/names.h"

static int take(const struct tw_top_view *view, bool is_paused)
{
	uint64_t mark_ns = 0;
	int found = tw_capture_skip_to_mark(view->capture, &mark_ns), error = 0;
	if (found <= 0)
		return found;
	/* While it is paused nothing is taken in: the round after it is a longer one. */
	if (!is_paused || !mark_ns)
		error = tw_top_update(view->table, view->capture, mark_ns);
	return error ? error : mark_ns ? TW_TOP_ROUND : TW_TOP_PIECE;
}

static void put_sums(struct tw_json *json, const struct tw_top *top, const struct tw_top_sums *all,
		     const struct tw_top_sums *last)
{
	double seconds = tw_top_seconds(top);
	tw_json_u64(json, "calls", all->calls);
	tw_json_u64(json, "new_calls", last->calls);
	tw_json_double(json, "calls_per_second", seconds > 0 ? (double)last->calls / seconds : 0);
	if (top->has_times) {
		tw_json_seconds(json, "total", all->ns);
		tw_json_seconds(json, "new_total", last->ns);
	}
	if (top->errors) {
		tw_json_u64(json, "errors", all->errors);
		tw_json_u64(json, "new_errors", last->errors);
	}
}

static void put_json(const void *table, struct tw_json *json, uint32_t count)
{
	const struct tw_top *top = table;
	tw_json_double(json, "seconds", tw_top_all_seconds(top));
	tw_json_double(json, "round_seconds", tw_top_seconds(top));
	put_sums(json, top, &top->all, &top->last);
	tw_json_open(json, "rows", '[');
	for (uint32_t i = 0; i < count; i++) {
		const struct tw_top_row *row = &top->rows[i];
		tw_json_open(json, NULL, '{');
		tw_json_string(json, "name", row->name);
		tw_json_function(json, row->function);
		if (top->is_by_thread)
			tw_json_string(json, "thread", row->cell->thread);
		put_sums(json, top, &row->all, &row->last);
		tw_json_close(json, '}');
	}
	tw_json_close(json, ']');
}

static const char *head(const void *table, char text[TW_TOP_LINE_BYTES])
{
	return tw_top_head(table, text);
}

static const char *titles(const void *table, char text[TW_TOP_LINE_BYTES])
{
	return tw_top_titles(table, text);
}

static const char *line(const void *table, uint32_t row, char text[TW_TOP_LINE_BYTES])
{
	return tw_top_line(table, &((const struct tw_top *)table)->rows[row], text);
}

static uint32_t row_count(const void *table)
{
	return ((const struct tw_top *)table)->row_count;
}

static bool is_active(const void *table, uint32_t row)
{
	return ((const struct tw_top *)table)->rows[row].last.calls > 0;
}

static const char *order_name(const void *table)
{
	return tw_top_order_name(((const struct tw_top *)table)->order);
}

static void next_order(void *table)
{
	struct tw_top *top = table;
	do
		top->order = (top->order + 1) % TW_TOP_ORDERS;
	while (!tw_top_has_order(top, top->order));
}

static void swap(void *table)
{
	struct tw_top *top = table;
	top->is_by_thread = !top->is_by_thread;
}

static void reset(void *table)
{
	tw_top_reset(table);
}

static int arrange(void *table)
{
	return tw_top_arrange(table);
}

const struct tw_top_kind tw_top_of_calls = {.keys = " q quit  s sort  t threads  r reset  p pause  / filter ",
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
					    .reset = reset,
					    .arrange = arrange};
