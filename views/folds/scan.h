/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan.h - reads the records of a capture once, block by block, for any number of counts.
 *
 * Faster than a pass (pass.h), and without its order: records of one stream come in theirs, streams in none. It is for what needs no
 * order, as numbers of calls.
 *
 * Threads  one; a count is called on the thread of tw_scan().
 */
#ifndef TW_VIEWS_SCAN_H
#define TW_VIEWS_SCAN_H

#include "tracewheel/capture.h"

#include <stddef.h>

struct tw_count {
	void *self;
	/* Returns 0 to go on, or an error, which ends the scan. */
	int (*see)(void *self, const struct tw_capture_batch *batch);
};

/*
 * tw_scan - read the blocks that a filter selects, as tw_capture_scan().
 *
 * @doing	"counting": a progress meter on standard error shows it; NULL: none.
 * @counts	each sees every block, in the order of the array.
 *
 * Returns 0 or the first error.
 */
int tw_scan(struct tw_capture *capture, const struct tw_capture_filter *filter, const struct tw_count *counts,
	    size_t count, const char *doing);

#endif
