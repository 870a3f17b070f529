/* SPDX-License-Identifier: Apache-2.0 */
/* dry_run.h - `attach --dry-run`. */
#ifndef TW_TOOLS_ATTACH_DRY_RUN_H
#define TW_TOOLS_ATTACH_DRY_RUN_H

#include "tools/record/limits.h"
#include "tools/record/request.h"

/*
 * tw_dry_run - print what would be recorded in the process, from its files alone.
 *
 * @request	prepared.
 *
 * Returns an exit code.  Threads: the command's.
 */
int tw_dry_run(const struct tw_request *request, const struct tw_limits *limits, int process);

#endif
