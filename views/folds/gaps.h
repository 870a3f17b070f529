/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gaps.h - when events of a thread are missing.
 *
 * A loss stands in a capture where it ends, behind the last lost event. A view that keeps state of several threads has to
 * know where it begins: from there on the state of its thread is unknown, while events of others still come.
 *
 * Memory  32 bytes a loss.
 */
#ifndef TW_VIEWS_GAPS_H
#define TW_VIEWS_GAPS_H

#include "tracewheel/capture.h"

#include <stddef.h>
#include <stdint.h>

#define TW_GAP_NO_THREAD UINT32_MAX

struct tw_gap {
	uint64_t first_ns, last_ns; /* of its lost events */
	uint32_t thread;	    /* number in the capture; TW_GAP_NO_THREAD: threads without a ring */
	uint32_t image;
};

struct tw_gaps {
	const struct tw_capture *capture;
	struct tw_gap *list; /* sorted by their beginning */
	size_t count, capacity;
	size_t next; /* for tw_gaps_begun() */
};

/* Reads the losses that a filter selects, and those behind its end. Returns 0 or an error; tw_gaps_free() in both cases. */
int tw_gaps_find(struct tw_gaps *gaps, struct tw_capture *capture, const struct tw_capture_filter *filter);
void tw_gaps_free(struct tw_gaps *gaps);

/*
 * The next gap whose first lost event is not later, and which was not returned before; NULL: none.  Lends until tw_gaps_free().
 * A lost event may have the time stamp of a recorded one before it, as the stack of a call has: gaps up to an event's own time are asked for behind it.
 */
const struct tw_gap *tw_gaps_begun(struct tw_gaps *gaps, uint64_t until_ns);

#endif
