/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sql.h - a capture as tables of SQLite.
 *
 * Two tables are read event by event, as far as a query wants rows: `events` and `calls`.  The others are made once, by the folds of
 * views/, when a query first asks for them.  The constraints that SQLite gives a table in advance (limits of time, a thread, a function, the columns that
 * are used) select what is read; SQLite checks every row again, so that a selection may let more pass than is wanted, never less.
 *
 * Units    times and durations are integers in nanoseconds; times count from the first event of the recording.
 * Threads  one.
 */
#ifndef TW_TOOLS_SQL_H
#define TW_TOOLS_SQL_H

#include "tools/tool.h"
#include "base/map.h"
#include "views/folds/pass.h"
#include "views/folds/places.h"

#include <sqlite3.h>

/* Which part of the capture a limit on a column selects. */
enum tw_sql_limit {
	TW_SQL_NO_LIMIT,
	TW_SQL_TIME,
	TW_SQL_THREAD,
	TW_SQL_PROCESS,
	TW_SQL_MODULE,
	TW_SQL_FUNCTION,
	TW_SQL_KIND
};

struct tw_sql_column {
	const char *name;
	const char *type;
	bool is_hidden; /* not in *: its query reads more, or it repeats another */
	enum tw_sql_limit limit;
	const char *help; /* a sentence without its full stop */
};

/* The values of a table that was made at once: rows of as many as it has columns. */
struct tw_sql_value {
	enum { TW_SQL_NULL, TW_SQL_INTEGER, TW_SQL_TEXT } type;
	int64_t integer;
	char *text;
};

struct tw_sql_rows {
	struct tw_sql_value *values;
	size_t count, capacity;
};

/* The part of a capture that a query needs. */
struct tw_sql_selection {
	uint64_t columns; /* bit i: column i is used; the last bit: itself and all that follow */
	uint64_t from_ns; /* as in tw_capture_filter: on the capture's clock */
	uint64_t to_ns;
	uint64_t kinds; /* 0: all */
	int64_t thread, process;
	bool has_thread, has_process;
	char *module, *function; /* as columns show them; NULL: all */
	bool is_distinct;	 /* one row of each group is enough */
	bool is_grouped; /* the table's promise: rows in this order, of columns among struct tw_sql_table.grouped */
	char order[9];	 /* a letter each: 'a' + column, or 'A' + column for the other direction */
};

struct tw_sql;
struct tw_sql_cursor;

struct tw_sql_table {
	const char *name;
	const char *help;
	const struct tw_sql_column *columns; /* ends with one without a name */
	uint64_t grouped;		     /* bit i: rows that differ in no other column can come together */
	/* Made at once: adds the values of all rows, NULL for columns that are not among these.  Returns 0 or an error. */
	int (*make)(struct tw_sql *sql, uint64_t columns, struct tw_sql_rows *rows);
	/* Read row by row: the first row is next() after open().  Return 0 or an error. */
	int (*open)(struct tw_sql_cursor *cursor);
	int (*next)(struct tw_sql_cursor *cursor);
	void (*column)(struct tw_sql_cursor *cursor, sqlite3_context *context, int column);
	void (*close)(struct tw_sql_cursor *cursor);
	const char *view; /* a query over the tables above, with %s before their names; NULL: a table */
};

struct tw_sql_cursor {
	sqlite3_vtab_cursor base; /* the first member */
	const struct tw_sql_table *table;
	struct tw_sql *sql;
	struct tw_sql_selection selection;
	const struct tw_sql_rows *rows;
	void *state;
	uint64_t row;
	bool is_over;
};

#define TW_SQL_TABLES 8

struct tw_sql {
	sqlite3 *db;
	struct tw_capture *capture;
	struct tw_capture_info info;
	const char *prefix;  /* of the names of tables: "" or "capture_" */
	struct tw_map shown; /* numbers of shown_names by the addresses of their functions and modules */
	char **shown_names;
	size_t shown_count, shown_capacity;
	struct tw_names *texts;	 /* names of functions and modules by image and place */
	struct tw_places places; /* once they are wanted */
	bool has_places;
	struct tw_sql_rows rows[TW_SQL_TABLES];
	uint64_t made[TW_SQL_TABLES]; /* columns + the highest bit */
	uint64_t events_read;
	/* A statement that counts rows, and does nothing else with them, gets equal ones once: as many as weight says. */
	bool is_weighing;
	uint64_t weight; /* 1 otherwise */
};

extern const struct tw_sql_table tw_sql_events, tw_sql_calls, tw_sql_functions, tw_sql_threads, tw_sql_processes,
	tw_sql_locks, tw_sql_messages, tw_sql_losses;
/* All of them, in the order in which people read. */
extern const struct tw_sql_table *const tw_sql_tables[TW_SQL_TABLES];

/* Makes the tables in sql->db.  Returns a code of SQLite. */
int tw_sql_create(struct tw_sql *sql);
void tw_sql_free(struct tw_sql *sql);

/* ---- for tables ---- */

static inline bool tw_sql_uses(const struct tw_sql_selection *selection, unsigned column)
{
	return selection->columns >> (column < 63 ? column : 63) & 1;
}

/* Is any of these columns used, of which the last is `last`? */
static inline bool tw_sql_uses_any(const struct tw_sql_selection *selection, unsigned first, unsigned last)
{
	for (unsigned column = first; column <= last; column++)
		if (tw_sql_uses(selection, column))
			return true;
	return false;
}

/* Adds a value; false: no memory. */
bool tw_sql_integer(struct tw_sql_rows *rows, uint64_t value);
bool tw_sql_integer_if(struct tw_sql_rows *rows, bool is_known, uint64_t value);
bool tw_sql_text(struct tw_sql_rows *rows, const char *text); /* NULL or "": none */

/* A time of the capture as a column has it. */
static inline int64_t tw_sql_time(const struct tw_sql *sql, uint64_t ns)
{
	return ns > sql->info.zero_ns ? (int64_t)(ns - sql->info.zero_ns) : 0;
}

/* The filter of a selection, whose context is the cursor. */
struct tw_capture_filter tw_sql_filter(struct tw_sql_cursor *cursor);
bool tw_sql_wants_function(const struct tw_sql_selection *selection, const struct tw_capture_function *function);
/* The names of all functions and modules of places.  False: no memory. */
bool tw_sql_make_names(struct tw_sql *sql);
/* The name of a function or module as columns have it, lent by sql; NULL: no memory. */
const char *tw_sql_shown(struct tw_sql *sql, const struct tw_capture_function *function);
const char *tw_sql_shown_module(struct tw_sql *sql, const struct tw_capture_module *module);
/* Functions by number, after a scan of the whole capture.  Returns 0 or an error. */
int tw_sql_make_places(struct tw_sql *sql);

void tw_sql_put_thread_name(const struct tw_sql *sql, sqlite3_context *context, uint32_t stream);
void tw_sql_put_pid(const struct tw_sql *sql, sqlite3_context *context, uint32_t image, uint32_t tracee_id);

/* Calls of a function, or collections, which are shown as functions. */
uint64_t tw_sql_calls_of(const struct tw_places *places, uint32_t number);

/* ---- statements that count: sql_weights.c ---- */

/* Makes count() one that knows weights.  Returns a code of SQLite. */
int tw_sql_weights_create(struct tw_sql *sql);
/* Around the steps of a statement. */
void tw_sql_weights_begin(struct tw_sql *sql, sqlite3_stmt *statement);
void tw_sql_weights_end(struct tw_sql *sql);

/* ---- JSON that Tracewheel has written ---- */

struct tw_sql_json {
	const char *at;
	size_t bytes;
};

/* A member of an object; an element of an array, from 0.  False: there is none. */
bool tw_sql_json_member(struct tw_sql_json object, const char *name, struct tw_sql_json *out);
bool tw_sql_json_element(struct tw_sql_json array, unsigned index, struct tw_sql_json *out);
/* Its value in SQL: numbers, texts, true as 1; objects and arrays stay JSON. */
void tw_sql_json_result(const struct tw_sql *sql, sqlite3_context *context, struct tw_sql_json value);

/* ---- what a query shows: sql_output.c ---- */

enum tw_sql_mode { TW_SQL_ALIGNED, TW_SQL_CSV, TW_SQL_JSON, TW_SQL_LINE };

/* Runs a statement that was prepared, and writes its rows.  Returns a code of SQLite: SQLITE_DONE after the last row. */
int tw_sql_show(sqlite3_stmt *statement, enum tw_sql_mode mode, struct tw_out *out);
/* The tables and a sentence a column. */
void tw_sql_put_schema(struct tw_out *out, const char *name);
/* All tables as those of the database file that sql->db is.  Returns a code of SQLite. */
int tw_sql_store(struct tw_sql *sql);

#endif
