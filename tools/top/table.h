/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.h - numbers of calls by function and thread, as a stream brings them, and rows of them in order.
 *
 * Threads  the command's.
 */
#ifndef TW_TOOLS_TOP_TABLE_H
#define TW_TOOLS_TOP_TABLE_H

#include "base/map.h"

#include "tracewheel/counts.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The bytes of a row as text, and of its name. */
#define TW_TOP_LINE_BYTES   1024
#define TW_TOP_FILTER_BYTES 64

/* Which results count as errors: a comparison with 0. */
enum tw_top_errors {
	TW_TOP_NO_ERRORS,
	TW_TOP_LESS,
	TW_TOP_LESS_OR_ZERO,
	TW_TOP_ZERO,
	TW_TOP_NOT_ZERO,
	TW_TOP_MORE_OR_ZERO,
	TW_TOP_MORE
};

/* In the order in which the key s goes through them. */
enum tw_top_order { TW_TOP_BY_RATE, TW_TOP_BY_CALLS, TW_TOP_BY_TIME, TW_TOP_BY_ERRORS, TW_TOP_BY_NAME, TW_TOP_ORDERS };

struct tw_top_sums {
	uint64_t calls, errors;
	uint64_t ns; /* of calls that have returned, with what they called */
};

/* Of one place, thread and process image. */
struct tw_top_cell {
	uint32_t image, place_id, name;
	uint64_t lease;
	char thread[48];
	struct tw_top_sums now, before, base;
};

struct tw_top_name {
	char *text;
	const struct tw_capture_function *function;
};

/* A function, or a function on a thread. */
struct tw_top_row {
	const struct tw_top_cell *cell;
	const char *name;
	const struct tw_capture_function *function;
	struct tw_top_sums all;	 /* since the beginning, or the last reset */
	struct tw_top_sums last; /* in the last round */
};

/* Zeroed at first, but what the user chose. */
struct tw_top {
	bool has_times;
	enum tw_top_errors errors;
	bool is_by_thread;
	enum tw_top_order order;
	char filter[TW_TOP_FILTER_BYTES]; /* names contain it; "": all */
	struct tw_map cells_by_key, names_by_text;
	struct tw_top_cell *cells;
	uint32_t cell_count, cell_capacity;
	struct tw_top_name *names;
	uint32_t name_count, name_capacity;
	struct tw_top_row *rows;
	uint32_t row_count, row_capacity; /* in order */
	struct tw_top_sums all, last;	  /* of all functions */
	uint64_t begun_ns, now_ns, before_ns;
	bool has_ended;
};

/* "result < 0" and the like; TW_TOP_NO_ERRORS: it is something else. */
enum tw_top_errors tw_top_errors_of(const char *text);
/* The word of an order, and the order of a word; TW_TOP_ORDERS: none. */
const char *tw_top_order_name(enum tw_top_order order);
enum tw_top_order tw_top_order_named(const char *name);
/* Is it an order of what is asked for? */
bool tw_top_has_order(const struct tw_top *top, enum tw_top_order order);

/*
 * tw_top_update - take in what the stream has brought, as the state of @now_ns; 0: of the end of the stream, now.
 *
 * Returns 0 or TW_ENOMEM.
 */
int tw_top_update(struct tw_top *top, const struct tw_capture *capture, uint64_t now_ns);
/* Makes rows again, after a choice has changed. Returns 0 or TW_ENOMEM. */
int tw_top_arrange(struct tw_top *top);
/* Numbers are those from now on. */
void tw_top_reset(struct tw_top *top);
/* Seconds of the last round, and of all. */
double tw_top_seconds(const struct tw_top *top);
double tw_top_all_seconds(const struct tw_top *top);
/* The line of titles, a row, and the sentence above both; each returns @text. */
const char *tw_top_titles(const struct tw_top *top, char text[TW_TOP_LINE_BYTES]);
const char *tw_top_line(const struct tw_top *top, const struct tw_top_row *row, char text[TW_TOP_LINE_BYTES]);
const char *tw_top_head(const struct tw_top *top, char text[TW_TOP_LINE_BYTES]);
void tw_top_free(struct tw_top *top);

#endif
