/* SPDX-License-Identifier: Apache-2.0 */
/* difference_table.c - two runs, function by function: columns and sentences. */
#include "views/folds/difference_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int64_t calls_change(const struct tw_difference *row)
{
	return (int64_t)(row->sides[TW_NEW].calls - row->sides[TW_OLD].calls);
}

static int64_t total_change(const struct tw_difference *row)
{
	return (int64_t)(row->sides[TW_NEW].total_ns - row->sides[TW_OLD].total_ns);
}

static int64_t state_change(const struct tw_difference *row, unsigned state)
{
	return (int64_t)(row->sides[TW_NEW].states.ns[state] - row->sides[TW_OLD].states.ns[state]);
}

static int64_t lock_change(const struct tw_difference *row)
{
	return (int64_t)(row->sides[TW_NEW].lock_ns - row->sides[TW_OLD].lock_ns);
}

static bool has_times(const struct tw_difference *row)
{
	return row->sides[TW_OLD].has_times || row->sides[TW_NEW].has_times;
}

#define OLD		      (&row->sides[TW_OLD])
#define NEW		      (&row->sides[TW_NEW])
#define IS_LOSSY	      (OLD->is_lossy || NEW->is_lossy ? '?' : 0)
#define IS_CERTAIN	      (OLD->is_lossy || NEW->is_lossy ? '?' : tw_difference_is_noise(row) ? '~' : 0)
#define QUANTILE(side, share) tw_histogram_quantile(&(side)->took, share)
/* As those of report_times.c: key, title, unit, width, place, from how many columns on, hidden rows have a sum; value, unknown, mark. */
/* clang-format off */
#define COLUMNS(column) \
	column(self_change, "change", TW_UNIT_DURATION_CHANGE, 11, 1, 0, true, tw_difference_self(row), !has_times(row), IS_CERTAIN) \
	column(noise, "chance", TW_UNIT_DURATION, 9, 2, 60, false, row->noise_ns, !has_times(row) || !row->has_noise, 0) \
	column(old_self, "old self", TW_UNIT_DURATION, 10, 3, 76, true, OLD->self_ns, !OLD->has_times, OLD->is_lossy ? '?' : 0) \
	column(new_self, "new self", TW_UNIT_DURATION, 10, 4, 50, true, NEW->self_ns, !NEW->has_times, NEW->is_lossy ? '?' : 0) \
	column(calls_change, "calls", TW_UNIT_COUNT_CHANGE, 12, 5, 0, true, calls_change(row), false, 0) \
	column(old_calls, "old calls", TW_UNIT_COUNT, 13, 8, 140, true, OLD->calls, false, 0) \
	column(new_calls, "new calls", TW_UNIT_COUNT, 13, 9, 140, true, NEW->calls, false, 0) \
	column(total_change, "in total", TW_UNIT_DURATION_CHANGE, 11, 0, 0, false, total_change(row), !has_times(row), IS_LOSSY) \
	column(old_total, "old total", TW_UNIT_DURATION, 10, 0, 0, false, OLD->total_ns, !OLD->has_times, OLD->is_lossy ? '?' : 0) \
	column(new_total, "new total", TW_UNIT_DURATION, 10, 0, 0, false, NEW->total_ns, !NEW->has_times, NEW->is_lossy ? '?' : 0) \
	column(old_median, "old p50", TW_UNIT_DURATION, 9, 6, 100, false, QUANTILE(OLD, 0.5), !OLD->took.count, 0) \
	column(new_median, "new p50", TW_UNIT_DURATION, 9, 7, 100, false, QUANTILE(NEW, 0.5), !NEW->took.count, 0) \
	column(old_p99, "old p99", TW_UNIT_DURATION, 9, 10, 140, false, QUANTILE(OLD, 0.99), !OLD->took.count, 0) \
	column(new_p99, "new p99", TW_UNIT_DURATION, 9, 11, 140, false, QUANTILE(NEW, 0.99), !NEW->took.count, 0)
/* Of captures in which waits for locks are known: the part of total_change. */
#define LOCK_COLUMNS(column) \
	column(in_locks_change, "in locks", TW_UNIT_DURATION_CHANGE, 11, 2, 76, false, lock_change(row), !has_times(row) || !row->has_locks, IS_LOSSY)
/* Of captures that all have states of threads: how self_change divides. */
#define LACKS_STATES (!has_times(row) || !row->has_states)
#define STATE_COLUMNS(column) \
	column(ran_change, "ran", TW_UNIT_DURATION_CHANGE, 10, 2, 76, true, state_change(row, TW_STATE_RAN), LACKS_STATES, 0) \
	column(preempted_change, "preempted", TW_UNIT_DURATION_CHANGE, 11, 2, 76, true, state_change(row, TW_STATE_PREEMPTED), LACKS_STATES, 0) \
	column(off_change, "off", TW_UNIT_DURATION_CHANGE, 10, 2, 76, true, state_change(row, TW_STATE_OFF), LACKS_STATES, 0)
/* clang-format on */

#define CELL(key, title, unit, width, place, from, is_summed, number, unknown, sign)                           \
	static struct tw_cell cell_##key(const void *at)                                                       \
	{                                                                                                      \
		const struct tw_difference *row = at;                                                          \
		return (struct tw_cell){.value = (uint64_t)(number), .is_unknown = (unknown), .mark = (sign)}; \
	}
COLUMNS(CELL)
LOCK_COLUMNS(CELL)
STATE_COLUMNS(CELL)
#define COLUMN(key, title, unit, width, place, from, is_summed, number, unknown, sign) \
	{#key, title, unit, width, place, from, is_summed, cell_##key, .is_optional = true},
static const struct tw_column columns[] = {COLUMNS(COLUMN) LOCK_COLUMNS(COLUMN) STATE_COLUMNS(COLUMN)};
static const struct tw_column without_locks[] = {COLUMNS(COLUMN) STATE_COLUMNS(COLUMN)};
const struct tw_table tw_difference_columns = {columns, sizeof columns / sizeof *columns};

bool tw_differences_have_locks(const struct tw_differences *differences)
{
	return !differences->lacks_locks && (differences->lock_ns[TW_OLD] || differences->lock_ns[TW_NEW]);
}

struct tw_table tw_difference_table(const struct tw_differences *differences)
{
#define COUNT_COLUMN(...) +1
	bool has_locks = tw_differences_have_locks(differences);
	unsigned count = has_locks ? tw_difference_columns.count : sizeof without_locks / sizeof *without_locks;
	return (struct tw_table){has_locks ? columns : without_locks,
				 count - (differences->lacks_states ? STATE_COLUMNS(COUNT_COLUMN) : 0)};
}

static int compare_rows(const void *a, const void *b, void *sort)
{
	const struct tw_difference *x = a, *y = b;
	int order = tw_table_compare(sort, x, y);
	return order ? order : strcmp(x->name, y->name);
}

void tw_difference_sort(struct tw_differences *differences, const char *sort)
{
	if (sort)
		qsort_r(differences->rows, differences->count, sizeof *differences->rows, compare_rows,
			(void *)tw_table_column(&tw_difference_columns, sort, strlen(sort)));
}

static void put_change(struct tw_out *out, double old, double new, const char *what, bool is_time)
{
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES], c[TW_FIGURE_BYTES];
	const char *(*figure)(char *, uint64_t) = is_time ? tw_figure_duration : tw_figure_count;
	tw_out_format(out, "%s: %s, now %s: %s%s", what, figure(a, (uint64_t)old), figure(b, (uint64_t) new),
		      new < old	  ? "-"
		      : new > old ? "+"
				  : "",
		      new == old ? "no change" : figure(c, (uint64_t)fabs(new - old)));
	if (old > 0 && new != old)
		tw_out_format(out, " (%+.1f %%)", 100 * (new - old) / old);
}

void tw_difference_put_whole(struct tw_out *out, const struct tw_differences *differences)
{
	const struct tw_estimate *old = &differences->self[TW_OLD], *new = &differences->self[TW_NEW];
	char figure[TW_FIGURE_BYTES];
	double noise;
	put_change(out, (double)differences->calls[TW_OLD], (double)differences->calls[TW_NEW], "Calls", false);
	tw_out_text(out, ".\n");
	if (differences->lacks_times) {
		tw_out_text(out, "Times are compared where all captures have returns: record with --returns.\n");
		return;
	}
	put_change(out, old->value, new->value, "Time in all calls", true);
	if (tw_estimates_noise(old, new, &noise))
		tw_out_format(out, "; chance makes up to %s", tw_figure_duration(figure, (uint64_t)noise));
	tw_out_text(out, ".\n");
	if (tw_differences_have_locks(differences)) {
		put_change(out, (double)differences->lock_ns[TW_OLD], (double)differences->lock_ns[TW_NEW],
			   "Waits for locks in them", true);
		tw_out_text(out, ".\n");
	}
}

void tw_difference_put_csv(struct tw_out *out, const struct tw_differences *differences, uint64_t top)
{
	const struct tw_table table = tw_difference_table(differences);
	tw_out_text(out, "name");
	tw_table_csv_titles(out, &table);
	tw_out_text(out, "\n");
	for (size_t i = 0; i < differences->count && (!top || i < top); i++) {
		tw_table_csv_text(out, differences->rows[i].name);
		tw_table_csv(out, &table, &differences->rows[i]);
		tw_out_text(out, "\n");
	}
}

void tw_difference_put_json(struct tw_json *json, const struct tw_differences *differences, uint64_t top)
{
	double noise;
	if (!differences->lacks_times &&
	    tw_estimates_noise(&differences->self[TW_OLD], &differences->self[TW_NEW], &noise))
		tw_json_double(json, "noise", noise / 1e9);
	tw_json_u64(json, "functions", differences->count);
	tw_json_open(json, "by_function", '[');
	for (size_t i = 0; i < differences->count && (!top || i < top); i++) {
		const struct tw_difference *row = &differences->rows[i];
		tw_json_open(json, NULL, '{');
		tw_json_name(json, row->name, strlen(row->name), row->lacks_arity);
		tw_table_json(json, &tw_difference_columns, tw_difference_columns.count, row);
		if (has_times(row) && row->has_noise)
			tw_json_bool(json, "is_noise", tw_difference_is_noise(row));
		tw_json_bool(json, "lossy", row->sides[TW_OLD].is_lossy || row->sides[TW_NEW].is_lossy);
		tw_json_close(json, '}');
	}
	tw_json_close(json, ']');
}
