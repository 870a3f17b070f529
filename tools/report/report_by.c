/* SPDX-License-Identifier: Apache-2.0 */
/* report_by.c - calls by a value that they share: `report --by`. */
#include "tools/common/select.h"
#include "tools/report/report.h"
#include "views/folds/groups.h"
#include "views/names/missing.h"
#include "views/names/names.h"
#include "base/search.h"

#include "tracewheel/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool tw_report_by_take(struct tw_grouping *by, const struct tw_command *command, bool is_histogram, const char *value)
{
	bool is_summary = by->is_summary;
	bool is_right = (is_histogram ? tw_grouping_parse_histogram : tw_grouping_parse)(value, by) &&
			!(is_summary && by->step);
	by->is_summary = is_summary;
	return is_right ||
	       tw_refuse(
		       command,
		       is_summary ? "--sum and --quantiles are of arg:N, arg:NAME, result or duration, not '%s'."
		       : is_histogram
			       ? "--histogram is arg:N, arg:NAME, result or duration, and perhaps /STEP, not '%s'."
			       : "--by is arg:N, arg:NAME, result, errno, caller, line, thread, process, program, module, name, server, initial-call, behaviour, application or label, not '%s'.",
		       value);
}

static bool is_of_function(const struct tw_groups *groups)
{
	return groups->by.key <= TW_BY_LINE;
}

/* "libc:read n = 4096", "libc:read = 3", "libc:open ENOENT", "libc:read from app:parse"; or the value alone. To be freed. */
static char *name_of(const struct tw_groups *groups, const struct tw_group *group)
{
	const struct tw_grouping *by = &groups->by;
	const char *function = group->function == TW_PLACES_NONE ? "" : groups->places.names[group->function].text;
	char argument[40], *name = NULL;
	int used;
	if (group->function == TW_PLACES_NONE || by->is_summary)
		return strdup(group->function == TW_PLACES_NONE ? group->value : function);
	snprintf(argument, sizeof argument, by->number ? "$%.*s" : "%.*s", by->name ? (int)strcspn(by->name, "/") : 0,
		 by->name ? by->name : "");
	if (by->key == TW_BY_ARGUMENT)
		used = asprintf(&name, "%s %s = %s", function, argument, group->value);
	else
		used = asprintf(&name, "%s %s%s", function,
				by->key >= TW_BY_CALLER	  ? "from "
				: by->key == TW_BY_RESULT ? "= "
							  : "",
				group->value);
	return used < 0 ? NULL : name;
}

/* The groups that have calls, but for the one of calls without a value. NULL: no memory. */
static struct tw_report_row *rows_of(const struct tw_groups *groups, const char *sort, size_t *count)
{
	struct tw_report_row *rows = calloc(groups->count + (size_t)1, sizeof *rows);
	*count = 0;
	for (uint32_t i = 1; rows && i < groups->count; i++) {
		const struct tw_call_function *sums = &groups->groups[i].sums;
		if (!sums->calls && !sums->before)
			continue;
		rows[(*count)++] = (struct tw_report_row){.name = name_of(groups, &groups->groups[i]),
							  .function = i,
							  .sums = sums,
							  .median_ns = tw_histogram_quantile(&sums->took, 0.5),
							  .p99_ns = tw_histogram_quantile(&sums->took, 0.99),
							  .tracer_ns = tw_tracer_cost_of(&groups->cost, &sums->paid,
											 sums->self_ns)};
	}
	for (size_t i = 0; rows && i < *count; i++) {
		if (!rows[i].name)
			rows[i].name = strdup("?");
	}
	if (rows)
		tw_report_sort_rows(rows, *count, sort ? sort : groups->has_durations ? NULL : "calls");
	return rows;
}

static const char *title_of(const struct tw_groups *groups)
{
	static const char *const titles[] = {[TW_BY_ARGUMENT] = "function and argument",
					     [TW_BY_RESULT] = "function and result",
					     [TW_BY_DURATION] = "function and duration",
					     [TW_BY_ERRNO] = "function and errno",
					     [TW_BY_CALLER] = "function and caller",
					     [TW_BY_LINE] = "function and line of the caller",
					     [TW_BY_THREAD] = "thread",
					     [TW_BY_PROCESS] = "process",
					     [TW_BY_PROGRAM] = "program",
					     [TW_BY_MODULE] = "module",
					     [TW_BY_NAME] = "name of the process",
					     [TW_BY_SERVER] = "server",
					     [TW_BY_INITIAL_CALL] = "initial call of the process",
					     [TW_BY_BEHAVIOUR] = "behaviour of the process",
					     [TW_BY_APPLICATION] = "application of the process",
					     [TW_BY_LABEL] = "label of the process"};
	return titles[groups->by.key];
}

/* ---- histograms ---- */

/* By function, then by range; values that are no numbers at the end. */
static int by_range(const void *a, const void *b, void *context)
{
	const struct tw_groups *groups = context;
	const struct tw_group *x = &groups->groups[((const struct tw_report_row *)a)->function],
			      *y = &groups->groups[((const struct tw_report_row *)b)->function];
	if (x->function != y->function)
		return x->function < y->function ? -1 : 1;
	if (x->is_range != y->is_range)
		return x->is_range ? -1 : 1;
	return x->is_range ? TW_ORDER(x->low, y->low) : strcmp(x->value, y->value);
}

/* One function's rows. */
static void put_histogram(const struct tw_screen *screen, const struct tw_groups *groups,
			  const struct tw_report_row *rows, size_t count)
{
	uint64_t calls = 0, most = 1;
	char figure[TW_FIGURE_BYTES], name[TW_NAME_SHORT_BYTES];
	int width = 0, bar;
	for (size_t i = 0; i < count; i++) {
		int bytes = (int)strlen(groups->groups[rows[i].function].value);
		calls += rows[i].sums->calls;
		most = rows[i].sums->calls > most ? rows[i].sums->calls : most;
		width = bytes > width ? bytes : width;
	}
	width = width > 40 ? 40 : width;
	bar = screen->columns - width - 26;
	tw_out_format(screen->out, "\n%s", tw_screen_bold(screen));
	tw_out_name(screen->out,
		    tw_screen_short(screen, groups->places.names[groups->groups[rows->function].function].text,
				    screen->columns - 20, name));
	tw_out_format(screen->out, "%s: %s\n", tw_screen_plain(screen), tw_figure_of(figure, calls, "call", "calls"));
	for (size_t i = 0; i < count; i++) {
		const struct tw_group *group = &groups->groups[rows[i].function], *before = NULL;
		double share = (double)rows[i].sums->calls / (double)most;
		if (i > 0)
			before = &groups->groups[rows[i - 1].function];
		if (before && group->is_range && group->low > before->low + (int64_t)before->width)
			tw_out_format(screen->out, "%*s\n", width, "...");
		tw_out_format(screen->out, "%*s %13s %5.1f %% ", width, group->value,
			      tw_figure_count(figure, rows[i].sums->calls),
			      calls ? 100.0 * (double)rows[i].sums->calls / (double)calls : 0);
		tw_screen_bar(screen, share, bar > 40 ? 40 : bar > 0 ? bar : 0);
		tw_out_text(screen->out, "\n");
	}
}

static void put_histograms(const struct tw_screen *screen, const struct tw_groups *groups, struct tw_report_row *rows,
			   size_t count, size_t top)
{
	char figure[TW_FIGURE_BYTES];
	size_t shown = 0, end;
	for (size_t at = 0; at < count; at = end, shown++) {
		uint32_t function = groups->groups[rows[at].function].function;
		for (end = at + 1; end < count && groups->groups[rows[end].function].function == function;)
			end++;
		if (!top || shown < top)
			put_histogram(screen, groups, rows + at, end - at);
	}
	if (top && shown > top)
		tw_out_format(screen->out, "\n%s more; --top shows them, -t selects.\n",
			      tw_figure_of(figure, shown - top, "function", "functions"));
}

/* ---- output ---- */

/* The tracer's cost, if it is much of some row's own time. */
static void put_cost(struct tw_out *out, const struct tw_groups *groups, const struct tw_report_row *rows, size_t count)
{
	char clause[TW_COST_CLAUSE_BYTES];
	for (size_t i = 0; i < count; i++) {
		if (!tw_tracer_cost_matters(rows[i].tracer_ns, rows[i].sums->self_ns))
			continue;
		tw_out_format(
			out,
			"The tracer's own cost is in these times: %s; `--columns self,calls,tracer_ns` shows each row's part.\n",
			tw_tracer_cost_clause(groups->cost.ns, clause));
		return;
	}
}

static void put_screen(struct tw_out *out, const struct tw_groups *groups, struct tw_report_row *rows, size_t count,
		       const struct tw_report_order *order, struct tw_capture *capture)
{
	static struct tw_out text;
	struct tw_screen screen = tw_screen_make(out, 0), plain = screen;
	struct tw_report_order shown = *order;
	struct tw_capture_info info;
	char figure[TW_FIGURE_BYTES], when[TW_WHEN_SENTENCE_BYTES], places[TW_MISSING_TEXT_BYTES];
	tw_capture_info(capture, &info);
	tw_out_init(&text, -1);
	plain.out = &text;
	tw_report_head(&plain, capture, &info);
	if (groups->valueless)
		tw_out_format(
			&text, "%s no such value in the capture, and in no row%s.\n",
			tw_figure_of(figure, groups->valueless, "call has", "calls have"),
			groups->has_counted ? ": they had not returned, or their threads had no row for them"
			: groups->by.key == TW_BY_ARGUMENT ? ": record with --args"
			: groups->by.key == TW_BY_LINE	   ? ": no caller was recorded with them"
			: groups->by.key == TW_BY_ERRNO	   ? ": record with --syscalls, or with --args and prototypes"
			: groups->by.key >= TW_BY_INITIAL_CALL
				? ": their processes had ended before they were looked at, or are not of an Erlang node"
				: "");
	if (tw_when_selects(groups->when))
		tw_out_format(&text, "Calls %s%s.\n", tw_when_describe(groups->when, groups->left_out, when),
			      groups->when->least_ns ? ", and the time of shorter ones is that of the calls around"
						     : "");
	if (groups->losses)
		tw_out_format(&text, "%s: sums with %s in them have a ?.\n",
			      tw_missing_places(groups->losses, groups->replaced, places),
			      groups->losses > groups->replaced ? "losses" : "such places");
	if (groups->is_full)
		tw_out_format(&text, "There are more than %u values: the calls of the others are one row.\n",
			      TW_GROUPS_MAX);
	put_cost(&text, groups, rows, count);
	tw_screen_wrapped(&screen, text.data, text.used);
	if (!groups->has_durations && !shown.columns)
		shown.columns = "calls,share";
	if (groups->by.is_summary)
		tw_report_put_summary(&screen, groups, rows, count, order);
	else if (groups->by.is_histogram)
		put_histograms(&screen, groups, rows, count, order->top);
	else if (count)
		tw_report_put_rows(&screen, rows, count, &shown, title_of(groups), "", "");
}

static void put_json(struct tw_out *out, const struct tw_groups *groups, const struct tw_report_row *rows, size_t count,
		     const struct tw_report_order *order, struct tw_capture *capture)
{
	struct tw_json json = {.out = out, .is_spread = true};
	struct tw_capture_account account;
	tw_json_open(&json, NULL, '{');
	tw_json_u64(&json, "groups", count);
	tw_json_u64(&json, "without_value", groups->valueless);
	tw_capture_account(capture, &account);
	tw_missing_json(&json, &account);
	if (groups->has_durations)
		tw_tracer_cost_json(&json, groups->cost.ns);
	tw_json_open(&json, "by_value", '[');
	for (size_t i = 0; i < count && (!order->top || groups->by.is_histogram || i < order->top); i++) {
		const struct tw_group *group = &groups->groups[rows[i].function];
		const struct tw_group_owner *owner = tw_groups_owner(groups, group->function);
		tw_json_open(&json, NULL, '{');
		tw_json_string(&json, "value", group->value);
		if (group->is_range) {
			tw_json_i64(&json, "low", group->low);
			tw_json_u64(&json, "width", group->width);
			tw_json_i64(&json, "sum", (int64_t)group->sum);
		}
		if (is_of_function(groups) && group->function != TW_PLACES_NONE) {
			const struct tw_name *name = &groups->places.names[group->function];
			tw_json_name(&json, name->text, name->bytes, name->lacks_arity);
			tw_json_function(&json, groups->places.functions[owner ? owner->function : group->function]);
			if (owner)
				tw_json_string(&json, "by", owner->value);
		}
		tw_table_json(&json, &tw_report_columns, groups->has_durations ? tw_report_columns.count : 2, &rows[i]);
		tw_json_close(&json, '}');
	}
	tw_json_close(&json, ']');
	tw_json_close(&json, '}');
}

int tw_report_by(struct tw_selection *selection, const struct tw_grouping *by, const struct tw_report_order *order,
		 const struct tw_command *command, char format, struct tw_capture *capture, const char *path)
{
	static struct tw_out out;
	struct tw_groups groups = {.by = *by};
	struct tw_capture_filter filter;
	size_t count = 0;
	if (!tw_selection_filter(selection, capture, command, &filter))
		return TW_EXIT_USAGE;
	groups.when = tw_selection_when(selection);
	int error = tw_groups_make(&groups, capture, &filter);
	struct tw_report_row *rows = error ? NULL : rows_of(&groups, order->sort, &count);
	int code = TW_EXIT_OK;
	if (rows && by->is_histogram)
		qsort_r(rows, count, sizeof *rows, by_range, &groups);
	if (error == TW_ENOTSUP && by->key == TW_BY_LINE)
		code = tw_fail("lines need callers, and '%s' has none: record with --stack 1 or more.", path);
	else if (error == TW_ENOTSUP && !tw_when_is_late(groups.when))
		code = tw_fail("durations, results and errno need returns, and '%s' has none: record with --returns.",
			       path);
	else if (error)
		code = tw_selection_fail(selection, path, error);
	else if (!rows)
		code = tw_fail("no memory.");
	tw_out_init(&out, STDOUT_FILENO);
	if (!code && by->is_summary && format != 't')
		tw_report_put_summary_as(&out, &groups, rows, count, order, format);
	else if (!code && format == 'j')
		put_json(&out, &groups, rows, count, order, capture);
	else if (!code && format == 'c')
		tw_report_put_rows_csv(&out, rows, count, order, groups.has_durations);
	else if (!code)
		put_screen(&out, &groups, rows, count, order, capture);
	/* Lost events, and calls that were counted only, are in no row. */
	if (!code && format != 'j' && groups.has_counted)
		tw_missing_say_events(capture);
	else if (!code && format != 'j')
		tw_missing_say(capture);
	if (!code && !count && !groups.valueless)
		tw_selection_say_empty(selection, capture, &filter);
	code = code ? code : tw_out_finish(&out);
	for (size_t i = 0; i < count; i++)
		free((char *)(uintptr_t)rows[i].name);
	free(rows);
	tw_groups_free(&groups);
	return tw_names_end(capture, path, code);
}
