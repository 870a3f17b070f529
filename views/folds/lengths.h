/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lengths.h - the lengths of processes' mailboxes, over the time of a report.
 *
 * Only if the capture reports when messages were taken (mailbox:take/1, views/folds/mailboxes.h).
 *
 * Memory  240 bytes for each process that received a message, TW_LENGTHS_MAX of them.
 */
#ifndef TW_VIEWS_LENGTHS_H
#define TW_VIEWS_LENGTHS_H

#include "views/folds/mailboxes.h"

#define TW_LENGTHS_MAX	   (UINT32_C(1) << 16)
#define TW_LENGTHS_COLUMNS 48

struct tw_length {
	uint32_t process;
	uint32_t now, max;
	uint64_t since_ns, max_at_ns;
	double area;			      /* length x ns */
	uint32_t columns[TW_LENGTHS_COLUMNS]; /* the greatest length in each part of the time */
};

struct tw_lengths {
	struct tw_mailboxes mailboxes;
	struct tw_length *rows;
	uint32_t count, capacity;
	uint64_t from_ns, to_ns;
	uint64_t left_out; /* processes */
};

/* Sets the time of the report. Returns false without memory. */
bool tw_lengths_init(struct tw_lengths *lengths, const struct tw_capture *capture, uint64_t from_ns, uint64_t to_ns);
bool tw_lengths_event(struct tw_lengths *lengths, const struct tw_capture_event *event);
/* Called after the last event; sorts the rows, the greatest length first. */
void tw_lengths_finish(struct tw_lengths *lengths);
void tw_lengths_free(struct tw_lengths *lengths);

#endif
