/* SPDX-License-Identifier: Apache-2.0 */
/* sql.c - the files of statements, in the program. */
#include "fleet/engine.h"

#define FILE_IN_PROGRAM(name, file)                                                                               \
	__asm__(".pushsection .rodata\n.global " #name "\n" #name ":\n.incbin \"" TW_FLEET_FOLDER "/" file "\"\n" \
		".byte 0\n.popsection\n")
FILE_IN_PROGRAM(tw_fleet_clickhouse_sql, "clickhouse.sql");
FILE_IN_PROGRAM(tw_fleet_clickhouse_ask_sql, "clickhouse_ask.sql");
FILE_IN_PROGRAM(tw_fleet_duckdb_sql, "duckdb.sql");
