/* SPDX-License-Identifier: Apache-2.0 */
/* differences.c - two runs, function by function. */
#include "views/folds/differences.h"
#include "views/folds/calltree_locks.h"
#include "views/names/names.h"
#include "base/grow.h"
#include "base/search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *tw_difference_program(const struct tw_capture *capture)
{
	const struct tw_capture_image *image;
	if (!tw_names_images(capture, &image, 1) || !*image->program)
		return NULL;
	const char *slash = strrchr(image->program, '/');
	return strdup(slash ? slash + 1 : image->program);
}

const char *tw_difference_key(const char *name, const char *program)
{
	size_t bytes = program ? strlen(program) : 0;
	return bytes && strncmp(name, program, bytes) == 0 && name[bytes] == ':' ? name + bytes : name;
}

bool tw_differences_add_part(struct tw_differences *differences, const char *name, struct tw_difference_part *part)
{
	const char *key = tw_difference_key(name, differences->program[part->side]);
	if (!tw_grow(differences->parts, differences->part_count, differences->part_capacity) ||
	    !(part->name = strdup(key))) {
		tw_histogram_free(&part->took);
		return false;
	}
	differences->parts[differences->part_count++] = *part;
	return true;
}

/* How own times divide, by function. NULL: no memory. */
static struct tw_state_sums *own_states(const struct tw_calltree *tree)
{
	struct tw_state_sums *states = calloc(tree->places.function_count + (size_t)1, sizeof *states);
	for (uint32_t i = TW_CALLTREE_FIRST; states && i < tree->node_count && i < tree->node_state_capacity; i++) {
		const struct tw_call_node *node = &tree->nodes[i];
		if (!node->is_process && !node->is_hidden)
			tw_state_sums_add(&states[node->function], &tree->node_states[i].self);
	}
	return states;
}

static bool add_functions(struct tw_differences *differences, struct tw_difference_part *part, struct tw_calltree *tree)
{
	struct tw_state_sums *states = own_states(tree);
	bool is_added = states != NULL;
	for (uint32_t i = 0; i < tree->places.function_count && is_added; i++) {
		struct tw_call_function *function = &tree->functions[i];
		const struct tw_name *name = &tree->places.names[i];
		if (!function->calls && !function->before)
			continue;
		part->lacks_arity = name->lacks_arity;
		part->calls = function->calls;
		part->has_times = function->total_ns || function->self_ns || function->took.count;
		part->total_ns = function->total_ns;
		part->self_ns = function->self_ns;
		part->lock_ns = function->lock_ns;
		part->states = states[i];
		part->is_lossy = function->lossy || function->cut;
		part->took = function->took;
		function->took = (struct tw_histogram){0};
		part->self = function->spread ? tw_spread_sum(function->spread, function->self_ns)
					      : (struct tw_estimate){.value = (double)function->self_ns};
		is_added = tw_differences_add_part(differences, name->text, part);
	}
	free(states);
	return is_added;
}

static bool add_calls(struct tw_differences *differences, struct tw_difference_part *part,
		      const struct tw_totals_table *table)
{
	bool is_added = true;
	for (size_t i = 0; i < table->count && is_added; i++) {
		const struct tw_totals_row *row = &table->rows[i];
		part->lacks_arity = row->lacks_arity;
		part->calls = row->calls;
		if (row->calls)
			is_added = tw_differences_add_part(differences, row->name, part);
	}
	return is_added;
}

bool tw_differences_add(struct tw_differences *differences, unsigned side, const struct tw_capture *capture,
			struct tw_calltree *tree, const struct tw_totals *totals)
{
	const struct tw_difference_part empty = {.side = side, .capture = differences->captures[side]++};
	struct tw_difference_part recorded = empty, counted = empty;
	if (!differences->program[side])
		differences->program[side] = tw_difference_program(capture);
	differences->lacks_times |= !tree;
	differences->lacks_states |= !tree || !tree->stacks.has_states;
	differences->lacks_locks |= !tree || !tw_calltree_knows_locks(tree);
	differences->lock_ns[side] += tree ? tree->lock_ns : 0;
	return (tree ? add_functions(differences, &recorded, tree)
		     : add_calls(differences, &recorded, &totals->functions)) &&
	       add_calls(differences, &counted, &totals->counted);
}

/* ---- rows ---- */

static int by_name(const void *a, const void *b)
{
	const struct tw_difference_part *x = a, *y = b;
	return strcmp(x->name, y->name) ?: TW_ORDER(x->side, y->side) ?: TW_ORDER(x->capture, y->capture);
}

static int by_weight(const void *a, const void *b)
{
	const struct tw_difference *x = a, *y = b;
	int64_t own = llabs(tw_difference_self(x)), other = llabs(tw_difference_self(y));
	if (own != other)
		return own < other ? 1 : -1;
	own = llabs((int64_t)(x->sides[TW_NEW].calls - x->sides[TW_OLD].calls));
	other = llabs((int64_t)(y->sides[TW_NEW].calls - y->sides[TW_OLD].calls));
	return own != other ? (own < other ? 1 : -1) : strcmp(x->name, y->name);
}

/* The own time of a function that its side has not called is 0 for certain. */
static const struct tw_estimate never = {.freedom = INFINITY};

struct tw_estimate tw_difference_estimate(bool is_called, const double *runs, unsigned captures,
					  const struct tw_estimate *one)
{
	return !is_called ? never : captures > 1 ? tw_estimate_runs(runs, captures) : *one;
}

/* Joins the parts of one side, of which there may be none; several of one capture are recorded and counted calls. */
static bool join(struct tw_difference_side *side, struct tw_difference_part *parts, size_t count, unsigned captures,
		 struct tw_estimate *self)
{
	double *runs = calloc(captures + (size_t)1, sizeof *runs);
	if (!runs)
		return false;
	for (size_t i = 0; i < count; i++) {
		side->calls += parts[i].calls;
		if (!parts[i].has_times)
			continue;
		side->has_times = true;
		side->total_ns += parts[i].total_ns;
		side->self_ns += parts[i].self_ns;
		side->lock_ns += parts[i].lock_ns;
		tw_state_sums_add(&side->states, &parts[i].states);
		side->is_lossy |= parts[i].is_lossy;
		runs[parts[i].capture] += (double)parts[i].self_ns;
		tw_histogram_join(&side->took, &parts[i].took);
	}
	*self = tw_difference_estimate(count, runs, captures, count ? &parts->self : NULL);
	if (captures > 1) {
		side->calls = (side->calls + captures / 2) / captures;
		side->total_ns /= captures;
		side->self_ns /= captures;
		side->lock_ns /= captures;
		for (unsigned i = 0; i < TW_STATE_SUMS; i++)
			side->states.ns[i] /= captures;
	}
	free(runs);
	return true;
}

static bool make_row(struct tw_differences *differences, struct tw_difference_part *parts, size_t count)
{
	struct tw_difference *row = &differences->rows[differences->count++];
	struct tw_estimate self[TW_SIDES];
	double noise;
	size_t old = 0;
	while (old < count && parts[old].side == TW_OLD)
		old++;
	*row = (struct tw_difference){.name = parts->name, .lacks_arity = parts->lacks_arity};
	if (!join(&row->sides[TW_OLD], parts, old, differences->captures[TW_OLD], &self[TW_OLD]) ||
	    !join(&row->sides[TW_NEW], parts + old, count - old, differences->captures[TW_NEW], &self[TW_NEW]))
		return false;
	row->has_states = !differences->lacks_states;
	row->has_locks = !differences->lacks_locks;
	row->has_noise = tw_estimates_noise(&self[TW_OLD], &self[TW_NEW], &noise);
	row->noise_ns = (uint64_t)noise;
	differences->common += old && old < count;
	for (unsigned side = 0; side < TW_SIDES; side++)
		differences->calls[side] += row->sides[side].calls;
	return true;
}

bool tw_difference_name(char **key, const char *program)
{
	char *name;
	if (**key != ':' || !program)
		return true;
	if (asprintf(&name, "%s%s", program, *key) < 0)
		return false;
	free(*key);
	*key = name;
	return true;
}

/* The program's own functions have its name again: the new one. */
static bool name_row(const struct tw_differences *differences, struct tw_difference_part *part)
{
	const char *program =
		differences->program[TW_NEW] ? differences->program[TW_NEW] : differences->program[TW_OLD];
	return tw_difference_name(&part->name, program);
}

/* The own time of all functions, and its noise if there are several captures. */
static bool sum_self(struct tw_differences *differences, unsigned side)
{
	double *runs = calloc(differences->captures[side] + (size_t)1, sizeof *runs);
	if (!runs)
		return false;
	for (uint32_t i = 0; i < differences->part_count; i++) {
		if (differences->parts[i].side == side)
			runs[differences->parts[i].capture] += (double)differences->parts[i].self_ns;
	}
	differences->self[side] = tw_estimate_runs(runs, differences->captures[side]);
	free(runs);
	return true;
}

bool tw_differences_finish(struct tw_differences *differences)
{
	uint32_t end;
	differences->rows = calloc(differences->part_count + (size_t)1, sizeof *differences->rows);
	if (!differences->rows || !sum_self(differences, TW_OLD) || !sum_self(differences, TW_NEW))
		return false;
	for (unsigned side = 0; side < TW_SIDES && differences->captures[side]; side++)
		differences->lock_ns[side] /= differences->captures[side];
	for (uint32_t i = 0; i < differences->part_count; i++)
		differences->parts[i].has_times &= !differences->lacks_times;
	qsort(differences->parts, differences->part_count, sizeof *differences->parts, by_name);
	for (uint32_t at = 0; at < differences->part_count; at = end) {
		for (end = at + 1; end < differences->part_count &&
				   strcmp(differences->parts[end].name, differences->parts[at].name) == 0;)
			end++;
		if (!make_row(differences, &differences->parts[at], end - at))
			return false;
		if (!name_row(differences, &differences->parts[at]))
			return false;
		differences->rows[differences->count - 1].name = differences->parts[at].name;
	}
	qsort(differences->rows, differences->count, sizeof *differences->rows, by_weight);
	return true;
}

void tw_differences_free(struct tw_differences *differences)
{
	for (uint32_t i = 0; i < differences->part_count; i++) {
		free(differences->parts[i].name);
		tw_histogram_free(&differences->parts[i].took);
	}
	for (size_t i = 0; i < differences->count; i++) {
		tw_histogram_free(&differences->rows[i].sides[TW_OLD].took);
		tw_histogram_free(&differences->rows[i].sides[TW_NEW].took);
	}
	free(differences->parts);
	free(differences->rows);
	free(differences->program[TW_OLD]);
	free(differences->program[TW_NEW]);
	*differences = (struct tw_differences){0};
}
