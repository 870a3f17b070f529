/* SPDX-License-Identifier: Apache-2.0 */
/* counted.h - functions of a capture whose calls were counted and not recorded, for a sentence about all of them. */
#ifndef TW_VIEWS_COUNTED_H
#define TW_VIEWS_COUNTED_H

#include "tracewheel/counts.h"

struct tw_counted {
	uint64_t functions; /* counted, called or not */
	uint64_t calls;
	uint64_t since_ns; /* the earliest beginning; 0: nothing is counted */
	uint64_t last_ns;  /* the latest */
	uint64_t
		longer; /* of these functions, those of which some calls are recorded, by how they end, or as children */
	bool has_children;  /* calls in recorded calls are recorded too */
	uint64_t longer_ns; /* calls of longer_ns or longer; the shortest; 0: length does not decide */
	/* Calls that fulfil this condition, lent as by tw_capture_counted_next(); "": they have different ones; NULL: none decides. */
	const char *condition;
};

/* Sums up a capture.  Without memory: nothing. */
void tw_counted_sum(const struct tw_capture *capture, struct tw_counted *out);

/*
 * "1,234 calls of 2 functions are counted, not recorded, since 0.25 s"; "only calls of 1 ms or longer are recorded, and self times
 * contain shorter ones: 1,234 others of 2 functions are counted, not recorded, since the start"; "only calls of which 'result < 0' is true,
 * and those around them, are recorded, and self times contain the rest: ..."; "only calls of 10 ms or longer, and the calls in them, are recorded: ...": without a full stop; "" where nothing
 * is counted.
 */
#define TW_COUNTED_TEXT_BYTES 800
const char *tw_counted_clause(const struct tw_capture *capture, char text[TW_COUNTED_TEXT_BYTES]);
/* Says it on standard error, for views that show events. */
void tw_counted_say(const struct tw_capture *capture);

#endif
