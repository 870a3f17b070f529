/* SPDX-License-Identifier: Apache-2.0 */
/* progress_help.h - a thread joins and leaves thread progress as progress.h requires: with its signals blocked. */
#ifndef TW_TESTS_PROGRESS_HELP_H
#define TW_TESTS_PROGRESS_HELP_H

#include "base/sys.h"
#include "progress/progress.h"

static inline void join(struct tw_progress_reader *reader)
{
	uint64_t signals;

	tw_sys_block_signals(&signals);
	tw_progress_join(reader);
	tw_sys_restore_signals(&signals);
}

static inline void leave(struct tw_progress_reader *reader)
{
	uint64_t signals;

	tw_sys_block_signals(&signals);
	tw_progress_leave(reader);
	tw_sys_restore_signals(&signals);
}

#endif
