/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.h - a ClickHouse server, which has loaded the summaries of a store: statements by HTTP, and their answers.
 *
 * Threads  one.
 */
#ifndef TW_FLEET_ENGINE_H
#define TW_FLEET_ENGINE_H

#include "fleet/ask.h"

#define TW_FLEET_DATABASE "tracewheel"

struct tw_fleet_engine;
/* @url: "http://HOST:8123". Returns NULL after saying what is wrong. */
struct tw_fleet_engine *tw_fleet_engine_open(const char *url, const char *database);
void tw_fleet_engine_close(struct tw_fleet_engine *engine);
/*
 * tw_fleet_engine_run - one statement.
 *
 * @in_database	its names are those of the database, which must exist.
 * @out		gives: the answer, with a zero byte behind it.
 *
 * Returns false after saying what is wrong: an answer that is not whole is none.
 */
bool tw_fleet_engine_run(struct tw_fleet_engine *engine, const char *statement, bool in_database,
			 struct tw_fleet_bytes *out);
/* A clause about the engine as a sentence. */
void tw_fleet_engine_say(const struct tw_fleet_engine *engine, const char *clause);

/* The text that stands for $NAME in a statement. */
struct tw_fleet_word {
	const char *name, *text;
};

/*
 * tw_fleet_statement - a text in which words are replaced.
 *
 * @words	the last has no name.
 *
 * Returns NULL without memory; to be freed.
 */
char *tw_fleet_statement(const char *text, size_t bytes, const struct tw_fleet_word *words);
/* A string of SQL in quotes; NULL: no memory. To be freed. */
char *tw_fleet_quoted(const char *text);

/* The files of this folder: clickhouse.sql, duckdb.sql, clickhouse_ask.sql. */
extern const char tw_fleet_clickhouse_sql[], tw_fleet_duckdb_sql[], tw_fleet_clickhouse_ask_sql[];

#endif
