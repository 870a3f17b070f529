/* SPDX-License-Identifier: Apache-2.0 */
/* sql_table.c - virtual tables of SQLite: what a query limits becomes a selection of the reader. */
#include "tools/sql/sql.h"
#include "base/grow.h"
#include "views/names/names.h"
#include "views/names/payload.h"

#include "tracewheel/error.h"

#include <stdio.h>
#include <stdlib.h>

const struct tw_sql_table *const tw_sql_tables[TW_SQL_TABLES] = {&tw_sql_calls,	  &tw_sql_functions, &tw_sql_events,
								 &tw_sql_threads, &tw_sql_processes, &tw_sql_messages,
								 &tw_sql_losses,  &tw_sql_locks};

/* A virtual table, and what a module was made for. */
struct module {
	struct tw_sql *sql;
	const struct tw_sql_table *table;
	unsigned number;
};

struct table {
	sqlite3_vtab base; /* the first member */
	struct module module;
};

static int column_count(const struct tw_sql_table *table)
{
	int count = 0;
	while (table->columns[count].name)
		count++;
	return count;
}

static int connect(sqlite3 *db, void *context, int count, const char *const *arguments, sqlite3_vtab **out,
		   char **error)
{
	const struct module *module = context;
	sqlite3_str *text = sqlite3_str_new(db);
	(void)count, (void)arguments, (void)error;
	sqlite3_str_appendall(text, "CREATE TABLE x(");
	for (const struct tw_sql_column *column = module->table->columns; column->name; column++)
		sqlite3_str_appendf(text, "%s%s %s%s", column == module->table->columns ? "" : ",", column->name,
				    column->type, column->is_hidden ? " HIDDEN" : "");
	sqlite3_str_appendall(text, ")");
	char *schema = sqlite3_str_finish(text);
	int code = schema ? sqlite3_declare_vtab(db, schema) : SQLITE_NOMEM;
	sqlite3_free(schema);
	if (code != SQLITE_OK)
		return code;
	struct table *table = calloc(1, sizeof *table);
	if (!table)
		return SQLITE_NOMEM;
	table->module = *module;
	*out = &table->base;
	return SQLITE_OK;
}

static int disconnect(sqlite3_vtab *base)
{
	free(base);
	return SQLITE_OK;
}

/* ---- limits ---- */

/* One letter for each limit that is taken, in the order of its values; 0: it is not. */
static char letter_of(enum tw_sql_limit limit, unsigned char op)
{
	if (limit == TW_SQL_TIME)
		return op == SQLITE_INDEX_CONSTRAINT_GE || op == SQLITE_INDEX_CONSTRAINT_GT ? '>'
		       : op == SQLITE_INDEX_CONSTRAINT_LE				    ? '<'
		       : op == SQLITE_INDEX_CONSTRAINT_LT				    ? 'b'
		       : op == SQLITE_INDEX_CONSTRAINT_EQ				    ? '='
											    : 0;
	if (op != SQLITE_INDEX_CONSTRAINT_EQ)
		return 0;
	return limit == TW_SQL_THREAD	  ? 't'
	       : limit == TW_SQL_PROCESS  ? 'p'
	       : limit == TW_SQL_MODULE	  ? 'm'
	       : limit == TW_SQL_FUNCTION ? 'f'
	       : limit == TW_SQL_KIND	  ? 'k'
					  : 0;
}

/* Can rows come in the order that is asked for, as groups of equal ones? Then *letters says which columns it is made of. */
static bool is_ordered(const struct tw_sql_table *table, const sqlite3_index_info *index,
		       char letters[sizeof((struct tw_sql_selection *)0)->order])
{
	int count = index->nOrderBy;
	*letters = 0;
	if (!count || index->colUsed & ~table->grouped || count >= (int)sizeof((struct tw_sql_selection *)0)->order)
		return false;
	for (int i = 0; i < count; i++) {
		int column = index->aOrderBy[i].iColumn;
		if (column < 0 || !(table->grouped >> column & 1)) {
			*letters = 0;
			return false;
		}
		letters[i] = (char)((index->aOrderBy[i].desc ? 'A' : 'a') + column);
		letters[i + 1] = 0;
	}
	return true;
}

static int best_index(sqlite3_vtab *base, sqlite3_index_info *index)
{
	const struct table *table = (const struct table *)base;
	char letters[33];
	int taken = 0;
	double cost = table->module.table->open ? 1e8 : 1e3;
	for (int i = 0; i < index->nConstraint && taken < (int)sizeof letters - 1; i++) {
		int column = index->aConstraint[i].iColumn;
		enum tw_sql_limit limit = column < 0 ? TW_SQL_NO_LIMIT : table->module.table->columns[column].limit;
		char letter = letter_of(limit, index->aConstraint[i].op);
		if (!letter || !index->aConstraint[i].usable || !table->module.table->open ||
		    strcmp(sqlite3_vtab_collation(index, i), "BINARY") != 0)
			continue;
		/* All kinds of a list at once: one pass. */
		if (letter == 'k' && sqlite3_vtab_in(index, i, 1))
			letter = 'K';
		index->aConstraintUsage[i].argvIndex = taken + 1;
		letters[taken++] = letter;
		cost /= letter == '=' ? 1000 : 4;
	}
	letters[taken] = 0;
	char order[sizeof((struct tw_sql_selection *)0)->order];
	index->orderByConsumed = is_ordered(table->module.table, index, order);
	/* Distinct rows alone are wanted, where '!' stands before their order. */
	index->idxStr = sqlite3_mprintf("%llx %s;%s%s", index->colUsed, letters,
					*order && sqlite3_vtab_distinct(index) > 1 ? "!" : "", order);
	index->needToFreeIdxStr = 1;
	index->estimatedCost = cost;
	index->estimatedRows = (sqlite3_int64)cost;
	return index->idxStr ? SQLITE_OK : SQLITE_NOMEM;
}

/* On the capture's clock; what lies far outside it stays outside. */
static uint64_t clock_of(const struct tw_sql *sql, sqlite3_int64 time)
{
	if (time <= 0)
		return sql->info.zero_ns;
	return (uint64_t)time < INT64_MAX - sql->info.zero_ns ? sql->info.zero_ns + (uint64_t)time : INT64_MAX;
}

static void limit_time(struct tw_sql_cursor *cursor, char letter, sqlite3_value *value)
{
	struct tw_sql_selection *selection = &cursor->selection;
	int type = sqlite3_value_numeric_type(value);
	sqlite3_int64 time = sqlite3_value_int64(value);
	if (type != SQLITE_INTEGER && type != SQLITE_FLOAT)
		return;
	/* Times from before the first event are shown as 0. */
	uint64_t from_ns = time > 0 ? clock_of(cursor->sql, time) : 0;
	uint64_t to_ns = clock_of(cursor->sql, time) + (letter != 'b' || type == SQLITE_FLOAT || time <= 0);
	if ((letter == '>' || letter == '=') && from_ns > selection->from_ns)
		selection->from_ns = from_ns;
	if (letter != '>' && (!selection->to_ns || to_ns < selection->to_ns))
		selection->to_ns = to_ns;
}

static uint64_t kind_of(sqlite3_value *value)
{
	const char *word = sqlite3_value_type(value) == SQLITE_TEXT ? (const char *)sqlite3_value_text(value) : NULL;
	uint64_t kinds = 0;
	for (unsigned kind = 0; word && kind < 64; kind++) {
		const struct tw_print_kind *row = tw_print_kind(kind);
		if (row && kind != TW_CAPTURE_SWITCH && strcmp(row->word, word) == 0)
			kinds |= UINT64_C(1) << kind;
	}
	/* Kinds without a name of this version are from there on. */
	return word && strcmp(word, "event") == 0 ? ~UINT64_C(0) : kinds;
}

/* A word that names no kind selects this one, which no event has: losses are always read. */
#define NO_KIND (UINT64_C(1) << TW_CAPTURE_LOSS)

static void limit_kind(struct tw_sql_cursor *cursor, char letter, sqlite3_value *list)
{
	uint64_t kinds = NO_KIND;
	sqlite3_value *value;
	if (letter == 'k')
		kinds |= kind_of(list);
	for (int code = letter == 'K' ? sqlite3_vtab_in_first(list, &value) : SQLITE_DONE; code == SQLITE_OK;
	     code = sqlite3_vtab_in_next(list, &value))
		kinds |= kind_of(value);
	cursor->selection.kinds = cursor->selection.kinds ? (cursor->selection.kinds & kinds) | NO_KIND : kinds;
}

static void limit_text(char **text, sqlite3_value *value)
{
	if (sqlite3_value_type(value) != SQLITE_TEXT || *text)
		return;
	*text = strdup((const char *)sqlite3_value_text(value));
}

static void limit_number(bool *has_number, int64_t *number, sqlite3_value *value)
{
	*has_number = sqlite3_value_type(value) == SQLITE_INTEGER;
	*number = sqlite3_value_int64(value);
}

static void take_limits(struct tw_sql_cursor *cursor, const char *plan, sqlite3_value **values)
{
	char *letters;
	struct tw_sql_selection *selection = &cursor->selection;
	*selection = (struct tw_sql_selection){.columns = strtoull(plan, &letters, 16)};
	letters++;
	for (int i = 0; letters[i] != ';'; i++) {
		switch (letters[i]) {
		case 't': limit_number(&selection->has_thread, &selection->thread, values[i]); break;
		case 'p': limit_number(&selection->has_process, &selection->process, values[i]); break;
		case 'm': limit_text(&selection->module, values[i]); break;
		case 'f': limit_text(&selection->function, values[i]); break;
		case 'k':
		case 'K': limit_kind(cursor, letters[i], values[i]); break;
		default: limit_time(cursor, letters[i], values[i]);
		}
	}
	const char *order = strchr(letters, ';') + 1;
	selection->is_distinct = *order == '!';
	snprintf(selection->order, sizeof selection->order, "%s", order + selection->is_distinct);
	selection->is_grouped = *selection->order || (cursor->sql->is_weighing && cursor->table->grouped &&
						      !(selection->columns & ~cursor->table->grouped));
}

/* ---- cursors ---- */

static int code_of(struct tw_sql_cursor *cursor, int error)
{
	if (!error)
		return SQLITE_OK;
	sqlite3_free(cursor->base.pVtab->zErrMsg);
	cursor->base.pVtab->zErrMsg = sqlite3_mprintf("reading the capture failed: %s", tw_strerror(error));
	return error == TW_ENOMEM ? SQLITE_NOMEM : SQLITE_ERROR;
}

static int open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
	const struct table *table = (const struct table *)base;
	struct tw_sql_cursor *cursor = calloc(1, sizeof *cursor);
	if (!cursor)
		return SQLITE_NOMEM;
	cursor->table = table->module.table;
	cursor->sql = table->module.sql;
	*out = &cursor->base;
	return SQLITE_OK;
}

static void end_cursor(struct tw_sql_cursor *cursor)
{
	if (cursor->table->close && cursor->state)
		cursor->table->close(cursor);
	cursor->state = NULL;
	free(cursor->selection.module);
	free(cursor->selection.function);
	cursor->selection = (struct tw_sql_selection){0};
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
	end_cursor((struct tw_sql_cursor *)base);
	free(base);
	return SQLITE_OK;
}

static void clear_rows(struct tw_sql_rows *rows)
{
	for (size_t i = 0; i < rows->count; i++)
		free(rows->values[i].text);
	free(rows->values);
	*rows = (struct tw_sql_rows){0};
}

/* Rows that have the columns which were used before and now. */
static int make_rows(struct tw_sql_cursor *cursor)
{
	struct tw_sql *sql = cursor->sql;
	unsigned number = ((const struct table *)cursor->base.pVtab)->module.number;
	uint64_t columns = cursor->selection.columns | UINT64_C(1) << 63;
	int error = 0;
	cursor->rows = &sql->rows[number];
	if ((sql->made[number] & columns) != columns) {
		columns |= sql->made[number];
		sql->made[number] = 0;
		/* Other cursors that are in the midst of them go on: the same rows are made in the same order. */
		struct tw_sql_rows rows = {0};
		error = cursor->table->make(sql, columns, &rows);
		if (error) {
			clear_rows(&rows);
		} else {
			clear_rows(&sql->rows[number]);
			sql->rows[number] = rows;
			sql->made[number] = columns;
		}
	}
	cursor->is_over = error || !cursor->rows->count;
	return error;
}

static int filter(sqlite3_vtab_cursor *base, int number, const char *plan, int count, sqlite3_value **values)
{
	struct tw_sql_cursor *cursor = (struct tw_sql_cursor *)base;
	(void)number, (void)count;
	end_cursor(cursor);
	take_limits(cursor, plan, values);
	cursor->row = 0;
	cursor->is_over = false;
	if (!cursor->table->open)
		return code_of(cursor, make_rows(cursor));
	int error = cursor->table->open(cursor);
	return code_of(cursor, error ? error : cursor->table->next(cursor));
}

static int next(sqlite3_vtab_cursor *base)
{
	struct tw_sql_cursor *cursor = (struct tw_sql_cursor *)base;
	cursor->row++;
	if (cursor->table->open)
		return code_of(cursor, cursor->table->next(cursor));
	cursor->is_over = (cursor->row + 1) * (size_t)column_count(cursor->table) > cursor->rows->count;
	return SQLITE_OK;
}

static int is_over(sqlite3_vtab_cursor *base)
{
	return ((struct tw_sql_cursor *)base)->is_over;
}

static int column(sqlite3_vtab_cursor *base, sqlite3_context *context, int number)
{
	struct tw_sql_cursor *cursor = (struct tw_sql_cursor *)base;
	if (cursor->table->open) {
		cursor->table->column(cursor, context, number);
		return SQLITE_OK;
	}
	const struct tw_sql_value *value =
		&cursor->rows->values[cursor->row * (size_t)column_count(cursor->table) + (size_t)number];
	if (value->type == TW_SQL_INTEGER)
		sqlite3_result_int64(context, value->integer);
	else if (value->type == TW_SQL_TEXT)
		sqlite3_result_text(context, value->text, -1, SQLITE_TRANSIENT);
	return SQLITE_OK;
}

static int row_id(sqlite3_vtab_cursor *base, sqlite3_int64 *out)
{
	*out = (sqlite3_int64)((struct tw_sql_cursor *)base)->row;
	return SQLITE_OK;
}

int tw_sql_create(struct tw_sql *sql)
{
	/* Without xCreate: the table is there by its module's name, and in no schema. */
	static const sqlite3_module methods = {.iVersion = 1,
					       .xConnect = connect,
					       .xBestIndex = best_index,
					       .xDisconnect = disconnect,
					       .xOpen = open_cursor,
					       .xClose = close_cursor,
					       .xFilter = filter,
					       .xNext = next,
					       .xEof = is_over,
					       .xColumn = column,
					       .xRowid = row_id};
	int code = SQLITE_OK;
	for (unsigned i = 0; i < TW_SQL_TABLES && code == SQLITE_OK; i++) {
		const struct tw_sql_table *table = tw_sql_tables[i];
		char *name = sqlite3_mprintf("%s%s", sql->prefix, table->name);
		struct module *module = malloc(sizeof *module);
		if (!name || !module) {
			code = SQLITE_NOMEM;
		} else if (table->view) {
			char *query = sqlite3_mprintf(table->view, sql->prefix);
			char *view = sqlite3_mprintf("CREATE TEMP VIEW %s AS %s", name, query);
			code = view ? sqlite3_exec(sql->db, view, NULL, NULL, NULL) : SQLITE_NOMEM;
			sqlite3_free(query);
			sqlite3_free(view);
		} else {
			*module = (struct module){sql, table, i};
			code = sqlite3_create_module_v2(sql->db, name, &methods, module, free);
			module = NULL;
		}
		free(module);
		sqlite3_free(name);
	}
	return code;
}

void tw_sql_free(struct tw_sql *sql)
{
	for (unsigned i = 0; i < TW_SQL_TABLES; i++)
		clear_rows(&sql->rows[i]);
	for (uint32_t i = 0; sql->texts && i < 2 * sql->info.images; i++)
		tw_names_free(&sql->texts[i]);
	free(sql->texts);
	for (size_t i = 0; i < sql->shown_count; i++)
		free(sql->shown_names[i]);
	free(sql->shown_names);
	tw_map_fini(&sql->shown);
	tw_places_free(&sql->places);
}

/* ---- values of rows ---- */

static struct tw_sql_value *add_value(struct tw_sql_rows *rows)
{
	if (!tw_grow(rows->values, rows->count, rows->capacity))
		return NULL;
	rows->values[rows->count] = (struct tw_sql_value){0};
	return &rows->values[rows->count++];
}

bool tw_sql_integer_if(struct tw_sql_rows *rows, bool is_known, uint64_t number)
{
	struct tw_sql_value *value = add_value(rows);
	if (value && is_known) {
		value->type = TW_SQL_INTEGER;
		value->integer = (int64_t)number;
	}
	return value;
}

bool tw_sql_integer(struct tw_sql_rows *rows, uint64_t number)
{
	return tw_sql_integer_if(rows, true, number);
}

bool tw_sql_text(struct tw_sql_rows *rows, const char *text)
{
	struct tw_sql_value *value = add_value(rows);
	if (!value || !text || !*text)
		return value;
	value->text = strdup(tw_utf8_text(text));
	value->type = value->text ? TW_SQL_TEXT : TW_SQL_NULL;
	return value->text;
}
