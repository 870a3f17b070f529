/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sql_store.c - a capture as a database file: the same tables, filled from the virtual ones.
 *
 * A row of `call` is small: names stand in `functions` and `threads`, NULL is what follows from other columns, and the view `calls` has
 * the columns of the virtual table.
 */
#include "tools/sql/sql.h"
#include "views/names/payload.h"
#include "views/names/threads.h"

static const char *const before =
	"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE; PRAGMA cache_size = -65536; BEGIN;"
	"CREATE TABLE functions AS SELECT id, *, ran, preempted, off, in_locks FROM capture_functions;"
	"CREATE UNIQUE INDEX functions_id ON functions (id);"
	"CREATE TABLE threads AS SELECT id, * FROM capture_threads;"
	"CREATE UNIQUE INDEX threads_id ON threads (id);"
	"CREATE TABLE processes AS SELECT * FROM capture_processes;"
	"CREATE TABLE locks AS SELECT * FROM capture_locks;"
	"CREATE TABLE messages AS SELECT * FROM capture_messages;"
	"CREATE TABLE losses AS SELECT * FROM capture_losses;"
	"CREATE TABLE call (id INTEGER PRIMARY KEY, start INTEGER, duration INTEGER, self INTEGER, ended TEXT, thread_id INTEGER, pid TEXT,"
	" function_id INTEGER, up INTEGER, depth INTEGER, args TEXT, result, errno TEXT, ran INTEGER, preempted INTEGER, off INTEGER,"
	" in_locks INTEGER, lock TEXT, lock_holder INTEGER);";

static const char *const after =
	"CREATE VIEW calls AS SELECT c.start, c.duration, coalesce(c.self, c.duration) AS self,"
	" CASE WHEN c.duration IS NOT NULL THEN coalesce(c.ended, 'returned') END AS ended,"
	" t.process, t.thread, t.thread_name, c.pid, f.module, f.function, c.args, c.result, c.errno, c.id, c.id - c.up AS parent, c.depth,"
	" (SELECT g.function FROM call p JOIN functions g ON g.id = p.function_id WHERE p.id = c.id - c.up) AS caller,"
	" c.ran, c.preempted, c.off, c.in_locks, c.lock, c.lock_holder, c.function_id, c.thread_id"
	" FROM call c LEFT JOIN functions f ON f.id = c.function_id LEFT JOIN threads t ON t.id = c.thread_id;"
	"COMMIT;";

/* The kinds that the capture has and that have no table of their own: others are not read once more. */
static char *other_kinds(struct tw_sql *sql)
{
	const uint64_t others =
		~(UINT64_C(1) << TW_CAPTURE_CALL | UINT64_C(1) << TW_CAPTURE_RETURN_FROM |
		  UINT64_C(1) << TW_CAPTURE_EXCEPTION_FROM | UINT64_C(1) << TW_CAPTURE_SEND |
		  UINT64_C(1) << TW_CAPTURE_SEND_TO_NON_EXISTING_PROCESS | UINT64_C(1) << TW_CAPTURE_RECEIVE |
		  UINT64_C(1) << TW_CAPTURE_SWITCH | UINT64_C(1) << TW_CAPTURE_LOSS);
	sqlite3_str *text = sqlite3_str_new(sql->db);
	const char *comma = "";
	if (tw_sql_make_places(sql)) {
		sqlite3_free(sqlite3_str_finish(text));
		return NULL;
	}
	sqlite3_str_appendall(text, "CREATE TABLE events AS SELECT * FROM capture_events WHERE kind IN (");
	for (unsigned kind = 0; kind < 64; kind++) {
		const struct tw_print_kind *row = tw_print_kind(kind);
		if (!sql->places.kinds[kind] || !(others >> kind & 1))
			continue;
		sqlite3_str_appendf(text, "%s%Q", comma, row && kind < 63 ? row->word : "event");
		comma = ",";
	}
	sqlite3_str_appendall(text, ");");
	return sqlite3_str_finish(text);
}

static int store_events(struct tw_sql *sql)
{
	char *events = other_kinds(sql);
	int code = events ? sqlite3_exec(sql->db, events, NULL, NULL, NULL) : SQLITE_NOMEM;
	sqlite3_free(events);
	return code;
}

int tw_sql_store(struct tw_sql *sql)
{
	/* A thread's pid says no more than its row. */
	char *calls = sqlite3_mprintf(
		"INSERT INTO call SELECT id, start, duration, nullif(self, duration), nullif(ended, 'returned'), thread_id, %s, function_id,"
		" id - parent, depth, args, result, errno, ran, preempted, off, in_locks, lock, lock_holder FROM capture_calls;",
		tw_processes_are_declared(sql->capture) ? "pid" : "NULL");
	int code = calls ? sqlite3_exec(sql->db, before, NULL, NULL, NULL) : SQLITE_NOMEM;
	if (code == SQLITE_OK)
		code = sqlite3_exec(sql->db, calls, NULL, NULL, NULL);
	if (code == SQLITE_OK)
		code = store_events(sql);
	if (code == SQLITE_OK)
		code = sqlite3_exec(sql->db, after, NULL, NULL, NULL);
	sqlite3_free(calls);
	return code;
}
