/* SPDX-License-Identifier: Apache-2.0 */
/* report_diff.h - `report --diff`: what differs between captures. */
#ifndef TW_TOOLS_REPORT_DIFF_H
#define TW_TOOLS_REPORT_DIFF_H

#include "tools/common/select.h"
#include "tools/report/report.h"

#define TW_DIFF_CAPTURES_MAX 64

enum tw_diff_format { TW_DIFF_SCREEN, TW_DIFF_JSON, TW_DIFF_CSV };

/* What is asked; paths are borrowed. */
struct tw_diff {
	const struct tw_command *command;
	struct tw_selection *selection;
	const struct tw_report_order *order;
	enum tw_diff_format format;
	const char *old[TW_DIFF_CAPTURES_MAX];
	unsigned old_count;
};

/* The columns of functions; their rows are struct tw_difference. */
extern const struct tw_table tw_diff_columns;

/* One --diff; false: there are too many, which has been reported. */
bool tw_diff_take(struct tw_diff *diff, const struct tw_command *command, const char *path);
/* @paths: of the new side, ends with NULL. Returns the exit code. */
int tw_diff_run(struct tw_diff *diff, char **paths);

#endif
