/* SPDX-License-Identifier: Apache-2.0 */
/* lines.c - a table of `top` as text, or one JSON object a round. */
#include "tools/top/top.h"

#include <unistd.h>

static struct tw_out out;

/* The rows that are printed. */
static uint32_t count_of(const struct tw_top_view *view)
{
	uint32_t rows = view->kind->row_count(view->table);
	return view->row_count && view->row_count < rows ? view->row_count : rows;
}

static void put_text(const struct tw_top_view *view)
{
	char text[TW_TOP_LINE_BYTES];
	uint32_t count = count_of(view);
	tw_out_format(&out, "%s\n", view->kind->head(view->table, text));
	tw_out_format(&out, "%s\n", view->kind->titles(view->table, text));
	for (uint32_t i = 0; i < count; i++)
		tw_out_format(&out, "%s\n", view->kind->line(view->table, i, text));
	tw_out_text(&out, "\n");
}

bool tw_top_put(const struct tw_top_view *view)
{
	struct tw_json json = {.out = &out};
	tw_out_init(&out, STDOUT_FILENO);
	if (view->is_json) {
		tw_json_open(&json, NULL, '{');
		view->kind->json(view->table, &json, count_of(view));
		tw_json_close(&json, '}');
	} else {
		do
			put_text(view);
		while (view->kind->next_part && view->kind->next_part(view->table));
	}
	return tw_out_flush(&out) == 0;
}

int tw_top_lines(const struct tw_top_view *view)
{
	uint64_t rounds = 0;
	int taken;
	while ((taken = view->kind->take(view, false)) > 0)
		if (taken == TW_TOP_ROUND && (!tw_top_put(view) || ++rounds == view->rounds))
			return 0;
	/* The calls after the last mark. */
	return taken || !tw_top_put(view) ? taken : 1;
}
