/* SPDX-License-Identifier: Apache-2.0 */
/* ask.c - tracewheel-fleet, which `tracewheel fleet` runs: questions to the summaries of a folder, without any server. */
#include "fleet/fleet.h"
#include "fleet/rows.h"
#include "tools/tool.h"
#include "views/output/table.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define TOP_DEFAULT 20

enum { KEY_JSON = 256, KEY_CSV, KEY_NODE, KEY_SINCE, KEY_FROM, KEY_TO, KEY_SORT };

static const struct tw_option options_table[] = {
	{KEY_NODE, "node", "GLOB", "only of these nodes"},
	{'t', "trace", "GLOB",
	 "report: only functions whose MODULE:FUNCTION/ARITY it matches, 'libc:*'; fetch: only segments that have such"},
	{KEY_SINCE, "since", "TIME", "only segments that ended in this time before now, such as 1h"},
	{KEY_FROM, "from", "WHEN", "only segments with events from then on: 2026-11-30T19:00:00Z, or 10m before now"},
	{KEY_TO, "to", "WHEN", "only segments with events before then"},
	{'o', "output", "NAME.tw", "fetch: the capture to make"},
	{KEY_SORT, "sort", "KEY", "report: by this column, total by default"},
	{'n', "top", "N", "report: the first N functions (20); 0 is all"},
	{KEY_JSON, "json", NULL, "as JSON (docs/fleet.md)"},
	{KEY_CSV, "csv", NULL, "report: as CSV"},
	{0}};

static const struct tw_command command = {
	.name = "fleet",
	.arguments = "report | losses | nodes | fetch [OPTION]... FOLDER",
	.summary =
		"Asks the summaries below a folder that `tracewheel ship` has filled, of any number of nodes (docs/fleet.md).\n"
		"\nreport shows calls and times by function over all of them, calls over borders of segments included; losses what was lost, dropped and is missing, by process; nodes what each node has stored. fetch makes a capture of the segments themselves, which every command reads.\n"
		"\nExit codes: 1 if a file is no summary, or segments are missing; a glob that matches nothing is an error.",
	.options = options_table,
	.examples = "  tracewheel fleet report /mnt/fleet\n"
		    "  tracewheel fleet report --since 1h --node 'web-*' --sort p99 /mnt/fleet\n"
		    "  tracewheel fleet losses --json /mnt/fleet\n"
		    "  tracewheel fleet fetch --node web-7 --from 10m -o late.tw /mnt/fleet\n",
};

struct ask {
	struct tw_fleet_rows rows;
	const char *functions, *sort, *output, *folder;
	uint64_t top;
	bool is_json, is_csv;
};

static struct tw_out out;

/* ---- functions ---- */

#define CELL(key, number, unknown)                                                                          \
	static struct tw_cell cell_##key(const void *at)                                                    \
	{                                                                                                   \
		const struct tw_fleet_sum *sum = *(const struct tw_fleet_sum *const *)at;                   \
		int64_t value = (int64_t)(number);                                                          \
		return (struct tw_cell){.value = value > 0 ? (uint64_t)value : 0, .is_unknown = (unknown)}; \
	}
#define HAS_NO_TIMES (!sum->timed && !sum->total_ns)
CELL(total, sum->total_ns, HAS_NO_TIMES)
CELL(self, sum->self_ns, HAS_NO_TIMES)
CELL(calls, sum->calls, false)
CELL(returned, sum->returned, false)
CELL(exceptions, sum->exceptions, false)
CELL(open, sum->open, false)
CELL(cut, sum->cut, false)
CELL(lossy, sum->lossy, false)
CELL(min, sum->min_ns, !sum->timed)
CELL(median, tw_fleet_quantile(sum, 0.5), !sum->timed)
CELL(p99, tw_fleet_quantile(sum, 0.99), !sum->timed)
CELL(max, sum->max_ns, !sum->timed)

static const struct tw_column columns[] = {
	{"calls", "calls", TW_UNIT_COUNT, 13, 3, 0, true, cell_calls, false},
	{"returned", "returned", TW_UNIT_COUNT, 13, 0, 0, true, cell_returned, false},
	{"exceptions", "exceptions", TW_UNIT_COUNT, 13, 0, 0, true, cell_exceptions, false},
	{"cut", "cut", TW_UNIT_COUNT, 10, 0, 0, true, cell_cut, false},
	{"lossy", "lossy", TW_UNIT_COUNT, 10, 0, 0, true, cell_lossy, false},
	{"open", "open", TW_UNIT_COUNT, 10, 0, 0, true, cell_open, false},
	{"total", "total", TW_UNIT_DURATION, 9, 1, 0, false, cell_total, true},
	{"self", "self", TW_UNIT_DURATION, 9, 2, 50, true, cell_self, true},
	{"min", "min", TW_UNIT_DURATION, 9, 4, 100, false, cell_min, true},
	{"median", "median", TW_UNIT_DURATION, 9, 5, 72, false, cell_median, true},
	{"p99", "p99", TW_UNIT_DURATION, 9, 6, 100, false, cell_p99, true},
	{"max", "max", TW_UNIT_DURATION, 9, 7, 72, false, cell_max, true},
};
static const struct tw_table table = {columns, sizeof columns / sizeof *columns};

static int by_column(const void *a, const void *b, void *column)
{
	int order = tw_table_compare(column, a, b);
	return order ? order
		     : strcmp((*(const struct tw_fleet_sum *const *)a)->name,
			      (*(const struct tw_fleet_sum *const *)b)->name);
}

static void put_functions(const struct ask *ask, struct tw_fleet_sum *const *sums, size_t count, size_t all)
{
	char figure[TW_FIGURE_BYTES];
	struct tw_table_shape shape;
	tw_table_fit(&table, tw_terminal_columns(STDOUT_FILENO), tw_table_column(&table, ask->sort, strlen(ask->sort)),
		     &shape);
	tw_table_titles(&out, &shape);
	tw_out_format(&out, "  function (%s)\n", tw_figure_count(figure, all));
	for (size_t i = 0; i < count; i++) {
		tw_table_cells(&out, &shape, &sums[i]);
		size_t bytes = strlen(sums[i]->name);
		/* People see no arity where none is known. */
		bool is_bare = bytes > 2 && strcmp(sums[i]->name + bytes - 2, "/_") == 0;
		tw_out_text(&out, "  ");
		tw_out_clean(&out, sums[i]->name, is_bare ? bytes - 2 : bytes);
		tw_out_text(&out, "\n");
	}
	if (count == all)
		return;
	tw_table_sums(&out, &shape, &sums[count], all - count, sizeof *sums);
	tw_out_format(&out, "  in %s more\n", tw_figure_count(figure, all - count));
}

static void put_csv(struct tw_fleet_sum *const *sums, size_t count)
{
	tw_out_text(&out, "name");
	tw_table_csv_titles(&out, &table);
	tw_out_text(&out, "\n");
	for (size_t i = 0; i < count; i++) {
		tw_table_csv_text(&out, sums[i]->name);
		tw_table_csv(&out, &table, &sums[i]);
		tw_out_text(&out, "\n");
	}
}

static void put_json_functions(struct tw_json *json, struct tw_fleet_sum *const *sums, size_t count)
{
	tw_json_open(json, "by_function", '[');
	for (size_t i = 0; i < count; i++) {
		tw_json_open(json, NULL, '{');
		tw_json_text(json, "name", sums[i]->name, strlen(sums[i]->name));
		tw_table_json(json, &table, table.count, &sums[i]);
		tw_json_close(json, '}');
	}
	tw_json_close(json, ']');
}

/* ---- what all of them have ---- */

struct whole {
	uint64_t segments, events, lost[TW_LOST_CAUSES], all_lost, damaged, missing, missing_events, dropped, from_ns,
		to_ns;
};

static struct whole whole_of(const struct tw_fleet_rows *rows, const char *node)
{
	struct whole whole = {.from_ns = UINT64_MAX};
	for (size_t i = 0; i < rows->image_count; i++) {
		const struct tw_fleet_image *image = &rows->images[i];
		if (node && strcmp(node, image->node) != 0)
			continue;
		whole.missing += image->missing;
		whole.missing_events += image->missing_events;
		whole.dropped += image->dropped;
		for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++) {
			whole.lost[cause] += image->lost[cause];
			whole.all_lost += image->lost[cause];
		}
		for (uint32_t j = image->first; j < image->first + image->count; j++) {
			const struct tw_fleet_segment *segment = &rows->segments[j];
			whole.segments += !segment->is_dropped;
			whole.events += segment->is_dropped ? 0 : segment->events;
			whole.damaged += segment->damaged;
			whole.from_ns = segment->from_ns < whole.from_ns ? segment->from_ns : whole.from_ns;
			whole.to_ns = segment->to_ns > whole.to_ns ? segment->to_ns : whole.to_ns;
		}
	}
	return whole;
}

static void put_json_whole(struct tw_json *json, const struct whole *whole)
{
	tw_json_u64(json, "segments", whole->segments);
	tw_json_u64(json, "events", whole->events);
	tw_json_open(json, "lost", '{');
	for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++)
		tw_json_u64(json, tw_lost_cause_name(cause), whole->lost[cause]);
	tw_json_close(json, '}');
	tw_json_u64(json, "damaged", whole->damaged);
	tw_json_u64(json, "missing_segments", whole->missing);
	tw_json_u64(json, "dropped_segments", whole->dropped);
	tw_json_u64(json, "missing_events", whole->missing_events);
	tw_json_u64(json, "from", whole->from_ns);
	tw_json_u64(json, "to", whole->to_ns);
}

static size_t node_count(const struct tw_fleet_rows *rows)
{
	size_t count = 0;
	for (size_t i = 0; i < rows->image_count; i++) {
		size_t j = 0;
		while (j < i && strcmp(rows->images[i].node, rows->images[j].node) != 0)
			j++;
		count += j == i;
	}
	return count;
}

static void put_whole(const struct tw_fleet_rows *rows, const struct whole *whole)
{
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES], c[TW_FIGURE_BYTES];
	tw_out_format(&out, "%s in %s of %s\n", tw_figure_of(a, whole->events, "event", "events"),
		      tw_figure_of(b, whole->segments, "segment", "segments"),
		      tw_figure_of(c, node_count(rows), "node", "nodes"));
	if (whole->all_lost)
		tw_out_format(&out, "LOST %s; `tracewheel fleet losses` shows where.\n",
			      tw_figure_of(a, whole->all_lost, "event", "events"));
	else
		tw_out_text(&out, "Nothing was lost.\n");
	if (whole->missing)
		tw_out_format(&out, "%s missing, with %s; %s of these dropped on their nodes.\n",
			      tw_figure_of(a, whole->missing, "segment is", "segments are"),
			      tw_figure_of(b, whole->missing_events, "event", "events"),
			      tw_figure_of(c, whole->dropped, "was", "were"));
}

static int finish(const struct tw_fleet_rows *rows, const struct whole *whole)
{
	int code = tw_out_finish(&out);
	return code == TW_EXIT_OK && (rows->set_aside || whole->missing) ? TW_EXIT_FAILURE : code;
}

/* ---- the three questions ---- */

static int report(struct ask *ask)
{
	struct tw_fleet_sum **sums = calloc(ask->rows.sum_count + 1, sizeof *sums);
	struct whole whole = whole_of(&ask->rows, NULL);
	size_t all = 0;
	if (!sums)
		return tw_fail("there is no memory.");
	for (size_t i = 0; i < ask->rows.sum_count; i++) {
		if (!ask->functions || fnmatch(ask->functions, ask->rows.sums[i].name, 0) == 0)
			sums[all++] = &ask->rows.sums[i];
	}
	if (ask->functions && !all) {
		free(sums);
		return tw_fail("no function matches '%s'.", ask->functions);
	}
	qsort_r(sums, all, sizeof *sums, by_column, (void *)tw_table_column(&table, ask->sort, strlen(ask->sort)));
	size_t count = ask->top && ask->top < all ? ask->top : all;
	if (ask->is_json) {
		struct tw_json json = {.out = &out, .is_spread = true};
		tw_json_open(&json, NULL, '{');
		put_json_whole(&json, &whole);
		put_json_functions(&json, sums, count);
		tw_json_close(&json, '}');
	} else if (ask->is_csv) {
		put_csv(sums, count);
	} else {
		put_whole(&ask->rows, &whole);
		tw_out_text(&out, "\n");
		put_functions(ask, sums, count, all);
	}
	free(sums);
	return finish(&ask->rows, &whole);
}

static void put_time(uint64_t ns)
{
	time_t seconds = (time_t)(ns / UINT64_C(1000000000));
	struct tm broken;
	char text[64] = "?";
	if (gmtime_r(&seconds, &broken))
		strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &broken);
	tw_out_text(&out, text);
}

static int losses(struct ask *ask)
{
	struct whole whole = whole_of(&ask->rows, NULL);
	struct tw_json json = {.out = &out, .is_spread = true};
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES];
	if (ask->is_json) {
		tw_json_open(&json, NULL, '{');
		put_json_whole(&json, &whole);
		tw_json_open(&json, "by_process", '[');
	} else {
		put_whole(&ask->rows, &whole);
	}
	for (size_t i = 0; i < ask->rows.image_count; i++) {
		const struct tw_fleet_image *image = &ask->rows.images[i];
		uint64_t lost = 0;
		for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++)
			lost += image->lost[cause];
		if (!lost && !image->missing)
			continue;
		if (!ask->is_json) {
			tw_out_name(&out, image->node);
			tw_out_format(&out, ", process %llu ", (unsigned long long)image->process);
			tw_out_name(&out, image->program);
			tw_out_format(&out, ": %s lost", tw_figure_of(a, lost, "event", "events"));
			tw_out_format(&out, "; %s missing, with %s\n",
				      tw_figure_of(a, image->missing, "segment", "segments"),
				      tw_figure_of(b, image->missing_events, "event", "events"));
			continue;
		}
		tw_json_open(&json, NULL, '{');
		tw_json_text(&json, "node", image->node, strlen(image->node));
		tw_json_u64(&json, "process_id", image->process);
		tw_json_text(&json, "program", image->program, strlen(image->program));
		for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++)
			tw_json_u64(&json, tw_lost_cause_name(cause), image->lost[cause]);
		tw_json_u64(&json, "missing_segments", image->missing);
		tw_json_u64(&json, "missing_events", image->missing_events);
		tw_json_close(&json, '}');
	}
	if (ask->is_json) {
		tw_json_close(&json, ']');
		tw_json_close(&json, '}');
	}
	return finish(&ask->rows, &whole);
}

static int nodes(struct ask *ask)
{
	struct whole all = whole_of(&ask->rows, NULL);
	struct tw_json json = {.out = &out, .is_spread = true};
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES];
	if (ask->is_json)
		tw_json_open(&json, NULL, '[');
	for (size_t i = 0; i < ask->rows.image_count; i++) {
		const char *node = ask->rows.images[i].node;
		size_t j = 0;
		while (j < i && strcmp(node, ask->rows.images[j].node) != 0)
			j++;
		if (j < i)
			continue;
		struct whole whole = whole_of(&ask->rows, node);
		if (ask->is_json) {
			tw_json_open(&json, NULL, '{');
			tw_json_text(&json, "node", node, strlen(node));
			put_json_whole(&json, &whole);
			tw_json_close(&json, '}');
			continue;
		}
		tw_out_name(&out, node);
		tw_out_format(&out, ": %s in %s, ", tw_figure_of(a, whole.events, "event", "events"),
			      tw_figure_of(b, whole.segments, "segment", "segments"));
		put_time(whole.from_ns);
		tw_out_text(&out, " to ");
		put_time(whole.to_ns);
		tw_out_format(&out, "; %s lost, %s missing\n", tw_figure_of(a, whole.all_lost, "event", "events"),
			      tw_figure_of(b, whole.missing, "segment", "segments"));
	}
	if (ask->is_json)
		tw_json_close(&json, ']');
	return finish(&ask->rows, &all);
}

static int fetch(struct ask *ask)
{
	return tw_fleet_fetch(&ask->rows, ask->folder, ask->functions, ask->output);
}

/* ---- the command ---- */

/* A time of day, or one before now. */
static bool parse_when(const char *name, const char *text, uint64_t *out)
{
	struct timespec now;
	struct tm broken = {0};
	uint64_t ns;
	const char *end = strptime(text, "%Y-%m-%dT%H:%M:%SZ", &broken);
	clock_gettime(CLOCK_REALTIME, &now);
	if (end && !*end)
		*out = (uint64_t)timegm(&broken) * UINT64_C(1000000000);
	else if (tw_parse_duration(text, &ns))
		*out = (uint64_t)now.tv_sec * UINT64_C(1000000000) - ns;
	else
		tw_say("--%s is a time such as 2026-11-30T19:00:00Z, or 10m before now, not '%s'.", name, text);
	return *out != 0;
}

static bool take_option(void *context, int key, const char *value)
{
	struct ask *ask = context;
	struct timespec now;
	uint64_t ns;
	switch (key) {
	case KEY_NODE: ask->rows.node = value; return true;
	case 't': ask->functions = value; return true;
	case KEY_JSON: ask->is_json = true; return true;
	case KEY_CSV: ask->is_csv = true; return true;
	case KEY_SINCE:
		clock_gettime(CLOCK_REALTIME, &now);
		if (!tw_parse_duration(value, &ns)) {
			tw_say("--since is a time, such as 1h or 600s, not '%s'.", value);
			return false;
		}
		ask->rows.from_ns = (uint64_t)now.tv_sec * UINT64_C(1000000000) - ns;
		return true;
	case KEY_FROM: return parse_when("from", value, &ask->rows.from_ns);
	case KEY_TO: return parse_when("to", value, &ask->rows.to_ns);
	case 'o': ask->output = value; return true;
	case KEY_SORT:
		ask->sort = value;
		if (!tw_table_column(&table, value, strlen(value)))
			tw_say("--sort is a column: total, self, calls, p99 ..., not '%s'.", value);
		return tw_table_column(&table, value, strlen(value)) != NULL;
	default:
		if (!tw_parse_count(value, &ask->top))
			tw_say("--top is a number, not '%s'.", value);
		return tw_parse_count(value, &ask->top);
	}
}

int main(int argc, char **argv)
{
	static const struct question {
		const char *name;
		int (*answer)(struct ask *ask);
	} questions[] = {{"report", report}, {"losses", losses}, {"nodes", nodes}, {"fetch", fetch}};
	static struct ask ask = {.top = TOP_DEFAULT, .sort = "total"};
	const struct question *question = NULL;
	for (size_t i = 0; argc > 1 && i < sizeof questions / sizeof *questions; i++) {
		if (strcmp(argv[1], questions[i].name) == 0)
			question = &questions[i];
	}
	struct tw_options options = {.command = &command,
				     .argc = argc - (question != NULL),
				     .argv = argv + (question != NULL)};
	int code;
	if (!tw_options_read(&options, take_option, &ask, &code))
		return code;
	if (!question)
		return tw_usage(&command, "what is asked? report, losses, nodes or fetch comes first.");
	if (options.argc - options.index != 1)
		return tw_usage(&command, "one folder follows, that `tracewheel ship` has filled.");
	if ((question->answer == fetch) != (ask.output != NULL))
		return tw_usage(&command, "fetch needs --output NAME.tw, and nothing else has it.");
	ask.folder = options.argv[options.index];
	if (!tw_fleet_read(&ask.rows, ask.folder))
		code = TW_EXIT_FAILURE;
	else if (!ask.rows.segment_count)
		code = tw_fail("no segment is of these nodes and this time.");
	else {
		if (question->answer != fetch)
			tw_fleet_join(&ask.rows);
		tw_out_init(&out, STDOUT_FILENO);
		code = ask.rows.has_no_memory ? tw_fail("there is no memory.") : question->answer(&ask);
	}
	tw_fleet_rows_free(&ask.rows);
	return code;
}
