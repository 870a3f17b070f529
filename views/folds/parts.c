/* SPDX-License-Identifier: Apache-2.0 */
/* parts.c - sums by node, thread and slice of time. */
#include "views/folds/parts.h"
#include "base/grow.h"
#include "base/search.h"

void tw_parts_init(struct tw_parts *parts, uint64_t from_ns, uint64_t to_ns)
{
	parts->from_ns = from_ns;
	parts->slice_ns = (to_ns - from_ns) / TW_PARTS_SLICES + 1;
	parts->slices = TW_PARTS_SLICES;
	parts->next_ns = from_ns + parts->slice_ns;
	parts->cell_max = parts->cell_max ? parts->cell_max : TW_PARTS_CELLS_MAX;
}

void tw_parts_next(struct tw_parts *parts)
{
	if (parts->slice + 1 < parts->slices) {
		parts->slice++;
		parts->next_ns += parts->slice_ns;
	} else {
		parts->next_ns = UINT64_MAX;
	}
}

static uint64_t key_of(uint32_t node, uint32_t group, uint32_t slice)
{
	return (uint64_t)node << 16 | group << 8 | slice;
}

/* The number of a cell, which is added if it is not there. TW_MAP_NONE: no memory. */
static uint32_t find_cell(struct tw_parts *parts, uint32_t node, uint8_t group, uint8_t slice)
{
	uint64_t key = key_of(node, group, slice);
	uint32_t number = tw_map_get(&parts->by_key, key);
	if (number != TW_MAP_NONE)
		return number;
	if (!tw_grow(parts->cells, parts->count, parts->capacity) || !tw_map_add(&parts->by_key, key, parts->count))
		return TW_MAP_NONE;
	parts->cells[parts->count] = (struct tw_part){.node = node, .group = group, .slice = slice};
	return parts->count++;
}

/* False: no memory. */
static bool add_cell(struct tw_parts *parts, const struct tw_part *cell)
{
	uint32_t number = find_cell(parts, cell->node, cell->group, cell->slice);
	if (number == TW_MAP_NONE)
		return false;
	tw_part_sums_add(&parts->cells[number].sums, &cell->sums);
	return true;
}

/* Adds all cells again, with other numbers of nodes (NULL: the same) and so many slices in one. False: no memory. */
static bool join_cells(struct tw_parts *parts, const uint32_t *nodes, unsigned slices)
{
	uint32_t count = parts->count;
	bool is_done = true;
	tw_map_fini(&parts->by_key);
	parts->count = 0;
	for (uint32_t i = 0; is_done && i < count; i++) {
		struct tw_part cell = parts->cells[i];
		cell.node = nodes ? nodes[cell.node] : cell.node;
		cell.slice = (uint8_t)(cell.slice / slices);
		if (cell.node != TW_PARTS_NO_NODE)
			is_done = add_cell(parts, &cell);
	}
	return is_done;
}

bool tw_parts_rename(struct tw_parts *parts, const uint32_t *nodes)
{
	return join_cells(parts, nodes, 1);
}

bool tw_parts_halve(struct tw_parts *parts)
{
	if (parts->slices == 1)
		return false;
	bool is_done = join_cells(parts, NULL, 2);
	/* The slice that is being filled may be the first half of a new one, or its second. */
	parts->slices /= 2;
	parts->slice /= 2;
	parts->slice_ns *= 2;
	if (parts->next_ns != UINT64_MAX)
		parts->next_ns = parts->from_ns + (parts->slice + 1) * parts->slice_ns;
	return is_done;
}

static void give_up(struct tw_parts *parts)
{
	parts->is_over = true;
	parts->next_ns = UINT64_MAX;
	parts->count = 0;
	tw_map_fini(&parts->by_key);
}

bool tw_parts_find(struct tw_parts *parts, uint32_t node, uint32_t stack, const struct tw_part_sums *sums)
{
	uint32_t group = stack < TW_PARTS_GROUPS - 1 ? stack : TW_PARTS_GROUPS - 1;
	if (parts->is_over)
		return true;
	if (parts->count >= parts->cell_max && !tw_parts_halve(parts))
		give_up(parts);
	if (parts->is_over)
		return true;
	parts->groups = group >= parts->groups ? group + 1 : parts->groups;
	if (!tw_grow_to(parts->last, parts->last_capacity, node))
		return false;
	parts->last[node] = find_cell(parts, node, (uint8_t)group, (uint8_t)parts->slice);
	if (parts->last[node] == TW_MAP_NONE)
		return false;
	tw_part_sums_add(&parts->cells[parts->last[node]].sums, sums);
	return true;
}

static int by_node(const void *a, const void *b)
{
	const struct tw_part *x = a, *y = b;
	uint64_t first = key_of(x->node, x->group, x->slice), second = key_of(y->node, y->group, y->slice);
	return TW_ORDER(first, second);
}

void tw_parts_sort(struct tw_parts *parts)
{
	if (parts->count)
		qsort(parts->cells, parts->count, sizeof *parts->cells, by_node);
	tw_map_fini(&parts->by_key);
}

void tw_parts_free(struct tw_parts *parts)
{
	free(parts->cells);
	free(parts->last);
	tw_map_fini(&parts->by_key);
	*parts = (struct tw_parts){0};
}
