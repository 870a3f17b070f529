/* SPDX-License-Identifier: Apache-2.0 */
/* marks.c - finds what the places of each image mean. */
#include "views/folds/marks.h"

#include <stdlib.h>

static bool mark_image(struct tw_marks *marks, const struct tw_capture *capture, uint32_t number, tw_mark_fn *mark,
		       const void *context)
{
	struct tw_marks_image *image = &marks->images[number];
	const struct tw_capture_place *place;
	uint32_t at = 0, count = 0;
	while ((place = tw_capture_place_next(capture, number, &at)))
		count = place->place_id >= count ? place->place_id + 1 : count;
	image->places = calloc(count + (size_t)1, 1);
	if (!image->places)
		return false;
	image->count = count;
	for (at = 0; (place = tw_capture_place_next(capture, number, &at));)
		marks->has_any |= (image->places[place->place_id] = mark(context, place)) != 0;
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
