/* SPDX-License-Identifier: Apache-2.0 */
/* sql.c - tracewheel-sql, which `tracewheel sql` and `tracewheel convert --to sqlite|csv` run. */
#include "tools/sql/sql.h"
#include "views/names/counted.h"
#include "views/names/lines.h"
#include "views/names/missing.h"
#include "views/names/names.h"
#include "views/names/threads.h"
#include "views/folds/locks.h"

#include "tracewheel/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
	KEY_CSV = 256,
	KEY_JSON,
	KEY_LINE,
};

struct request {
	enum tw_sql_mode mode;
	bool is_sqlite, force, quiet, is_verbose;
	const char *output;
};

static const struct tw_option options_table[] =
	{{KEY_CSV, "csv", NULL, "rows as CSV, with the names of the columns first"},
	 {KEY_JSON, "json", NULL, "one JSON object a row and line"},
	 {KEY_LINE, "line", NULL, "one value a line"},
	 {TW_SETS(0, struct request, is_sqlite), "sqlite", NULL,
	  "no query: write all tables into the database FILE of -o, for sqlite3 and others"},
	 {TW_SETS('o', struct request, output), "output", "FILE", "write to this file instead of standard output"},
	 {TW_SETS(0, struct request, force), "force", NULL, "replace an existing file of that name"},
	 {TW_SETS('v', struct request, is_verbose), "verbose", NULL,
	  "say how many events were read for calls and events"},
	 {TW_SETS('q', struct request, quiet), "quiet", NULL, "say nothing when all went well"},
	 {0}};

static const struct tw_command command = {
	.name = "sql",
	.arguments = "[OPTION]... NAME.tw [QUERY]...",
	.summary =
		"Answers queries in SQL about a capture, without converting it: its tables are calls, functions, events, threads, processes, messages, losses and locks (docs/sql.md). "
		"Without a QUERY, statements are read from standard input.\n"
		"\n.schema shows every table and a sentence a column, .schema TABLE one of them. Times and durations are in nanoseconds.\n"
		"\nLimits on time, thread, process, module, function and kind select what is read of calls and events; functions has the sums by function. "
		"Statements may make temporary tables; nothing is written to files.\n"
		"\nExit codes: 1 if the capture cannot be read, or not whole, or a query fails; 2 if a query is no SQL.",
	.options = options_table,
	.examples = "  tracewheel sql app.tw 'select name, calls from functions order by calls'\n"
		    "  tracewheel sql app.tw \"select start, args from calls where function = 'write'\"\n"
		    "  tracewheel sql --csv app.tw 'select * from calls where start < 1000' > x.csv\n"
		    "  tracewheel sql app.tw .schema\n",
};

static struct tw_out out;

static bool take_option(void *context, int key, const char *value)
{
	struct request *request = context;
	switch (key) {
	case KEY_CSV: request->mode = TW_SQL_CSV; break;
	case KEY_JSON: request->mode = TW_SQL_JSON; break;
	case KEY_LINE: request->mode = TW_SQL_LINE; break;
	default: request->output = value; break;
	}
	return true;
}

/* ---- what a statement may do ---- */

/* Queries, and tables of this database, which is in memory: no other file, no settings. */
static int authorize(void *context, int action, const char *first, const char *second, const char *database,
		     const char *trigger)
{
	(void)context, (void)database, (void)trigger;
	switch (action) {
	case SQLITE_ATTACH:
	case SQLITE_DETACH:
	case SQLITE_CREATE_VTABLE:
	case SQLITE_DROP_VTABLE: return SQLITE_DENY;
	case SQLITE_PRAGMA:
		return strncmp(first, "table_", 6) == 0 || strcmp(first, "function_list") == 0 ? SQLITE_OK
											       : SQLITE_DENY;
	case SQLITE_FUNCTION: return strcmp(second, "load_extension") == 0 ? SQLITE_DENY : SQLITE_OK;
	default: return SQLITE_OK;
	}
}

/* ---- statements ---- */

static int fail_sql(const struct tw_sql *sql, int code)
{
	const char *text = sqlite3_errmsg(sql->db);
	if (code == SQLITE_AUTH)
		return tw_usage(
			&command,
			"queries read the capture and may make temporary tables: this statement does more (%s).", text);
	if (code == SQLITE_NOMEM)
		return tw_fail("the query failed: %s", tw_strerror(TW_ENOMEM));
	return tw_fail("the query failed: %s.", text);
}

/* .schema, .tables: returns false for anything else. */
static bool run_word(const char *text)
{
	char word[16] = "", name[32] = "";
	text += strspn(text, " \t\n");
	if (*text != '.')
		return false;
	sscanf(text, "%15s %31[a-z]", word, name);
	if (strcmp(word, ".schema") == 0) {
		tw_sql_put_schema(&out, name);
		return true;
	}
	for (unsigned i = 0; strcmp(word, ".tables") == 0 && i < TW_SQL_TABLES; i++)
		tw_out_format(&out, "%s\n", tw_sql_tables[i]->name);
	return strcmp(word, ".tables") == 0;
}

/* All statements of a text. Returns an exit code. */
static int run_text(struct tw_sql *sql, const char *text, enum tw_sql_mode mode)
{
	if (run_word(text))
		return TW_EXIT_OK;
	while (*text) {
		sqlite3_stmt *statement = NULL;
		int code = sqlite3_prepare_v2(sql->db, text, -1, &statement, &text);
		if (code != SQLITE_OK && code != SQLITE_AUTH && code != SQLITE_NOMEM)
			return tw_usage(&command, "this is no query: %s.", sqlite3_errmsg(sql->db));
		if (code != SQLITE_OK)
			return fail_sql(sql, code);
		if (!statement) /* blanks or a comment */
			continue;
		tw_sql_weights_begin(sql, statement);
		code = tw_sql_show(statement, mode, &out);
		tw_sql_weights_end(sql);
		int result = code == SQLITE_DONE ? TW_EXIT_OK : fail_sql(sql, code);
		sqlite3_finalize(statement);
		if (result)
			return result;
	}
	return TW_EXIT_OK;
}

/* Statements may have several lines. */
static int run_input(struct tw_sql *sql, enum tw_sql_mode mode)
{
	bool is_terminal = isatty(STDIN_FILENO);
	char *line = NULL, *text = NULL;
	size_t capacity = 0, used = 0;
	ssize_t bytes;
	int code = TW_EXIT_OK;
	if (is_terminal)
		fprintf(stderr, ".schema shows the tables; a statement ends with ;\nsql> ");
	while ((bytes = getline(&line, &capacity, stdin)) > 0) {
		char *more = realloc(text, used + (size_t)bytes + 1);
		if (!more) {
			code = tw_fail("%s", tw_strerror(TW_ENOMEM));
			break;
		}
		text = more;
		memcpy(text + used, line, (size_t)bytes + 1);
		used += (size_t)bytes;
		if (*text == '.' || sqlite3_complete(text)) {
			used = 0;
			code = run_text(sql, text, mode);
			if (code && !is_terminal)
				break;
			tw_out_flush(&out);
		}
		if (is_terminal)
			fprintf(stderr, used ? "  -> " : "sql> ");
	}
	if (used && !code)
		code = run_text(sql, text, mode);
	free(line);
	free(text);
	return is_terminal ? TW_EXIT_OK : code;
}

/* ---- all ---- */

static int open_output(const struct request *request)
{
	if (!request->output || strcmp(request->output, "-") == 0)
		return STDOUT_FILENO;
	int fd = open(request->output, O_WRONLY | O_CREAT | O_CLOEXEC | (request->force ? O_TRUNC : O_EXCL), 0666);
	if (fd < 0)
		tw_say(errno == EEXIST ? "'%s' exists; --force replaces it." : "'%s' cannot be written: %s.",
		       request->output, strerror(errno));
	return fd;
}

static int run_queries(struct tw_sql *sql, const struct request *request, const char **queries, uint32_t count)
{
	int fd = open_output(request), code = TW_EXIT_OK;
	if (fd < 0)
		return TW_EXIT_FAILURE;
	tw_out_init(&out, fd);
	for (uint32_t i = 0; i < count && !code; i++)
		code = run_text(sql, queries[i], request->mode);
	if (!count)
		code = run_input(sql, request->mode);
	int finished = tw_out_finish_file(&out, request->output);
	return code ? code : finished;
}

static int store(struct tw_sql *sql, const struct request *request)
{
	int code = tw_sql_store(sql);
	if (code == SQLITE_OK) {
		char figure[TW_FIGURE_BYTES];
		if (!request->quiet)
			tw_say("%s: %s.", request->output,
			       tw_figure_of(figure, (uint64_t)sqlite3_total_changes64(sql->db), "row", "rows"));
		return TW_EXIT_OK;
	}
	code = tw_fail("'%s' cannot be written: %s.", request->output, sqlite3_errmsg(sql->db));
	tw_out_remove_part(request->output);
	return code;
}

static int run(struct tw_sql *sql, const struct request *request, const char **queries, uint32_t count)
{
	int fd = request->is_sqlite ? open_output(request) : -1;
	if (request->is_sqlite && fd < 0)
		return TW_EXIT_FAILURE;
	if (fd >= 0)
		close(fd);
	sql->prefix = request->is_sqlite ? "capture_" : "";
	int code = sqlite3_open(request->is_sqlite ? request->output : ":memory:", &sql->db);
	if (code == SQLITE_OK)
		code = tw_sql_create(sql);
	if (code == SQLITE_OK)
		code = tw_sql_weights_create(sql);
	if (code != SQLITE_OK)
		return fail_sql(sql, code);
	if (request->is_sqlite)
		return store(sql, request);
	sqlite3_set_authorizer(sql->db, authorize, NULL);
	sqlite3_limit(sql->db, SQLITE_LIMIT_ATTACHED, 0);
	return run_queries(sql, request, queries, count);
}

static void say_more(const struct tw_sql *sql, const struct request *request)
{
	char read[TW_FIGURE_BYTES], all[TW_FIGURE_BYTES];
	tw_missing_say_events(sql->capture);
	if (!request->quiet)
		tw_counted_say(sql->capture);
	if (request->is_verbose)
		tw_say("%s read, of %s in the capture.",
		       tw_figure_of(read, sql->events_read, "event was", "events were"),
		       tw_figure_count(all, sql->info.events));
}

static int check_request(const struct request *request, const char **words, uint32_t count)
{
	if (!count)
		return tw_usage(&command, "which capture?");
	if (request->is_sqlite && (count > 1 || request->mode || !request->output || strcmp(request->output, "-") == 0))
		return tw_usage(&command, "--sqlite writes all tables to the file of -o, without a query.");
	if (count == 1 && !request->is_sqlite && strcmp(*words, "-") == 0)
		return tw_usage(&command, "standard input is the capture: the query belongs on the command line.");
	return -1;
}

static int ask(const struct request *request, const char **words, uint32_t count)
{
	struct tw_sql sql = {.capture = tw_names_open(*words)};
	if (!sql.capture)
		return TW_EXIT_FAILURE;
	tw_capture_info(sql.capture, &sql.info);
	int code = run(&sql, request, words + 1, count - 1);
	sqlite3_close(sql.db);
	if (code != TW_EXIT_USAGE) {
		say_more(&sql, request);
		code = tw_names_end(sql.capture, *words, code);
	}
	tw_sql_free(&sql);
	tw_lock_names_forget();
	tw_names_use(NULL);
	tw_capture_close(sql.capture);
	return code;
}

int main(int argc, char **argv)
{
	struct request request = {0};
	const char **words = calloc((size_t)argc + 1, sizeof *words);
	struct tw_options options = {.command = &command, .argc = argc, .argv = argv};
	uint32_t count = 0;
	if (!words)
		return tw_fail("%s", tw_strerror(TW_ENOMEM));
	int code = tw_options_words(&options, take_option, &request, words, &count);
	if (code < 0)
		code = check_request(&request, words, count);
	if (code < 0)
		code = ask(&request, words, count);
	free(words);
	return code;
}
