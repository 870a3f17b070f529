/* SPDX-License-Identifier: Apache-2.0 */
/* marks.c - finds what the places of each image mean. */
#include "views/folds/marks.h"

#include <stdlib.h>

/* Ids are small and dense. */
#define PLACE_ID_MAX (UINT32_C(1) << 26)

uint32_t tw_marks_rows(const struct tw_capture *capture, uint32_t image)
{
	const struct tw_capture_place *place;
	uint32_t highest = 0;
	for (uint32_t at = 0; (place = tw_capture_place_next(capture, image, &at));) {
		if (place->place_id < PLACE_ID_MAX && place->place_id > highest)
			highest = place->place_id;
	}
	return highest + 1;
}

static bool mark_image(struct tw_marks *marks, const struct tw_capture *capture, uint32_t number, tw_mark_fn *mark,
		       const void *context)
{
	struct tw_marks_image *image = &marks->images[number];
	const struct tw_capture_place *place;
	uint32_t count = tw_marks_rows(capture, number);
	image->places = calloc(count, 1);
	if (!image->places)
		return false;
	image->count = count;
	for (uint32_t at = 0; (place = tw_capture_place_next(capture, number, &at));)
		if (place->place_id < count)
			marks->has_any |= (image->places[place->place_id] = mark(context, number, place)) != 0;
	return true;
}

bool tw_marks_make(struct tw_marks *marks, const struct tw_capture *capture, tw_mark_fn *mark, const void *context)
{
	struct tw_capture_info info;
	tw_capture_info(capture, &info);
	*marks = (struct tw_marks){.images = calloc(info.images + (size_t)1, sizeof *marks->images)};
	marks->image_count = marks->images ? info.images : 0;
	bool is_done = marks->images;
	for (uint32_t i = 0; is_done && i < info.images; i++)
		is_done = mark_image(marks, capture, i, mark, context);
	return is_done;
}

void tw_marks_free(struct tw_marks *marks)
{
	for (uint32_t i = 0; i < marks->image_count; i++)
		free(marks->images[i].places);
	free(marks->images);
	*marks = (struct tw_marks){0};
}
