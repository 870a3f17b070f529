/* SPDX-License-Identifier: Apache-2.0 */
/*
 * held.h - writes into members whose threads are all stopped meanwhile.
 *
 * Threads  the holder's (holder.h): no call uses malloc() or a lock.
 */
#ifndef TW_PIPELINE_RECORDER_HELD_H
#define TW_PIPELINE_RECORDER_HELD_H

#include "base/hold.h"
#include "ringbuf/ringset.h"

struct tw_held {
	struct tw_hold hold;
	/* For tests, which show what each step is good for. */
	bool is_unchecked;			    /* where threads are does not matter */
	bool is_running;			    /* nor whether they run */
	unsigned inside_count;			    /* how often a thread was inside of a piece */
	void (*while_held)(const struct tw_hold *); /* NULL: nothing; called during each stop */
};

/*
 * tw_held_write - write pieces into a process: in one stop, or in several where threads are in between.
 *
 * @pieces	sorted here.
 * @is_wanted	NULL: yes; asked during each stop.
 */
typedef bool (*tw_held_is_wanted_fn)(void *arg);
enum tw_rs_held_outcome tw_held_write(struct tw_held *held, int process_id, int memory, struct tw_rs_held_piece *pieces,
				      size_t count, tw_held_is_wanted_fn is_wanted, void *arg, uint32_t *number);

/* Zeroed memory, to be given back by munmap(); NULL: there is none. */
void *tw_held_memory(size_t bytes);

#endif
