/* SPDX-License-Identifier: Apache-2.0 */
/* report_summary.c - `report --sum`, `--quantiles`: calls, sum, mean and percentiles of a number, by function. */
#include "tools/report/report.h"
#include "views/folds/groups.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const struct {
	const char *title, *key;
	double share;
} quantiles[] = {{"median", "median", 0.5}, {"p90", "p90", 0.9}, {"p99", "p99", 0.99}, {"max", "max", 1}};
enum { QUANTILES = sizeof quantiles / sizeof *quantiles };

/* All ranges of one function, or of one value of its key. */
struct summary {
	const struct tw_group *first;
	const char *name;
	uint64_t calls;
	int64_t sum;
	int64_t values[QUANTILES];
	bool has_values;
};

/* The number in whose range so many of the calls end. */
static int64_t quantile(const struct tw_groups *groups, const struct tw_report_row *rows, uint64_t wanted)
{
	const struct tw_group *group;
	uint64_t seen = 0;
	do {
		group = &groups->groups[rows++->function];
		seen += group->sums.calls;
	} while (seen < wanted);
	return group->low + (int64_t)((group->width - 1) / 2);
}

static struct summary sum_up(const struct tw_groups *groups, const struct tw_report_row *rows, size_t count)
{
	struct summary out = {.first = &groups->groups[rows->function], .name = rows->name};
	uint64_t sum = 0;
	for (size_t i = 0; i < count; i++) {
		out.calls += rows[i].sums->calls;
		sum += groups->groups[rows[i].function].sum;
	}
	out.sum = (int64_t)sum;
	out.has_values = !groups->is_coarse && out.first->is_range;
	for (unsigned i = 0; out.has_values && i < QUANTILES; i++) {
		double share = quantiles[i].share;
		uint64_t wanted = share < 1 ? (uint64_t)(share * (double)out.calls + 0.999999) : out.calls;
		out.values[i] = quantile(groups, rows, wanted < 1 ? 1 : wanted > out.calls ? out.calls : wanted);
	}
	return out;
}

/* Values that are no numbers are apart from the ranges. */
static bool are_one(const struct tw_group *a, const struct tw_group *b)
{
	return a->function == b->function && a->is_range && b->is_range;
}

static int by_sum(const void *a, const void *b)
{
	const struct summary *x = a, *y = b;
	int order = (x->sum < y->sum) - (x->sum > y->sum);
	return order ? order : (x->calls < y->calls) - (x->calls > y->calls);
}

/* To be freed; NULL: no memory. The rows are in order of functions and ranges. */
static struct summary *summaries_of(const struct tw_groups *groups, const struct tw_report_row *rows, size_t count,
				    size_t *out_count)
{
	struct summary *all = calloc(count + 1, sizeof *all);
	size_t end;
	*out_count = 0;
	for (size_t at = 0; all && at < count; at = end) {
		for (end = at + 1;
		     end < count && are_one(&groups->groups[rows[at].function], &groups->groups[rows[end].function]);)
			end++;
		all[(*out_count)++] = sum_up(groups, rows + at, end - at);
	}
	if (all)
		qsort(all, *out_count, sizeof *all, by_sum);
	return all;
}

static int64_t mean_of(const struct summary *summary)
{
	/* A file may say any number. */
	return summary->calls && summary->calls < INT64_MAX ? summary->sum / (int64_t)summary->calls : 0;
}

static void put_number(const struct tw_screen *screen, const struct tw_groups *groups, int64_t number, bool is_known,
		       int width)
{
	char figure[TW_FIGURE_BYTES], text[TW_FIGURE_BYTES + 1];
	uint64_t size = number < 0 ? -(uint64_t)number : (uint64_t)number;
	snprintf(text, sizeof text, "%s%s", number < 0 ? "-" : "",
		 groups->by.key == TW_BY_DURATION ? tw_figure_duration(figure, size) : tw_figure_count(figure, size));
	tw_out_format(screen->out, " %*s", width, is_known ? text : "-");
}

static bool is_other(const struct summary *summary)
{
	return !summary->first->is_range;
}

void tw_report_put_summary(const struct tw_screen *screen, const struct tw_groups *groups,
			   const struct tw_report_row *rows, size_t count, const struct tw_report_order *order)
{
	char figure[TW_FIGURE_BYTES];
	size_t all_count, shown;
	struct summary *all = summaries_of(groups, rows, count, &all_count);
	shown = order->top && order->top < all_count ? order->top : all_count;
	if (!all || !all_count) {
		free(all);
		return;
	}
	tw_out_format(screen->out, "\n%s%13s %16s %12s", tw_screen_bold(screen), "calls", "sum", "mean");
	for (unsigned i = 0; i < QUANTILES && !groups->is_coarse; i++)
		tw_out_format(screen->out, " %12s", quantiles[i].title);
	tw_out_format(screen->out, "  function%s\n", tw_screen_plain(screen));
	for (size_t i = 0; i < shown; i++) {
		tw_out_format(screen->out, "%13s", tw_figure_count(figure, all[i].calls));
		put_number(screen, groups, all[i].sum, true, 16);
		put_number(screen, groups, mean_of(&all[i]), true, 12);
		for (unsigned k = 0; k < QUANTILES && !groups->is_coarse; k++)
			put_number(screen, groups, all[i].values[k], all[i].has_values, 12);
		tw_out_text(screen->out, "  ");
		tw_out_name(screen->out, all[i].name);
		tw_out_format(screen->out, "%s%s\n", is_other(&all[i]) ? " " : "",
			      is_other(&all[i]) ? all[i].first->value : "");
	}
	if (shown < all_count)
		tw_out_format(screen->out, "\n%s more; --top shows them, -t selects.\n",
			      tw_figure_of(figure, all_count - shown, "row", "rows"));
	free(all);
}

static void put_json_row(struct tw_json *json, const struct tw_groups *groups, const struct summary *summary)
{
	const struct tw_group_owner *owner = tw_groups_owner(groups, summary->first->function);
	tw_json_open(json, NULL, '{');
	tw_json_string(json, "name", summary->name);
	tw_json_function(json, groups->places.functions[owner ? owner->function : summary->first->function]);
	if (owner || is_other(summary))
		tw_json_string(json, "by", owner ? owner->value : summary->first->value);
	tw_json_u64(json, "calls", summary->calls);
	tw_json_i64(json, "sum", summary->sum);
	for (unsigned i = 0; i < QUANTILES && summary->has_values; i++)
		tw_json_i64(json, quantiles[i].key, summary->values[i]);
	tw_json_close(json, '}');
}

static void put_csv_row(struct tw_out *out, const struct summary *summary)
{
	tw_table_csv_text(out, summary->name);
	tw_out_format(out, ",%" PRIu64 ",%" PRId64, summary->calls, summary->sum);
	for (unsigned i = 0; i < QUANTILES; i++) {
		tw_out_text(out, ",");
		if (summary->has_values)
			tw_out_format(out, "%" PRId64, summary->values[i]);
	}
	tw_out_text(out, "\n");
}

void tw_report_put_summary_as(struct tw_out *out, const struct tw_groups *groups, const struct tw_report_row *rows,
			      size_t count, const struct tw_report_order *order, char format)
{
	struct tw_json json = {.out = out, .is_spread = true};
	size_t all_count;
	struct summary *all = summaries_of(groups, rows, count, &all_count);
	size_t shown = order->top && order->top < all_count ? order->top : all_count;
	if (format == 'c') {
		tw_out_text(out, "name,calls,sum,median,p90,p99,max\n");
		for (size_t i = 0; all && i < shown; i++)
			put_csv_row(out, &all[i]);
	} else {
		tw_json_open(&json, NULL, '{');
		tw_json_u64(&json, "rows", all_count);
		tw_json_u64(&json, "without_value", groups->valueless);
		tw_json_open(&json, "by_function", '[');
		for (size_t i = 0; all && i < shown; i++)
			put_json_row(&json, groups, &all[i]);
		tw_json_close(&json, ']');
		tw_json_close(&json, '}');
	}
	free(all);
}
