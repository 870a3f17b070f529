/* SPDX-License-Identifier: Apache-2.0 */
/* sql_json.c - finds values in JSON that Tracewheel itself has written: without blanks, and well formed. */
#include "tools/sql/sql.h"

#include <stdlib.h>

/* Behind the text that begins here with its quote. */
static const char *skip_text(const char *at, const char *end)
{
	for (at++; at < end && *at != '"'; at++)
		at += *at == '\\';
	return at < end ? at + 1 : end;
}

/* Behind the value that begins here. */
static const char *skip_value(const char *at, const char *end)
{
	unsigned depth = 0;
	while (at < end) {
		if (*at == '"') {
			at = skip_text(at, end);
			continue;
		}
		bool closes = *at == '}' || *at == ']';
		if (!depth && (closes || *at == ','))
			return at;
		depth += *at == '{' || *at == '[';
		depth -= closes;
		at++;
	}
	return end;
}

bool tw_sql_json_member(struct tw_sql_json object, const char *name, struct tw_sql_json *out)
{
	const char *at = object.at + 1, *end = object.at + object.bytes;
	size_t bytes = strlen(name);
	while (at < end && *at == '"') {
		bool is_wanted =
			(size_t)(end - at) > bytes + 3 && memcmp(at + 1, name, bytes) == 0 && at[bytes + 1] == '"';
		const char *value = at;
		/* Names of members contain no quotes. */
		while (value < end && *value != ':')
			value++;
		at = skip_value(value + 1, end);
		if (is_wanted) {
			*out = (struct tw_sql_json){value + 1, (size_t)(at - value - 1)};
			return true;
		}
		at++;
	}
	return false;
}

bool tw_sql_json_element(struct tw_sql_json array, unsigned index, struct tw_sql_json *out)
{
	const char *at = array.at + 1, *end = array.at + array.bytes;
	if (!array.bytes || *array.at != '[')
		return false;
	while (at < end && *at != ']') {
		const char *next = skip_value(at, end);
		if (!index--) {
			*out = (struct tw_sql_json){at, (size_t)(next - at)};
			return true;
		}
		at = next + 1;
	}
	return false;
}

/* A text with escapes, which SQLite reads. */
static void put_escaped(const struct tw_sql *sql, sqlite3_context *context, struct tw_sql_json value)
{
	sqlite3_stmt *statement = NULL;
	if (sqlite3_prepare_v2(sql->db, "SELECT ?1->>'$'", -1, &statement, NULL) == SQLITE_OK) {
		sqlite3_bind_text(statement, 1, value.at, (int)value.bytes, SQLITE_STATIC);
		if (sqlite3_step(statement) == SQLITE_ROW)
			sqlite3_result_value(context, sqlite3_column_value(statement, 0));
	}
	sqlite3_finalize(statement);
}

void tw_sql_json_result(const struct tw_sql *sql, sqlite3_context *context, struct tw_sql_json value)
{
	char number[32];
	if (value.bytes >= 2 && *value.at == '"') {
		if (memchr(value.at, '\\', value.bytes))
			put_escaped(sql, context, value);
		else
			sqlite3_result_text(context, value.at + 1, (int)value.bytes - 2, SQLITE_TRANSIENT);
	} else if (value.bytes == 4 && memcmp(value.at, "true", 4) == 0) {
		sqlite3_result_int(context, 1);
	} else if (value.bytes == 5 && memcmp(value.at, "false", 5) == 0) {
		sqlite3_result_int(context, 0);
	} else if (value.bytes && value.bytes < sizeof number && strchr("-0123456789", *value.at)) {
		memcpy(number, value.at, value.bytes);
		number[value.bytes] = 0;
		/* SQL's integers have 64 bits with a sign: a word of the upper half is negative. */
		if (strpbrk(number, ".eE"))
			sqlite3_result_double(context, strtod(number, NULL));
		else
			sqlite3_result_int64(context, *number == '-' ? (sqlite3_int64)strtoll(number, NULL, 10)
								     : (sqlite3_int64)strtoull(number, NULL, 10));
	} else if (value.bytes && *value.at != 'n') {
		sqlite3_result_text(context, value.at, (int)value.bytes, SQLITE_TRANSIENT);
	}
}
