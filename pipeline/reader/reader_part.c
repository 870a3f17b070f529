/* SPDX-License-Identifier: Apache-2.0 */
/* reader_part.c - what a part of a capture says of itself and of the whole (tracewheel/cut.h). */
#include "base/export.h"
#include "pipeline/format/definitions.h"
#include "pipeline/format/event.h"
#include "pipeline/reader/reader.h"

void tw_source_take_part(struct tw_capture *capture)
{
	struct tw_capture_info *info = &capture->info;

	for (uint32_t i = 0; i < capture->image_count && !info->is_part; i++) {
		const struct tw_def_part *part = capture->images[i]->catalog.part;

		if (!part || part->start_ns > part->end_ns || part->zero_ns > part->start_ns)
			continue;
		info->is_part = true;
		info->from_ns = part->from_ns;
		info->to_ns = part->to_ns;
		info->start_ns = part->start_ns;
		info->zero_ns = part->zero_ns;
		info->end_ns = part->end_ns;
		info->start_wall_ns = tw_clockmap_wall_ns(&capture->clocks, info->start_ns);
		info->has_moments_only &= !part->kinds[TW_EVENT_RETURN_FROM] && !part->kinds[TW_EVENT_EXCEPTION_FROM];
	}
}

TW_API const struct tw_capture_whole_place *tw_capture_whole_place_next(const struct tw_capture *capture,
									uint32_t image, uint32_t *at)
{
	return image >= capture->image_count ? NULL
					     : tw_catalog_next(&capture->images[image]->catalog.whole_places, at);
}

TW_API const uint64_t *tw_capture_whole_kinds(const struct tw_capture *capture)
{
	for (uint32_t i = 0; i < capture->image_count && capture->info.is_part; i++) {
		if (capture->images[i]->catalog.part)
			return capture->images[i]->catalog.part->kinds;
	}
	return NULL;
}

TW_API const struct tw_capture_line *tw_capture_line(const struct tw_capture *capture, uint32_t image, uint64_t address)
{
	return image >= capture->image_count ? NULL : tw_catalog_find(&capture->images[image]->catalog.lines, address);
}
