/* SPDX-License-Identifier: Apache-2.0 */
/*
 * restore.h - takes back what was written into the code of members that live on when the recording ends.
 *
 * Threads  the recorder's.
 */
#ifndef TW_PIPELINE_RECORDER_RESTORE_H
#define TW_PIPELINE_RECORDER_RESTORE_H

#include "pipeline/recorder/holder.h"

/* Processes that could not be restored. */
struct tw_restore_failure {
	uint32_t processes;
	uint64_t pieces; /* functions and slots that stay as they are */
	/* Of the last of them. */
	enum tw_rs_held_outcome outcome;
	uint32_t number;
};

/*
 * tw_restore_all - each process in one stop, within TW_RESTORE_NS for all of them.
 *
 * After tw_rs_close(), so that members write nothing more.  Afterwards each piece of code is as it was before, or as it is.
 */
void tw_restore_all(struct tw_holder *holder, struct tw_rs *rs, struct tw_restore_failure *out);

#endif
