/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opens.h - what a part of a capture needs from outside it: the calls that are open at its beginning, what last put each process on
 * a scheduler or off it, and what is derived from all records of the whole.
 *
 * Threads  one.
 */
#ifndef TW_VIEWS_OPENS_H
#define TW_VIEWS_OPENS_H

#include "tracewheel/cut.h"

struct tw_opens {
	struct tw_cut_event *events; /* sorted by stream and sequence */
	size_t event_count;
	struct tw_capture_whole_place *places;
	size_t place_count;
	uint64_t kinds[64];
};

/*
 * tw_opens_find - reads the events before filter->from_ns, if it has one, and the records of the whole.
 *
 * @filter	the selection, as a view of it has it.
 *
 * Returns 0 or an error; tw_opens_free() in both cases.
 */
int tw_opens_find(struct tw_opens *out, struct tw_capture *capture, const struct tw_capture_filter *filter);
void tw_opens_free(struct tw_opens *opens);

#endif
