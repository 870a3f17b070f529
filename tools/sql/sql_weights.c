/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sql_weights.c - statements that do nothing with the rows of a table but count them.
 *
 * SQLite takes some 70 ns for each row that it groups and counts, whatever a table does.  Rows that are equal in all columns that are used
 * can come once if count() knows how many they stand for.  That is right only if every step of the loop over rows gives the same for equal
 * rows, and keeps none of them.  Whether that is so is read from the statement's own program (EXPLAIN): between VFilter and VNext stand only
 * the operations below, and no aggregate but count().  Programs of other versions of SQLite may have others, and then rows come one by one.
 */
#include "tools/sql/sql.h"

#include <stdlib.h>

/* Loads, comparisons and jumps.  Not among them: what stores or gives rows, subprograms, and functions. */
static const char *const operations[] = {"VColumn", "Compare", "Jump", "Move",	 "Copy",   "SCopy",
					 "Gosub",   "IfPos",   "If",   "IfNot",	 "Goto",   "Integer",
					 "String8", "Null",    "Noop", "Eq",	 "Ne",	   "Lt",
					 "Le",	    "Gt",      "Ge",   "IsNull", "NotNull"};

static const char *text_of(sqlite3_stmt *row, int column)
{
	const char *text = (const char *)sqlite3_column_text(row, column);
	return text ? text : "";
}

static bool is_harmless(sqlite3_stmt *row)
{
	const char *operation = text_of(row, 1);
	for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
		if (strcmp(operation, operations[i]) == 0)
			return true;
	/* Patterns are the only functions that conditions on names need. */
	if (strcmp(operation, "Function") == 0)
		return strcmp(text_of(row, 5), "like(2)") == 0 || strcmp(text_of(row, 5), "glob(2)") == 0;
	return strcmp(operation, "AggStep") == 0 && strncmp(text_of(row, 5), "count(", 6) == 0;
}

/* Is there one loop over one table, and does it only count? */
static bool only_counts(sqlite3_stmt *program)
{
	int filters = 0, counts = 0;
	bool is_in_loop = false, is_right = true;
	while (is_right && sqlite3_step(program) == SQLITE_ROW) {
		const char *operation = text_of(program, 1);
		if (strcmp(operation, "VFilter") == 0) {
			is_in_loop = true;
			filters++;
		} else if (strcmp(operation, "VNext") == 0) {
			is_in_loop = false;
		} else if (is_in_loop) {
			is_right = is_harmless(program);
			counts += strcmp(operation, "AggStep") == 0;
		}
	}
	return is_right && filters == 1 && counts && !is_in_loop;
}

void tw_sql_weights_begin(struct tw_sql *sql, sqlite3_stmt *statement)
{
	char *text = sqlite3_mprintf("EXPLAIN %s", sqlite3_sql(statement));
	sqlite3_stmt *program = NULL;
	if (text && !sqlite3_stmt_isexplain(statement) &&
	    sqlite3_prepare_v2(sql->db, text, -1, &program, NULL) == SQLITE_OK)
		sql->is_weighing = only_counts(program);
	sqlite3_finalize(program);
	sqlite3_free(text);
}

void tw_sql_weights_end(struct tw_sql *sql)
{
	sql->is_weighing = false;
	sql->weight = 1;
}

/* ---- count() ---- */

static void add(sqlite3_context *context, int count, sqlite3_value **values, bool is_removed)
{
	const struct tw_sql *sql = sqlite3_user_data(context);
	uint64_t *sum = sqlite3_aggregate_context(context, sizeof *sum);
	if (sum && (!count || sqlite3_value_type(*values) != SQLITE_NULL))
		*sum += is_removed ? -sql->weight : sql->weight;
}

static void step(sqlite3_context *context, int count, sqlite3_value **values)
{
	add(context, count, values, false);
}

static void inverse(sqlite3_context *context, int count, sqlite3_value **values)
{
	add(context, count, values, true);
}

static void put(sqlite3_context *context)
{
	const uint64_t *sum = sqlite3_aggregate_context(context, sizeof *sum);
	sqlite3_result_int64(context, sum ? (sqlite3_int64)*sum : 0);
}

int tw_sql_weights_create(struct tw_sql *sql)
{
	int code = SQLITE_OK;
	sql->weight = 1;
	for (int count = 0; count <= 1 && code == SQLITE_OK; count++)
		code = sqlite3_create_window_function(sql->db, "count", count,
						      SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, sql, step,
						      put, put, inverse, NULL);
	return code;
}
