/* SPDX-License-Identifier: Apache-2.0 */
/* sql_output.c - rows of a query as a table, CSV, JSON or lines; the schema. */
#include "tools/sql/sql.h"
#include "views/output/table.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The width of columns follows from so many rows. */
#define ROWS_AHEAD 1000
/* The most characters of a value on a terminal. */
#define SHOWN_MAX 60

/* ---- aligned ---- */

struct aligned {
	struct tw_out *out;
	char **cells; /* of the rows that wait for the widths */
	bool *is_number;
	int *widths;
	int columns;
	size_t rows;
	bool is_cut, has_widths;
};

static int characters(const char *text)
{
	int count = 0;
	for (; *text; text++)
		count += ((unsigned char)*text & 0xc0) != 0x80;
	return count;
}

static void put_cell(const struct aligned *aligned, int column, const char *text, bool is_right)
{
	int blanks = aligned->widths[column] - characters(text);
	bool is_last = column == aligned->columns - 1;
	if (column)
		tw_out_text(aligned->out, "  ");
	for (int i = 0; i < blanks && is_right; i++)
		tw_out_text(aligned->out, " ");
	tw_out_text(aligned->out, text);
	for (int i = 0; i < blanks && !is_right && !is_last; i++)
		tw_out_text(aligned->out, " ");
}

static void put_waiting(struct aligned *aligned, sqlite3_stmt *statement)
{
	if (!aligned->has_widths) {
		for (int i = 0; i < aligned->columns; i++) {
			const char *name = sqlite3_column_name(statement, i);
			aligned->widths[i] = characters(name);
			for (size_t row = 0; row < aligned->rows; row++) {
				int width = characters(aligned->cells[row * (size_t)aligned->columns + (size_t)i]);
				aligned->widths[i] = width > aligned->widths[i] ? width : aligned->widths[i];
			}
		}
		for (int i = 0; i < aligned->columns; i++)
			put_cell(aligned, i, sqlite3_column_name(statement, i), aligned->is_number[i]);
		tw_out_text(aligned->out, "\n");
		aligned->has_widths = true;
	}
	for (size_t i = 0; i < aligned->rows * (size_t)aligned->columns; i++) {
		int column = (int)(i % (size_t)aligned->columns);
		put_cell(aligned, column, aligned->cells[i], aligned->is_number[column]);
		if (column == aligned->columns - 1)
			tw_out_text(aligned->out, "\n");
		free(aligned->cells[i]);
	}
	aligned->rows = 0;
}

/* The text as a terminal may have it, to be freed; of more than `most` characters their beginning. NULL: no memory. */
static char *shown(const char *text, int most)
{
	size_t bytes = strlen(text), used = 0, piece;
	char *clean = malloc(bytes * TW_CLEAN_PIECE_BYTES + 3);
	int count = 0;
	for (size_t at = 0; clean && at < bytes; count++) {
		if (count == most - 2) {
			memcpy(clean + used, "..", 2);
			used += 2;
			break;
		}
		at += tw_clean_piece(text + at, bytes - at, clean + used, &piece);
		used += piece;
	}
	if (clean)
		clean[used] = 0;
	return clean;
}

static bool add_aligned(struct aligned *aligned, sqlite3_stmt *statement)
{
	if (aligned->rows == ROWS_AHEAD)
		put_waiting(aligned, statement);
	for (int i = 0; i < aligned->columns; i++) {
		int type = sqlite3_column_type(statement, i);
		const char *text = (const char *)sqlite3_column_text(statement, i);
		char *cell = shown(text ? text : "", aligned->is_cut ? SHOWN_MAX : INT_MAX);
		if (!cell)
			return false;
		aligned->cells[aligned->rows * (size_t)aligned->columns + (size_t)i] = cell;
		if (!aligned->has_widths)
			aligned->is_number[i] |= type == SQLITE_INTEGER || type == SQLITE_FLOAT;
	}
	aligned->rows++;
	return true;
}

static int show_aligned(sqlite3_stmt *statement, struct tw_out *out)
{
	int columns = sqlite3_column_count(statement), code = SQLITE_NOMEM;
	struct aligned aligned = {.out = out,
				  .columns = columns,
				  .cells = calloc((size_t)columns * ROWS_AHEAD + 1, sizeof(char *)),
				  .is_number = calloc((size_t)columns + 1, sizeof(bool)),
				  .widths = calloc((size_t)columns + 1, sizeof(int)),
				  .is_cut = isatty(STDOUT_FILENO)};
	if (aligned.cells && aligned.is_number && aligned.widths) {
		while ((code = sqlite3_step(statement)) == SQLITE_ROW && !out->error &&
		       add_aligned(&aligned, statement))
			;
		if (columns)
			put_waiting(&aligned, statement);
	}
	free(aligned.cells);
	free(aligned.is_number);
	free(aligned.widths);
	return code == SQLITE_ROW ? out->error ? SQLITE_DONE : SQLITE_NOMEM : code;
}

/* ---- row by row ---- */

static void put_csv_text(struct tw_out *out, const char *text, bool is_terminal)
{
	char *clean = is_terminal ? shown(text, INT_MAX) : NULL;
	if (!is_terminal || clean)
		tw_table_csv_text(out, clean ? clean : text);
	free(clean);
}

static void put_csv(struct tw_out *out, sqlite3_stmt *statement, bool is_terminal)
{
	for (int i = 0; i < sqlite3_column_count(statement); i++) {
		int type = sqlite3_column_type(statement, i);
		tw_out_text(out, i ? "," : "");
		if (type == SQLITE_INTEGER || type == SQLITE_FLOAT)
			tw_out_text(out, (const char *)sqlite3_column_text(statement, i));
		else if (type != SQLITE_NULL)
			put_csv_text(out, (const char *)sqlite3_column_text(statement, i), is_terminal);
	}
	tw_out_text(out, "\n");
}

static void put_json(struct tw_out *out, sqlite3_stmt *statement)
{
	for (int i = 0; i < sqlite3_column_count(statement); i++) {
		int type = sqlite3_column_type(statement, i);
		const char *name = sqlite3_column_name(statement, i),
			   *text = (const char *)sqlite3_column_text(statement, i);
		tw_out_text(out, i ? "," : "{");
		tw_json_quote(out, name, strlen(name));
		tw_out_text(out, ":");
		if (!text)
			tw_out_text(out, "null");
		else if (type == SQLITE_INTEGER || (type == SQLITE_FLOAT && !strchr(text, 'n')))
			tw_out_text(out, text);
		else
			tw_json_quote(out, text, (size_t)sqlite3_column_bytes(statement, i));
	}
	tw_out_text(out, "}\n");
}

static void put_lines(struct tw_out *out, sqlite3_stmt *statement, bool is_first)
{
	int width = 0;
	for (int i = 0; i < sqlite3_column_count(statement); i++) {
		int count = characters(sqlite3_column_name(statement, i));
		width = count > width ? count : width;
	}
	tw_out_text(out, is_first ? "" : "\n");
	for (int i = 0; i < sqlite3_column_count(statement); i++) {
		const char *text = (const char *)sqlite3_column_text(statement, i);
		tw_out_format(out, "%*s = ", width, sqlite3_column_name(statement, i));
		if (text)
			tw_out_clean(out, text, strlen(text));
		tw_out_text(out, "\n");
	}
}

int tw_sql_show(sqlite3_stmt *statement, enum tw_sql_mode mode, struct tw_out *out)
{
	int code = SQLITE_DONE;
	bool is_first = true, is_terminal = isatty(out->fd);
	if (mode == TW_SQL_ALIGNED)
		return show_aligned(statement, out);
	for (int i = 0; mode == TW_SQL_CSV && i < sqlite3_column_count(statement); i++) {
		tw_out_text(out, i ? "," : "");
		tw_out_text(out, sqlite3_column_name(statement, i));
		if (i + 1 == sqlite3_column_count(statement))
			tw_out_text(out, "\n");
	}
	while (!out->error && (code = sqlite3_step(statement)) == SQLITE_ROW) {
		if (mode == TW_SQL_CSV)
			put_csv(out, statement, is_terminal);
		else if (mode == TW_SQL_JSON)
			put_json(out, statement);
		else
			put_lines(out, statement, is_first);
		is_first = false;
	}
	return out->error ? SQLITE_DONE : code;
}

/* ---- schema ---- */

void tw_sql_put_schema(struct tw_out *out, const char *name)
{
	for (unsigned i = 0; i < TW_SQL_TABLES; i++) {
		const struct tw_sql_table *table = tw_sql_tables[i];
		if (*name && strcmp(name, table->name) != 0)
			continue;
		tw_out_format(out, "%s-- %s\nCREATE TABLE %s(\n", i && !*name ? "\n" : "", table->help, table->name);
		for (const struct tw_sql_column *column = table->columns; column->name; column++) {
			const char *comma = column[1].name ? "," : "";
			tw_out_format(out, "  %s%s%s%s%s%s%s%s\n", column->name, *column->type ? " " : "", column->type,
				      column->is_hidden ? " HIDDEN" : "", comma, *column->help ? " -- " : "",
				      column->help, *column->help ? "" : "");
		}
		tw_out_text(out, ");\n");
	}
}
