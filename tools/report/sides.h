/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sides.h - captures of two sides, read one after the other: for `report --diff` and `flame --diff`.
 */
#ifndef TW_TOOLS_SIDES_H
#define TW_TOOLS_SIDES_H

#include "views/folds/differences.h"
#include "views/folds/treediff.h"
#include "tools/common/select.h"

#define TW_SIDES_CAPTURES_MAX 64 /* of each side */

struct tw_sides_capture {
	const char *path;
	unsigned side;
	uint64_t events, lost;
	double seconds;
	double cost_ns[TW_COST_COUNT]; /* the tracer's own, of a call */
};

/* Paths are borrowed. */
struct tw_sides {
	const struct tw_command *command;
	struct tw_selection *selection;
	const char *old[TW_SIDES_CAPTURES_MAX];
	unsigned old_count;
	bool wants_tree;
	/* After tw_sides_read(). */
	struct tw_differences differences;
	struct tw_treediff tree; /* if it is wanted */
	struct tw_sides_capture captures[2 * TW_SIDES_CAPTURES_MAX];
	unsigned count;
	int code; /* of the command if nothing else fails */
};

extern const char *const tw_side_names[TW_SIDES];

/* One --diff; false: there are too many, which has been reported. */
bool tw_sides_take(struct tw_sides *sides, const struct tw_command *command, const char *path);
/*
 * Reads all. @paths: of the new side, ends with NULL. Returns 0, or an exit code after reporting why they cannot be compared;
 * tw_sides_free() in both cases.
 */
int tw_sides_read(struct tw_sides *sides, char **paths);
void tw_sides_free(struct tw_sides *sides);

#endif
