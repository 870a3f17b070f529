/* SPDX-License-Identifier: Apache-2.0 */
/* confined.h - which traced processes have seccomp filters that the recorder has not.  Threads: the recorder's. */
#ifndef TW_PIPELINE_CONFINED_H
#define TW_PIPELINE_CONFINED_H

#include "ringbuf/ringset.h"

/* Between looks; zeroed at first. */
struct tw_confined {
	uint64_t all_ns, active_ns; /* when the next looks are due */
	uint32_t turn;		    /* how many looks there were at all threads */
	int own_count;		    /* filters of the recorder itself */
};

/*
 * tw_confined_look - look at living images, where a look is due, and set filter_seen in the slots of those with filters.
 *
 * Threads that have written since the last look: each 10 ms, or so rarely that it takes a hundredth of the recorder's processor.
 * All threads, some at a time: each second.
 */
void tw_confined_look(struct tw_rs *rs, struct tw_confined *confined, uint64_t now_ns);

#endif
