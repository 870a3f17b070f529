/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_work.c - SQLite at work in memory: reads SQL, runs it, prints a checksum of all rows.
 *
 *	sqlite_work [times] < work.sql
 *
 * One checksum per run, so that a tracer that disturbs the program is noticed. With `times` a line as of bench/peers/calls.c follows: one
 * run, and the nanoseconds that it took of the processor and of the clock.
 */
#include <sqlite3.h>

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int add_row(void *arg, int count, char **values, char **names)
{
	uint64_t *sum = arg;

	(void)names;
	for (int i = 0; i < count; i++)
		for (const char *c = values[i] ? values[i] : "NULL"; *c; c++)
			*sum = (*sum ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
	return 0;
}

static char *read_all(FILE *file)
{
	size_t bytes = 0, capacity = 1 << 16;
	char *text = malloc(capacity);

	while (text) {
		size_t got = fread(text + bytes, 1, capacity - bytes - 1, file);

		if (got == 0)
			break;
		bytes += got;
		if (capacity - bytes < 2)
			text = realloc(text, capacity *= 2);
	}
	if (text)
		text[bytes] = '\0';
	return text;
}

static uint64_t now_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

int main(int argc, char **argv)
{
	uint64_t sum = UINT64_C(0xcbf29ce484222325), clock = now_ns(CLOCK_MONOTONIC),
		 processor = now_ns(CLOCK_PROCESS_CPUTIME_ID);
	char *sql = read_all(stdin), *error = NULL;
	sqlite3 *db;

	if (!sql || sqlite3_open(":memory:", &db) != SQLITE_OK)
		return 2;
	if (sqlite3_exec(db, sql, add_row, &sum, &error) != SQLITE_OK) {
		fprintf(stderr, "sqlite_work: %s\n", error);
		return 1;
	}
	printf("%016" PRIx64 "\n", sum);
	sqlite3_close(db);
	if (argc > 1 && !strcmp(argv[1], "times"))
		printf("1 1 %" PRIu64 " %" PRIu64 "\n", now_ns(CLOCK_PROCESS_CPUTIME_ID) - processor,
		       now_ns(CLOCK_MONOTONIC) - clock);
	free(sql);
	return 0;
}
