/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_html.c - `report --html`: the flame graph's page, and below it all else that a report has.
 *
 * The tables are those of the JSON of `report`, `report --locks`, `report --ports` and `print --slowest`, drawn by report_html.html.
 */
#include "tools/report/report_html.h"
#include "views/folds/locks.h"
#include "views/folds/slowest.h"
#include "views/output/page.h"
#include "tools/report/flame.h"

#include "tracewheel/error.h"

#include <stdlib.h>

#define SLOWEST	   10
#define HISTOGRAMS 20
#define LOCKS	   50
#define PAIRS	   5
#define PORTS	   100
/* Calls of less than this part of a slow one are not listed in it. */
#define LEAST_PART 200

TW_PAGE(tw_report_html_rest, TW_PAGE_FILE);

struct work {
	const struct tw_report_html *html;
	int error;
};

/* By powers of two, of a function's calls: pairs of the least duration and a number. */
static void put_histogram(struct tw_json *json, const struct tw_report_row *row)
{
	const struct tw_histogram *took = &row->sums->took;
	tw_json_open(json, NULL, '{');
	tw_json_string(json, "name", row->name);
	tw_json_open(json, "bars", '[');
	for (unsigned power = 0; power < sizeof took->parts / sizeof *took->parts; power++) {
		uint64_t sums[7] = {0};
		/* The first part holds 0 to 63, of which each power is one. */
		for (unsigned i = 0; took->parts[power] && i < TW_HISTOGRAM_PARTS; i++)
			sums[power || !i ? 0 : 32 - __builtin_clz(i)] += took->parts[power][i];
		for (unsigned i = 0; i < 7; i++) {
			if (!sums[i])
				continue;
			tw_json_u64(json, NULL, power ? UINT64_C(1) << (power + 5) : i ? UINT64_C(1) << (i - 1) : 0);
			tw_json_u64(json, NULL, sums[i]);
		}
	}
	tw_json_close(json, ']');
	tw_json_close(json, '}');
}

/* Of the functions with most own time. */
static void put_histograms(struct tw_json *json, const struct tw_calltree *tree)
{
	size_t count, shown = 0;
	struct tw_report_row *rows = tw_report_rows(tree, "self", &count);
	tw_json_open(json, "histograms", '[');
	for (size_t i = 0; rows && i < count && shown < HISTOGRAMS; i++) {
		if (!rows[i].sums->took.count)
			continue;
		put_histogram(json, &rows[i]);
		shown++;
	}
	tw_json_close(json, ']');
	free(rows);
}

static int put_slowest(struct tw_json *json, const struct tw_report_html *html, uint64_t zero_ns)
{
	struct tw_slowest slowest = {.most = SLOWEST, .hides_waits = true, .when = html->tree->when};
	int error = tw_slowest_make(&slowest, html->capture, html->filter);
	tw_json_open(json, "slowest", '[');
	for (uint32_t i = 0; !error && i < slowest.count; i++)
		tw_slowest_json(json, &slowest, i, zero_ns, LEAST_PART);
	tw_json_close(json, ']');
	tw_lock_names_forget();
	tw_slowest_free(&slowest);
	/* Nothing has a duration. */
	return error == TW_ENOTSUP ? 0 : error;
}

static int put_locks(struct tw_json *json, const struct tw_report_html *html, uint64_t zero_ns)
{
	struct tw_locks locks = {0};
	int error = tw_locks_make(&locks, html->capture, html->filter);
	if (!error)
		tw_report_locks_json(json, &locks, zero_ns, LOCKS, PAIRS);
	tw_locks_free(&locks);
	tw_lock_names_forget();
	return error;
}

static bool put_more(struct tw_out *out, void *context)
{
	struct work *work = context;
	struct tw_capture_info info;
	tw_capture_info(work->html->capture, &info);
	tw_out_text(out, ",\"report\":");
	tw_page_json_begin(out);
	work->html->put_report(work->html->context);
	struct tw_json json = {.out = out};
	tw_out_text(out, ",\"more\":");
	tw_json_open(&json, NULL, '{');
	put_histograms(&json, work->html->tree);
	work->error = put_slowest(&json, work->html, info.zero_ns);
	if (!work->error)
		work->error = put_locks(&json, work->html, info.zero_ns);
	if (!work->error && work->html->ports)
		tw_native_ports_json(&json, work->html->ports, PORTS);
	tw_json_close(&json, '}');
	tw_page_json_end(out);
	return !work->error;
}

int tw_report_html(struct tw_out *out, const struct tw_report_html *html)
{
	struct work work = {.html = html};
	const struct tw_flame flame = {.selection = *html->selection,
				       .least_percent = TW_FLAME_LEAST,
				       .put_more = put_more,
				       .context = &work,
				       .more_page = tw_report_html_rest};
	int error = tw_flame_page(out, &flame, html->tree, html->filter, html->path);
	return work.error ? work.error : error;
}
