/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.h - tables of views: a column is one row of an array.
 *
 * It gives the column of the screen, the member of JSON, the field of CSV, and the key of `--sort` and `--columns`. Rows are
 * whatever a view has; a column's cell() reads one.
 */
#ifndef TW_VIEWS_TABLE_H
#define TW_VIEWS_TABLE_H

#include "views/output/output.h"

/*
 * The unit of a value: a number as it is, bytes, ns (in JSON and CSV seconds), ns everywhere, or a part of a whole from 0 to 1; changes are an
 * int64_t in value, sorted by their size.
 */
enum tw_unit {
	TW_UNIT_COUNT,
	TW_UNIT_BYTES,
	TW_UNIT_DURATION,
	TW_UNIT_NS,
	TW_UNIT_SHARE,
	TW_UNIT_COUNT_CHANGE,
	TW_UNIT_DURATION_CHANGE
};

struct tw_cell {
	uint64_t value;
	double share;	 /* of TW_UNIT_SHARE */
	bool is_unknown; /* the screen shows -, CSV nothing */
	char mark;	 /* the screen shows it before the value; 0: nothing */
};

struct tw_column {
	const char *key, *title;
	enum tw_unit unit;
	int width;	  /* on the screen, with the blanks before it */
	int place;	  /* from the left, from 1; 0: only if asked for */
	int from_columns; /* narrower screens leave it out, unless the table is sorted by it */
	bool is_summed;	  /* rows that are not shown have a sum */
	struct tw_cell (*cell)(const void *row);
	bool is_optional; /* JSON has no member for an unknown value, else 0 */
};

struct tw_table {
	const struct tw_column *columns;
	unsigned count;
};

/* The columns that are shown, from the left. */
#define TW_TABLE_COLUMNS_MAX 32
struct tw_table_shape {
	const struct tw_column *columns[TW_TABLE_COLUMNS_MAX];
	unsigned count;
	int width; /* of all */
};

/* NULL: the table has no such column. */
const struct tw_column *tw_table_column(const struct tw_table *table, const char *key, size_t bytes);
/* "total, self and calls" for a sentence that lists the keys; of those shown by default, or of all. Returns text. */
const char *tw_table_keys(const struct tw_table *table, bool is_all, char *text, size_t capacity);
/* The columns for a screen of this width. sort: NULL: none of them. */
void tw_table_fit(const struct tw_table *table, int columns, const struct tw_column *sort,
		  struct tw_table_shape *shape);
/* The columns with these keys, separated by commas. Returns NULL, or the first that the table does not have. */
const char *tw_table_choose(const struct tw_table *table, const char *keys, struct tw_table_shape *shape);
/* The largest value first; 0: equal. */
int tw_table_compare(const struct tw_column *column, const void *a, const void *b);

/* Each without the end of the line: names follow. */
void tw_table_titles(struct tw_out *out, const struct tw_table_shape *shape);
void tw_table_cells(struct tw_out *out, const struct tw_table_shape *shape, const void *row);
/* Sums over `count` rows of so many bytes, up to the last column that has one. */
void tw_table_sums(struct tw_out *out, const struct tw_table_shape *shape, const void *rows, size_t count,
		   size_t bytes);
/* Members of an object, of `count` columns of the table from the first on. */
void tw_table_json(struct tw_json *json, const struct tw_table *table, unsigned count, const void *row);
/* ",calls,total" and ",12,0.000001250": the fields behind a name. */
void tw_table_csv_titles(struct tw_out *out, const struct tw_table *table);
void tw_table_csv(struct tw_out *out, const struct tw_table *table, const void *row);
/* A field of CSV in quotes (RFC 4180). */
void tw_table_csv_text(struct tw_out *out, const char *text);

#endif
