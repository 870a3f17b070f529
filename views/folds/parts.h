/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parts.h - the sums of a call tree's nodes by thread and by slice of time, so that a page can show a part without the capture.
 *
 * The sums of all parts are those of the tree. Those of a slice are what the tree of that time alone would have (but for calls that were
 * cut or lost: their time is taken back where that is known).
 *
 * Units   ns; slices are of equal length.
 * Memory  4 bytes a node, and TW_PARTS_CELLS_MAX cells of 52 bytes: if more are needed, two slices become one; at last there are none.
 */
#ifndef TW_VIEWS_PARTS_H
#define TW_VIEWS_PARTS_H

#include "base/map.h"

#define TW_PARTS_SLICES	   64
#define TW_PARTS_GROUPS	   64 /* processes of the tree, mostly threads; the last stands for all others */
#define TW_PARTS_CELLS_MAX (UINT32_C(1) << 20)

/* Of one node, group and slice. May be below 0: time that was taken back. */
struct tw_part_sums {
	int64_t calls; /* that began */
	int64_t self_ns;
	int64_t out_ns; /* scheduled out or lost */
};

struct tw_part {
	uint32_t node;
	uint8_t group, slice;
	struct tw_part_sums sums;
};

struct tw_parts {
	uint64_t from_ns, slice_ns;
	uint64_t next_ns; /* the end of the slice that is being filled */
	uint32_t slices, slice;
	uint32_t groups; /* that have any */
	struct tw_part *cells;
	uint32_t count, capacity, cell_max;
	struct tw_map by_key;
	uint32_t *last; /* by node: its last cell */
	uint32_t last_capacity;
	bool is_over; /* there are too many: none is kept */
};

/* @to_ns: after from_ns. */
void tw_parts_init(struct tw_parts *parts, uint64_t from_ns, uint64_t to_ns);
/* Goes on to the next slice. */
void tw_parts_next(struct tw_parts *parts);
static inline void tw_part_sums_add(struct tw_part_sums *to, const struct tw_part_sums *more)
{
	to->calls += more->calls;
	to->self_ns += more->self_ns;
	to->out_ns += more->out_ns;
}

/* Adds to the slice that is being filled. @stack: the number of the process. False: no memory. */
bool tw_parts_find(struct tw_parts *parts, uint32_t node, uint32_t stack, const struct tw_part_sums *sums);
/* The same, fast for the last cell of the node. */
static inline bool tw_parts_add(struct tw_parts *parts, uint32_t node, uint32_t stack, const struct tw_part_sums *sums)
{
	uint32_t group = stack < TW_PARTS_GROUPS - 1 ? stack : TW_PARTS_GROUPS - 1;
	uint32_t last = node < parts->last_capacity ? parts->last[node] : UINT32_MAX;
	struct tw_part *cell = last < parts->count && parts->count < parts->cell_max ? &parts->cells[last] : NULL;
	if (!cell || cell->node != node || cell->group != group || cell->slice != parts->slice)
		return tw_parts_find(parts, node, stack, sums);
	tw_part_sums_add(&cell->sums, sums);
	return true;
}
/* Joins two and two slices. False: there is one only, or no memory. */
bool tw_parts_halve(struct tw_parts *parts);
/* Gives nodes other numbers, some of them the same; TW_PARTS_NO_NODE: its cells are dropped. False: no memory. */
#define TW_PARTS_NO_NODE UINT32_MAX
bool tw_parts_rename(struct tw_parts *parts, const uint32_t *nodes);
/* By node, and then by group and slice; nothing is added afterwards. */
void tw_parts_sort(struct tw_parts *parts);
void tw_parts_free(struct tw_parts *parts);

#endif
