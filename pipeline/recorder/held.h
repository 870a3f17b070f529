/* SPDX-License-Identifier: Apache-2.0 */
/*
 * held.h - writes into members whose threads are all stopped meanwhile.
 *
 * Threads  the recorder's.
 */
#ifndef TW_PIPELINE_RECORDER_HELD_H
#define TW_PIPELINE_RECORDER_HELD_H

#include "base/hold.h"
#include "ringbuf/ringset.h"

struct tw_held {
	struct tw_hold hold;
	/* Passes the time between two stops.  NULL: sleeps. */
	void (*rest)(void *arg, uint64_t ns);
	void *rest_arg;
	/* For tests, which show what each step is good for. */
	bool is_unchecked;     /* where threads are does not matter */
	bool is_running;       /* nor whether they run */
	unsigned inside_count; /* how often a thread was inside of a piece */
};

/* Answers the requests of all members, if there are any, and lets go threads that stopped late. */
void tw_held_poll(struct tw_held *held, struct tw_rs *rs);

/*
 * tw_held_write - write pieces into a process: in one stop, or in several where threads are in between.
 *
 * @pieces	sorted here.
 * @is_wanted	NULL: yes; asked during each stop.
 */
typedef bool (*tw_held_is_wanted_fn)(void *arg);
enum tw_rs_held_outcome tw_held_write(struct tw_held *held, int process_id, int memory, struct tw_rs_held_piece *pieces,
				      size_t count, tw_held_is_wanted_fn is_wanted, void *arg, uint32_t *number);

#endif
