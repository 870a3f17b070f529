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
 * A cursor that waits is woken when the run it misses is over: when the stream that holds it stands
 * before its next switch or at its end.  A run that the capture does not hold is not waited for.  If
 * everybody waits, which no recorder writes, the earliest goes on.
 *
 * Runs are known for a while ahead of the records that are handed out, which is far longer than clocks disagree: a reader of the
 * beginning does not wait for the rest.
 *
 * Memory  one block for each cursor whose time has come, and one ahead.
 */
#ifndef TW_PIPELINE_MERGE_H
#define TW_PIPELINE_MERGE_H

#include "pipeline/reader/decode.h"
#include "pipeline/reader/runs.h"

struct tw_merge_cursor {
	uint32_t stream; /* TW_CAPTURE_NONE: the losses of an image */
	uint32_t image;
	uint32_t scheduler_id;
	uint32_t number; /* its place in the array */
	uint64_t lease;
	uint64_t ticks;	   /* of the record at `at`; of the block while that is not loaded */
	const uint8_t *at; /* the next record; NULL: not loaded */
	const uint8_t *end;
	uint64_t sequence; /* of the record at `at` */
	uint64_t run_seq;  /* that it is in the middle of; 0: none that counts */
	uint32_t tracee_id;
	uint32_t next_block; /* to load */
	uint32_t end_block;
	uint32_t heap_place;
	uint32_t next_waiter;
	uint32_t waits_for; /* a tracee */
	struct tw_decode_job *job;
	struct tw_decode_job *ahead;
	bool is_waiting;
	bool is_forced;	  /* has waited for nothing: goes on without being asked again */
	bool needs_check; /* begins in the middle of a run */
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
	bool is_changed; /* somebody was woken: look at the heap again */
	struct tw_runs runs;
	/* Blocks with switches in the order of time, and how far their runs are known: looked at as they are needed. */
	const struct tw_source_block **run_blocks;
	uint32_t run_count;
	uint32_t run_next;
	uint64_t runs_through;
	uint64_t margin_ticks;
	struct tw_decode_job *retired; /* whose records were handed out */
	uint64_t retired_bytes;
	int error; /* that tw_merge_step() met: TW_ENOMEM */
};

/* @filter: borrows, NULL or until the end. */
int tw_merge_init(struct tw_merge *merge, struct tw_capture *capture, const struct tw_capture_filter *filter);
void tw_merge_fini(struct tw_merge *merge);

/*
 * tw_merge_next - the cursor whose record at `at` is the next; NULL at the end.
 *
 * Returns 0 or TW_ENOMEM.
 */
int tw_merge_next(struct tw_merge *merge, struct tw_merge_cursor **out);

/* Passes the record at `at`; is the next record of this cursor also the next of all? */
bool tw_merge_step(struct tw_merge *merge, struct tw_merge_cursor *cursor);

/* What was handed out is needed no more. */
void tw_merge_let_go(struct tw_merge *merge);

/* ---- merge_runs.c; both answer 0 or TW_ENOMEM ---- */

/* Begins to look for runs: are there any, and in which blocks? */
int tw_merge_find_runs(struct tw_merge *merge);
/* Every run that may matter to a record of this time, and to those of a while after it. */
int tw_merge_find_runs_until(struct tw_merge *merge, uint64_t ticks);

#endif
