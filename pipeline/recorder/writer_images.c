/* SPDX-License-Identifier: Apache-2.0 */
/* writer_images.c - the images of a ring set that this process does not own, after their rings were stored. */
#include "base/sys.h"
#include "pipeline/recorder/writer.h"

static bool is_gone(const struct tw_writer *writer, uint32_t index)
{
	const struct tw_rs_seen_image *image = tw_rs_image(&writer->rs, index);

	return tw_sys_is_process_gone(image->process_id, image->process_start_time);
}

int tw_writer_end_images(struct tw_writer *writer)
{
	for (uint32_t i = 0; i < tw_rs_image_count(&writer->rs); i++) {
		enum tw_rs_image_state state = tw_rs_image_state(&writer->rs, i);
		bool has_news;
		int error;

		if (state != TW_RS_IMAGE_LIVE && state != TW_RS_IMAGE_ENDED)
			continue;
		/* PAIR rs.defs: acquire; only to check whether there is more. */
		has_news = tw_load_acquire(&tw_rs_head(&writer->rs, i)->defs_committed_bytes) >
			   writer->images[i].defs_seen;
		/* RELAXED rs.no_ring: only to check whether there is more. */
		has_news |=
			tw_load_relaxed(&tw_rs_head(&writer->rs, i)->no_ring_lost) > writer->images[i].no_ring_reported;
		if (!has_news && !writer->images[i].store.is_open)
			continue;
		error = tw_writer_end_image(writer, i, state == TW_RS_IMAGE_ENDED || is_gone(writer, i));
		if (error)
			return error;
	}
	return 0;
}

uint64_t tw_writer_count_living(const struct tw_writer *writer)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < tw_rs_image_count(&writer->rs); i++)
		count += tw_rs_image_state(&writer->rs, i) == TW_RS_IMAGE_LIVE && !is_gone(writer, i);
	return count;
}
