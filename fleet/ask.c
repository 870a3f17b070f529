/* SPDX-License-Identifier: Apache-2.0 */
/* ask.c - tracewheel-fleet, which `tracewheel fleet` runs: questions to the summaries of a folder or a bucket, without any server, or to an engine. */
#include "fleet/engine.h"
#include "views/folds/difference_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define TOP_DEFAULT 20

enum {
	KEY_JSON = 256,
	KEY_CSV,
	KEY_NODE,
	KEY_SINCE,
	KEY_FROM,
	KEY_TO,
	KEY_SORT,
	KEY_KEY,
	KEY_OLD_NODE,
	KEY_OLD_FROM,
	KEY_OLD_TO,
	KEY_CLICKHOUSE,
	KEY_DATABASE
};

static const struct tw_option options_table[] = {
	{KEY_NODE, "node", "GLOB", "only of these nodes"},
	{'t', "trace", "GLOB",
	 "report, slowest, diff: only functions whose MODULE:FUNCTION/ARITY it matches, 'libc:*'; fetch: only segments that have such"},
	{KEY_SINCE, "since", "TIME", "only segments that ended in this time before now, such as 1h"},
	{KEY_FROM, "from", "WHEN", "only segments with events from then on: 2026-11-30T19:00:00Z, or 10m before now"},
	{KEY_TO, "to", "WHEN", "only segments with events before then"},
	{'o', "output", "NAME.tw", "fetch, story: the capture to make"},
	{KEY_KEY, "key", "KEY", "fetch: the segments of a row of slowest"},
	{KEY_OLD_NODE, "old-node", "GLOB",
	 "diff: compare with these nodes, at the same time unless --old-from is given"},
	{KEY_OLD_FROM, "old-from", "WHEN",
	 "diff: compare with the time from then on (as long before as the new time is)"},
	{KEY_OLD_TO, "old-to", "WHEN", "diff: and before then (the beginning of the new time)"},
	{KEY_SORT, "sort", "KEY", "by this column: total in report, max in slowest, what explains most in diff"},
	{'n', "top", "N", "report, slowest, diff: the first N rows (20); 0 is all"},
	{KEY_CLICKHOUSE, "clickhouse", "URL",
	 "in place of STORE: a ClickHouse server that `tracewheel fleet setup` has set up: http://localhost:8123"},
	{KEY_DATABASE, "database", "NAME", "the database in it (tracewheel)"},
	{KEY_JSON, "json", NULL, "as JSON (docs/fleet.md)"},
	{KEY_CSV, "csv", NULL, "report, diff: as CSV"},
	{0}};

static const struct tw_command command = {
	.name = "fleet",
	.arguments = "QUESTION [LABEL] [OPTION]... (STORE | --clickhouse URL)",
	.summary =
		"Asks the summaries that `tracewheel ship` has stored, of any number of nodes (docs/fleet.md). QUESTION is report, slowest, diff, losses, nodes, fetch, or story with a LABEL. STORE is s3://BUCKET/PREFIX, found as ship finds it, or a folder. For large fleets, `tracewheel fleet setup` (with a --help of its own) lets a ClickHouse server load the summaries; report, slowest, diff, losses and nodes ask it by --clickhouse.\n"
		"\nreport shows calls and times by function over all of them, calls over borders of segments included; slowest in which segments functions had their slowest calls, with a key that fetch takes; diff what changed from one time to the next, or from some nodes to others; losses what was lost, dropped and is missing, by process; nodes what each node has stored. fetch makes a capture of the segments themselves, which every command reads. story follows one request by its label through all nodes, as `tracewheel seq` does in one capture: it merges the segments that know the label.\n"
		"\nExit codes: 1 if a file is no summary, or segments are missing; a glob that matches nothing is an error.",
	.options = options_table,
	.examples = "  tracewheel fleet report /mnt/fleet\n"
		    "  tracewheel fleet report --since 1h --node 'web-*' --sort p99 s3://traces/prod\n"
		    "  tracewheel fleet slowest -t 'libssl:*' --since 1h s3://traces/prod\n"
		    "  tracewheel fleet fetch --key KEY -o slow.tw s3://traces/prod\n"
		    "  tracewheel fleet diff --since 1h s3://traces/prod\n"
		    "  tracewheel fleet diff --since 1h --node 'new-*' --old-node 'web-*' /mnt/fleet\n"
		    "  tracewheel fleet losses --json /mnt/fleet\n"
		    "  tracewheel fleet report --since 1h --clickhouse http://localhost:8123\n"
		    "  tracewheel fleet story '{order,17}' --from 10m s3://traces/prod\n"
		    "  tracewheel fleet fetch --node web-7 --from 10m -o late.tw /mnt/fleet\n",
};

struct tw_out tw_fleet_out;

static int fetch(struct tw_fleet_ask *ask)
{
	struct tw_fleet_asked asked = {.functions = ask->functions,
				       .key = *ask->key ? ask->key : NULL,
				       .before = ask->key_before};
	char figure[TW_FIGURE_BYTES];
	int code = tw_fleet_fetch(&ask->rows, ask->store, &asked, ask->output);
	if (asked.got)
		tw_say("%s in %s", tw_figure_of(figure, asked.got, "segment", "segments"), ask->output);
	return code;
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

/* KEY, or KEY+N: the last of N + 1 segments of an image. */
static bool take_key(struct tw_fleet_ask *ask, const char *text)
{
	size_t bytes = strcspn(text, "+");
	uint64_t before = 0;
	if (!tw_segment_parse_key(text, bytes, &ask->of_capture) ||
	    (text[bytes] && (!tw_parse_count(text + bytes + 1, &before) || before > UINT32_MAX)))
		return tw_complain("--key is a key as `tracewheel fleet slowest` shows it, not '%s'.", text);
	snprintf(ask->key, sizeof ask->key, "%.*s", (int)bytes, text);
	ask->key_before = (uint32_t)before;
	ask->rows.of_capture = &ask->of_capture;
	return true;
}

static bool take_option(void *context, int key, const char *value)
{
	struct tw_fleet_ask *ask = context;
	struct timespec now;
	uint64_t ns;
	switch (key) {
	case KEY_NODE: ask->rows.node = value; return true;
	case 't': ask->functions = value; return true;
	case KEY_JSON: ask->is_json = true; return true;
	case KEY_CSV: ask->is_csv = true; return true;
	case KEY_SINCE:
		clock_gettime(CLOCK_REALTIME, &now);
		if (!tw_parse_duration(value, &ns))
			return tw_complain("--since is a time, such as 1h or 600s, not '%s'.", value);
		ask->rows.from_ns = (uint64_t)now.tv_sec * UINT64_C(1000000000) - ns;
		return true;
	case KEY_FROM: return parse_when("from", value, &ask->rows.from_ns);
	case KEY_TO: return parse_when("to", value, &ask->rows.to_ns);
	case KEY_OLD_FROM: return parse_when("old-from", value, &ask->old_from_ns);
	case KEY_OLD_TO: return parse_when("old-to", value, &ask->old_to_ns);
	case KEY_OLD_NODE: ask->old_node = value; return true;
	case KEY_KEY: return take_key(ask, value);
	case KEY_CLICKHOUSE: ask->clickhouse = value; return true;
	case KEY_DATABASE: ask->database = value; return true;
	case 'o': ask->output = value; return true;
	case KEY_SORT: ask->sort = value; return true;
	default:
		if (!tw_parse_count(value, &ask->top))
			tw_say("--top is a number, not '%s'.", value);
		return tw_parse_count(value, &ask->top);
	}
}

static const struct question {
	const char *name;
	int (*answer)(struct tw_fleet_ask *ask);
	const struct tw_table *table; /* its columns; NULL: it sorts nothing */
	bool reads;		      /* the summaries itself */
	bool lacks_calls;	      /* it shows segments only */
	bool needs_store;	      /* it reads segments */
} questions[] = {
	{"report", tw_fleet_report, &tw_fleet_columns, false, false, false},
	{"slowest", tw_fleet_slowest, &tw_fleet_columns, false, false, false},
	{"diff", tw_fleet_diff, &tw_difference_columns, true, false, false},
	{"losses", tw_fleet_losses, NULL, false, true, false},
	{"nodes", tw_fleet_nodes, NULL, false, true, false},
	{"fetch", fetch, NULL, false, false, true},
	{"story", tw_fleet_story, NULL, true, false, true},
};

/* Options that the question does not have. */
static bool is_right(const struct tw_fleet_ask *ask, const struct question *question)
{
	bool is_fetch = question->answer == fetch, is_diff = question->answer == tw_fleet_diff;
	char keys[512];
	if (is_fetch ? !ask->output : ask->output && question->answer != tw_fleet_story)
		tw_usage(&command, "fetch needs --output NAME.tw, and only fetch and story have it.");
	else if (*ask->key && !is_fetch)
		tw_usage(&command, "--key is for fetch.");
	else if ((ask->old_node || ask->old_from_ns || ask->old_to_ns) && !is_diff)
		tw_usage(&command, "--old-node, --old-from and --old-to are for diff.");
	else if (ask->sort && !question->table)
		tw_usage(&command, "--sort is for report, slowest and diff.");
	else if (ask->is_csv && question->answer != tw_fleet_report && !is_diff)
		tw_usage(&command, "--csv is for report and diff.");
	else if (ask->clickhouse && question->needs_store)
		tw_usage(&command,
			 "fetch and story read segments, which are in the store: give that in place of --clickhouse.");
	else if (ask->database && !ask->clickhouse)
		tw_usage(&command, "--database is for --clickhouse.");
	else if (ask->sort && !tw_table_column(question->table, ask->sort, strlen(ask->sort)))
		tw_usage(&command, "--sort is a column: %s, not '%s'.",
			 tw_table_keys(question->table, true, keys, sizeof keys), ask->sort);
	else
		return true;
	return false;
}

bool tw_fleet_ask_rows(struct tw_fleet_ask *ask)
{
	return ask->engine ? tw_fleet_engine_read(ask) : tw_fleet_read(&ask->rows, ask->store);
}

static int answer(struct tw_fleet_ask *ask, const struct question *question)
{
	static struct tw_fleet_slowest slowest;
	if (question->answer == tw_fleet_slowest)
		tw_fleet_slowest_begin(ask, &slowest);
	ask->lacks_calls = question->lacks_calls;
	if (!question->reads && !tw_fleet_ask_rows(ask))
		return TW_EXIT_FAILURE;
	if (!question->reads && !ask->rows.segment_count)
		return tw_fail("no segment is of these nodes and this time.");
	if (!question->reads && question->answer != fetch)
		tw_fleet_join(&ask->rows);
	tw_out_init(&tw_fleet_out, STDOUT_FILENO);
	int code = ask->rows.has_no_memory ? tw_fail("there is no memory.") : question->answer(ask);
	tw_fleet_slowest_free(&slowest);
	return code;
}

int main(int argc, char **argv)
{
	static struct tw_fleet_ask ask = {.top = TOP_DEFAULT};
	const struct question *question = NULL;
	if (argc > 1 && strcmp(argv[1], "setup") == 0)
		return tw_fleet_setup(argc - 1, argv + 1);
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
		return tw_usage(&command,
				"what is asked? report, slowest, diff, losses, nodes, fetch or story comes first.");
	if (question->answer == tw_fleet_story && options.index < options.argc)
		ask.label = options.argv[options.index++];
	if (options.argc - options.index != (ask.clickhouse ? 0 : 1))
		return tw_usage(
			&command,
			ask.clickhouse ? "--clickhouse is asked in place of a store: give one of them."
			: question->answer == tw_fleet_story
				? "a label and a store follow: 17 s3://BUCKET/PREFIX."
				: "one store follows: s3://BUCKET/PREFIX, or a folder that `tracewheel ship` has filled.");
	if (!is_right(&ask, question))
		return TW_EXIT_USAGE;
	if (ask.clickhouse)
		ask.engine = tw_fleet_engine_open(ask.clickhouse, ask.database ? ask.database : TW_FLEET_DATABASE);
	else
		ask.store = tw_fleet_store_open(options.argv[options.index], false, NULL);
	code = ask.store || ask.engine ? answer(&ask, question) : TW_EXIT_FAILURE;
	tw_fleet_rows_free(&ask.rows);
	tw_fleet_engine_close(ask.engine);
	tw_fleet_store_close(ask.store);
	return code;
}
