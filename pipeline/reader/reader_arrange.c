/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader_arrange.c - sorts the blocks of the segments and sums them up.
 *
 * Blocks of one lease come from any number of segments (rotation, recovery); ordered by position they are one stream.
 * A stretch that occurs twice is taken once; a step in the sequence numbers is the number of missing records.
 */
#include "base/error.h"
#include "base/search.h"
#include "pipeline/reader/reader.h"
#include "ringbuf/ringbuf.h"

#include <stdlib.h>

/* ---- putting in order ---- */

static int compare_blocks(const void *a, const void *b)
{
	const struct tw_source_block *left = a, *right = b;
	const struct tw_block_header *x = &left->header, *y = &right->header;

	return TW_ORDER(left->stream, right->stream)
		       ?: TW_ORDER(x->first_pos, y->first_pos)
		       ?: TW_ORDER(x->end_pos, y->end_pos)
		       ?: TW_ORDER(x->first_sequence, y->first_sequence);
}

/* Keeps the part of a block that is not in those before it; false: nothing is left. */
static bool is_new(struct tw_source_block *block, uint64_t end_pos, uint64_t end_sequence)
{
	struct tw_block_header *header = &block->header;
	uint64_t known;

	/* A loss at the end of a ring takes no bytes in it. */
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

/* Takes over the totals before the first block of a lease that is here: records, losses, own time. */
static void take_before(struct tw_capture *capture, struct tw_source_stream *stream,
			const struct tw_source_block *block)
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

static void add_to_stream(struct tw_capture *capture, struct tw_source_stream *stream, struct tw_source_block *block,
			  uint64_t end_sequence)
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
		info->is_of_states = header->flags & TW_BLOCK_FLAG_STATES;
		capture->info.has_thread_states |= info->is_of_states;
		info->start_ns = start_ns;
		/* States that are missing are no events: by the sequence numbers views know when. */
		if (!info->is_of_states)
			take_before(capture, stream, block);
	} else if (header->first_sequence > end_sequence && !info->is_of_states) {
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

static uint64_t end_of(const struct tw_capture *capture, const struct tw_catalog *catalog, uint64_t lease)
{
	uint64_t ticks = tw_catalog_end(catalog, lease);
	size_t hint = 0;

	return ticks ? tw_clockmap_ns(&capture->clocks, ticks, &hint) : 0;
}

void tw_source_take_ends(struct tw_capture *capture)
{
	for (uint32_t i = 0; i < capture->image_count; i++)
		capture->images[i]->info.end_ns = end_of(capture, &capture->images[i]->catalog, 0);
	for (uint32_t i = 0; i < capture->stream_count; i++) {
		struct tw_source_stream *stream = &capture->streams[i];

		stream->info.thread_end_ns =
			end_of(capture, &capture->images[stream->info.image]->catalog, stream->lease);
	}
}

/*
 * The bytes of the command without the zeros that a program leaves which wrote a title over its arguments, as servers do: they read as
 * many empty arguments.  Nobody gives three of these last.
 */
static size_t command_bytes(const char *command, size_t bytes)
{
	size_t end = bytes;

	while (end && !command[end - 1])
		end--;
	return end && bytes - end > 3 ? end + 1 : bytes;
}

/* Of sessions that asked for returns, calls that are open at the end have a duration, though none returned. */
static bool has_returns(const struct tw_catalog *catalog)
{
	const struct tw_capture_session *session;

	for (uint32_t at = 0; (session = tw_catalog_next(&catalog->sessions, &at));)
		if (session->has_returns)
			return true;
	return false;
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
		image->info.command_bytes =
			catalog->command ? command_bytes(catalog->command, catalog->command_bytes) : 0;
		image->info.host = catalog->host ? catalog->host : "";
		image->info.node = catalog->node_shown ? catalog->node_shown : "";
		image->info.node_name = catalog->node_name ? catalog->node_name : "";
		image->info.is_final = image->is_final;
		image->info.no_ring_lost = image->no_ring_reported - image->no_ring_before;
		image->info.start_ns = tw_clockmap_ns(&capture->clocks, image->header.image_start_ticks, &hint);
		info->lost[TW_LOST_NO_RING] += image->info.no_ring_lost;
		info->has_moments_only &= !has_returns(catalog);
		info->images += image->header.image_lease != 0;
		info->modules += catalog->modules.count;
		info->functions += catalog->functions.count;
		info->places += catalog->places.count;
	}
}

/* Is the first segment of the recording here? It has the first event. */
static bool has_first_segment(const struct tw_capture *capture)
{
	for (uint32_t i = 0; i < capture->file_count; i++) {
		if (capture->files[i].is_listed && capture->files[i].number == 1)
			return true;
	}
	return false;
}

/* Distinguishes threads that had the same number in turn: by their start, or by the tracee of their first event. */
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

	return TW_ORDER(x->image, y->image) ?: TW_ORDER(x->thread_id, y->thread_id) ?: TW_ORDER(x->key, y->key);
}

static int number_threads(struct tw_capture *capture)
{
	struct thread_of *threads = malloc((capture->stream_count + (size_t)1) * sizeof *threads);
	uint32_t count = 0;

	if (!threads)
		return TW_ENOMEM;
	for (uint32_t i = 0; i < capture->stream_count; i++) {
		const struct tw_source_stream *stream = &capture->streams[i];

		threads[i] =
			(struct thread_of){i, stream->info.image, stream->info.thread_id, thread_key(capture, stream)};
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
			info->lost[cause] +=
				cause == TW_LOST_FULL && capture->images[stream->image]->info.is_overwriting
					? 0
					: stream->lost[cause];
		/* Threads had states before the first event, and have some after the last. */
		if (stream->is_of_states)
			continue;
		info->start_ns = stream->start_ns < info->start_ns ? stream->start_ns : info->start_ns;
		info->end_ns = stream->end_ns > info->end_ns ? stream->end_ns : info->end_ns;
	}
	if (info->start_ns == UINT64_MAX)
		info->start_ns = info->end_ns =
			capture->clocks.count ? capture->clocks.points[0].clock.monotonic_ns : 0;
	info->start_wall_ns = tw_clockmap_wall_ns(&capture->clocks, info->start_ns);
	info->zero_ns = info->start_ns;
	/* If the oldest segment here is not the first, it has the time of the first event. */
	for (uint32_t i = 0; i < capture->file_count; i++) {
		if (capture->files[i].image_segment > 1 && capture->files[i].first_event_ns &&
		    capture->files[i].first_event_ns < info->zero_ns && !has_first_segment(capture))
			info->zero_ns = capture->files[i].first_event_ns;
	}
	tw_source_take_part(capture);
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
	tw_source_take_ends(capture);
	if (sum_up_streams(capture))
		return TW_ENOMEM;
	tw_source_account(capture);
	return 0;
}
