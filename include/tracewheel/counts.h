/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counts.h - calls of a capture that were counted and not recorded.
 *
 * A view that shows calls adds these to the events: the sum is the number of calls, exactly.  Times, callers and arguments of such
 * calls are not known, and their time lies in the function that called them; unless an aggregation was asked for.
 *
 * An aggregation sums these calls up in the program, by function and thread, as maps of bpftrace do:
 *
 *	by	each function has a row for each value of this key, or one row
 *	of	a number of each call: it is summed up, and with POWERS, STEPS and PARTS each row is one of these ranges of numbers
 *
 * The number of calls of a function that are in no row is the difference between tw_capture_count_next() and its rows: calls that had
 * not returned, or that an exception left, and calls of threads for whose rows there was no memory.
 *
 * Threads  as tracewheel/capture.h: after all events are read, where a stream is read as it arrives.
 */
#ifndef TRACEWHEEL_COUNTS_H
#define TRACEWHEEL_COUNTS_H

#include "tracewheel/capture.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Places whose calls are counted: from since_ns on they make no events, and their numbers are those of tw_capture_count_next().
 * A place that was recorded before has events as well; calls in progress then have their ends.
 */
struct tw_capture_counted {
	uint32_t place_id;
	uint64_t since_ns;
	/*
	 * 0: all calls are counted.  Else calls that took so long, or were around one that did, are events and not counted; the
	 * number is of calls that ended sooner, or whose end was not seen.
	 */
	uint64_t longer_ns;
	/*
	 * NULL: there is none.  Else calls that fulfil this condition on how they end, or were around one that was recorded, are events
	 * and not counted; "": all calls whose end can be seen are events.  Lent until the capture is closed.
	 */
	const char *condition;
	/* Calls in those that are events are events too; and the place decides nothing: only its calls in such calls are. */
	bool has_children, is_child;
};
/* False past the last.  In any order; *at is 0 at first. */
bool tw_capture_counted_next(const struct tw_capture *capture, uint32_t image, uint32_t *at,
			     struct tw_capture_counted *out);
/* How often a thread called a counted place. */
struct tw_capture_count {
	uint32_t place_id;
	uint32_t tracee_id; /* the thread as a process; 0: none, or calls of threads that are not told apart */
	uint64_t lease;	    /* differs between threads of one tracee_id; 0: calls of threads that are not told apart */
	uint64_t count;	    /* exact once its thread, image or recording has ended, see tw_capture_info.is_live */
};
/* NULL past the last.  While a stream is read, numbers grow. */
const struct tw_capture_count *tw_capture_count_next(const struct tw_capture *capture, uint32_t image, uint32_t *at);

/*
 * tw_capture_skip_to_mark - read a stream up to its next mark, and no events: for these numbers, which a recorder writes before
 * marks (tw_recorder_options.counts_ns).
 *
 * @mark_ns	the time of the mark; 0 at the end of the stream.
 *
 * Returns 1; 0 if the end was read before; TW_ENOTSUP (not a capture of tw_capture_open_stream()) or TW_ENOMEM.
 */
int tw_capture_skip_to_mark(struct tw_capture *capture, uint64_t *mark_ns);

/* A value of a call.  Numbers are part of the capture format. */
enum tw_aggregate_value {
	TW_AGGREGATE_NOTHING,
	TW_AGGREGATE_ARGUMENT, /* a register: a signed number */
	TW_AGGREGATE_CALLER,   /* of `by` only: the address to which the call returns */
	TW_AGGREGATE_RESULT,   /* rax: a signed number */
	TW_AGGREGATE_DURATION  /* of `of` only: ns */
};
/* The rows of a function and a value of `by`. */
enum tw_aggregate_form {
	TW_AGGREGATE_SUM,    /* one row */
	TW_AGGREGATE_POWERS, /* ranges of powers of two; 0 and each negative number are rows of their own */
	TW_AGGREGATE_STEPS,  /* equal ranges */
	TW_AGGREGATE_PARTS   /* 64 ranges for each power of two: within 0.8 % of the number */
};
struct tw_aggregation {
	uint8_t by, by_number; /* enum tw_aggregate_value; of an argument its register, 1 to 6 */
	uint8_t of, of_number;
	uint8_t form;
	uint8_t reserved[3];
	uint64_t step; /* of STEPS */
};
/* A row of a thread. */
struct tw_capture_aggregate {
	struct tw_aggregation aggregation;
	uint32_t place_id;
	uint32_t tracee_id; /* as in struct tw_capture_count */
	uint64_t lease;
	bool is_rest;	/* the calls that came when the thread had no room for their row; the next two are 0 */
	uint64_t key;	/* the value of `by` */
	int64_t number; /* the lowest of the range; 0 of SUM */
	uint64_t count; /* of calls; exact as in struct tw_capture_count */
	int64_t sum;	/* of the numbers, modulo 2^64 */
};
/* NULL past the last.  In any order; *at is 0 at first. */
const struct tw_capture_aggregate *tw_capture_aggregate_next(const struct tw_capture *capture, uint32_t image,
							     uint32_t *at);

#ifdef __cplusplus
}
#endif

#endif
