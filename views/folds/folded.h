/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folded.h - a tree of calls as folded stacks, which flamegraph.pl, inferno and speedscope read: "a;b;c N" a line.
 *
 * Threads  one.
 */
#ifndef TW_VIEWS_FOLDED_H
#define TW_VIEWS_FOLDED_H

#include "views/folds/calltree.h"
#include "views/folds/treediff.h"
#include "views/output/output.h"

/*
 * tw_folded_put - write all stacks.
 *
 * @diff	of two sides: N is two numbers, the old one first; NULL: of one capture.
 * @has_times	N is the own time in ns; else the number of calls.
 *
 * Returns 0 or TW_ENOMEM.
 */
int tw_folded_put(struct tw_out *out, const struct tw_calltree *tree, const struct tw_treediff *diff, bool has_times);

#endif
