/* SPDX-License-Identifier: Apache-2.0 */
/* table.c - tables of views, of which a column is one row of an array. */
#include "views/output/table.h"

#include <stdio.h>
#include <string.h>

const struct tw_column *tw_table_column(const struct tw_table *table, const char *key, size_t bytes)
{
	for (unsigned i = 0; i < table->count; i++) {
		if (strlen(table->columns[i].key) == bytes && memcmp(table->columns[i].key, key, bytes) == 0)
			return &table->columns[i];
	}
	return NULL;
}

const char *tw_table_keys(const struct tw_table *table, bool is_all, char *text, size_t capacity)
{
	const struct tw_column *last = NULL;
	size_t used = 0;
	*text = 0;
	for (unsigned i = 0; i < table->count; i++)
		last = is_all || table->columns[i].place ? &table->columns[i] : last;
	for (unsigned i = 0; i < table->count && used < capacity; i++) {
		const struct tw_column *column = &table->columns[i];
		if (is_all || column->place)
			used += (size_t)snprintf(text + used, capacity - used, "%s%s",
						 !used		  ? ""
						 : column == last ? " or "
								  : ", ",
						 column->key);
	}
	return text;
}

static void add(struct tw_table_shape *shape, const struct tw_column *column)
{
	if (shape->count == TW_TABLE_COLUMNS_MAX)
		return;
	shape->columns[shape->count++] = column;
	shape->width += column->width;
}

/* One array of columns may have what another has. */
static bool is_same(const struct tw_column *column, const struct tw_column *other)
{
	return other && strcmp(column->key, other->key) == 0;
}

void tw_table_fit(const struct tw_table *table, int columns, const struct tw_column *sort, struct tw_table_shape *shape)
{
	*shape = (struct tw_table_shape){0};
	for (int place = 1; place <= (int)table->count; place++) {
		for (unsigned i = 0; i < table->count; i++) {
			const struct tw_column *column = &table->columns[i];
			if (column->place == place && (columns >= column->from_columns || is_same(column, sort)))
				add(shape, column);
		}
	}
	if (sort && !sort->place)
		add(shape, sort);
}

const char *tw_table_choose(const struct tw_table *table, const char *keys, struct tw_table_shape *shape)
{
	*shape = (struct tw_table_shape){0};
	for (const char *key = keys; *key;) {
		size_t bytes = strcspn(key, ",");
		const struct tw_column *column = tw_table_column(table, key, bytes);
		if (!column)
			return key;
		add(shape, column);
		key += bytes + (key[bytes] == ',');
	}
	return NULL;
}

static bool is_change(enum tw_unit unit)
{
	return unit == TW_UNIT_COUNT_CHANGE || unit == TW_UNIT_DURATION_CHANGE;
}

/* How far a change is from none. */
static uint64_t size_of(uint64_t change)
{
	return (int64_t)change < 0 ? -change : change;
}

int tw_table_compare(const struct tw_column *column, const void *a, const void *b)
{
	struct tw_cell x = column->cell(a), y = column->cell(b);
	if (column->unit == TW_UNIT_SHARE)
		return (x.share < y.share) - (x.share > y.share);
	if (is_change(column->unit)) {
		x.value = size_of(x.value);
		y.value = size_of(y.value);
	}
	return (x.value < y.value) - (x.value > y.value);
}

/* ---- the screen ---- */

void tw_table_titles(struct tw_out *out, const struct tw_table_shape *shape)
{
	for (unsigned i = 0; i < shape->count; i++)
		tw_out_format(out, "%*s", shape->columns[i]->width, shape->columns[i]->title);
}

/* With a sign. */
#define FIGURE_BYTES (TW_FIGURE_BYTES + 1)

static const char *figure_of(enum tw_unit unit, const struct tw_cell *cell, char *text)
{
	if (is_change(unit)) {
		*text = (int64_t)cell->value < 0 ? '-' : cell->value ? '+' : ' ';
		(unit == TW_UNIT_COUNT_CHANGE ? tw_figure_count : tw_figure_duration)(text + 1, size_of(cell->value));
		return *text == ' ' ? text + 1 : text;
	}
	if (unit == TW_UNIT_COUNT)
		return tw_figure_count(text, cell->value);
	if (unit == TW_UNIT_BYTES)
		return tw_figure_bytes(text, cell->value);
	if (unit != TW_UNIT_SHARE)
		return tw_figure_duration(text, cell->value);
	snprintf(text, FIGURE_BYTES, "%.1f %%", cell->share * 100);
	return text;
}

void tw_table_cells(struct tw_out *out, const struct tw_table_shape *shape, const void *row)
{
	char figure[FIGURE_BYTES];
	for (unsigned i = 0; i < shape->count; i++) {
		const struct tw_column *column = shape->columns[i];
		struct tw_cell cell = column->cell(row);
		const char *text = cell.is_unknown ? "-" : figure_of(column->unit, &cell, figure);
		const char mark[2] = {cell.is_unknown ? 0 : cell.mark};
		tw_out_format(out, "%*s%s", column->width - (int)strlen(text), mark, text);
	}
}

void tw_table_sums(struct tw_out *out, const struct tw_table_shape *shape, const void *rows, size_t count, size_t bytes)
{
	char figure[FIGURE_BYTES];
	unsigned end = 0;
	for (unsigned i = 0; i < shape->count; i++)
		end = shape->columns[i]->is_summed ? i + 1 : end;
	for (unsigned i = 0; i < end; i++) {
		const struct tw_column *column = shape->columns[i];
		struct tw_cell sum = {0};
		for (size_t j = 0; j < count; j++) {
			struct tw_cell cell = column->cell((const char *)rows + j * bytes);
			sum.value += cell.value;
			sum.share += cell.share;
		}
		tw_out_format(out, "%*s", column->width,
			      column->is_summed ? figure_of(column->unit, &sum, figure) : "");
	}
}

/* ---- other programs ---- */

void tw_table_json(struct tw_json *json, const struct tw_table *table, unsigned count, const void *row)
{
	for (unsigned i = 0; i < count; i++) {
		const struct tw_column *column = &table->columns[i];
		struct tw_cell cell = column->cell(row);
		if (cell.is_unknown && column->is_optional)
			continue;
		if (column->unit == TW_UNIT_SHARE)
			tw_json_double(json, column->key, cell.share);
		else if (column->unit == TW_UNIT_COUNT_CHANGE)
			tw_json_i64(json, column->key, (int64_t)cell.value);
		else if (column->unit == TW_UNIT_DURATION_CHANGE)
			tw_json_double(json, column->key, (double)(int64_t)cell.value / 1e9);
		else if (column->unit == TW_UNIT_DURATION)
			tw_json_seconds(json, column->key, cell.value);
		else
			tw_json_u64(json, column->key, cell.value);
	}
}

void tw_table_csv_titles(struct tw_out *out, const struct tw_table *table)
{
	for (unsigned i = 0; i < table->count; i++)
		tw_out_format(out, ",%s", table->columns[i].key);
}

void tw_table_csv(struct tw_out *out, const struct tw_table *table, const void *row)
{
	for (unsigned i = 0; i < table->count; i++) {
		const struct tw_column *column = &table->columns[i];
		struct tw_cell cell = column->cell(row);
		if (cell.is_unknown)
			tw_out_text(out, ",");
		else if (column->unit == TW_UNIT_SHARE)
			tw_out_format(out, ",%.9f", cell.share);
		else if (column->unit == TW_UNIT_COUNT_CHANGE)
			tw_out_format(out, ",%lld", (long long)cell.value);
		else if (column->unit == TW_UNIT_DURATION_CHANGE)
			tw_out_format(out, ",%s%llu.%09llu", (int64_t)cell.value < 0 ? "-" : "",
				      (unsigned long long)(size_of(cell.value) / 1000000000),
				      (unsigned long long)(size_of(cell.value) % 1000000000));
		else if (column->unit == TW_UNIT_DURATION)
			tw_out_format(out, ",%llu.%09llu", (unsigned long long)(cell.value / 1000000000),
				      (unsigned long long)(cell.value % 1000000000));
		else
			tw_out_format(out, ",%llu", (unsigned long long)cell.value);
	}
}

void tw_table_csv_text(struct tw_out *out, const char *text)
{
	const char *quote;
	tw_out_text(out, "\"");
	for (; (quote = strchr(text, '"')); text = quote + 1) {
		tw_out_bytes(out, text, (size_t)(quote - text));
		tw_out_text(out, "\"\"");
	}
	tw_out_text(out, text);
	tw_out_text(out, "\"");
}
