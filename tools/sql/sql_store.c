/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sql_store.c - a capture as a database file: the same tables, filled from the virtual ones.
 *
 * A row of `call` is small: names stand in `functions` and `threads`, NULL is what follows from other columns, and the view `calls` has
 * the columns of the virtual table.
 */
#include "tools/sql/sql.h"
#include "views/names/threads.h"

static const char *const before =
	"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE; PRAGMA cache_size = -65536; BEGIN;"
	"CREATE TABLE functions AS SELECT id, *, ran, preempted, off FROM capture_functions;"
	"CREATE UNIQUE INDEX functions_id ON functions (id);"
	"CREATE TABLE threads AS SELECT id, * FROM capture_threads;"
	"CREATE UNIQUE INDEX threads_id ON threads (id);"
	"CREATE TABLE processes AS SELECT * FROM capture_processes;"
	"CREATE TABLE locks AS SELECT * FROM capture_locks;"
	"CREATE TABLE messages AS SELECT * FROM capture_messages;"
	"CREATE TABLE losses AS SELECT * FROM capture_losses;"
	"CREATE TABLE call (id INTEGER PRIMARY KEY, start INTEGER, duration INTEGER, self INTEGER, ended TEXT, thread_id INTEGER, pid TEXT,"
	" function_id INTEGER, up INTEGER, depth INTEGER, args TEXT, result, errno TEXT, ran INTEGER, preempted INTEGER, off INTEGER);";

/* Calls, their ends, messages and losses have tables of their own. */
static const char *const after =
	"CREATE TABLE events AS SELECT * FROM capture_events WHERE kind NOT IN ('call', 'return_from', 'exception_from', 'send',"
	" 'send_to_non_existing_process', 'receive', 'lost');"
	"CREATE VIEW calls AS SELECT c.start, c.duration, coalesce(c.self, c.duration) AS self,"
	" CASE WHEN c.duration IS NOT NULL THEN coalesce(c.ended, 'returned') END AS ended,"
	" t.process, t.thread, t.thread_name, c.pid, f.module, f.function, c.args, c.result, c.errno, c.id, c.id - c.up AS parent, c.depth,"
	" (SELECT g.function FROM call p JOIN functions g ON g.id = p.function_id WHERE p.id = c.id - c.up) AS caller,"
	" c.ran, c.preempted, c.off, c.function_id, c.thread_id"
	" FROM call c LEFT JOIN functions f ON f.id = c.function_id LEFT JOIN threads t ON t.id = c.thread_id;"
	"COMMIT;";

int tw_sql_store(struct tw_sql *sql)
{
	/* A thread's pid says no more than its row. */
	char *calls = sqlite3_mprintf(
		"INSERT INTO call SELECT id, start, duration, nullif(self, duration), nullif(ended, 'returned'), thread_id, %s, function_id,"
		" id - parent, depth, args, result, errno, ran, preempted, off FROM capture_calls;",
		tw_processes_are_declared(sql->capture) ? "pid" : "NULL");
	int code = calls ? sqlite3_exec(sql->db, before, NULL, NULL, NULL) : SQLITE_NOMEM;
	if (code == SQLITE_OK)
		code = sqlite3_exec(sql->db, calls, NULL, NULL, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_exec(sql->db, after, NULL, NULL, NULL);
	sqlite3_free(calls);
	return code;
}
