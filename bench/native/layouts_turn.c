/* SPDX-License-Identifier: Apache-2.0 */
/* layouts_turn.c - for layouts.py: one turn of SQL in memory, about a millisecond; returns its processor ticks. */
#include <sqlite3.h>

#include <stdlib.h>
#include <x86intrin.h>

static const char sql[] = "CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT, c INTEGER); CREATE INDEX tc ON t (c); BEGIN;"
			  "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)"
			  " INSERT INTO t SELECT i, 'row ' || i || hex(i * 7919), (i * 7919) % 1007 FROM n; COMMIT;"
			  "SELECT count(*), sum(length(b)), max(c) FROM t WHERE c BETWEEN 10 AND 500 AND b LIKE '%7%';"
			  "SELECT c % 97, count(*) FROM t GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 3;"
			  "SELECT count(*) FROM t AS x JOIN t AS y ON x.c = y.a WHERE x.a < 200;"
			  "UPDATE t SET b = b || 'x' WHERE a % 3 = 1; DELETE FROM t WHERE a % 5 = 0;"
			  "SELECT count(*), sum(length(b)) FROM t; DROP TABLE t;";

static unsigned long sum;

static int add_row(void *arg, int count, char **values, char **names)
{
	for (int i = 0; i < count; i++)
		for (const char *c = values[i] ? values[i] : "NULL"; *c; c++)
			sum = sum * 31 + (unsigned char)*c;
	return 0;
}

unsigned long TURN(void);
unsigned long TURN(void)
{
	unsigned long start = __rdtsc();
	sqlite3 *db;

	if (sqlite3_open(":memory:", &db) != SQLITE_OK || sqlite3_exec(db, sql, add_row, NULL, NULL) != SQLITE_OK)
		abort();
	sqlite3_close(db);
	return __rdtsc() - start;
}
