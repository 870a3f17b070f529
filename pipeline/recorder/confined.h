/* SPDX-License-Identifier: Apache-2.0 */
/* confined.h - finds traced processes with seccomp filters that the recorder does not have. Threads: the recorder's. */
#ifndef TW_PIPELINE_CONFINED_H
#define TW_PIPELINE_CONFINED_H

#include "ringbuf/ringset.h"

/* State between passes; zeroed at first. */
struct tw_confined {
	uint64_t all_ns, active_ns; /* when the next passes are due */
	uint32_t turn;		    /* number of passes over all threads */
	int own_count;		    /* filters of the recorder itself */
};

/*
 * tw_confined_check - if a pass is due, check living images, and set filter_seen in the slots of those with filters.
 *
 * Threads that have written since the last pass: every 10 ms, or less often so that it takes a hundredth of the
 * recorder's processor. All threads, some at a time: every second.
 */
void tw_confined_check(struct tw_rs *rs, struct tw_confined *confined, uint64_t now_ns);

#endif
