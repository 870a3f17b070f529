/* SPDX-License-Identifier: Apache-2.0 */
/* places_inside.h - what is counted to find places: places.c has the scan, places_presumed.c the count of a pass. */
#ifndef TW_VIEWS_PLACES_INSIDE_H
#define TW_VIEWS_PLACES_INSIDE_H

#include "views/folds/places.h"

/* Of one place. */
struct tw_places_seen {
	uint64_t made, ended; /* calls; returns and exceptions */
	/* Of a scan. */
	uint32_t calls;
	uint32_t last_stream; /* + 1, of the last call */
	bool is_repeated;     /* called twice in succession on one thread, or more often than there are threads */
	/* Of a pass. */
	bool may_repeat; /* called twice on one thread before anything returned, as far as `streams` tells them apart */
	uint64_t streams; /* bit k % 64: called on stream k before anything returned */
};

/* Of one stream. */
struct tw_places_stream {
	uint64_t calls, events;
	bool is_of_states;
};

struct tw_places_scan {
	const struct tw_capture *capture;
	struct tw_places_seen **seen; /* by image and place */
	uint32_t stream_count;
	/* Of a pass. */
	bool is_presumed;
	bool is_wrong; /* a place never returns, as far as that is certain */
	uint64_t kinds[64];
	struct tw_places_stream *streams;
	uint64_t *unknown; /* by image: calls of places that the capture does not define */
};

#endif
