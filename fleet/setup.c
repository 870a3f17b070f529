/* SPDX-License-Identifier: Apache-2.0 */
/* setup.c - `tracewheel fleet setup`: an engine loads the summaries of a store by itself from then on. */
#include "fleet/engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Refreshable materialized views that append. */
#define VERSION_MAJOR 24
#define VERSION_MINOR 10

enum { KEY_CLICKHOUSE = 256, KEY_DATABASE, KEY_FROM, KEY_PRINT };

static const struct tw_option options_table[] = {
	{KEY_CLICKHOUSE, "clickhouse", "URL", "the server: http://localhost:8123"},
	{KEY_FROM, "from", "STORE",
	 "where it loads from: s3://BUCKET/PREFIX, or a folder as the server sees it, which must lie where it may read files"},
	{KEY_DATABASE, "database", "NAME", "the database to make (tracewheel)"},
	{KEY_PRINT, "print", "ENGINE",
	 "shows the statements instead, without a server: clickhouse, or duckdb, which reads a folder when it is asked"},
	{0}};

static const struct tw_command command = {
	.name = "fleet setup",
	.arguments = "--from STORE (--clickhouse URL | --print ENGINE) [OPTION]...",
	.summary =
		"Makes tables in a ClickHouse server, which loads the summaries of a store by itself from then on, each second (docs/fleet.md). `tracewheel fleet report --clickhouse URL` then asks the server. What is there stays: only views are made again, so that --from may change.\n"
		"\nThe server needs version 24.10 or later. CLICKHOUSE_USER and CLICKHOUSE_PASSWORD say who asks. For a bucket, the server gets the address and the key that AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY of this command say: use one that may list and get summaries only. Without a key it uses its own.",
	.options = options_table,
	.examples = "  tracewheel fleet setup --clickhouse http://localhost:8123 --from s3://traces/prod\n"
		    "  tracewheel fleet setup --print clickhouse --from s3://traces/prod >statements.sql\n"
		    "  tracewheel fleet setup --print duckdb --from /mnt/fleet | duckdb -init /dev/stdin\n",
};

struct setup {
	const char *clickhouse, *database, *from, *print;
};

static bool take_option(void *context, int key, const char *value)
{
	struct setup *setup = context;
	switch (key) {
	case KEY_CLICKHOUSE: setup->clickhouse = value; return true;
	case KEY_DATABASE: setup->database = value; return true;
	case KEY_FROM: setup->from = value; return true;
	default:
		setup->print = value;
		if (strcmp(value, "clickhouse") != 0 && strcmp(value, "duckdb") != 0)
			tw_say("--print is clickhouse or duckdb, not '%s'.", value);
		return strcmp(value, "clickhouse") == 0 || strcmp(value, "duckdb") == 0;
	}
}

/* The summaries below a folder, as a pattern in quotes. NULL: it was said. */
static char *folder_pattern(const struct setup *setup)
{
	char whole[PATH_MAX], pattern[PATH_MAX + 32];
	/* A server may see other folders than this machine. */
	if (!realpath(setup->from, whole))
		snprintf(whole, sizeof whole, "%s", setup->from);
	if (*whole != '/' || strpbrk(whole, "*?{}[]")) {
		tw_say("--from is s3://BUCKET/PREFIX or a folder by its whole path without * ? { } [ ], not '%s'.",
		       setup->from);
		return NULL;
	}
	snprintf(pattern, sizeof pattern, "%s/**/*" TW_FLEET_SUMMARY_SUFFIX, whole);
	return tw_fleet_quoted(pattern);
}

/* The table function of ClickHouse that reads the objects. @is_shown: without secrets. NULL: it was said. */
static char *objects(const struct setup *setup, bool is_shown)
{
	char url[TW_FLEET_PLACE_BYTES], id[TW_FLEET_PLACE_BYTES], secret[TW_FLEET_PLACE_BYTES],
		pattern[2 * TW_FLEET_PLACE_BYTES];
	char *text = NULL;
	if (strncmp(setup->from, "s3://", 5) != 0) {
		char *folder = folder_pattern(setup);
		if (folder && asprintf(&text, "file(%s, 'RawBLOB', 'data String')", folder) < 0)
			text = NULL;
		free(folder);
		return text;
	}
	if (!tw_fleet_s3_place(setup->from + 5, url, id, secret))
		return NULL;
	snprintf(pattern, sizeof pattern, "%ssum/**/*" TW_FLEET_SUMMARY_SUFFIX, url);
	char *where = tw_fleet_quoted(pattern), *key = tw_fleet_quoted(is_shown ? "KEY" : id),
	     *password = tw_fleet_quoted(is_shown ? "SECRET" : secret);
	bool has_key = *id && *secret;
	if (!where || !key || !password ||
	    asprintf(&text, "s3(%s%s%s%s%s, 'RawBLOB', 'data String')", where, has_key ? ", " : "", has_key ? key : "",
		     has_key ? ", " : "", has_key ? password : "") < 0) {
		text = NULL;
		tw_say("there is no memory.");
	}
	explicit_bzero(secret, sizeof secret);
	free(where);
	free(key);
	free(password);
	return text;
}

static char *statements(const struct setup *setup, bool is_shown)
{
	bool is_duckdb = setup->print && strcmp(setup->print, "duckdb") == 0;
	const char *text = is_duckdb ? tw_fleet_duckdb_sql : tw_fleet_clickhouse_sql;
	char *from = is_duckdb ? folder_pattern(setup) : objects(setup, is_shown);
	if (!from)
		return NULL;
	const struct tw_fleet_word words[] = {{"OBJECTS", from}, {"DATABASE", setup->database}, {0}};
	char *all = tw_fleet_statement(text, strlen(text), words);
	free(from);
	if (!all)
		tw_say("there is no memory.");
	return all;
}

/* Is the server new enough? */
static bool is_new(struct tw_fleet_engine *engine)
{
	struct tw_fleet_bytes answer = {NULL, 0};
	unsigned major = 0, minor = 0;
	char clause[300];
	if (!tw_fleet_engine_run(engine, "SELECT version() FORMAT LineAsString", false, &answer))
		return false;
	const char *said = answer.data ? (const char *)answer.data : "";
	bool is_version = sscanf(said, "%u.%u", &major, &minor) == 2;
	bool is_enough = is_version && (major > VERSION_MAJOR || (major == VERSION_MAJOR && minor >= VERSION_MINOR));
	if (!is_version)
		snprintf(clause, sizeof clause, "does not say its version, as ClickHouse does");
	else if (!is_enough)
		snprintf(
			clause, sizeof clause,
			"is ClickHouse %u.%u, without materialized views that are refreshed and append; update it to %d.%d or later",
			major, minor, VERSION_MAJOR, VERSION_MINOR);
	if (!is_enough)
		tw_fleet_engine_say(engine, clause);
	free(answer.data);
	return is_enough;
}

/* Statements end by ; and the line's end. Each may be sent again. */
static bool send_all(struct tw_fleet_engine *engine, char *all)
{
	struct tw_fleet_bytes answer;
	for (char *at = all, *end; (end = strstr(at, ";\n")); at = end + 2) {
		*end = 0;
		answer = (struct tw_fleet_bytes){NULL, 0};
		if (!tw_fleet_engine_run(engine, at, false, &answer))
			return false;
		free(answer.data);
	}
	return true;
}

static int apply(const struct setup *setup)
{
	struct tw_fleet_engine *engine = tw_fleet_engine_open(setup->clickhouse, setup->database);
	char *all = engine ? statements(setup, false) : NULL, clause[300];
	bool is_done = all && is_new(engine) && send_all(engine, all);
	if (is_done) {
		snprintf(clause, sizeof clause, "loads the summaries of %.150s into its database '%.64s' each second",
			 setup->from, setup->database);
		tw_fleet_engine_say(engine, clause);
	}
	if (all)
		explicit_bzero(all, strlen(all));
	free(all);
	tw_fleet_engine_close(engine);
	return is_done ? TW_EXIT_OK : TW_EXIT_FAILURE;
}

int tw_fleet_setup(int argc, char **argv)
{
	struct setup setup = {.database = TW_FLEET_DATABASE};
	struct tw_options options = {.command = &command, .argc = argc, .argv = argv};
	int code;
	if (!tw_options_read(&options, take_option, &setup, &code))
		return code;
	if (options.index != options.argc)
		return tw_usage(&command, "setup takes no store but --from, and not '%s'.", argv[options.index]);
	if (!setup.from)
		return tw_usage(&command, "--from says where summaries are.");
	if (!setup.clickhouse == !setup.print)
		return tw_usage(&command,
				"either --clickhouse says which server is set up, or --print shows the statements.");
	if (setup.clickhouse)
		return apply(&setup);
	char *all = statements(&setup, true);
	if (!all)
		return TW_EXIT_FAILURE;
	tw_out_init(&tw_fleet_out, STDOUT_FILENO);
	tw_out_text(&tw_fleet_out, all);
	free(all);
	return tw_out_finish(&tw_fleet_out);
}
