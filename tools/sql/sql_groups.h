/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sql_groups.h - calls that are equal in all columns that a query uses, as one row and their number.
 *
 * Threads  one.
 * Memory   a row for each function, thread and kind of end that there is.
 */
#ifndef TW_TOOLS_SQL_GROUPS_H
#define TW_TOOLS_SQL_GROUPS_H

#include "tools/sql/sql.h"
#include "views/folds/call_rows.h"

/* Columns of `calls`. */
enum tw_call_column {
	TW_CALL_START,
	TW_CALL_DURATION,
	TW_CALL_SELF,
	TW_CALL_ENDED,
	TW_CALL_PROCESS,
	TW_CALL_THREAD,
	TW_CALL_THREAD_NAME,
	TW_CALL_PID,
	TW_CALL_MODULE,
	TW_CALL_FUNCTION,
	TW_CALL_ARGS,
	TW_CALL_RESULT,
	TW_CALL_ERRNO,
	TW_CALL_ID,
	TW_CALL_PARENT,
	TW_CALL_DEPTH,
	TW_CALL_CALLER,
	TW_CALL_RAN,
	TW_CALL_PREEMPTED,
	TW_CALL_OFF,
	TW_CALL_IN_LOCKS,
	TW_CALL_LOCK,
	TW_CALL_LOCK_HOLDER,
	TW_CALL_FUNCTION_ID,
	TW_CALL_THREAD_ID,
	TW_CALL_ARG1
};

/* By which rows can be grouped. */
#define TW_CALL_GROUPED                                                                                         \
	(UINT64_C(1) << TW_CALL_ENDED | UINT64_C(1) << TW_CALL_PROCESS | UINT64_C(1) << TW_CALL_THREAD |        \
	 UINT64_C(1) << TW_CALL_THREAD_NAME | UINT64_C(1) << TW_CALL_MODULE | UINT64_C(1) << TW_CALL_FUNCTION | \
	 UINT64_C(1) << TW_CALL_FUNCTION_ID | UINT64_C(1) << TW_CALL_THREAD_ID)
/* Those that depend on nothing but the function. */
#define TW_CALL_OF_FUNCTION \
	(UINT64_C(1) << TW_CALL_MODULE | UINT64_C(1) << TW_CALL_FUNCTION | UINT64_C(1) << TW_CALL_FUNCTION_ID)

struct tw_sql_group {
	struct tw_call_row row; /* function, stream, image, has_end and how */
	uint64_t count;
};

/* Zeroed at first. */
struct tw_sql_groups {
	struct tw_sql_group *at;
	size_t count, capacity, last;
	struct tw_map map;
};

/* Adds so many calls like this one; false: no memory. */
bool tw_sql_groups_add(struct tw_sql_groups *groups, const struct tw_call_row *row, uint64_t count);
/* By columns: a letter each, 'a' + column, or 'A' + column for the other direction. */
void tw_sql_groups_sort(struct tw_sql_groups *groups, struct tw_sql *sql, const struct tw_places *places,
			const char *columns);
void tw_sql_groups_free(struct tw_sql_groups *groups);

/* The texts of the columns `function` and `module`; NULL: nothing. */
const char *tw_sql_call_name(struct tw_sql *sql, const struct tw_places *places, uint32_t function, bool is_module);

#endif
