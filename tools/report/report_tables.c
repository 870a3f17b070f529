/* SPDX-License-Identifier: Apache-2.0 */
/* report_tables.c - calls by function, by calling object, or by thread: a table without times. */
#include "views/names/counted.h"
#include "views/names/missing.h"
#include "tools/report/report.h"

#include <stdlib.h>
#include <string.h>

/* Columns before the bar: count, share, and the blanks between. */
#define HEAD_COLUMNS 25

/* Do --sort and --columns name columns of the table? */
bool tw_report_check_order(const struct tw_report_order *order, const struct tw_table *table,
			   const struct tw_command *command)
{
	struct tw_table_shape shape;
	char keys[500];
	tw_table_keys(table, true, keys, sizeof keys);
	if (order->sort && strcmp(order->sort, "name") && !tw_table_column(table, order->sort, strlen(order->sort)))
		return tw_refuse(command, "--sort is name, %s, not '%s'.", keys, order->sort);
	const char *unknown = order->columns ? tw_table_choose(table, order->columns, &shape) : NULL;
	if (!unknown && (!order->columns || shape.count))
		return true;
	unknown = unknown ? unknown : "";
	return tw_refuse(command, "a column is %s, not '%.*s'.", keys, (int)strcspn(unknown, ","), unknown);
}

int tw_report_totals(struct tw_totals *totals, struct tw_places *places, struct tw_capture *capture,
		     const struct tw_capture_filter *filter, uint64_t *durations)
{
	int error = tw_totals_make(totals, places, capture, filter);
	*durations = tw_totals_durations(totals, places);
	/* A selection without returns may lie within calls that return. */
	if (!error && !*durations && (filter->from_ns || filter->to_ns))
		error = tw_places_find_durations(capture, filter, durations);
	return error;
}

int tw_report_at_once(struct tw_totals *totals, struct tw_calltree *tree, struct tw_capture *capture,
		      const struct tw_capture_filter *filter, uint64_t *durations)
{
	struct tw_capture_info info;
	tw_capture_info(capture, &info);
	/* Without returns only totals are wanted, which a scan makes sooner. */
	int made = info.has_moments_only ? 0 : tw_calltree_make_at_once(tree, capture, filter);
	if (made != 1)
		return made;
	int error = tw_totals_take(totals, &tree->places, capture, filter);
	*durations = tw_totals_durations(totals, &tree->places);
	return error ? error : 1;
}

void tw_report_table(const struct tw_screen *screen, const struct tw_totals_table *table, const char *title,
		     uint64_t calls, size_t top)
{
	char figure[TW_FIGURE_BYTES], more[TW_FIGURE_BYTES];
	int bar = screen->columns >= 110  ? 24
		  : screen->columns >= 60 ? 10
					  : 0,
	    name = screen->columns - HEAD_COLUMNS - bar - 1;
	size_t shown = top && top < table->count ? top : table->count;
	double largest = 0;
	const char **list = malloc((shown + 1) * sizeof *list);
	for (size_t i = 0; list && i < shown; i++)
		list[i] = table->rows[i].name;
	struct tw_screen_names names = tw_screen_names(screen, list, shown, name);
	for (size_t i = 0; i < table->count; i++)
		largest = table->rows[i].calls > largest ? (double)table->rows[i].calls : largest;
	tw_out_format(screen->out, "\n%s%14s  %7s  %s%s\n", tw_screen_bold(screen), "calls", "share", title,
		      tw_screen_plain(screen));
	for (size_t i = 0; i < shown; i++) {
		const struct tw_totals_row *row = &table->rows[i];
		double share = calls ? (double)row->calls / (double)calls : 0;
		tw_out_format(screen->out, "%14s  %5.1f %%  ", tw_figure_count(figure, row->calls), share * 100);
		tw_screen_bar(screen, largest > 0 ? (double)row->calls / largest : 0, bar);
		tw_out_format(screen->out, " %s\n", tw_screen_names_at(&names, i));
		uint64_t lost = 0;
		for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++)
			lost += row->lost[cause];
		if (lost)
			tw_out_format(screen->out, "%s%14s  lost on this thread%s\n", tw_screen_red(screen),
				      tw_figure_count(figure, lost), tw_screen_plain(screen));
		if (row->since > 0)
			tw_out_format(screen->out, "%14s  counted from %s on\n", "",
				      tw_figure_seconds(more, row->since));
		if (row->overwritten)
			tw_out_format(screen->out, "%14s  replaced by newer ones, which cover %s\n",
				      tw_figure_count(figure, row->overwritten),
				      tw_figure_duration(more, row->end_ns - row->kept_from_ns));
	}
	if (shown < table->count) {
		uint64_t rest = 0;
		for (size_t i = shown; i < table->count; i++)
			rest += table->rows[i].calls;
		tw_out_format(screen->out, "%14s  %5.1f %%  in %s more\n", tw_figure_count(figure, rest),
			      calls ? 100.0 * (double)rest / (double)calls : 0,
			      tw_figure_count(more, table->count - shown));
	}
	tw_screen_names_free(&names);
}

void tw_report_table_csv(struct tw_out *out, const struct tw_totals_table *table, uint64_t calls, size_t top)
{
	tw_out_text(out, "name,calls,share\n");
	for (size_t i = 0; i < table->count && (!top || i < top); i++) {
		tw_table_csv_text(out, table->rows[i].name);
		tw_out_format(out, ",%llu,%.9f\n", (unsigned long long)table->rows[i].calls,
			      calls ? (double)table->rows[i].calls / (double)calls : 0);
	}
}

void tw_report_table_json(struct tw_json *json, const char *name, const struct tw_totals_table *table, uint64_t calls,
			  size_t top)
{
	size_t shown = top && top < table->count ? top : table->count;
	tw_json_open(json, name, '[');
	for (size_t i = 0; i < shown; i++) {
		const struct tw_totals_row *row = &table->rows[i];
		tw_json_open(json, NULL, '{');
		tw_json_name(json, row->name, strlen(row->name), row->lacks_arity);
		tw_json_function(json, row->function);
		tw_json_u64(json, "calls", row->calls);
		tw_json_double(json, "share", calls ? (double)row->calls / (double)calls : 0);
		if (strncmp(name, "counted", 7) == 0)
			tw_json_bool(json, "counted", true);
		if (row->since > 0)
			tw_json_double(json, "since", row->since);
		if (strcmp(name, "counted_by_thread") == 0) {
			tw_json_u64(json, "thread", row->thread_id);
			tw_json_string(json, "thread_name", row->thread_name);
		}
		if (strcmp(name, "by_thread") == 0) {
			tw_json_u64(json, "thread", row->thread_id);
			if (row->exec)
				tw_json_u64(json, "exec", row->exec);
			tw_json_string(json, "thread_name", row->thread_name);
			tw_json_u64(json, "events", row->events);
			tw_json_double(json, "seconds", row->seconds);
			tw_missing_lost_json(json, row->lost, row->overwritten);
		}
		tw_json_close(json, '}');
	}
	tw_json_close(json, ']');
}

void tw_report_counted(const struct tw_screen *screen, const struct tw_totals *totals, size_t top)
{
	if (totals->counted.count)
		tw_report_table(screen, &totals->counted, "counted, not recorded", totals->counted_calls, top);
}

void tw_report_counted_json(struct tw_json *json, const struct tw_capture *capture, const struct tw_totals *totals,
			    size_t top)
{
	struct tw_counted counted;
	tw_counted_sum(capture, &counted);
	if (counted.longer_ns)
		tw_json_u64(json, "longer_ns", counted.longer_ns);
	if (counted.condition)
		tw_json_string(json, "condition", counted.condition);
	if (!totals->counted.count)
		return;
	tw_json_u64(json, "counted_calls", totals->counted_calls);
	tw_report_table_json(json, "counted_by_function", &totals->counted, totals->counted_calls, top);
	tw_report_table_json(json, "counted_by_thread", &totals->counted_threads, totals->counted_calls, 0);
}
