/* SPDX-License-Identifier: Apache-2.0 */
/* lines.c - the table of `top` as text, or one JSON object a round. */
#include "tools/top/top.h"
#include "views/names/names.h"
#include "views/output/output.h"

#include <unistd.h>

static struct tw_out out;

static void put_text(const struct tw_top *top, uint32_t count)
{
	char text[TW_TOP_LINE_BYTES];
	tw_out_format(&out, "%s\n", tw_top_head(top, text));
	tw_out_format(&out, "%s\n", tw_top_titles(top, text));
	for (uint32_t i = 0; i < count; i++)
		tw_out_format(&out, "%s\n", tw_top_line(top, &top->rows[i], text));
	tw_out_text(&out, "\n");
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

static void put_json(const struct tw_top *top, uint32_t count)
{
	struct tw_json json = {.out = &out};
	tw_json_open(&json, NULL, '{');
	tw_json_double(&json, "seconds", tw_top_all_seconds(top));
	tw_json_double(&json, "round_seconds", tw_top_seconds(top));
	put_sums(&json, top, &top->all, &top->last);
	tw_json_open(&json, "rows", '[');
	for (uint32_t i = 0; i < count; i++) {
		const struct tw_top_row *row = &top->rows[i];
		tw_json_open(&json, NULL, '{');
		tw_json_string(&json, "name", row->name);
		tw_json_function(&json, row->function);
		if (top->is_by_thread)
			tw_json_string(&json, "thread", row->cell->thread);
		put_sums(&json, top, &row->all, &row->last);
		tw_json_close(&json, '}');
	}
	tw_json_close(&json, ']');
	tw_json_close(&json, '}');
}

bool tw_top_put(const struct tw_top_view *view)
{
	const struct tw_top *top = view->top;
	uint32_t count = view->row_count && view->row_count < top->row_count ? view->row_count : top->row_count;
	tw_out_init(&out, STDOUT_FILENO);
	if (view->is_json)
		put_json(top, count);
	else
		put_text(top, count);
	return tw_out_flush(&out) == 0;
}

int tw_top_lines(const struct tw_top_view *view)
{
	uint64_t mark_ns, rounds = 0;
	int found;
	while ((found = tw_capture_skip_to_mark(view->capture, &mark_ns)) > 0) {
		int error = tw_top_update(view->top, view->capture, mark_ns);
		if (error)
			return error;
		if (!mark_ns)
			continue;
		if (!tw_top_put(view) || ++rounds == view->rounds)
			return 0;
	}
	/* The calls after the last mark. */
	return found || !tw_top_put(view) ? found : 1;
}
