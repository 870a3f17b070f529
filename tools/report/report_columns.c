/* SPDX-License-Identifier: Apache-2.0 */
/* report_columns.c - the columns of functions, and their rows in order. */
#include "tools/report/report.h"
#include "views/folds/calltree_locks.h"

#include <stdlib.h>

/*
 * The columns, in the order of JSON and CSV: key, title, unit, width, place on the screen, from how many columns of it on, are
 * hidden rows summed up; value; is it unknown, is it marked.
 */
#define HAS_NO_TIMES  (!sums->took.count && !sums->total_ns && !sums->self_ns)
#define IS_DOUBTFUL   (sums->lossy || sums->cut)
#define HAS_NO_STATES (!tw_state_sums_all(&sums->states))
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
/* Of captures in which threads waited for locks. */
#define LOCK_COLUMNS(column) \
	column(in_locks, "in locks", TW_UNIT_DURATION, 10, 2, 72, false, sums->lock_ns, !row->knows_locks, IS_DOUBTFUL)
/* Of captures that have states of threads. */
#define STATE_COLUMNS(column) \
	column(ran, "ran", TW_UNIT_DURATION, 9, 2, 72, false, sums->states.ns[TW_STATE_RAN], HAS_NO_STATES, false) \
	column(preempted, "preempted", TW_UNIT_DURATION, 11, 2, 72, false, sums->states.ns[TW_STATE_PREEMPTED], \
	       HAS_NO_STATES, false) \
	column(off, "off", TW_UNIT_DURATION, 9, 2, 72, false, sums->states.ns[TW_STATE_OFF], HAS_NO_STATES, false) \
	column(unknown, "unknown", TW_UNIT_DURATION, 9, 0, 0, false, \
	       sums->total_ns - tw_state_sums_all(&sums->states), HAS_NO_STATES, false)
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
LOCK_COLUMNS(CELL)
STATE_COLUMNS(CELL)
#define COLUMN(key, title, unit, width, place, from, is_summed, number, unknown, doubtful) \
	{#key, title, unit, width, place, from, is_summed, cell_##key, false},
#define OPTIONAL(key, title, unit, width, place, from, is_summed, number, unknown, doubtful) \
	{#key, title, unit, width, place, from, is_summed, cell_##key, true},
static const struct tw_column columns[] = {COLUMNS(COLUMN) LOCK_COLUMNS(OPTIONAL) STATE_COLUMNS(OPTIONAL)};
static const struct tw_column without_locks[] = {COLUMNS(COLUMN) STATE_COLUMNS(OPTIONAL)};
const struct tw_table tw_report_columns = {columns, sizeof columns / sizeof *columns};

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
	bool knows_locks = tw_calltree_knows_locks(tree);
	*count = 0;
	for (uint32_t i = 0; i < tree->places.function_count; i++) {
		const struct tw_call_function *function = &tree->functions[i];
		if (function->calls || function->before)
			rows[(*count)++] =
				(struct tw_report_row){.name = tree->places.names[i].text,
						       .function = i,
						       .sums = function,
						       .knows_locks = knows_locks,
						       .waits = !tree->is_by_stack && tw_calltree_waits(tree, i),
						       .median_ns = tw_histogram_quantile(&function->took, 0.5),
						       .p99_ns = tw_histogram_quantile(&function->took, 0.99),
						       .tracer_ns = tw_tracer_cost_of(&tree->cost, &function->paid,
										      function->self_ns)};
	}
	tw_report_sort_rows(rows, *count, sort);
	return rows;
}

struct tw_table tw_report_table_of(const struct tw_report_row *rows, size_t count)
{
#define STATE_COLUMN_COUNT(...) +1
	bool has_states = false, has_locks = false;
	for (size_t i = 0; i < count; i++) {
		has_states |= tw_state_sums_all(&rows[i].sums->states) != 0;
		has_locks |= rows[i].knows_locks && rows[i].sums->lock_ns;
	}
	unsigned all = has_locks ? tw_report_columns.count : sizeof without_locks / sizeof *without_locks;
	return (struct tw_table){has_locks ? columns : without_locks,
				 all - (has_states ? 0 : STATE_COLUMNS(STATE_COLUMN_COUNT))};
}
