/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader_list.c - lists the contents of a capture's segments: blocks, definitions, losses and accounts.
 */
#include "base/error.h"
#include "base/grow.h"
#include "pipeline/format/event.h"
#include "pipeline/reader/reader.h"
#include "ringbuf/ringbuf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

struct lister {
	struct tw_capture *capture;
	struct tw_block_decoder *index_decoder;
	struct tw_block_decoder *decoder;
	struct tw_map streams; /* by image and lease */
	uint32_t file;
	struct tw_source_image *image;
	struct tw_segment_file *segment;
	struct tw_stream_end end;
};

/* ---- images ---- */

uint32_t tw_source_find_image(struct tw_capture *capture, const struct tw_segment_header *header)
{
	struct tw_source_image *image;

	for (uint32_t i = capture->image_count; i-- > 0;) {
		if (tw_segment_is_same_image(&capture->images[i]->header, header))
			return i;
	}
	image = tw_grow_one(capture->images, capture->image_count) ? calloc(1, sizeof *image) : NULL;
	if (!image)
		return TW_CAPTURE_NONE;
	image->header = *header;
	/* Until its definitions have been read, which streams bring between events. */
	image->info.program = image->info.command = image->info.host = image->info.node = image->info.node_name = "";
	image->info.lease = header->image_lease;
	image->info.process_start = header->process_start_time;
	image->info.capture_id = header->capture_id;
	image->info.is_overwriting = header->policy == TW_RB_OVERWRITE;
	memcpy(image->info.boot_id, header->boot_id, sizeof image->info.boot_id);
	image->info.image = capture->image_count;
	image->info.process_id = header->process_id;
	image->info.parent_process_id = header->parent_process_id;
	capture->images[capture->image_count] = image;
	return capture->image_count++;
}

/* ---- blocks ---- */

static int find_stream(struct lister *lister, const struct tw_block_header *header, uint32_t *out)
{
	struct tw_capture *capture = lister->capture;
	uint32_t image = lister->image->info.image;
	uint64_t key = header->ring_lease ^ (uint64_t)image << 48;
	struct tw_source_stream *stream;

	*out = tw_map_get(&lister->streams, key);
	if (*out != TW_MAP_NONE)
		return 0;
	if (!tw_grow_one(capture->streams, capture->stream_count) ||
	    !tw_map_put(&lister->streams, key, capture->stream_count))
		return TW_ENOMEM;
	*out = capture->stream_count++;
	stream = &capture->streams[*out];
	memset(stream, 0, sizeof *stream);
	stream->lease = header->ring_lease;
	stream->info.stream = *out;
	stream->info.image = image;
	stream->info.lease = header->ring_lease;
	return 0;
}

static int add_events(struct lister *lister, uint64_t offset, const struct tw_block_header *header)
{
	struct tw_capture *capture = lister->capture;
	uint32_t stream;
	int error = find_stream(lister, header, &stream);

	if (error)
		return error;
	if (!tw_grow_one(capture->blocks, capture->block_count))
		return TW_ENOMEM;
	capture->blocks[capture->block_count++] =
		(struct tw_source_block){.offset = offset, .file = lister->file, .stream = stream, .header = *header};
	capture->files[lister->file].events += header->event_count;
	capture->info.has_moments_only &= (header->flags & TW_BLOCK_FLAG_MOMENTS) != 0;
	return 0;
}

static int add_definitions(struct lister *lister, uint64_t offset, const struct tw_block_header *header)
{
	struct tw_catalog *catalog = &lister->image->catalog;
	const uint8_t *bytes;
	uint32_t count;
	int error;

	/* Each segment repeats earlier definitions. */
	if (header->end_pos <= catalog->log_end)
		return 0;
	error = tw_segment_read(lister->segment, offset, header, lister->decoder);
	if (!error)
		error = tw_block_decode_definitions(lister->decoder, header, &bytes, &count);
	if (!error)
		error = tw_catalog_add(catalog, bytes, count);
	if (error == TW_ENOMEM)
		return error;
	if (error)
		tw_source_note_damage(lister->capture, lister->file, offset, tw_block_file_bytes(header), error,
				      "these definitions are damaged; another segment may repeat them");
	else if (header->first_pos <= catalog->log_end)
		catalog->log_end = header->end_pos;
	return 0;
}

/* Keeps the largest number of each cause. */
static int add_account(struct lister *lister, uint64_t offset, const struct tw_block_header *header)
{
	const struct tw_format_account *entries;
	const uint8_t *bytes;
	int error = tw_segment_read(lister->segment, offset, header, lister->decoder);

	if (!error)
		error = tw_block_decode_bytes(lister->decoder, header, &bytes);
	if (error) {
		tw_source_note_damage(lister->capture, lister->file, offset, tw_block_file_bytes(header), error,
				      "this account of missing data is damaged");
		return 0;
	}
	entries = (const struct tw_format_account *)(const void *)bytes;
	for (uint32_t i = 0; !error && i < header->encoded_bytes / sizeof *entries; i++)
		error = tw_source_tell(lister->capture, lister->image->info.capture_id, entries[i].cause,
				       entries[i].count);
	return error;
}

/* Counts are cumulative: an increase becomes a loss record at the time of the last loss. */
static int add_loss(struct lister *lister, const struct tw_block_header *header)
{
	struct tw_source_image *image = lister->image;
	uint64_t lost = header->lost[TW_RB_LOST_NO_RING];

	if (lost <= image->no_ring_reported)
		return 0;
	if (!tw_grow_one(image->losses, image->loss_count))
		return TW_ENOMEM;
	image->losses[image->loss_count++] =
		(struct tw_rb_loss_record){.record = {.ticks = header->last_ticks,
						      .head = TW_RB_HEAD(TW_EVENT_LOSS, 0,
									 sizeof(struct tw_rb_loss_record), 0)},
					   .first_ticks = header->first_ticks,
					   .lost = {[TW_RB_LOST_NO_RING] = lost - image->no_ring_reported}};
	image->no_ring_reported = lost;
	return 0;
}

static int visit_block(void *context, uint64_t offset, const struct tw_block_header *header)
{
	struct lister *lister = context;

	if (header->type != TW_BLOCK_INDEX && !tw_clockmap_add(&lister->capture->clocks, &header->clock))
		return TW_ENOMEM;
	switch (header->type) {
	case TW_BLOCK_EVENTS: return add_events(lister, offset, header);
	case TW_BLOCK_DEFINITIONS: return add_definitions(lister, offset, header);
	case TW_BLOCK_LOSS: return add_loss(lister, header);
	case TW_BLOCK_ACCOUNT: return add_account(lister, offset, header);
	case TW_BLOCK_MARK: tw_stream_end_mark(&lister->end, header->first_ticks); return 0;
	default: return 0; /* of a later version */
	}
}

static void visit_damage(void *context, uint64_t offset, uint64_t bytes, int error, const char *reason)
{
	struct lister *lister = context;

	tw_source_note_damage(lister->capture, lister->file, offset, bytes, error, reason);
}

/* ---- segments ---- */

void tw_source_begin_image(struct tw_source_image *image, const struct tw_segment_header *header)
{
	if (image->has_begun || !header->image_segment)
		return;
	image->has_begun = true;
	image->no_ring_reported = image->no_ring_before = header->lost_before[TW_LOST_NO_RING];
}

/* Takes over what the segment says of the others of its image. Segments come in the order of their numbers. */
static void take_header(struct tw_source_file *file, struct tw_source_image *image,
			const struct tw_segment_header *header)
{
	file->is_listed = true;
	file->image_segment = header->image_segment;
	file->segments_kept = header->segments_kept;
	file->first_event_ns = header->first_event_ns;
	file->events_before = header->events_before;
	memcpy(file->lost_before, header->lost_before, sizeof file->lost_before);
	tw_source_begin_image(image, header);
}

static void take_end(struct tw_source_file *file, struct tw_source_image *image, const struct tw_segment_found *found)
{
	file->info = (struct tw_capture_segment){
		.file = file->name,
		.number = file->number,
		.image = image->info.image,
		.image_segment = file->image_segment,
		.events_before = file->events_before,
		.events = file->events,
		.is_closed = found->is_closed,
		.is_last = found->is_closed && (found->totals.ending & (TW_SEGMENT_LAST | TW_SEGMENT_FINAL)),
	};
	file->is_closed = found->is_closed;
	file->is_last = found->is_closed && (found->totals.ending & (TW_SEGMENT_LAST | TW_SEGMENT_FINAL));
	file->is_short = found->is_closed && (found->totals.ending & TW_SEGMENT_SHORT);
	file->total_events = found->totals.events;
	image->is_final |= found->is_closed && (found->totals.ending & TW_SEGMENT_FINAL);
	if (file->image_segment < image->last_segment)
		return;
	image->last_segment = file->image_segment;
	image->is_last = file->is_last;
	image->events_through = file->events_before + file->events;
}

/* A recorder, still running or killed, has made the file and not written its header yet.  Only the newest segment can be so. */
static bool is_begun(const struct tw_capture *capture, uint32_t index)
{
	struct stat status;

	return index + 1 == capture->file_count &&
	       !fstatat(capture->directory_fd, capture->files[index].name, &status, AT_SYMLINK_NOFOLLOW) &&
	       S_ISREG(status.st_mode) && !status.st_size;
}

static int list_segment(struct lister *lister, uint32_t index)
{
	const struct tw_segment_visitor visitor = {visit_block, visit_damage, lister};
	struct tw_capture *capture = lister->capture;
	struct tw_segment_found found;
	uint32_t image;
	int error;

	lister->file = index;
	lister->segment = tw_source_use_file(capture, index);
	if (!lister->segment) {
		/* Only to learn the reason. */
		error = tw_segment_open(capture->directory_fd, capture->files[index].name, &capture->files[index].file);
		tw_segment_file_close(&capture->files[index].file);
		/* A recorder still running may have removed it since the folder was listed. */
		capture->files[index].is_gone =
			capture->info.is_live && (error == TW_ENOENT || is_begun(capture, index));
		if (!capture->files[index].is_gone)
			tw_source_note_damage(capture, index, 0, 0, error ? error : TW_EIO,
					      "the segment cannot be read");
		return error == TW_ENOMEM ? error : 0;
	}
	if (tw_source_is_foreign(capture, &lister->segment->header)) {
		tw_source_unuse_file(capture, index);
		tw_source_note_damage(capture, index, 0, 0, TW_ENOTSUP, TW_SOURCE_IS_FOREIGN);
		return 0;
	}
	image = tw_source_find_image(capture, &lister->segment->header);
	error = image == TW_CAPTURE_NONE ? TW_ENOMEM : 0;
	if (!error && !tw_clockmap_add(&capture->clocks, &lister->segment->header.clock))
		error = TW_ENOMEM;
	if (!error) {
		capture->files[index].image = image;
		lister->image = capture->images[image];
		capture->info.segments++;
		capture->info.file_bytes += lister->segment->bytes;
		take_header(&capture->files[index], lister->image, &lister->segment->header);
		error = tw_segment_list(lister->segment, lister->index_decoder, &visitor, &found);
	}
	if (!error) {
		capture->info.is_complete &= found.is_closed && !(found.totals.ending & TW_SEGMENT_SHORT);
		take_end(&capture->files[index], lister->image, &found);
	}
	tw_source_unuse_file(capture, index);
	if (error == TW_EIO) {
		tw_source_note_damage(capture, index, 0, 0, error, "the segment could be read in part only");
		error = 0;
	}
	return error;
}

/* Nothing could be read: returns the reason, if it is the same for all files. */
static int error_of_nothing(const struct tw_capture *capture)
{
	int error = capture->damage_count ? capture->damages[0]->info.error : TW_EFORMAT;

	if (capture->info.is_live && !capture->damage_count)
		return 0;
	for (uint32_t i = 1; i < capture->damage_count; i++) {
		if (capture->damages[i]->info.error != error)
			return TW_EFORMAT;
	}
	return error;
}

int tw_source_list_segments(struct tw_capture *capture)
{
	struct lister lister = {.capture = capture};
	int error = 0;

	capture->info.is_complete = true;
	lister.index_decoder = tw_block_decoder_create();
	lister.decoder = tw_block_decoder_create();
	if (!lister.index_decoder || !lister.decoder)
		error = TW_ENOMEM;
	for (uint32_t i = 0; !error && i < capture->file_count; i++)
		error = list_segment(&lister, i);
	tw_source_sum_reports(capture);
	tw_block_decoder_destroy(lister.index_decoder);
	tw_block_decoder_destroy(lister.decoder);
	tw_map_fini(&lister.streams);
	if (!error && !capture->info.segments)
		error = error_of_nothing(capture);
	return error;
}

/* ---- a stream in a file: one file, with the pieces of all segments mixed ---- */

static int begin_piece(struct lister *lister, struct tw_map *segments, const struct tw_segment_header *header)
{
	struct tw_capture *capture = lister->capture;
	uint32_t image = tw_source_find_image(capture, header);

	if (image == TW_CAPTURE_NONE || !tw_map_put(segments, header->segment_number, image) ||
	    !tw_clockmap_add(&capture->clocks, &header->clock))
		return TW_ENOMEM;
	lister->image = capture->images[image];
	capture->info.segments = segments->count;
	tw_source_begin_image(lister->image, header);
	return 0;
}

/* Handles the end of a segment, with its totals. */
static int end_piece(struct lister *lister, uint64_t offset, const struct tw_block_header *header)
{
	struct tw_segment_totals totals;
	const uint8_t *bytes;
	int error = tw_segment_read(lister->segment, offset, header, lister->decoder);

	if (!error)
		error = tw_block_decode_bytes(lister->decoder, header, &bytes);
	if (!error && header->encoded_bytes < sizeof totals)
		error = TW_EFORMAT;
	if (error)
		return error;
	memcpy(&totals, bytes, sizeof totals);
	lister->capture->info.is_complete &= !(totals.ending & TW_SEGMENT_SHORT);
	lister->image->is_final |= (totals.ending & TW_SEGMENT_FINAL) != 0;
	tw_stream_end_take(&lister->end, totals.ending);
	return 0;
}

static int list_pieces(struct lister *lister, struct tw_map *segments)
{
	struct tw_capture *capture = lister->capture;
	uint64_t offset = 0;
	int error = 0;

	while (offset < lister->segment->bytes && !error) {
		struct tw_segment_piece piece;

		error = tw_segment_piece_at(lister->segment, offset, &piece);
		if (!error && piece.is_trailer) {
			/* A closed segment, alone or after others, with its index. */
			offset += piece.bytes;
			continue;
		}
		if (!error && !piece.is_block) {
			error = begin_piece(lister, segments, &piece.segment);
		} else if (!error && piece.block.type == TW_BLOCK_INDEX) {
			error = end_piece(lister, offset, &piece.block);
		} else if (!error) {
			error = visit_block(lister, offset, &piece.block);
		}
		offset += error ? 0 : piece.bytes;
	}
	if (error == TW_ENOMEM)
		return error;
	if (error)
		tw_source_note_damage(capture, 0, offset, lister->segment->bytes - offset, error, TW_STREAM_IS_CUT);
	else if (!tw_stream_end_is_there(&lister->end, segments->count))
		tw_source_note_damage(capture, 0, offset, 0, TW_EFORMAT, TW_STREAM_HAS_NO_END);
	return 0;
}

int tw_source_list_stream(struct tw_capture *capture)
{
	struct lister lister = {.capture = capture, .segment = &capture->files[0].file};
	struct tw_map segments = {0};
	int error = TW_ENOMEM;

	capture->info.is_complete = true;
	capture->info.file_bytes = lister.segment->bytes;
	lister.decoder = tw_block_decoder_create();
	if (lister.decoder)
		error = list_pieces(&lister, &segments);
	tw_source_sum_reports(capture);
	tw_block_decoder_destroy(lister.decoder);
	tw_map_fini(&segments);
	tw_map_fini(&lister.streams);
	return error;
}
