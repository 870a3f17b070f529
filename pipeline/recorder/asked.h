/* SPDX-License-Identifier: Apache-2.0 */
/*
 * asked.h - requests of members to write into their memory while all their threads are stopped.
 *
 * Threads  the recorder's.
 */
#ifndef TW_PIPELINE_RECORDER_ASKED_H
#define TW_PIPELINE_RECORDER_ASKED_H

#include "pipeline/recorder/holder.h"

struct tw_asked {
	struct tw_rs_held_request request;
	bool is_out; /* the holder has it: to be polled every TW_HOLDER_LOOK_NS */
	bool has_more;
	unsigned tries;
	uint32_t next_slot; /* to be asked first, so that no process keeps others waiting */
};

/* Gives requests of members to the holder, one after the other. */
void tw_asked_poll(struct tw_asked *asked, struct tw_holder *holder, struct tw_rs *rs);
/* Waits for the request that is out. */
void tw_asked_finish(struct tw_asked *asked, struct tw_holder *holder, struct tw_rs *rs);

#endif
