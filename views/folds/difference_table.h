/* SPDX-License-Identifier: Apache-2.0 */
/*
 * difference_table.h - what views write of differences by function: `report --diff` of captures, `fleet diff` of nodes.
 */
#ifndef TW_VIEWS_DIFFERENCE_TABLE_H
#define TW_VIEWS_DIFFERENCE_TABLE_H

#include "views/folds/differences.h"
#include "views/output/table.h"

/* The columns of functions; their rows are struct tw_difference. */
extern const struct tw_table tw_difference_columns;
/* Were locks waited for, and are the waits of all captures known? */
bool tw_differences_have_locks(const struct tw_differences *differences);
/* Without those of states where a side has none, and those of locks where none was waited for. */
struct tw_table tw_difference_table(const struct tw_differences *differences);

/* Sorts the rows by a column; NULL: they stay as they are, what explains most first. */
void tw_difference_sort(struct tw_differences *differences, const char *sort);
/* The difference of the whole: lines. */
void tw_difference_put_whole(struct tw_out *out, const struct tw_differences *differences);
/* @top: so many rows; 0: all. */
void tw_difference_put_csv(struct tw_out *out, const struct tw_differences *differences, uint64_t top);
/* Members of an object: noise, functions, by_function. */
void tw_difference_put_json(struct tw_json *json, const struct tw_differences *differences, uint64_t top);

#endif
