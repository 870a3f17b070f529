/* SPDX-License-Identifier: Apache-2.0 */
/* report_diff.h - `report --diff`: what differs between captures. */
#ifndef TW_TOOLS_REPORT_DIFF_H
#define TW_TOOLS_REPORT_DIFF_H

#include "tools/report/report.h"
#include "tools/report/sides.h"
#include "views/folds/difference_table.h"

enum tw_diff_format { TW_DIFF_SCREEN, TW_DIFF_JSON, TW_DIFF_CSV };

/* The question; paths are borrowed. */
struct tw_diff {
	struct tw_sides sides;
	const struct tw_report_order *order;
	enum tw_diff_format format;
};

/* The two sides, and the differences of the whole: lines. */
void tw_diff_sentences(const struct tw_screen *screen, const struct tw_sides *sides);
/* @paths: of the new side, ends with NULL. Returns the exit code. */
int tw_diff_run(struct tw_diff *diff, char **paths);

#endif
