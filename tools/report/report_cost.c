/* SPDX-License-Identifier: Apache-2.0 */
/* report_cost.c - the tracer's cost of a call, and the functions whose own time contains most of it. */
#include "tools/report/report.h"

#include <stdlib.h>

/* Functions that paid less often are not named: their time is short, or not the tracer's. */
enum { COST_TIMES = 1000, COST_NAMES = 3, COST_NAME_COLUMNS = 50 };

static int by_cost(const void *a, const void *b)
{
	const struct tw_report_row *x = a, *y = b;
	return (x->tracer_ns < y->tracer_ns) - (x->tracer_ns > y->tracer_ns);
}

/* Keeps the rows that are to a tenth or more the tracer's, most of it first. */
static size_t keep_costly(struct tw_report_row *rows, size_t count)
{
	size_t kept = 0;
	for (size_t i = 0; i < count; i++) {
		const struct tw_cost_times *times = &rows[i].sums->paid;
		if (times->calls + times->callees + times->moments >= COST_TIMES &&
		    tw_tracer_cost_matters(rows[i].tracer_ns, rows[i].sums->self_ns))
			rows[kept++] = rows[i];
	}
	qsort(rows, kept, sizeof *rows, by_cost);
	return kept;
}

void tw_report_cost(const struct tw_screen *screen, const struct tw_calltree *tree)
{
	char clause[TW_COST_CLAUSE_BYTES], tracer[TW_FIGURE_BYTES], self[TW_FIGURE_BYTES], name[TW_NAME_SHORT_BYTES];
	size_t count = 0;
	struct tw_report_row *rows = tree->is_by_stack ? NULL : tw_report_rows(tree, "name", &count);
	size_t kept = rows ? keep_costly(rows, count) : 0;
	if (kept)
		tw_out_format(screen->out, "The tracer's own cost is in these times: %s, as the shortest calls show.",
			      tw_tracer_cost_clause(tree->cost.ns, clause));
	for (size_t i = 0; i < kept && i < COST_NAMES; i++)
		tw_out_format(screen->out, "%s %s: up to %s of %s%s", i ? "," : "",
			      tw_screen_short(screen, rows[i].name, COST_NAME_COLUMNS, name),
			      tw_figure_duration(tracer, rows[i].tracer_ns),
			      tw_figure_duration(self, rows[i].sums->self_ns), i ? "" : " self are the tracer's");
	if (kept > COST_NAMES)
		tw_out_format(screen->out, ", and %s more", tw_figure_count(self, kept - COST_NAMES));
	if (kept)
		tw_out_text(screen->out, ".\n");
	free(rows);
}
