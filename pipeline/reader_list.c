/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader_list.c - what the segments of a capture hold, put together.
 *
 * Blocks of one lease come from any number of segments (rotation, recovery); ordered by position they
 * are one stream.  A stretch that is there twice is taken once, a step in the sequence numbers is the
 * number of records that are missing.
 */
#include "base/error.h"
#include "pipeline/event.h"
#include "pipeline/reader.h"
#include "ringbuf/ringbuf.h"

#include <errno.h>
#include <stdlib.h>

struct lister {
	struct tw_capture *capture;
	struct tw_block_decoder *index_decoder;
	struct tw_block_decoder *decoder;
	struct tw_idmap streams; /* by image and lease */
	uint32_t file;
	struct tw_source_image *image;
	struct tw_segment_file *segment;
};

/* ---- images ---- */

static bool is_same_image(const struct tw_segment_header *a, const struct tw_segment_header *b)
{
	return a->image_lease == b->image_lease && a->process_id == b->process_id &&
	       a->process_start_time == b->process_start_time && a->capture_id == b->capture_id &&
	       memcmp(a->boot_id, b->boot_id, sizeof a->boot_id) == 0;
}

uint32_t tw_source_find_image(struct tw_capture *capture, const struct tw_segment_header *header)
{
	struct tw_source_image *image, **more;

	for (uint32_t i = capture->image_count; i-- > 0;) {
		if (is_same_image(&capture->images[i]->header, header))
			return i;
	}
	more = tw_source_grow(capture->images, capture->image_count, sizeof *more);
	image = calloc(1, sizeof *image);
	if (more)
		capture->images = more;
	if (!more || !image) {
		free(image);
		return TW_CAPTURE_NONE;
	}
	image->header = *header;
	image->info.lease = header->image_lease;
	image->info.process_start = header->process_start_time;
	image->info.capture_id = header->capture_id;
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
	struct tw_source_stream *more;

	*out = tw_idmap_get(&lister->streams, key);
	if (*out != TW_IDMAP_NONE)
		return 0;
	more = tw_source_grow(capture->streams, capture->stream_count, sizeof *more);
	if (!more)
		return TW_ENOMEM;
	capture->streams = more;
	if (!tw_idmap_put(&lister->streams, key, capture->stream_count))
		return TW_ENOMEM;
	*out = capture->stream_count++;
	more += *out;
	memset(more, 0, sizeof *more);
	more->lease = header->ring_lease;
	more->info.stream = *out;
	more->info.image = image;
	more->info.lease = header->ring_lease;
	return 0;
}

static int add_events(struct lister *lister, uint64_t offset, const struct tw_block_header *header)
{
	struct tw_capture *capture = lister->capture;
	struct tw_source_block *more;
	uint32_t stream;
	int error = find_stream(lister, header, &stream);

	if (error)
		return error;
	more = tw_source_grow(capture->blocks, capture->block_count, sizeof *more);
	if (!more)
		return TW_ENOMEM;
	capture->blocks = more;
	more[capture->block_count++] = (struct tw_source_block){
		.offset = offset, .file = lister->file, .stream = stream, .header = *header};
	capture->files[lister->file].events += header->event_count;
	return 0;
}

static int add_definitions(struct lister *lister, uint64_t offset, const struct tw_block_header *header)
{
	struct tw_catalog *catalog = &lister->image->catalog;
	const uint8_t *bytes;
	int error;

	/* Each segment repeats what came before it. */
	if (header->end_pos <= catalog->log_end)
		return 0;
	error = tw_segment_read(lister->segment, offset, header, lister->decoder);
	if (!error)
		error = tw_block_decode_bytes(lister->decoder, header, &bytes);
	if (!error)
		error = tw_catalog_add(catalog, bytes, header->encoded_bytes);
	if (error == TW_ENOMEM)
		return error;
	if (error)
		tw_source_note_damage(lister->capture, lister->file, offset, tw_block_file_bytes(header),
				      error,
				      "these definitions are damaged; another segment may repeat them");
	else if (header->first_pos <= catalog->log_end)
		catalog->log_end = header->end_pos;
	return 0;
}

/* Of each cause the largest number. */
static int add_account(struct lister *lister, uint64_t offset, const struct tw_block_header *header)
{
	const struct tw_format_account *entries;
	const uint8_t *bytes;
	int error = tw_segment_read(lister->segment, offset, header, lister->decoder);

	if (!error)
		error = tw_block_decode_bytes(lister->decoder, header, &bytes);
	if (error) {
		tw_source_note_damage(lister->capture, lister->file, offset, tw_block_file_bytes(header), error,
				      "this account of what is missing is damaged");
		return 0;
	}
	entries = (const struct tw_format_account *)(const void *)bytes;
	for (uint32_t i = 0; i < header->encoded_bytes / sizeof *entries; i++) {
		uint64_t *told = &lister->capture->told[entries[i].cause < TW_ACCOUNT_CAUSES ? entries[i].cause : 0];

		if (entries[i].count > *told)
			*told = entries[i].count;
	}
	return 0;
}

/* Cumulative: what is more than before becomes a loss record at the time of the last of them. */
static int add_loss(struct lister *lister, const struct tw_block_header *header)
{
	struct tw_source_image *image = lister->image;
	uint64_t lost = header->lost[TW_RB_LOST_NO_RING];
	const size_t words = sizeof(struct tw_rb_loss_record) / 8;
	uint64_t *more;

	if (lost <= image->no_ring_told)
		return 0;
	more = tw_source_grow(image->losses, image->loss_count, words * sizeof *more);
	if (!more)
		return TW_ENOMEM;
	image->losses = more;
	more += words * image->loss_count++;
	memset(more, 0, words * sizeof *more);
	more[0] = header->last_ticks;
	more[1] = TW_RB_HEAD(TW_EVENT_LOSS, 0, sizeof(struct tw_rb_loss_record), 0);
	more[2] = header->first_ticks;
	more[3 + TW_RB_LOST_NO_RING] = lost - image->no_ring_told;
	image->no_ring_told = lost;
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
	image->no_ring_told = image->no_ring_before = header->lost_before[TW_LOST_NO_RING];
}

/* What the segment says of the others of its image.  Segments come in the order of their numbers. */
static void take_header(struct tw_source_file *file, struct tw_source_image *image, const struct tw_segment_header *header)
{
	file->is_listed = true;
	file->image_segment = header->image_segment;
	file->segments_kept = header->segments_kept;
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
		/* Only to learn why. */
		error = tw_segment_open(capture->directory_fd, capture->files[index].name,
					&capture->files[index].file);
		tw_segment_file_close(&capture->files[index].file);
		/* A living recorder may have removed it since the folder was listed. */
		capture->files[index].is_gone = error == TW_ENOENT && capture->info.is_live;
		if (!capture->files[index].is_gone)
			tw_source_note_damage(capture, index, 0, 0, error ? error : TW_EIO,
					      "the segment cannot be read");
		return error == TW_ENOMEM ? error : 0;
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

/* Nothing could be read: says why, if all failed for the same reason. */
static int error_of_nothing(const struct tw_capture *capture)
{
	int error = capture->damage_count ? capture->damages[0]->info.error : TW_EFORMAT;

	if (capture->info.is_live && !capture->file_count)
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
	tw_block_decoder_destroy(lister.index_decoder);
	tw_block_decoder_destroy(lister.decoder);
	tw_idmap_fini(&lister.streams);
	if (!error && !capture->info.segments)
		error = error_of_nothing(capture);
	return error;
}

/* ---- a stream in a file: one file, in which the pieces of all segments stand mixed ---- */

static int begin_piece(struct lister *lister, struct tw_idmap *segments, const struct tw_segment_header *header)
{
	struct tw_capture *capture = lister->capture;
	uint32_t image = tw_source_find_image(capture, header);

	if (image == TW_CAPTURE_NONE || !tw_idmap_put(segments, header->segment_number, image) ||
	    !tw_clockmap_add(&capture->clocks, &header->clock))
		return TW_ENOMEM;
	lister->image = capture->images[image];
	capture->info.segments = segments->count;
	tw_source_begin_image(lister->image, header);
	return 0;
}

/* The end of a segment, with its totals. */
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
	return 0;
}

static int list_pieces(struct lister *lister, struct tw_idmap *segments)
{
	struct tw_capture *capture = lister->capture;
	uint64_t offset = 0;
	uint32_t ended = 0;
	int error = 0;

	while (offset < lister->segment->bytes && !error) {
		struct tw_segment_piece piece;

		error = tw_segment_piece_at(lister->segment, offset, &piece);
		if (!error && piece.is_trailer) {
			/* A closed segment, by itself or behind others: whole with its index. */
			offset += piece.bytes;
			continue;
		}
		if (!error && !piece.is_block) {
			error = begin_piece(lister, segments, &piece.segment);
		} else if (!error && piece.block.type == TW_BLOCK_INDEX) {
			error = end_piece(lister, offset, &piece.block);
			ended++;
		} else if (!error) {
			error = visit_block(lister, offset, &piece.block);
		}
		offset += error ? 0 : piece.bytes;
	}
	if (error == TW_ENOMEM)
		return error;
	if (error)
		tw_source_note_damage(capture, 0, offset, lister->segment->bytes - offset, error, TW_STREAM_IS_CUT);
	else if (ended < segments->count)
		tw_source_note_damage(capture, 0, offset, 0, TW_EFORMAT, TW_STREAM_HAS_NO_END);
	return 0;
}

int tw_source_list_stream(struct tw_capture *capture)
{
	struct lister lister = {.capture = capture, .segment = &capture->files[0].file};
	struct tw_idmap segments = {0};
	int error = TW_ENOMEM;

	capture->info.is_complete = true;
	capture->info.file_bytes = lister.segment->bytes;
	lister.decoder = tw_block_decoder_create();
	if (lister.decoder)
		error = list_pieces(&lister, &segments);
	tw_block_decoder_destroy(lister.decoder);
	tw_idmap_fini(&segments);
	tw_idmap_fini(&lister.streams);
	return error;
}

/* ---- putting in order ---- */

static int compare_blocks(const void *a, const void *b)
{
	const struct tw_source_block *left = a, *right = b;
	const struct tw_block_header *x = &left->header, *y = &right->header;

	if (left->stream != right->stream)
		return left->stream < right->stream ? -1 : 1;
	if (x->first_pos != y->first_pos)
		return x->first_pos < y->first_pos ? -1 : 1;
	if (x->end_pos != y->end_pos)
		return x->end_pos < y->end_pos ? -1 : 1;
	if (x->first_sequence != y->first_sequence)
		return x->first_sequence < y->first_sequence ? -1 : 1;
	return 0;
}

/* What of a block is new behind those before it; false: nothing. */
static bool is_new(struct tw_source_block *block, uint64_t end_pos, uint64_t end_sequence)
{
	struct tw_block_header *header = &block->header;
	uint64_t known;

	/* A loss that stands at the end of a ring takes no room in it. */
	if (header->first_pos == header->end_pos)
		return header->end_sequence > end_sequence;
	if (header->first_pos >= end_pos)
		return true;
	if (header->end_pos <= end_pos || header->flags & TW_BLOCK_FLAG_SNAPSHOT)
		return false;
	known = end_pos - header->first_pos;
	if (known >= header->raw_bytes)
		return false;
	block->skip_bytes = (uint32_t)known;
	return true;
}

/* What the first block of a lease that is here tells of those that are not: records, losses, own time. */
static void take_before(struct tw_capture *capture, struct tw_source_stream *stream, const struct tw_source_block *block)
{
	const struct tw_block_header *header = &block->header;
	uint64_t records = (uint64_t)header->event_count + header->switch_count + header->own_count;
	uint64_t lost_inside = header->end_sequence - header->first_sequence, lost = 0;

	lost_inside = lost_inside > records ? lost_inside - records : 0;
	if (!header->first_sequence)
		return;
	for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++) {
		stream->lost_before[cause] = header->lost[cause];
		lost += header->lost[cause];
	}
	for (unsigned kind = 0; kind < TW_FORMAT_OWN_KINDS; kind++)
		stream->own[kind] = header->own[kind];
	if (lost_inside || header->own_count)
		tw_source_take_inside(capture, stream, block);
	lost = lost > lost_inside ? lost - lost_inside : 0;
	stream->records_before = header->first_sequence > lost ? header->first_sequence - lost : 0;
}

/* Are segments of the image missing between the files of two blocks? */
static bool is_hole(const struct tw_capture *capture, uint32_t from, uint32_t to)
{
	const struct tw_source_file *a = &capture->files[from], *b = &capture->files[to];

	if (from == to)
		return false;
	if (a->image_segment && b->image_segment)
		return capture->files[from].image_segment + 1 < capture->files[to].image_segment;
	return to > from && b->number - a->number != to - from;
}

static void add_to_stream(struct tw_capture *capture, struct tw_source_stream *stream,
			  struct tw_source_block *block, uint64_t end_sequence)
{
	const struct tw_block_header *header = &block->header;
	struct tw_capture_stream *info = &stream->info;
	size_t hint = 0;
	uint64_t start_ns = tw_clockmap_ns(&capture->clocks, header->first_ticks, &hint);
	uint64_t end_ns = tw_clockmap_ns(&capture->clocks, header->last_ticks, &hint);

	if (!stream->block_count) {
		info->thread_id = header->thread_id;
		info->session_index = header->session_index;
		info->scheduler_id = header->scheduler_id;
		info->tracee_id = header->tracee_id;
		info->start_ns = start_ns;
		take_before(capture, stream, block);
	} else if (header->first_sequence > end_sequence) {
		if (is_hole(capture, capture->blocks[stream->first_block + stream->block_count - 1].file, block->file))
			stream->hole_records += header->first_sequence - end_sequence;
		else
			info->damaged_records += header->first_sequence - end_sequence;
	}
	/* The last name that it had. */
	memcpy(info->thread_name, header->thread_name, sizeof header->thread_name);
	stream->block_count++;
	info->events += header->event_count;
	for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++) {
		if (header->lost[cause] > stream->lost_before[cause] + info->lost[cause])
			info->lost[cause] = header->lost[cause] - stream->lost_before[cause];
	}
	info->start_ns = start_ns < info->start_ns ? start_ns : info->start_ns;
	info->end_ns = end_ns > info->end_ns ? end_ns : info->end_ns;
	capture->info.raw_bytes += header->raw_bytes;
}

static void keep_new_blocks(struct tw_capture *capture)
{
	uint64_t end_pos = 0, end_sequence = 0;
	uint32_t kept = 0;

	if (capture->block_count)
		qsort(capture->blocks, capture->block_count, sizeof *capture->blocks, compare_blocks);
	for (uint32_t i = 0; i < capture->block_count; i++) {
		struct tw_source_block *block = &capture->blocks[i];
		struct tw_source_stream *stream = &capture->streams[block->stream];

		if (!stream->block_count) {
			stream->first_block = kept;
			end_pos = end_sequence = 0;
		} else if (!is_new(block, end_pos, end_sequence)) {
			capture->info.duplicate_blocks++;
			continue;
		}
		add_to_stream(capture, stream, block, end_sequence);
		end_pos = block->header.end_pos > end_pos ? block->header.end_pos : end_pos;
		end_sequence = block->header.end_sequence;
		capture->blocks[kept++] = *block;
	}
	capture->block_count = kept;
}

static void sum_up_images(struct tw_capture *capture)
{
	struct tw_capture_info *info = &capture->info;

	for (uint32_t i = 0; i < capture->image_count; i++) {
		struct tw_source_image *image = capture->images[i];
		struct tw_catalog *catalog = &image->catalog;
		size_t hint = 0;

		tw_catalog_finish(catalog);
		image->info.program = catalog->program ? catalog->program : "";
		image->info.command = catalog->command ? catalog->command : "";
		image->info.command_bytes = catalog->command ? catalog->command_bytes : 0;
		image->info.host = catalog->host ? catalog->host : "";
		image->info.is_final = image->is_final;
		image->info.no_ring_lost = image->no_ring_told - image->no_ring_before;
		image->info.start_ns =
			tw_clockmap_ns(&capture->clocks, image->header.image_start_ticks, &hint);
		info->lost[TW_LOST_NO_RING] += image->info.no_ring_lost;
		info->images += image->header.image_lease != 0;
		info->modules += catalog->modules.count;
		info->functions += catalog->functions.count;
		info->places += catalog->places.count;
	}
}

/* What tells two threads apart that had one number in turn: their start, or the tracee that each of them was from its first event. */
static uint64_t thread_key(const struct tw_capture *capture, const struct tw_source_stream *stream)
{
	const struct tw_block_header *first = &capture->blocks[stream->first_block].header;
	const struct tw_capture_tracee *tracee;

	if (first->thread_start)
		return first->thread_start;
	tracee = tw_catalog_find(&capture->images[stream->info.image]->catalog.tracees, stream->info.tracee_id);
	return tracee && tracee->thread_id == stream->info.thread_id ? tracee->tracee_id : 0;
}

struct thread_of {
	uint32_t stream, image;
	int32_t thread_id;
	uint64_t key;
};

static int by_thread(const void *a, const void *b)
{
	const struct thread_of *x = a, *y = b;

	if (x->image != y->image)
		return x->image < y->image ? -1 : 1;
	if (x->thread_id != y->thread_id)
		return x->thread_id < y->thread_id ? -1 : 1;
	return x->key < y->key ? -1 : x->key > y->key;
}

static int number_threads(struct tw_capture *capture)
{
	struct thread_of *threads = malloc((capture->stream_count + (size_t)1) * sizeof *threads);
	uint32_t count = 0;

	if (!threads)
		return TW_ENOMEM;
	for (uint32_t i = 0; i < capture->stream_count; i++) {
		const struct tw_source_stream *stream = &capture->streams[i];

		threads[i] = (struct thread_of){i, stream->info.image, stream->info.thread_id, thread_key(capture, stream)};
	}
	if (capture->stream_count)
		qsort(threads, capture->stream_count, sizeof *threads, by_thread);
	for (uint32_t i = 0; i < capture->stream_count; i++) {
		count += i == 0 || by_thread(&threads[i - 1], &threads[i]) != 0;
		capture->streams[threads[i].stream].info.thread = count - 1;
	}
	capture->info.threads = count;
	free(threads);
	return 0;
}

static int sum_up_streams(struct tw_capture *capture)
{
	struct tw_capture_info *info = &capture->info;

	info->start_ns = UINT64_MAX;
	for (uint32_t i = 0; i < capture->stream_count; i++) {
		const struct tw_capture_stream *stream = &capture->streams[i].info;

		info->events += stream->events;
		info->damaged_records += stream->damaged_records;
		for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++)
			info->lost[cause] += stream->lost[cause];
		info->start_ns = stream->start_ns < info->start_ns ? stream->start_ns : info->start_ns;
		info->end_ns = stream->end_ns > info->end_ns ? stream->end_ns : info->end_ns;
	}
	if (!capture->stream_count)
		info->start_ns = info->end_ns =
			capture->clocks.count ? capture->clocks.points[0].clock.monotonic_ns : 0;
	info->start_wall_ns = tw_clockmap_wall_ns(&capture->clocks, info->start_ns);
	info->streams = capture->stream_count;
	info->blocks = capture->block_count;
	return number_threads(capture);
}

int tw_source_arrange(struct tw_capture *capture)
{
	uint64_t rate = capture->image_count ? capture->images[0]->header.ticks_per_second : 0;

	tw_clockmap_finish(&capture->clocks, rate);
	keep_new_blocks(capture);
	sum_up_images(capture);
	if (sum_up_streams(capture))
		return TW_ENOMEM;
	tw_source_account(capture);
	return 0;
}
