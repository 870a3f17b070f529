/* SPDX-License-Identifier: Apache-2.0 */
/* slowest.c - in which segments functions had their slowest calls. */
#include "fleet/ask.h"
#include "base/grow.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>

/* A row holds the histogram of its function. */
#define ROWS_MAX 10000

static void free_row(struct tw_fleet_slow *row)
{
	if (row) {
		free(row->sum.name);
		free(row->sum.bins);
	}
	free(row);
}

void tw_fleet_slowest_free(struct tw_fleet_slowest *slowest)
{
	for (size_t i = 0; i < slowest->count; i++)
		free_row(slowest->rows[i]);
	free(slowest->rows);
	*slowest = (struct tw_fleet_slowest){0};
}

static struct tw_fleet_slow *make_row(const struct tw_fleet_segment *segment, uint32_t before,
				      const struct tw_fleet_sum *sum)
{
	struct tw_fleet_slow *row = calloc(1, sizeof *row);
	if (!row)
		return NULL;
	*row = (struct tw_fleet_slow){.sum = *sum,
				      .image = segment->image,
				      .before = before,
				      .from_ns = segment->from_ns,
				      .to_ns = segment->to_ns};
	row->sum.name = strdup(sum->name);
	row->sum.bins = sum->timed ? malloc(TW_FLEET_BINS * sizeof *sum->bins) : NULL;
	snprintf(row->key, sizeof row->key, "%s", segment->key);
	if (!row->sum.name || (sum->timed && !row->sum.bins)) {
		free_row(row);
		return NULL;
	}
	if (sum->timed)
		memcpy(row->sum.bins, sum->bins, TW_FLEET_BINS * sizeof *sum->bins);
	return row;
}

/* The order does not depend on that in which summaries are read. */
static int compare(const struct tw_fleet_rows *rows, const struct tw_fleet_sum *sum,
		   const struct tw_fleet_segment *segment, const struct tw_fleet_slow *row)
{
	const struct tw_fleet_sum *other = &row->sum;
	int order = tw_table_compare(rows->slowest->column, &sum, &other);
	order = order ? order : strcmp(segment->key, row->key);
	order = order ? order : strcmp(sum->name, other->name);
	return order ? order : strcmp(rows->images[segment->image].node, rows->images[row->image].node);
}

bool tw_fleet_slowest_take(struct tw_fleet_rows *rows, const struct tw_fleet_segment *segment, uint32_t before,
			   const struct tw_fleet_sum *sum)
{
	struct tw_fleet_slowest *slowest = rows->slowest;
	if (slowest->functions && fnmatch(slowest->functions, sum->name, 0) != 0)
		return true;
	slowest->matching++;
	if (!sum->timed)
		return true;
	if (slowest->count == slowest->most && compare(rows, sum, segment, slowest->rows[slowest->count - 1]) > 0)
		return true;
	struct tw_fleet_slow *row = make_row(segment, before, sum);
	if (!row || !tw_grow_one(slowest->rows, slowest->count)) {
		free_row(row);
		return false;
	}
	if (slowest->count == slowest->most)
		free_row(slowest->rows[--slowest->count]);
	size_t at = slowest->count++;
	for (; at && compare(rows, sum, segment, slowest->rows[at - 1]) < 0; at--)
		slowest->rows[at] = slowest->rows[at - 1];
	slowest->rows[at] = row;
	return true;
}

/* ---- the answer ---- */

/* The key that `fetch --key` takes. */
static void put_key(const struct tw_fleet_slow *row, char text[TW_SEGMENT_KEY_BYTES + 16])
{
	if (row->before)
		snprintf(text, TW_SEGMENT_KEY_BYTES + 16, "%s+%u", row->key, row->before);
	else
		snprintf(text, TW_SEGMENT_KEY_BYTES + 16, "%s", row->key);
}

static void put_table(const struct tw_fleet_ask *ask, const struct tw_fleet_slowest *slowest)
{
	char key[TW_SEGMENT_KEY_BYTES + 16];
	struct tw_table_shape shape;
	tw_table_fit(&tw_fleet_columns, tw_terminal_columns(1), slowest->column, &shape);
	tw_table_titles(&tw_fleet_out, &shape);
	tw_out_text(&tw_fleet_out, "  function, node and key\n");
	for (size_t i = 0; i < slowest->count; i++) {
		const struct tw_fleet_slow *row = slowest->rows[i];
		put_key(row, key);
		tw_table_cells(&tw_fleet_out, &shape, &row);
		tw_fleet_put_name(row->sum.name);
		tw_out_text(&tw_fleet_out, "    ");
		tw_out_name(&tw_fleet_out, ask->rows.images[row->image].node);
		tw_out_format(&tw_fleet_out, " %s\n", key);
	}
}

static void put_json(const struct tw_fleet_ask *ask, const struct tw_fleet_slowest *slowest,
		     const struct tw_fleet_whole *whole)
{
	struct tw_json json = {.out = &tw_fleet_out, .is_spread = true};
	char key[TW_SEGMENT_KEY_BYTES + 16];
	tw_json_open(&json, NULL, '{');
	tw_fleet_put_json_whole(&json, whole);
	tw_json_open(&json, "slowest", '[');
	for (size_t i = 0; i < slowest->count; i++) {
		const struct tw_fleet_slow *row = slowest->rows[i];
		const struct tw_fleet_image *image = &ask->rows.images[row->image];
		put_key(row, key);
		tw_json_open(&json, NULL, '{');
		tw_json_string(&json, "name", row->sum.name);
		tw_table_json(&json, &tw_fleet_columns, tw_fleet_columns.count, &row);
		tw_json_string(&json, "node", image->node);
		tw_json_u64(&json, "process_id", image->process);
		tw_json_string(&json, "program", image->program);
		tw_json_string(&json, "key", key);
		tw_json_u64(&json, "from", row->from_ns);
		tw_json_u64(&json, "to", row->to_ns);
		tw_json_close(&json, '}');
	}
	tw_json_close(&json, ']');
	tw_json_close(&json, '}');
}

void tw_fleet_slowest_begin(struct tw_fleet_ask *ask, struct tw_fleet_slowest *slowest)
{
	const char *sort = ask->sort ? ask->sort : "max";
	*slowest = (struct tw_fleet_slowest){.most = ask->top && ask->top < ROWS_MAX ? ask->top : ROWS_MAX,
					     .functions = ask->functions,
					     .column = tw_table_column(&tw_fleet_columns, sort, strlen(sort))};
	ask->rows.slowest = slowest;
}

int tw_fleet_slowest(struct tw_fleet_ask *ask)
{
	const struct tw_fleet_slowest *slowest = ask->rows.slowest;
	struct tw_fleet_whole whole = tw_fleet_whole_of(&ask->rows, NULL);
	if (!slowest->matching && ask->functions)
		return tw_fail("no function matches '%s'.", ask->functions);
	if (!slowest->count)
		return tw_fail("no call has a time: record with --returns.");
	if (ask->is_json) {
		put_json(ask, slowest, &whole);
	} else {
		tw_fleet_put_whole(&ask->rows, &whole);
		tw_out_text(&tw_fleet_out, "\n");
		put_table(ask, slowest);
	}
	return tw_fleet_finish(&ask->rows, &whole);
}
