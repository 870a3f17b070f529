/* SPDX-License-Identifier: Apache-2.0 */
/* holes.h - where segments of a capture are absent, in words and as JSON. */
#ifndef TW_VIEWS_HOLES_H
#define TW_VIEWS_HOLES_H

#include "views/output/output.h"

#include "tracewheel/capture.h"

/* The most holes that text names, except that of `info`, which names all. */
#define TW_HOLES_SHOWN 5

/*
 * "segments 5 to 6 of process 4711, between 0.091402271 and 0.107618965 s, with 12 events".
 *
 * @number	from 0.
 * @text	TW_MISSING_TEXT_BYTES of missing.h.
 * Returns text; NULL past the last.
 */
const char *tw_missing_hole(const struct tw_capture *capture, uint32_t number, char *text);
/* "missing: segment 5 ..." for each of them, at most so many, and then how many more there are. */
void tw_missing_each_hole(const struct tw_capture *capture, uint32_t most, void (*put)(void *context, const char *line),
			  void *context);
/* The member "holes". */
void tw_missing_holes_json(struct tw_json *json, const struct tw_capture *capture);

#endif
