/* SPDX-License-Identifier: Apache-2.0 */
/*
 * marks.h - what calls of each place mean to a fold that follows a few functions: a number from 1 to 255, found once by name.
 *
 * Memory  a byte a place.
 */
#ifndef TW_VIEWS_MARKS_H
#define TW_VIEWS_MARKS_H

#include "tracewheel/capture.h"

#include <stdbool.h>
#include <stdint.h>

/* 0: the place is none of these. */
typedef uint8_t tw_mark_fn(const void *context, uint32_t image, const struct tw_capture_place *place);

struct tw_marks {
	struct tw_marks_image {
		uint8_t *places;
		uint32_t count;
	} * images; /* NULL: none were made */
	uint32_t image_count;
	bool has_any; /* a place with a mark */
};

/*
 * One more than the largest number of a place of an image: as many rows has a table by place. Larger numbers than any program has, in
 * a hostile file, are left out.
 */
uint32_t tw_marks_rows(const struct tw_capture *capture, uint32_t image);

/* False without memory; tw_marks_free() in both cases. */
bool tw_marks_make(struct tw_marks *marks, const struct tw_capture *capture, tw_mark_fn *mark, const void *context);
void tw_marks_free(struct tw_marks *marks);

static inline uint8_t tw_marks_at(const struct tw_marks *marks, uint32_t image, uint32_t place)
{
	return image < marks->image_count && place < marks->images[image].count ? marks->images[image].places[place]
										: 0;
}

/* Of an event of a call (TW_CAPTURE_CALL to TW_CAPTURE_STACK), which has the number of a place. The numbers of others mean something else: look at the kind first. */
static inline uint8_t tw_marks_of(const struct tw_marks *marks, const struct tw_capture_event *event)
{
	return tw_marks_at(marks, event->image, event->id);
}

#endif
