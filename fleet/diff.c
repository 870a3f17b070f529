/* SPDX-License-Identifier: Apache-2.0 */
/* diff.c - what changed between two times, or two sets of nodes. Each node of a side is a run of it. */
#include "fleet/ask.h"
#include "views/folds/difference_table.h"
#include "base/grow.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* The sums of one node on one side. */
struct run {
	struct tw_fleet_rows rows;
	unsigned side;
	char *node;
};

struct diff {
	struct tw_fleet_span sides[TW_SIDES];
	struct run **runs;
	size_t count, capacity;
	struct tw_map by_node;
	struct tw_differences differences;
	bool has_no_memory;
};

static struct run *run_of(struct diff *diff, unsigned side, const char *node)
{
	uint64_t key = tw_hash_bytes(node, strlen(node), 1) + side;
	uint32_t known = tw_map_get(&diff->by_node, key);
	if (known != TW_MAP_NONE)
		return diff->runs[known];
	struct run *run = tw_grow(diff->runs, diff->count, diff->capacity) ? calloc(1, sizeof *run) : NULL;
	if (run && (run->node = strdup(node)) && tw_map_put(&diff->by_node, key, (uint32_t)diff->count)) {
		run->side = side;
		diff->runs[diff->count++] = run;
		return run;
	}
	if (run)
		free(run->node);
	free(run);
	diff->has_no_memory = true;
	return NULL;
}

/* A segment belongs to a side if it ended in its time; it may belong to both. */
static struct tw_fleet_rows *taking(void *context, unsigned number, const char *node, uint64_t to_ns)
{
	struct diff *diff = context;
	for (unsigned side = 0; side < TW_SIDES; side++) {
		const struct tw_fleet_span *is = &diff->sides[side];
		bool is_in =
			to_ns >= is->from_ns && to_ns < is->to_ns && (!is->node || fnmatch(is->node, node, 0) == 0);
		if (is_in && !number--) {
			struct run *run = run_of(diff, side, node);
			return run ? &run->rows : NULL;
		}
	}
	return NULL;
}

/* Of an engine, which sums by side and node. */
static struct tw_fleet_rows *rows_of(void *context, unsigned side, const char *node)
{
	struct run *run = run_of(context, side, node);
	return run ? &run->rows : NULL;
}

/* The two sides that are compared. False: that was not said. */
static bool choose_sides(struct tw_fleet_ask *ask, struct diff *diff)
{
	struct tw_fleet_span *old = &diff->sides[TW_OLD], *new = &diff->sides[TW_NEW];
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	uint64_t now_ns = ((uint64_t)now.tv_sec + 1) * UINT64_C(1000000000);
	*new = (struct tw_fleet_span){ask->rows.node, ask->rows.from_ns, ask->rows.to_ns ? ask->rows.to_ns : now_ns,
				      true};
	*old = (struct tw_fleet_span){ask->old_node ? ask->old_node : new->node, new->from_ns, new->to_ns, true};
	if (ask->old_from_ns || ask->old_to_ns || !ask->old_node) {
		uint64_t ns = new->to_ns > new->from_ns ? new->to_ns - new->from_ns : 0;
		old->to_ns = ask->old_to_ns ? ask->old_to_ns : new->from_ns;
		old->from_ns = ask->old_from_ns ? ask->old_from_ns : old->to_ns > ns ? old->to_ns - ns : 0;
	}
	if (!new->from_ns && !ask->old_node && !ask->old_from_ns)
		return tw_complain(
			"diff compares two times or two sets of nodes: --since 1h with the hour before, or --old-node 'web-*'.");
	if (new->from_ns >= new->to_ns || old->from_ns >= old->to_ns)
		return tw_complain("a time of diff ends before it begins.");
	ask->rows.node = old->node == new->node ? new->node : NULL;
	ask->rows.from_ns = old->from_ns < new->from_ns ? old->from_ns : new->from_ns;
	ask->rows.to_ns = old->to_ns > new->to_ns ? old->to_ns : new->to_ns;
	return true;
}

/* The program's name, if all nodes of a side have one program only. */
static const char *program_of(const struct diff *diff, unsigned side)
{
	const char *name = NULL;
	for (size_t i = 0; i < diff->count; i++) {
		const struct tw_fleet_rows *rows = &diff->runs[i]->rows;
		for (size_t j = 0; diff->runs[i]->side == side && j < rows->image_count; j++) {
			const char *program = rows->images[j].program;
			if (!*program || (name && strcmp(name, program) != 0))
				return NULL;
			name = program;
		}
	}
	return name;
}

static bool take_bins(struct tw_histogram *took, const struct tw_fleet_sum *sum)
{
	for (unsigned bin = 0; sum->timed && bin < TW_FLEET_BINS; bin++) {
		uint64_t value = tw_fleet_bin_middle(bin);
		value = value < sum->min_ns ? sum->min_ns : value > sum->max_ns ? sum->max_ns : value;
		if (!tw_histogram_add_many(took, value, sum->bins[bin]))
			return false;
	}
	if (sum->timed) {
		took->min = sum->min_ns;
		took->max = sum->max_ns;
	}
	return true;
}

/* False: no memory. */
static bool add_run(struct diff *diff, struct run *run, const char *functions)
{
	struct tw_differences *differences = &diff->differences;
	bool has_times = false, is_added = true;
	tw_fleet_join(&run->rows);
	for (size_t i = 0; i < run->rows.sum_count && is_added; i++) {
		const struct tw_fleet_sum *sum = &run->rows.sums[i];
		size_t bytes = strlen(sum->name);
		bool is_bare = bytes > 2 && strcmp(sum->name + bytes - 2, "/_") == 0;
		if (functions && fnmatch(functions, sum->name, 0) != 0)
			continue;
		struct tw_difference_part part = {
			.lacks_arity = is_bare,
			.side = run->side,
			.capture = differences->captures[run->side],
			.calls = sum->calls,
			.total_ns = sum->total_ns,
			.self_ns = sum->self_ns,
			.is_lossy = sum->lossy || sum->cut,
			.has_times = sum->total_ns || sum->self_ns || sum->timed,
			.self = {.value = (double)sum->self_ns},
		};
		has_times |= part.has_times;
		/* Differences have names without an arity that is not known. */
		char *name = strndup(sum->name, is_bare ? bytes - 2 : bytes);
		is_added = name && take_bins(&part.took, sum) && tw_differences_add_part(differences, name, &part);
		free(name);
	}
	differences->lacks_times |= !has_times;
	differences->captures[run->side]++;
	return is_added && !run->rows.has_no_memory;
}

static void put_side(const struct diff *diff, unsigned side, const char *title)
{
	uint64_t events = 0, lost = 0, missing = 0;
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES];
	for (size_t i = 0; i < diff->count; i++) {
		if (diff->runs[i]->side != side)
			continue;
		struct tw_fleet_whole whole = tw_fleet_whole_of(&diff->runs[i]->rows, NULL);
		events += whole.events;
		lost += whole.all_lost;
		missing += whole.missing;
	}
	tw_out_format(&tw_fleet_out, "%s  %s of %s", title, tw_figure_of(a, events, "event", "events"),
		      tw_figure_of(b, diff->differences.captures[side], "node", "nodes"));
	if (lost || missing)
		tw_out_format(&tw_fleet_out, ", LOST %s, %s missing: calls and times with losses in them have a ?",
			      tw_figure_of(a, lost, "event", "events"),
			      tw_figure_of(b, missing, "segment", "segments"));
	tw_out_text(&tw_fleet_out, ".\n");
}

static void put_screen(const struct tw_fleet_ask *ask, const struct diff *diff)
{
	const struct tw_differences *differences = &diff->differences;
	const struct tw_table table = tw_difference_table(differences);
	const char *sort = ask->sort;
	size_t shown = ask->top && ask->top < differences->count ? ask->top : differences->count;
	char figure[TW_FIGURE_BYTES];
	struct tw_table_shape shape;
	put_side(diff, TW_OLD, "old");
	put_side(diff, TW_NEW, "new");
	if (differences->captures[TW_OLD] > 1 || differences->captures[TW_NEW] > 1)
		tw_out_text(&tw_fleet_out, "Calls and times are means of a node; \"chance\" is what nodes vary by.\n");
	tw_difference_put_whole(&tw_fleet_out, differences);
	tw_out_text(&tw_fleet_out, "\n");
	if (differences->lacks_times)
		tw_table_choose(&table, "calls_change,old_calls,new_calls", &shape);
	else
		tw_table_fit(&table, tw_terminal_columns(STDOUT_FILENO),
			     sort ? tw_table_column(&table, sort, strlen(sort)) : NULL, &shape);
	tw_table_titles(&tw_fleet_out, &shape);
	tw_out_format(&tw_fleet_out, "  function (%s)\n", tw_figure_count(figure, differences->count));
	for (size_t i = 0; i < shown; i++) {
		tw_table_cells(&tw_fleet_out, &shape, &differences->rows[i]);
		tw_fleet_put_name(differences->rows[i].name);
	}
	if (shown == differences->count)
		return;
	tw_table_sums(&tw_fleet_out, &shape, differences->rows + shown, differences->count - shown,
		      sizeof *differences->rows);
	tw_out_format(&tw_fleet_out, "  in %s more\n", tw_figure_count(figure, differences->count - shown));
}

static void put_json(const struct tw_fleet_ask *ask, const struct diff *diff)
{
	static const char *const names[TW_SIDES] = {"old", "new"};
	struct tw_json json = {.out = &tw_fleet_out, .is_spread = true};
	tw_json_open(&json, NULL, '{');
	for (unsigned side = 0; side < TW_SIDES; side++) {
		tw_json_open(&json, names[side], '{');
		tw_json_u64(&json, "calls", diff->differences.calls[side]);
		if (!diff->differences.lacks_times)
			tw_json_double(&json, "self", diff->differences.self[side].value / 1e9);
		tw_json_open(&json, "nodes", '[');
		for (size_t i = 0; i < diff->count; i++) {
			if (diff->runs[i]->side != side)
				continue;
			struct tw_fleet_whole whole = tw_fleet_whole_of(&diff->runs[i]->rows, NULL);
			tw_json_open(&json, NULL, '{');
			tw_json_string(&json, "node", diff->runs[i]->node);
			tw_fleet_put_json_whole(&json, &whole);
			tw_json_close(&json, '}');
		}
		tw_json_close(&json, ']');
		tw_json_close(&json, '}');
	}
	tw_difference_put_json(&json, &diff->differences, ask->top);
	tw_json_close(&json, '}');
}

/* Whatever the order in which summaries were read. */
static int by_side(const void *a, const void *b)
{
	const struct run *x = *(struct run *const *)a, *y = *(struct run *const *)b;
	return x->side != y->side ? (x->side > y->side) - (x->side < y->side) : strcmp(x->node, y->node);
}

static int answer(struct tw_fleet_ask *ask, struct diff *diff)
{
	struct tw_differences *differences = &diff->differences;
	struct tw_fleet_whole missing = {0};
	for (unsigned side = 0; side < TW_SIDES; side++) {
		const char *program = program_of(diff, side);
		differences->program[side] = program ? strdup(program) : NULL;
	}
	differences->lacks_states = true;
	differences->lacks_locks = true;
	if (diff->count)
		qsort(diff->runs, diff->count, sizeof(struct run *), by_side);
	for (size_t i = 0; i < diff->count; i++) {
		if (diff->has_no_memory || !add_run(diff, diff->runs[i], ask->functions))
			return tw_fail("there is no memory.");
		missing.missing += tw_fleet_whole_of(&diff->runs[i]->rows, NULL).missing;
		ask->rows.set_aside += diff->runs[i]->rows.set_aside;
	}
	for (unsigned side = 0; side < TW_SIDES; side++) {
		if (!differences->captures[side])
			return tw_fail("no segment is of the %s nodes and time.", side == TW_OLD ? "old" : "new");
	}
	if (ask->functions && !differences->part_count)
		return tw_fail("no function matches '%s'.", ask->functions);
	if (!tw_differences_finish(differences))
		return tw_fail("there is no memory.");
	tw_difference_sort(differences, ask->sort);
	if (ask->is_json)
		put_json(ask, diff);
	else if (ask->is_csv)
		tw_difference_put_csv(&tw_fleet_out, differences, ask->top);
	else
		put_screen(ask, diff);
	return tw_fleet_finish(&ask->rows, &missing);
}

int tw_fleet_diff(struct tw_fleet_ask *ask)
{
	static struct diff diff;
	ask->rows.taking = taking;
	ask->rows.context = &diff;
	if (!choose_sides(ask, &diff))
		return TW_EXIT_USAGE;
	ask->spans = diff.sides;
	ask->span_count = TW_SIDES;
	ask->rows_of = rows_of;
	int code = tw_fleet_ask_rows(ask) ? answer(ask, &diff) : TW_EXIT_FAILURE;
	for (size_t i = 0; i < diff.count; i++) {
		tw_fleet_rows_free(&diff.runs[i]->rows);
		free(diff.runs[i]->node);
		free(diff.runs[i]);
	}
	free(diff.runs);
	tw_map_fini(&diff.by_node);
	tw_differences_free(&diff.differences);
	return code;
}
