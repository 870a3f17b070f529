/* SPDX-License-Identifier: Apache-2.0 */
/* catalog_counts.c - numbers of calls that are counted and not recorded. */
#include "base/error.h"
#include "base/grow.h"
#include "base/limits.h"
#include "base/map.h"
#include "pipeline/format/catalog_inside.h"
#include "pipeline/format/definitions.h"
#include "tracewheel/counts.h"

#include <stdlib.h>
#include <string.h>

int tw_catalog_counted(struct tw_catalog *catalog, struct tw_catalog_input *input)
{
	struct tw_def_longer def = {0};
	struct tw_catalog_counted *counted;
	bool has_more;

	if (!tw_catalog_take(input, &def.counted, sizeof def.counted))
		return TW_EFORMAT;
	has_more = input->left;
	if (has_more && !tw_catalog_take(input, &def.longer_ns, sizeof def.longer_ns))
		return TW_EFORMAT;
	counted = calloc(1, sizeof *counted + input->left + 1);
	if (!counted)
		return TW_ENOMEM;
	counted->place_id = def.counted.place_id;
	counted->since_ticks = def.counted.since_ticks;
	counted->has_children = def.longer_ns & TW_DEF_LONGER_CHILDREN;
	counted->is_child = def.longer_ns & TW_DEF_LONGER_CHILD_ONLY;
	counted->longer_ns = def.longer_ns & ~(TW_DEF_LONGER_CHILDREN | TW_DEF_LONGER_CHILD_ONLY);
	counted->has_condition = has_more && !counted->longer_ns && !counted->is_child;
	tw_catalog_take(input, counted->condition, input->left);
	return tw_catalog_add_or_free(&catalog->counted, counted->place_id, counted, 0, free);
}

/* An item of catalog->counts. */
struct count {
	struct tw_capture_count shown; /* the difference of: */
	uint64_t calls, recorded;
};

/* Of a thread and a place; a row's number and that of a place are far below the halves. */
static int add_count(struct tw_catalog *catalog, const struct tw_def_counts *def, const struct tw_def_count *pair,
		     bool is_recorded)
{
	struct count count = {
		.shown = {.place_id = (uint32_t)pair->place_id, .tracee_id = def->tracee_id, .lease = def->lease}};
	uint64_t key = def->lease << 32 | count.shown.place_id;
	uint32_t at = tw_map_get(&catalog->counts.by_id, key);
	struct count *known = at == TW_MAP_NONE ? &count : catalog->counts.items[at];
	uint64_t *number = is_recorded ? &known->recorded : &known->calls;

	if (*number < pair->count)
		*number = pair->count;
	known->shown.count = known->calls > known->recorded ? known->calls - known->recorded : 0;
	return at == TW_MAP_NONE ? tw_catalog_add_copy(&catalog->counts, key, known, sizeof *known) : 0;
}

int tw_catalog_counts(struct tw_catalog *catalog, struct tw_catalog_input *input, bool are_recorded)
{
	struct tw_def_counts def;
	struct tw_def_count pair;
	int error = 0;

	if (!tw_catalog_take(input, &def, sizeof def))
		return TW_EFORMAT;
	for (uint32_t i = 0; i < def.pair_count && !error; i++)
		error = tw_catalog_take(input, &pair, sizeof pair) ? add_count(catalog, &def, &pair, are_recorded)
								   : TW_EFORMAT;
	return error;
}

const struct tw_capture_count *tw_catalog_next_count(const struct tw_catalog *catalog, uint32_t *at)
{
	const struct tw_capture_count *count;

	do
		count = tw_catalog_next(&catalog->counts, at);
	while (count && !count->count);
	return count;
}

static uint64_t hash_of(const struct tw_capture_aggregate *row)
{
	const struct tw_aggregation *what = &row->aggregation;
	uint64_t hash = tw_hash_word(row->lease, row->place_id | (uint64_t)row->is_rest << 32);

	hash = tw_hash_bytes(what, sizeof *what, hash);
	return tw_hash_word(tw_hash_word(hash, row->key), (uint64_t)row->number);
}

static bool are_one(const struct tw_capture_aggregate *a, const struct tw_capture_aggregate *b)
{
	return a->lease == b->lease && a->place_id == b->place_id && a->is_rest == b->is_rest && a->key == b->key &&
	       a->number == b->number && !memcmp(&a->aggregation, &b->aggregation, sizeof a->aggregation);
}

/* Adds a copy beside those with the same hash. */
static int add_row(struct tw_catalog_table *table, uint64_t hash, const struct tw_capture_aggregate *row)
{
	struct tw_capture_aggregate *item = malloc(sizeof *item);

	if (!item || !tw_grow(table->items, table->count, table->capacity) ||
	    !tw_map_add(&table->by_id, hash, table->count)) {
		free(item);
		return TW_ENOMEM;
	}
	*item = *row;
	table->items[table->count++] = item;
	return 0;
}

static int add_aggregate(struct tw_catalog *catalog, const struct tw_capture_aggregate *row)
{
	struct tw_catalog_table *table = &catalog->aggregates;
	uint64_t hash = hash_of(row);
	uint32_t at = tw_map_find(&table->by_id, hash, i, are_one(table->items[i], row));
	struct tw_capture_aggregate *known = at == TW_MAP_NONE ? NULL : table->items[at];

	if (!known)
		return add_row(table, hash, row);
	if (known->count < row->count)
		*known = *row;
	return 0;
}

int tw_catalog_aggregates(struct tw_catalog *catalog, struct tw_catalog_input *input)
{
	struct tw_capture_aggregate row = {0};
	struct tw_def_aggregates head;
	struct tw_def_aggregate def;
	int error = 0;

	if (!tw_catalog_take(input, &head, sizeof head))
		return TW_EFORMAT;
	memcpy(&row.aggregation, head.aggregation, sizeof row.aggregation);
	row.tracee_id = head.tracee_id;
	row.lease = head.lease;
	for (uint32_t i = 0; i < head.row_count && !error; i++) {
		if (!tw_catalog_take(input, &def, sizeof def))
			return TW_EFORMAT;
		row.place_id = def.place_id;
		row.is_rest = def.is_rest != 0;
		row.key = def.key;
		row.number = (int64_t)def.number;
		row.count = def.count;
		row.sum = (int64_t)def.sum;
		error = add_aggregate(catalog, &row);
	}
	return error;
}
