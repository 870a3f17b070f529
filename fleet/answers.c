/* SPDX-License-Identifier: Apache-2.0 */
/* answers.c - sums over all summaries: functions, losses, nodes. */
#include "fleet/ask.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static const struct tw_column *sort_of(const struct tw_fleet_ask *ask)
{
	const char *sort = ask->sort ? ask->sort : "total";
	return tw_table_column(&tw_fleet_columns, sort, strlen(sort));
}

static int by_column(const void *a, const void *b, void *column)
{
	int order = tw_table_compare(column, a, b);
	return order ? order
		     : strcmp((*(const struct tw_fleet_sum *const *)a)->name,
			      (*(const struct tw_fleet_sum *const *)b)->name);
}

void tw_fleet_put_name(const char *name)
{
	size_t bytes = strlen(name);
	/* People see no arity where none is known. */
	bool is_bare = bytes > 2 && strcmp(name + bytes - 2, "/_") == 0;
	tw_out_text(&tw_fleet_out, "  ");
	tw_out_clean(&tw_fleet_out, name, is_bare ? bytes - 2 : bytes);
	tw_out_text(&tw_fleet_out, "\n");
}

static void put_functions(const struct tw_fleet_ask *ask, struct tw_fleet_sum *const *sums, size_t count, size_t all)
{
	char figure[TW_FIGURE_BYTES];
	struct tw_table_shape shape;
	tw_table_fit(&tw_fleet_columns, tw_terminal_columns(STDOUT_FILENO), sort_of(ask), &shape);
	tw_table_titles(&tw_fleet_out, &shape);
	tw_out_format(&tw_fleet_out, "  function (%s)\n", tw_figure_count(figure, all));
	for (size_t i = 0; i < count; i++) {
		tw_table_cells(&tw_fleet_out, &shape, &sums[i]);
		tw_fleet_put_name(sums[i]->name);
	}
	if (count == all)
		return;
	tw_table_sums(&tw_fleet_out, &shape, &sums[count], all - count, sizeof *sums);
	tw_out_format(&tw_fleet_out, "  in %s more\n", tw_figure_count(figure, all - count));
}

static void put_csv(struct tw_fleet_sum *const *sums, size_t count)
{
	tw_out_text(&tw_fleet_out, "name");
	tw_table_csv_titles(&tw_fleet_out, &tw_fleet_columns);
	tw_out_text(&tw_fleet_out, "\n");
	for (size_t i = 0; i < count; i++) {
		tw_table_csv_text(&tw_fleet_out, sums[i]->name);
		tw_table_csv(&tw_fleet_out, &tw_fleet_columns, &sums[i]);
		tw_out_text(&tw_fleet_out, "\n");
	}
}

static void put_json_functions(struct tw_json *json, struct tw_fleet_sum *const *sums, size_t count)
{
	tw_json_open(json, "by_function", '[');
	for (size_t i = 0; i < count; i++) {
		tw_json_open(json, NULL, '{');
		tw_json_string(json, "name", sums[i]->name);
		tw_table_json(json, &tw_fleet_columns, tw_fleet_columns.count, &sums[i]);
		tw_json_close(json, '}');
	}
	tw_json_close(json, ']');
}

/* ---- what all of them have ---- */

struct tw_fleet_whole tw_fleet_whole_of(const struct tw_fleet_rows *rows, const char *node)
{
	struct tw_fleet_whole whole = {.from_ns = UINT64_MAX};
	for (size_t i = 0; i < rows->image_count; i++) {
		const struct tw_fleet_image *image = &rows->images[i];
		if (node && strcmp(node, image->node) != 0)
			continue;
		whole.missing += image->missing;
		whole.missing_events += image->missing_events;
		whole.dropped += image->dropped;
		for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++) {
			whole.lost[cause] += image->lost[cause];
			whole.all_lost += image->lost[cause];
		}
		for (uint32_t j = image->first; j < image->first + image->count; j++) {
			const struct tw_fleet_segment *segment = &rows->segments[j];
			whole.segments += !segment->is_dropped;
			whole.events += segment->is_dropped ? 0 : segment->events;
			whole.damaged += segment->damaged;
			whole.from_ns = segment->from_ns < whole.from_ns ? segment->from_ns : whole.from_ns;
			whole.to_ns = segment->to_ns > whole.to_ns ? segment->to_ns : whole.to_ns;
		}
	}
	return whole;
}

void tw_fleet_put_json_whole(struct tw_json *json, const struct tw_fleet_whole *whole)
{
	tw_json_u64(json, "segments", whole->segments);
	tw_json_u64(json, "events", whole->events);
	tw_json_open(json, "lost", '{');
	for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++)
		tw_json_u64(json, tw_lost_cause_name(cause), whole->lost[cause]);
	tw_json_close(json, '}');
	tw_json_u64(json, "damaged", whole->damaged);
	tw_json_u64(json, "missing_segments", whole->missing);
	tw_json_u64(json, "dropped_segments", whole->dropped);
	tw_json_u64(json, "missing_events", whole->missing_events);
	tw_json_u64(json, "from", whole->from_ns);
	tw_json_u64(json, "to", whole->to_ns);
}

static size_t node_count(const struct tw_fleet_rows *rows)
{
	size_t count = 0;
	for (size_t i = 0; i < rows->image_count; i++) {
		size_t j = 0;
		while (j < i && strcmp(rows->images[i].node, rows->images[j].node) != 0)
			j++;
		count += j == i;
	}
	return count;
}

void tw_fleet_put_whole(const struct tw_fleet_rows *rows, const struct tw_fleet_whole *whole)
{
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES], c[TW_FIGURE_BYTES];
	tw_out_format(&tw_fleet_out, "%s in %s of %s\n", tw_figure_of(a, whole->events, "event", "events"),
		      tw_figure_of(b, whole->segments, "segment", "segments"),
		      tw_figure_of(c, node_count(rows), "node", "nodes"));
	if (whole->all_lost)
		tw_out_format(&tw_fleet_out, "LOST %s; `tracewheel fleet losses` shows where.\n",
			      tw_figure_of(a, whole->all_lost, "event", "events"));
	else
		tw_out_text(&tw_fleet_out, "Nothing was lost.\n");
	if (whole->missing)
		tw_out_format(&tw_fleet_out, "%s missing, with %s; %s of these dropped on their nodes.\n",
			      tw_figure_of(a, whole->missing, "segment is", "segments are"),
			      tw_figure_of(b, whole->missing_events, "event", "events"),
			      tw_figure_of(c, whole->dropped, "was", "were"));
}

int tw_fleet_finish(const struct tw_fleet_rows *rows, const struct tw_fleet_whole *whole)
{
	int code = tw_out_finish(&tw_fleet_out);
	return code == TW_EXIT_OK && (rows->set_aside || whole->missing) ? TW_EXIT_FAILURE : code;
}

/* ---- the questions ---- */

int tw_fleet_report(struct tw_fleet_ask *ask)
{
	struct tw_fleet_sum **sums = calloc(ask->rows.sum_count + 1, sizeof *sums);
	struct tw_fleet_whole whole = tw_fleet_whole_of(&ask->rows, NULL);
	size_t all = 0;
	if (!sums)
		return tw_fail("there is no memory.");
	for (size_t i = 0; i < ask->rows.sum_count; i++) {
		if (!ask->functions || fnmatch(ask->functions, ask->rows.sums[i].name, 0) == 0)
			sums[all++] = &ask->rows.sums[i];
	}
	if (ask->functions && !all) {
		free(sums);
		return tw_fail("no function matches '%s'.", ask->functions);
	}
	qsort_r(sums, all, sizeof *sums, by_column, (void *)sort_of(ask));
	size_t count = ask->top && ask->top < all ? ask->top : all;
	if (ask->is_json) {
		struct tw_json json = {.out = &tw_fleet_out, .is_spread = true};
		tw_json_open(&json, NULL, '{');
		tw_fleet_put_json_whole(&json, &whole);
		put_json_functions(&json, sums, count);
		tw_json_close(&json, '}');
	} else if (ask->is_csv) {
		put_csv(sums, count);
	} else {
		tw_fleet_put_whole(&ask->rows, &whole);
		tw_out_text(&tw_fleet_out, "\n");
		put_functions(ask, sums, count, all);
	}
	free(sums);
	return tw_fleet_finish(&ask->rows, &whole);
}

static void put_time(uint64_t ns)
{
	time_t seconds = (time_t)(ns / UINT64_C(1000000000));
	struct tm broken;
	char text[64] = "?";
	if (gmtime_r(&seconds, &broken))
		strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &broken);
	tw_out_text(&tw_fleet_out, text);
}

static int by_node(const void *a, const void *b, void *context)
{
	const struct tw_fleet_rows *rows = context;
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	const struct tw_fleet_image *x = &rows->images[i], *y = &rows->images[j];
	int order = strcmp(x->node, y->node);
	uint64_t from = rows->segments[x->first].from_ns, other = rows->segments[y->first].from_ns;
	order = order ? order : (x->process > y->process) - (x->process < y->process);
	return order ? order : (from > other) - (from < other);
}

/* Images by node, whatever the order in which summaries were read; to be freed. */
static uint32_t *order_of(const struct tw_fleet_rows *rows)
{
	uint32_t *order = calloc(rows->image_count + 1, sizeof *order);
	for (uint32_t i = 0; order && i < rows->image_count; i++)
		order[i] = i;
	if (order)
		qsort_r(order, rows->image_count, sizeof *order, by_node, (void *)rows);
	return order;
}

int tw_fleet_losses(struct tw_fleet_ask *ask)
{
	uint32_t *order = order_of(&ask->rows);
	if (!order)
		return tw_fail("there is no memory.");
	struct tw_fleet_whole whole = tw_fleet_whole_of(&ask->rows, NULL);
	struct tw_json json = {.out = &tw_fleet_out, .is_spread = true};
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES];
	if (ask->is_json) {
		tw_json_open(&json, NULL, '{');
		tw_fleet_put_json_whole(&json, &whole);
		tw_json_open(&json, "by_process", '[');
	} else {
		tw_fleet_put_whole(&ask->rows, &whole);
	}
	for (size_t i = 0; i < ask->rows.image_count; i++) {
		const struct tw_fleet_image *image = &ask->rows.images[order[i]];
		uint64_t lost = 0;
		for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++)
			lost += image->lost[cause];
		if (!lost && !image->missing)
			continue;
		if (!ask->is_json) {
			tw_out_name(&tw_fleet_out, image->node);
			tw_out_format(&tw_fleet_out, ", process %llu ", (unsigned long long)image->process);
			tw_out_name(&tw_fleet_out, image->program);
			tw_out_format(&tw_fleet_out, ": %s lost", tw_figure_of(a, lost, "event", "events"));
			tw_out_format(&tw_fleet_out, "; %s missing, with %s\n",
				      tw_figure_of(a, image->missing, "segment", "segments"),
				      tw_figure_of(b, image->missing_events, "event", "events"));
			continue;
		}
		tw_json_open(&json, NULL, '{');
		tw_json_string(&json, "node", image->node);
		tw_json_u64(&json, "process_id", image->process);
		tw_json_string(&json, "program", image->program);
		for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++)
			tw_json_u64(&json, tw_lost_cause_name(cause), image->lost[cause]);
		tw_json_u64(&json, "missing_segments", image->missing);
		tw_json_u64(&json, "missing_events", image->missing_events);
		tw_json_close(&json, '}');
	}
	if (ask->is_json) {
		tw_json_close(&json, ']');
		tw_json_close(&json, '}');
	}
	free(order);
	return tw_fleet_finish(&ask->rows, &whole);
}

int tw_fleet_nodes(struct tw_fleet_ask *ask)
{
	uint32_t *order = order_of(&ask->rows);
	if (!order)
		return tw_fail("there is no memory.");
	struct tw_fleet_whole all = tw_fleet_whole_of(&ask->rows, NULL);
	struct tw_json json = {.out = &tw_fleet_out, .is_spread = true};
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES];
	if (ask->is_json)
		tw_json_open(&json, NULL, '[');
	for (size_t i = 0; i < ask->rows.image_count; i++) {
		const char *node = ask->rows.images[order[i]].node;
		if (i && strcmp(node, ask->rows.images[order[i - 1]].node) == 0)
			continue;
		struct tw_fleet_whole whole = tw_fleet_whole_of(&ask->rows, node);
		if (ask->is_json) {
			tw_json_open(&json, NULL, '{');
			tw_json_string(&json, "node", node);
			tw_fleet_put_json_whole(&json, &whole);
			tw_json_close(&json, '}');
			continue;
		}
		tw_out_name(&tw_fleet_out, node);
		tw_out_format(&tw_fleet_out, ": %s in %s, ", tw_figure_of(a, whole.events, "event", "events"),
			      tw_figure_of(b, whole.segments, "segment", "segments"));
		put_time(whole.from_ns);
		tw_out_text(&tw_fleet_out, " to ");
		put_time(whole.to_ns);
		tw_out_format(&tw_fleet_out, "; %s lost, %s missing\n",
			      tw_figure_of(a, whole.all_lost, "event", "events"),
			      tw_figure_of(b, whole.missing, "segment", "segments"));
	}
	if (ask->is_json)
		tw_json_close(&json, ']');
	free(order);
	return tw_fleet_finish(&ask->rows, &all);
}
