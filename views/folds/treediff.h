/* SPDX-License-Identifier: Apache-2.0 */
/*
 * treediff.h - two runs as one tree of calls: a node is a chain of functions by name, with the sums of both sides.
 *
 * Names, programs of another name, means of several captures and noise are those of differences.h, at each node instead of
 * each function.
 *
 * Memory  56 bytes a node, 120 bytes and 8 for each capture beside it.
 */
#ifndef TW_VIEWS_TREEDIFF_H
#define TW_VIEWS_TREEDIFF_H

#include "views/folds/calltree.h"
#include "views/folds/differences.h"

/* Means of the captures of a side. */
struct tw_treediff_sums {
	uint64_t calls, total_ns, self_ns;
};

struct tw_treediff_node {
	struct tw_treediff_sums sides[TW_SIDES];
	bool is_called[TW_SIDES];
	struct tw_estimate self[TW_SIDES]; /* if the side has one capture */
	uint64_t noise_ns;
	bool has_noise; /* else there are too few calls to know it */
};

/* Zeroed at first, except captures. */
struct tw_treediff {
	unsigned captures[TW_SIDES]; /* that will be added, at least one of each side */
	unsigned added[TW_SIDES];
	struct tw_calltree tree;	/* of the nodes of both sides, with the sums of the new one */
	struct tw_treediff_node *nodes; /* by node of the tree */
	uint32_t node_capacity;
	double *runs; /* own times, by node and capture, the old ones first */
	size_t run_capacity;
	struct tw_map by_name;
	char *program[TW_SIDES];
	bool is_by_stack; /* of a capture at least */
	bool is_full;
};

/*
 * tw_treediff_add - one more capture of a side.
 *
 * @tree	made with has_node_spread; borrowed.
 *
 * Returns false without memory.
 */
bool tw_treediff_add(struct tw_treediff *diff, unsigned side, const struct tw_calltree *tree);
/* Makes means and noise. Returns false without memory. */
bool tw_treediff_finish(struct tw_treediff *diff);
void tw_treediff_free(struct tw_treediff *diff);

#endif
