/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counts.h - calls of a capture that were counted and not recorded.
 *
 * A view that shows calls adds these to the events: the sum is the number of calls, exactly.  Times, callers and arguments of such
 * calls are not known, and their time lies in the function that called them.
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

#ifdef __cplusplus
}
#endif

#endif
