/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge.h - the records of many streams in one order.
 *
 *	 streams   cursors             heap                      out
 *	 ring A -> [block|block..] -\
 *	 ring B -> [block|block..] ---> least ticks first  ->  records, one at a time
 *	 ring C -> [block|..]      -/        ^    |
 *	                                     |    v
 *	                         woken    waiting: a switch to run r of a tracee
 *	                                  whose run before r is not over
 *
 * Order  each stream's own; then the runs of each tracee; then ticks, scheduler, lease.
 *
 * A cursor that waits is woken when the run before its own is over: when the stream with that run reaches its next
 * switch or its end. A run that the capture does not hold is not waited for. If all cursors wait, which no recorder's
 * data causes, the earliest continues.
 *
 * Runs are known some time ahead of the records that are handed out, far more than clocks disagree: a reader of the
 * beginning does not wait for the rest.
 *
 * Memory  one block for each cursor that has started, and one ahead.
 */
#ifndef TW_PIPELINE_MERGE_H
#define TW_PIPELINE_MERGE_H

#include "pipeline/reader/decode.h"
#include "pipeline/reader/runs.h"

struct tw_merge_cursor {
	uint32_t stream; /* TW_CAPTURE_NONE: the losses of an image */
	uint32_t image;
	uint32_t scheduler_id;
	uint32_t number; /* its index in the array */
	uint64_t lease;
	uint64_t ticks;	   /* of the record at `at`; of the block while that is not loaded */
	const uint8_t *at; /* the next record; NULL: not loaded */
	const uint8_t *end;
	uint64_t sequence; /* of the record at `at` */
	uint64_t run_seq;  /* its current run; 0: none that counts */
	uint32_t tracee_id;
	uint32_t next_block; /* the next one to load */
	uint32_t end_block;
	uint32_t heap_index;
	uint32_t next_waiter;
	uint32_t waits_for; /* a tracee */
	struct tw_decode_job *job;
	struct tw_decode_job *ahead;
	bool is_waiting;
	bool is_forced;	  /* waited for a run that never comes: continues without another check */
	bool needs_check; /* begins inside a run */
};

struct tw_merge {
	struct tw_capture *capture;
	const struct tw_capture_filter *filter;
	struct tw_decode_pool *pool;
	struct tw_merge_cursor *cursors;
	uint32_t cursor_count;
	uint32_t *heap; /* numbers of cursors */
	uint32_t heap_count;
	uint32_t waiting_count;
	uint64_t ahead_bytes;
	bool *wants; /* by stream */
	bool has_runs;
	bool is_changed; /* a cursor was woken: the heap must be checked again */
	struct tw_runs runs;
	/* Blocks with switches in order of time, and the time up to which their runs are known; read on demand. */
	const struct tw_source_block **run_blocks;
	uint32_t run_count;
	uint32_t run_next;
	uint64_t runs_through;
	uint64_t margin_ticks;
	struct tw_decode_job *retired; /* passed, and records of it were handed out */
	uint64_t retired_bytes;
	struct tw_decode_job *damaged; /* blocks that could not be read, the last one first */
	int error;		       /* an error in tw_merge_step(): TW_ENOMEM */
};

/* @filter: borrows, NULL or until the end. */
int tw_merge_init(struct tw_merge *merge, struct tw_capture *capture, const struct tw_capture_filter *filter);
void tw_merge_fini(struct tw_merge *merge);

/*
 * tw_merge_next - the cursor whose record at `at` comes next; NULL at the end.
 *
 * The function that hands the record out sets is_lent of the cursor's job, if it has one: else the block goes when the cursor has passed it.
 *
 * Returns 0 or TW_ENOMEM.
 */
int tw_merge_next(struct tw_merge *merge, struct tw_merge_cursor **out);

/* Skips the record at `at`; is the next record of this cursor also the next of all? */
bool tw_merge_step(struct tw_merge *merge, struct tw_merge_cursor *cursor);

/*
 * tw_merge_skip - skip the record at `at`, and those after it that are the next of all, up to `max`.
 *
 * @records	grows by their number.
 *
 * Returns the end of the last one.
 */
const uint8_t *tw_merge_skip(struct tw_merge *merge, struct tw_merge_cursor *cursor, uint32_t max, uint64_t *records);

/* Blocks that belong to records that were handed out, and those that could not be read meanwhile, the last one first. */
struct tw_merge_lent {
	struct tw_decode_job *retired, *damaged;
};

/*
 * tw_merge_lend - keep the records that were handed out, while further ones are read.
 *
 * @lent	is written: tw_merge_take_back() ends it.
 */
void tw_merge_lend(struct tw_merge *merge, struct tw_merge_lent *lent);
void tw_merge_take_back(struct tw_merge *merge, struct tw_merge_lent *lent);

/* ---- merge_runs.c; both return 0 or TW_ENOMEM ---- */

/* Prepares the search for runs: finds the blocks that have any. */
int tw_merge_find_runs(struct tw_merge *merge);
/* Reads every run that may matter to a record of this time, and for some time after it. */
int tw_merge_find_runs_until(struct tw_merge *merge, uint64_t ticks);

#endif
