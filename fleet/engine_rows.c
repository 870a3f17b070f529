/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_rows.c - rows of an engine in the place of those of summaries: clickhouse_ask.sql has the questions.
 *
 *	1 to when is something loaded?   2 names of nodes and functions that globs match   3 functions, summed by the engine
 *	4 segments with their losses and calls over borders, as the summaries have them, which rows.c and join.c read as such
 *
 * All see what was loaded at 1. Globs are matched here, so that they mean the same everywhere.
 */
#include "fleet/engine.h"

#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct asking {
	struct tw_fleet_ask *ask;
	struct tw_fleet_engine *engine;
	uint64_t visible_ns;
	json_t *nodes; /* names; NULL: not asked yet */
};

static char *printed(const char *format, ...) __attribute__((format(printf, 1, 2)));
static char *printed(const char *format, ...)
{
	char *text;
	va_list arguments;
	va_start(arguments, format);
	int bytes = vasprintf(&text, format, arguments);
	va_end(arguments);
	return bytes < 0 ? NULL : text;
}

static bool has_no_memory(void)
{
	tw_say("there is no memory.");
	return false;
}

/* The part of the questions behind "-- @NAME". */
static char *section(const char *name, const struct tw_fleet_word *words)
{
	char title[64];
	snprintf(title, sizeof title, "-- @%s\n", name);
	const char *begin = strstr(tw_fleet_clickhouse_ask_sql, title);
	begin = begin ? begin + strlen(title) : "";
	const char *end = strstr(begin, "\n-- ");
	return tw_fleet_statement(begin, end ? (size_t)(end - begin) : strlen(begin), words);
}

/* ---- lines of answers ---- */

typedef bool take_line(void *context, json_t *row);

static bool is_kind(const json_t *row, const char *kind)
{
	const char *is = json_string_value(json_object_get(row, "kind"));
	return is && strcmp(is, kind) == 0;
}

/* Each line of a whole answer, whose last one is the end. */
static bool take_lines(const struct asking *asking, const struct tw_fleet_bytes *answer, take_line *take, void *context)
{
	const char *at = (const char *)answer->data, *end = at + answer->bytes, *next;
	bool is_whole = false;
	for (; at && at < end && !is_whole; at = next + 1) {
		next = memchr(at, '\n', (size_t)(end - at));
		json_t *row = next ? json_loadb(at, (size_t)(next - at), 0, NULL) : NULL;
		is_whole = row && is_kind(row, "end");
		bool is_taken = row && (is_whole || take(context, row));
		json_decref(row);
		if (!is_taken)
			break;
	}
	if (!is_whole)
		tw_fleet_engine_say(asking->engine, "gave an answer that was cut off, or is none of these tables");
	return is_whole;
}

/* @words: their texts are freed. */
static bool ask_lines(const struct asking *asking, const char *name, const struct tw_fleet_word *words, take_line *take,
		      void *context)
{
	struct tw_fleet_bytes answer = {NULL, 0};
	bool has_all = true;
	for (const struct tw_fleet_word *word = words; word->name; word++)
		has_all &= word->text != NULL;
	char *statement = has_all ? section(name, words) : NULL;
	bool is_read = statement ? tw_fleet_engine_run(asking->engine, statement, true, &answer) : has_no_memory();
	is_read = is_read && take_lines(asking, &answer, take, context);
	free(statement);
	free(answer.data);
	for (const struct tw_fleet_word *word = words; word->name; word++)
		free((char *)word->text);
	return is_read;
}

/* ---- conditions ---- */

static bool take_name(void *context, json_t *row)
{
	return json_array_append(context, json_object_get(row, "name")) == 0;
}

/* "NAME IN ('a', 'b')" of the names that a glob matches; "0" if it matches none. NULL: no memory. */
static char *matching(const char *column, const json_t *names, const char *glob)
{
	char *text = NULL;
	size_t size, i, count = 0;
	json_t *name;
	FILE *out = open_memstream(&text, &size);
	if (!out)
		return NULL;
	json_array_foreach(names, i, name)
	{
		const char *is = json_string_value(name);
		char *quoted = is && fnmatch(glob, is, 0) == 0 ? tw_fleet_quoted(is) : NULL;
		if (quoted && count++ == 0)
			fprintf(out, "%s IN (", column);
		if (quoted)
			fprintf(out, "%s%s", count > 1 ? ", " : "", quoted);
		free(quoted);
	}
	fputs(count ? ")" : "0", out);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

/* The segments of a span; NULL: it could not be made, which was said. */
static char *segments_of(struct asking *asking, const struct tw_fleet_span *span)
{
	static const struct tw_fleet_word none[] = {{0}};
	if (span->node && !asking->nodes) {
		asking->nodes = json_array();
		if (!asking->nodes || !ask_lines(asking, "nodes", none, take_name, asking->nodes))
			return NULL;
	}
	char *nodes = span->node ? matching("node", asking->nodes, span->node) : strdup("1");
	char *text =
		nodes ? printed("reason = '' AND toUnixTimestamp64Nano(visible) <= %llu AND `to` >= %llu AND `%s` < %llu AND %s",
				(unsigned long long)asking->visible_ns, (unsigned long long)span->from_ns,
				span->is_by_end ? "to" : "from",
				(unsigned long long)(span->to_ns ? span->to_ns : UINT64_MAX), nodes)
		      : NULL;
	free(nodes);
	if (!text)
		has_no_memory();
	return text;
}

/* A condition that is true of all rows of these segments, by their minutes. NULL: no memory. */
static char *minutes_of(const struct tw_fleet_span *span)
{
	const uint64_t second = UINT64_C(1000000000), limit = UINT32_MAX;
	uint64_t from = span->from_ns / second / 60 * 60,
		 to = span->is_by_end && span->to_ns ? span->to_ns / second : limit;
	return printed("minute >= toDateTime(%llu, 'UTC') AND minute <= toDateTime(%llu, 'UTC')",
		       (unsigned long long)(from < limit ? from : limit),
		       (unsigned long long)(to < limit ? to : limit));
}

/* ---- 1: the state ---- */

/* False: it has none, which was said. */
static bool take_state(struct asking *asking)
{
	static const struct tw_fleet_word none[] = {{0}};
	struct tw_fleet_bytes answer = {NULL, 0};
	char *statement = section("state", none), clause[500];
	bool is_read = statement ? tw_fleet_engine_run(asking->engine, statement, true, &answer) : has_no_memory();
	json_t *state = is_read ? json_loadb((const char *)answer.data, answer.bytes, 0, NULL) : NULL;
	const char *failure = json_string_value(json_object_get(state, "failure"));
	json_int_t loaded = json_integer_value(json_object_get(state, "loaded"));
	asking->visible_ns = (uint64_t)json_integer_value(json_object_get(state, "visible"));
	if (failure && *failure) {
		snprintf(clause, sizeof clause, "fails to load, so that answers lack what came since: %.*s",
			 (int)(strcspn(failure, "\n") < 300 ? strcspn(failure, "\n") : 300), failure);
		tw_fleet_engine_say(asking->engine, clause);
		asking->ask->rows.set_aside++;
	}
	if (is_read && !json_is_object(state))
		tw_fleet_engine_say(asking->engine, "gave an answer that was cut off, or is none of these tables");
	else if (is_read && !loaded)
		tw_fleet_engine_say(
			asking->engine,
			"has loaded no summary; `tracewheel fleet setup` says from where, and `tracewheel ship --to` writes them");
	is_read = is_read && json_is_object(state) && loaded > 0;
	json_decref(state);
	free(statement);
	free(answer.data);
	return is_read;
}

/* ---- 3: functions ---- */

struct merging {
	struct tw_fleet_ask *ask;
	unsigned span;
};

static bool take_merged(void *context, json_t *row)
{
	const struct merging *merging = context;
	struct tw_fleet_rows *rows = &merging->ask->rows;
	const char *node = json_string_value(json_object_get(row, "node"));
	if (merging->ask->span_count)
		rows = merging->ask->rows_of(rows->context, merging->span, node ? node : "");
	merging->ask->rows.has_no_memory |= !rows || !tw_fleet_take_function(rows, row);
	return true;
}

static bool ask_functions(struct asking *asking, const struct tw_fleet_span *span, unsigned number)
{
	struct merging merging = {asking->ask, number};
	char *segments = segments_of(asking, span);
	const struct tw_fleet_word words[] = {{"SEGMENTS", segments},
					      {"MINUTES", minutes_of(span)},
					      {"NODE", strdup(asking->ask->span_count ? "s.node" : "''")},
					      {0}};
	if (segments)
		return ask_lines(asking, "functions", words, take_merged, &merging);
	for (const struct tw_fleet_word *word = words; word->name; word++)
		free((char *)word->text);
	return false;
}

/* ---- 4: segments ---- */

struct segments {
	struct tw_fleet_rows *rows;
	json_t *lines; /* of a segment, which go on; NULL: none yet */
	char *path;
};

static void end_segment(struct segments *segments)
{
	const char *reason =
		segments->lines ? tw_fleet_take_lines(segments->rows, segments->path, segments->lines) : NULL;
	if (reason) {
		tw_say("%s was set aside: %s.", segments->path, reason);
		segments->rows->set_aside++;
	}
	free(segments->path);
	json_decref(segments->lines);
	segments->path = NULL;
	segments->lines = NULL;
}

static void take_aside(struct tw_fleet_rows *rows, const json_t *row)
{
	const char *path = json_string_value(json_object_get(row, "path"));
	const char *reason = json_string_value(json_object_get(row, "reason"));
	if (!path || !reason || !tw_fleet_wants_path(rows, path))
		return;
	tw_say("%s was set aside: %s.", path, reason);
	rows->set_aside++;
}

static bool take_segment_line(void *context, json_t *row)
{
	struct segments *segments = context;
	const char *path = json_string_value(json_object_get(row, "path"));
	if (is_kind(row, "names")) {
		json_decref(segments->rows->names);
		segments->rows->names = json_incref(json_object_get(row, "names"));
	} else if (is_kind(row, "aside")) {
		take_aside(segments->rows, row);
	} else if (is_kind(row, "segment") || is_kind(row, "dropped")) {
		end_segment(segments);
		segments->path = strdup(path ? path : "");
		segments->lines = json_array();
		return segments->path && json_array_append(segments->lines, row) == 0;
	} else if (segments->lines) {
		return json_array_append(segments->lines, row) == 0;
	}
	return true;
}

/* By which column the engine chooses functions of slowest. NULL: no memory. */
static char *slowest_column(const struct tw_fleet_slowest *slowest)
{
	const char *key = slowest ? slowest->column->key : "max";
	const struct tw_fleet_word median[] = {{"SHARE", "0.5"}, {0}}, p99[] = {{"SHARE", "0.99"}, {0}};
	if (strcmp(key, "median") == 0)
		return section("quantile", median);
	if (strcmp(key, "p99") == 0)
		return section("quantile", p99);
	/* Open calls are counted when they are joined. */
	return strcmp(key, "open") == 0 ? strdup("0 * id") : printed("`%s`", key);
}

/* The functions that slowest shows: their names, of which it says if there are none. NULL: it was said. */
static char *slowest_functions(struct asking *asking, const struct tw_fleet_span *span, const char *segments)
{
	const struct tw_fleet_slowest *slowest = asking->ask->rows.slowest;
	char *text = NULL;
	if (!slowest || !slowest->functions)
		text = strdup(slowest ? "1" : "0");
	if (text || !slowest || !slowest->functions)
		return text;
	const struct tw_fleet_word words[] = {{"SEGMENTS", strdup(segments)}, {"MINUTES", minutes_of(span)}, {0}};
	json_t *names = json_array();
	if (names && ask_lines(asking, "names", words, take_name, names))
		text = matching("name", names, slowest->functions);
	json_decref(names);
	return text;
}

static bool ask_segments(struct asking *asking, const struct tw_fleet_span *span)
{
	struct tw_fleet_rows *rows = &asking->ask->rows;
	struct segments segments = {.rows = rows};
	char minute[TW_FLEET_PATH_BYTES] = "";
	char *chosen = segments_of(asking, span), *functions = chosen ? slowest_functions(asking, span, chosen) : NULL;
	if (!functions) {
		free(chosen);
		return false;
	}
	if (rows->from_ns)
		tw_fleet_minute_path(rows->from_ns, minute);
	if (rows->slowest && strcmp(functions, "0") != 0)
		rows->slowest->matching++;
	const struct tw_fleet_word words[] = {{"SEGMENTS", chosen},
					      {"MINUTES", minutes_of(span)},
					      {"FUNCTIONS", functions},
					      {"COLUMN", slowest_column(rows->slowest)},
					      {"TOP", printed("%zu", rows->slowest ? rows->slowest->most : 0)},
					      {"CROSSING", strdup(asking->ask->lacks_calls ? "0" : "1")},
					      {"PATHS",
					       strdup("'sum/([0-9]{4}/[0-9]{2}/[0-9]{2}/[0-9]{2}/[0-9]{2})/[^/]*$'")},
					      {"MINUTE", tw_fleet_quoted(*minute ? minute + 4 : "")},
					      {0}};
	bool is_read = ask_lines(asking, "segments", words, take_segment_line, &segments);
	if (is_read)
		end_segment(&segments);
	free(segments.path);
	json_decref(segments.lines);
	return is_read;
}

bool tw_fleet_engine_read(struct tw_fleet_ask *ask)
{
	struct asking asking = {.ask = ask, .engine = ask->engine};
	const struct tw_fleet_span all = {ask->rows.node, ask->rows.from_ns, ask->rows.to_ns, false};
	bool is_read = take_state(&asking) && ask_segments(&asking, &all);
	if (is_read && !ask->lacks_calls && !ask->rows.slowest && !ask->span_count)
		is_read = ask_functions(&asking, &all, 0);
	for (unsigned i = 0; i < ask->span_count && is_read; i++)
		is_read = ask_functions(&asking, &ask->spans[i], i);
	json_decref(asking.nodes);
	return is_read;
}
