/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call_rows.h - a row for each call, when it ends: what tables of calls consist of.
 *
 * Made of the fold of stacks: the user gives it events and takes the rows that have come. Rows have states of threads if those are
 * among the events.
 *
 * Memory  the rows that were not taken, and a record for each open call.
 */
#ifndef TW_VIEWS_CALL_ROWS_H
#define TW_VIEWS_CALL_ROWS_H

#include "views/folds/stacks.h"

/* A wait for a lock (locks.h). */
struct tw_call_wait {
	uint64_t ns; /* 0: there was none */
	uint32_t lock, by;
};

struct tw_call_row {
	uint64_t id, parent; /* numbers in the order in which calls begin, from 1; 0: no call around it is known */
	uint64_t start_ns, duration_ns, self_ns; /* the last two if has_end */
	uint32_t function, caller;		 /* of tw_places */
	uint32_t image, stream, tracee_id, depth;
	bool has_caller, has_end;    /* without an end: the function's returns were not recorded */
	bool has_states;	     /* something is known of them */
	struct tw_state_sums states; /* of duration_ns: the rest is unknown */
	uint64_t lock_ns;	     /* of duration_ns: in waits for locks, as the user says */
	struct tw_call_wait wait;    /* the longest of them */
	enum tw_frame_end how;
	char *details, *result; /* of the call and of its return, of tw_call_rows.details; NULL: none */
	size_t details_bytes, result_bytes;
};

/* The data kept of a call that is open, and of the call in which a moment lies. */
struct tw_call_open {
	uint64_t id;
	uint32_t stream;
	bool is_wanted; /* its start lies in the limits */
	uint64_t lock_ns;
	struct tw_call_wait wait;
	char *details;
	size_t details_bytes;
};

/* Of a stack: by depth. */
struct tw_call_opens {
	struct tw_call_open *at;
	size_t count;
	struct tw_call_opens *next;
};

/* Zeroed at first, but for what is marked as set by the user. */
struct tw_call_rows {
	struct tw_stacks stacks;
	uint64_t from_ns, to_ns;	  /* set: calls that begin in between; 0: no end */
	bool reads_details, reads_result; /* set */
	/* Set: what is kept of an event, to be freed; NULL: nothing. */
	char *(*details)(struct tw_capture *capture, const struct tw_capture_event *event, size_t *bytes);
	/* Set: is the row of a call that ends so wanted?  NULL: all are. */
	bool (*takes)(void *context, enum tw_frame_end how);
	void *context;
	struct tw_call_row *rows;
	size_t count, capacity;
	uint64_t wanted_open; /* calls that began in the limits and have not ended */
	struct tw_call_opens *opens;
	const struct tw_capture_event *event; /* the one that is being read */
	uint64_t ids;
	bool has_no_memory;
};

/* Begins. Returns 0 or an error; tw_call_rows_end() in both cases. @filter: selects the events that will be given. */
int tw_call_rows_begin(struct tw_call_rows *rows, struct tw_capture *capture, const struct tw_places *places,
		       const struct tw_capture_filter *filter);
/* The next event, with the own time of the tracer among them. Returns 0 or TW_ENOMEM. */
int tw_call_rows_see(struct tw_call_rows *rows, const struct tw_capture_event *event, struct tw_step *step);
/* Before the event that ends a wait on its thread: the time is that of all calls that are open there. */
void tw_call_rows_waited(struct tw_call_rows *rows, uint32_t stream, const struct tw_call_wait *wait);
/* After the last event: calls that are open end. */
void tw_call_rows_finish(struct tw_call_rows *rows);
/* The rows were taken. */
void tw_call_rows_forget(struct tw_call_rows *rows);
/* Ends; rows that were not taken stay, until tw_call_rows_free(). */
void tw_call_rows_end(struct tw_call_rows *rows);
void tw_call_rows_free(struct tw_call_rows *rows);

#endif
