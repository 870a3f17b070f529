/* SPDX-License-Identifier: Apache-2.0 */
/* report_diff.c - two sides of captures, function by function: `report --diff`. */
#include "tools/report/report_diff.h"
#include "views/folds/differences.h"
#include "views/names/missing.h"
#include "views/names/names.h"

#include "tracewheel/error.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- columns ---- */

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
STATE_COLUMNS(CELL)
#define COLUMN(key, title, unit, width, place, from, is_summed, number, unknown, sign) \
	{#key, title, unit, width, place, from, is_summed, cell_##key, .is_optional = true},
static const struct tw_column columns[] = {COLUMNS(COLUMN) STATE_COLUMNS(COLUMN)};
const struct tw_table tw_diff_columns = {columns, sizeof columns / sizeof *columns};
/* Without those of states where a capture has none. */
static struct tw_table table_of(const struct tw_differences *differences)
{
#define COUNT_COLUMN(...) +1
	return (struct tw_table){columns,
				 tw_diff_columns.count - (differences->lacks_states ? STATE_COLUMNS(COUNT_COLUMN) : 0)};
}
/* The columns that are shown if times are not known. */
static const char calls_only[] = "calls_change,old_calls,new_calls";

/* ---- sentences ---- */

static void put_captures(const struct tw_screen *screen, const struct tw_sides *sides)
{
	char events[TW_FIGURE_BYTES], seconds[TW_FIGURE_BYTES], lost[TW_FIGURE_BYTES], clause[TW_COST_CLAUSE_BYTES];
	for (unsigned side = 0; side < TW_SIDES; side++) {
		for (unsigned i = 0; i < sides->count; i++) {
			const struct tw_sides_capture *capture = &sides->captures[i];
			if (capture->side != side)
				continue;
			tw_out_format(screen->out, "%s%s%s  ", tw_screen_bold(screen), tw_side_names[side],
				      tw_screen_plain(screen));
			tw_out_name(screen->out, capture->path);
			tw_out_format(screen->out, ": %s in %s%s",
				      tw_figure_of(events, capture->events, "event", "events"),
				      tw_figure_seconds(seconds, capture->seconds), capture->lost ? ", " : ".\n");
			if (capture->lost)
				tw_out_format(screen->out,
					      "%sLOST %s%s: calls and times with losses in them have a ?.\n",
					      tw_screen_red(screen),
					      tw_figure_of(lost, capture->lost, "event", "events"),
					      tw_screen_plain(screen));
			if (!sides->differences.lacks_times && *tw_tracer_cost_clause(capture->cost_ns, clause))
				tw_out_format(screen->out, "The tracer's own cost is in its times: %s.\n", clause);
		}
	}
}

static void put_change(const struct tw_screen *screen, double old, double new, const char *what, bool is_time)
{
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES], c[TW_FIGURE_BYTES];
	const char *(*figure)(char *, uint64_t) = is_time ? tw_figure_duration : tw_figure_count;
	tw_out_format(screen->out, "%s: %s, now %s: %s%s", what, figure(a, (uint64_t)old), figure(b, (uint64_t) new),
		      new < old	  ? "-"
		      : new > old ? "+"
				  : "",
		      new == old ? "no change" : figure(c, (uint64_t)fabs(new - old)));
	if (old > 0 && new != old)
		tw_out_format(screen->out, " (%+.1f %%)", 100 * (new - old) / old);
}

/* The difference of the whole, and what of the table is not certain. */
static void put_whole(const struct tw_screen *screen, const struct tw_sides *sides)
{
	const struct tw_differences *differences = &sides->differences;
	const struct tw_estimate *old = &differences->self[TW_OLD], *new = &differences->self[TW_NEW];
	char figure[TW_FIGURE_BYTES];
	double noise;
	put_change(screen, (double)differences->calls[TW_OLD], (double)differences->calls[TW_NEW], "Calls", false);
	tw_out_text(screen->out, ".\n");
	if (differences->lacks_times) {
		tw_out_text(screen->out,
			    "Times are compared where all captures have returns: record with --returns.\n");
		return;
	}
	put_change(screen, old->value, new->value, "Time in all calls", true);
	if (tw_estimates_noise(old, new, &noise))
		tw_out_format(screen->out, "; chance makes up to %s", tw_figure_duration(figure, (uint64_t)noise));
	tw_out_text(screen->out, ".\n");
	if (differences->captures[TW_OLD] < 2 || differences->captures[TW_NEW] < 2)
		tw_out_text(
			screen->out,
			"\"chance\" is what calls within one run vary by; with several captures a side it is what runs vary by.\n");
}

static void put_programs(const struct tw_screen *screen, const struct tw_differences *differences)
{
	const char *old = differences->program[TW_OLD], *new = differences->program[TW_NEW];
	if (!old || !new || !strcmp(old, new))
		return;
	tw_out_text(screen->out, "The program was ");
	tw_out_name(screen->out, old);
	tw_out_text(screen->out, ", and is ");
	tw_out_name(screen->out, new);
	tw_out_text(screen->out, ": functions of both are compared by name.\n");
}

void tw_diff_sentences(const struct tw_screen *screen, const struct tw_sides *sides)
{
	put_captures(screen, sides);
	put_programs(screen, &sides->differences);
	put_whole(screen, sides);
}

/* ---- the table ---- */

static int compare_rows(const void *a, const void *b, void *sort)
{
	const struct tw_difference *x = a, *y = b;
	int order = sort ? tw_table_compare(sort, x, y) : 0;
	return order ? order : strcmp(x->name, y->name);
}

static void sort_rows(const struct tw_diff *diff)
{
	const char *sort = diff->order->sort;
	if (!sort)
		return;
	qsort_r(diff->sides.differences.rows, diff->sides.differences.count, sizeof *diff->sides.differences.rows,
		compare_rows, (void *)tw_table_column(&tw_diff_columns, sort, strlen(sort)));
}

/* With states of threads, on narrower screens than those that have space for all. */
#define STATES_FEW  "self_change,noise,ran_change,off_change,calls_change"
#define STATES_SOME "self_change,noise,ran_change,preempted_change,off_change,old_self,new_self,calls_change"
enum { STATES_SOME_FROM = 100, STATES_ALL_FROM = 170 };

/* The columns that are shown. */
static void choose_columns(const struct tw_screen *screen, const struct tw_diff *diff, struct tw_table_shape *shape)
{
	const struct tw_differences *differences = &diff->sides.differences;
	const struct tw_table table = table_of(differences);
	const struct tw_report_order *order = diff->order;
	int columns = screen->cuts_names ? screen->columns : INT_MAX;
	bool is_narrow = !differences->lacks_states && columns < STATES_ALL_FROM && !order->sort;
	const char *chosen = order->columns		? order->columns
			     : differences->lacks_times ? calls_only
			     : is_narrow		? (columns < STATES_SOME_FROM ? STATES_FEW : STATES_SOME)
							: NULL;
	if (chosen)
		tw_table_choose(&tw_diff_columns, chosen, shape);
	else
		tw_table_fit(&table, columns,
			     order->sort ? tw_table_column(&tw_diff_columns, order->sort, strlen(order->sort)) : NULL,
			     shape);
}

static void put_table(const struct tw_screen *screen, const struct tw_diff *diff)
{
	const struct tw_differences *differences = &diff->sides.differences;
	const struct tw_report_order *order = diff->order;
	size_t shown = order->top && order->top < differences->count ? order->top : differences->count;
	struct tw_table_shape shape;
	char figure[TW_FIGURE_BYTES];
	choose_columns(screen, diff, &shape);
	const char **names = malloc((shown + 1) * sizeof *names);
	for (size_t i = 0; names && i < shown; i++)
		names[i] = differences->rows[i].name;
	struct tw_screen_names shortened = tw_screen_names(screen, names, shown, screen->columns - shape.width - 3);
	tw_out_format(screen->out, "\n%s", tw_screen_bold(screen));
	tw_table_titles(screen->out, &shape);
	tw_out_format(screen->out, "  function (%s)%s\n", tw_figure_count(figure, differences->count),
		      tw_screen_plain(screen));
	for (size_t i = 0; i < shown; i++) {
		tw_table_cells(screen->out, &shape, &differences->rows[i]);
		tw_out_format(screen->out, "  %s\n", tw_screen_names_at(&shortened, i));
	}
	if (shown < differences->count) {
		tw_table_sums(screen->out, &shape, differences->rows + shown, differences->count - shown,
			      sizeof *differences->rows);
		tw_out_format(screen->out, "  in %s more\n", tw_figure_count(figure, differences->count - shown));
	}
	tw_screen_names_free(&shortened);
}

static void put_screen(struct tw_out *out, const struct tw_diff *diff)
{
	static struct tw_out text;
	struct tw_screen screen = tw_screen_make(out, 0), plain = screen;
	tw_out_init(&text, -1);
	plain.out = &text;
	tw_diff_sentences(&plain, &diff->sides);
	tw_screen_wrapped(&screen, text.data, text.used);
	put_table(&screen, diff);
}

static void put_csv(struct tw_out *out, const struct tw_diff *diff)
{
	const struct tw_table table = table_of(&diff->sides.differences);
	tw_out_text(out, "name");
	tw_table_csv_titles(out, &table);
	tw_out_text(out, "\n");
	for (size_t i = 0; i < diff->sides.differences.count && (!diff->order->top || i < diff->order->top); i++) {
		tw_table_csv_text(out, diff->sides.differences.rows[i].name);
		tw_table_csv(out, &table, &diff->sides.differences.rows[i]);
		tw_out_text(out, "\n");
	}
}

static void put_side_json(struct tw_json *json, const struct tw_diff *diff, unsigned side)
{
	const struct tw_differences *differences = &diff->sides.differences;
	tw_json_open(json, tw_side_names[side], '{');
	if (differences->program[side])
		tw_json_string(json, "program", differences->program[side]);
	tw_json_u64(json, "calls", differences->calls[side]);
	if (!differences->lacks_times)
		tw_json_double(json, "self", differences->self[side].value / 1e9);
	tw_json_open(json, "captures", '[');
	for (unsigned i = 0; i < diff->sides.count; i++) {
		const struct tw_sides_capture *capture = &diff->sides.captures[i];
		if (capture->side != side)
			continue;
		tw_json_open(json, NULL, '{');
		tw_json_string(json, "path", capture->path);
		tw_json_u64(json, "events", capture->events);
		tw_json_u64(json, "lost", capture->lost);
		tw_json_double(json, "seconds", capture->seconds);
		tw_tracer_cost_json(json, capture->cost_ns);
		tw_json_close(json, '}');
	}
	tw_json_close(json, ']');
	tw_json_close(json, '}');
}

static void put_json(struct tw_out *out, const struct tw_diff *diff)
{
	const struct tw_differences *differences = &diff->sides.differences;
	struct tw_json json = {.out = out, .is_spread = true};
	double noise;
	tw_json_open(&json, NULL, '{');
	put_side_json(&json, diff, TW_OLD);
	put_side_json(&json, diff, TW_NEW);
	if (!differences->lacks_times &&
	    tw_estimates_noise(&differences->self[TW_OLD], &differences->self[TW_NEW], &noise))
		tw_json_double(&json, "noise", noise / 1e9);
	tw_json_u64(&json, "functions", differences->count);
	tw_json_open(&json, "by_function", '[');
	for (size_t i = 0; i < differences->count && (!diff->order->top || i < diff->order->top); i++) {
		const struct tw_difference *row = &differences->rows[i];
		tw_json_open(&json, NULL, '{');
		tw_json_name(&json, row->name, strlen(row->name), row->lacks_arity);
		tw_table_json(&json, &tw_diff_columns, tw_diff_columns.count, row);
		if (has_times(row) && row->has_noise)
			tw_json_bool(&json, "is_noise", tw_difference_is_noise(row));
		tw_json_bool(&json, "lossy", row->sides[TW_OLD].is_lossy || row->sides[TW_NEW].is_lossy);
		tw_json_close(&json, '}');
	}
	tw_json_close(&json, ']');
	tw_json_close(&json, '}');
}

static int show(const struct tw_diff *diff)
{
	static struct tw_out out;
	sort_rows(diff);
	tw_out_init(&out, STDOUT_FILENO);
	if (diff->format == TW_DIFF_JSON)
		put_json(&out, diff);
	else if (diff->format == TW_DIFF_CSV)
		put_csv(&out, diff);
	else
		put_screen(&out, diff);
	int code = tw_out_finish(&out);
	return code ? code : diff->sides.code;
}

int tw_diff_run(struct tw_diff *diff, char **paths)
{
	int code = tw_sides_read(&diff->sides, paths);
	if (!code)
		code = show(diff);
	tw_sides_free(&diff->sides);
	return code;
}
