/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sql_groups.c - calls that are equal in all columns that a query uses, one row each and their number.
 *
 * SQLite groups rows by sorting them, at some 400 ns a row.  Groups come in the wanted order instead, each as many times as it has calls, or
 * once (sql_weights.c).
 */
#include "tools/sql/sql_groups.h"
#include "base/grow.h"
#include "base/search.h"
#include "views/names/names.h"
#include "views/names/threads.h"

#include <stdlib.h>

static bool is_equal(const struct tw_call_row *one, const struct tw_call_row *other)
{
	return one->function == other->function && one->stream == other->stream && one->image == other->image &&
	       one->has_end == other->has_end && one->how == other->how;
}

bool tw_sql_groups_add(struct tw_sql_groups *groups, const struct tw_call_row *row, uint64_t count)
{
	struct tw_call_row key = {.function = row->function,
				  .stream = row->stream,
				  .image = row->image,
				  .has_end = row->has_end,
				  .how = row->how};
	if (groups->count && is_equal(&groups->at[groups->last].row, &key)) {
		groups->at[groups->last].count += count;
		return true;
	}
	uint64_t hash = tw_hash_word(tw_hash_word(key.function, (uint64_t)key.image << 32 | key.stream), key.how);
	uint32_t number = tw_map_find(&groups->map, hash, i, is_equal(&groups->at[i].row, &key));
	if (number == TW_MAP_NONE) {
		if (!tw_grow(groups->at, groups->count, groups->capacity) ||
		    !tw_map_add(&groups->map, hash, (uint32_t)groups->count))
			return false;
		number = (uint32_t)groups->count;
		groups->at[groups->count++] = (struct tw_sql_group){.row = key};
	}
	groups->at[number].count += count;
	groups->last = number;
	return true;
}

/* ---- order ---- */

struct value {
	const char *text; /* NULL: a number */
	int64_t number;
	char name[TW_THREAD_NAME_BYTES];
};

static void take_value(struct tw_sql *sql, const struct tw_places *places, const struct tw_call_row *row,
		       enum tw_call_column column, struct value *out)
{
	const struct tw_capture_stream *stream = tw_capture_stream(sql->capture, row->stream);
	const struct tw_capture_image *image = tw_capture_image(sql->capture, row->image);
	*out = (struct value){0};
	switch (column) {
	case TW_CALL_FUNCTION:
	case TW_CALL_MODULE: out->text = tw_sql_call_name(sql, places, row->function, column == TW_CALL_MODULE); break;
	case TW_CALL_ENDED: out->text = row->has_end ? tw_stacks_end_name(row->how) : NULL; break;
	case TW_CALL_PROCESS: out->number = image ? (uint32_t)image->process_id : 0; break;
	case TW_CALL_THREAD: out->number = stream ? (uint32_t)stream->thread_id : 0; break;
	case TW_CALL_THREAD_ID: out->number = stream ? stream->thread : 0; break;
	case TW_CALL_THREAD_NAME:
		if (stream && *tw_thread_name(sql->capture, stream, out->name))
			out->text = out->name;
		break;
	default: out->number = row->function;
	}
}

struct order {
	struct tw_sql *sql;
	const struct tw_places *places;
	const char *columns;
};

static int compare(const void *one, const void *other, void *context)
{
	const struct order *order = context;
	for (const char *letter = order->columns; *letter; letter++) {
		bool is_descending = *letter < 'a';
		unsigned column = (unsigned)(*letter - (is_descending ? 'A' : 'a'));
		struct value a, b;
		int result;
		take_value(order->sql, order->places, &((const struct tw_sql_group *)one)->row, column, &a);
		take_value(order->sql, order->places, &((const struct tw_sql_group *)other)->row, column, &b);
		/* A column without a value is NULL there: before all texts. */
		if (a.text && b.text)
			result = strcmp(a.text, b.text);
		else if (a.text || b.text)
			result = a.text ? 1 : -1;
		else
			result = TW_ORDER(a.number, b.number);
		if (result)
			return is_descending ? -result : result;
	}
	return 0;
}

void tw_sql_groups_sort(struct tw_sql_groups *groups, struct tw_sql *sql, const struct tw_places *places,
			const char *columns)
{
	struct order order = {sql, places, columns};
	if (groups->count)
		qsort_r(groups->at, groups->count, sizeof *groups->at, compare, &order);
}

void tw_sql_groups_free(struct tw_sql_groups *groups)
{
	tw_map_fini(&groups->map);
	free(groups->at);
	*groups = (struct tw_sql_groups){0};
}
