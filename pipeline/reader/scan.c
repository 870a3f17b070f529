/* SPDX-License-Identifier: Apache-2.0 */
/* scan.c - capture.h: visits every block, without merging; or only checks it. */
#include "base/error.h"
#include "base/export.h"
#include "base/search.h"
#include "pipeline/reader/decode.h"
#include "pipeline/reader/scan.h"
#include "tracewheel/blocks.h"
#include "tracewheel/spans.h"

#include <stdlib.h>

#define DEPTH_MAX 32

/* Kinds of a filter as bits of a block's header. Losses are always wanted. */
static uint32_t wanted_bits(const struct tw_capture_filter *filter)
{
	uint64_t kinds = filter->kinds | UINT64_C(1) << TW_EVENT_LOSS;

	if (filter->kinds >> 63)
		return UINT32_MAX;
	if (filter->wants_own_time)
		kinds |= UINT64_C(1) << TW_EVENT_OWN_TIME;
	if (filter->wants_thread_states)
		kinds |= UINT64_C(1) << TW_EVENT_THREAD_STATE;
	return (uint32_t)(kinds | kinds >> 32);
}

bool tw_scan_wants_block(const struct tw_capture *capture, const struct tw_capture_filter *filter,
			 const struct tw_block_header *header)
{
	size_t hint = 0;

	if (header->flags & TW_BLOCK_FLAG_STATES && header->type == TW_BLOCK_EVENTS &&
	    !(filter && filter->wants_thread_states))
		return false;
	if (!filter)
		return true;
	if (filter->kinds && header->kinds && !(header->kinds & wanted_bits(filter)))
		return false;
	if (filter->from_ns && tw_clockmap_ns(&capture->clocks, header->last_ticks, &hint) < filter->from_ns)
		return false;
	return !filter->to_ns || tw_clockmap_ns(&capture->clocks, header->first_ticks, &hint) < filter->to_ns;
}

TW_API uint32_t tw_capture_kinds(const struct tw_capture *capture)
{
	uint32_t kinds = 0;

	for (uint32_t i = 0; i < capture->block_count; i++) {
		const struct tw_block_header *header = &capture->blocks[i].header;

		if (header->flags & TW_BLOCK_FLAG_STATES)
			continue;
		if (!header->kinds)
			return 0;
		kinds |= header->kinds;
	}
	return kinds;
}

struct tw_scan_start tw_scan_start(const struct tw_source_block *block, const uint8_t *raw)
{
	struct tw_scan_start start = {raw, block->header.first_sequence, block->header.run_seq,
				      block->header.record_count, block->header.tracee_id};

	while (start.first < raw + block->skip_bytes && start.records) {
		uint64_t head = tw_record_head(start.first);

		if (TW_RB_HEAD_KIND(head) == TW_EVENT_SWITCH) {
			start.tracee_id = TW_RB_HEAD_ID(head);
			start.run_seq = tw_get64(start.first + TW_CODEC_HEAD_BYTES);
		}
		start.sequence += tw_scan_sequence_step(start.first);
		start.records--;
		start.first += TW_RB_HEAD_BYTES(head);
	}
	return start;
}

static void make_batch(const struct tw_capture *capture, const struct tw_source_block *block, const uint8_t *raw,
		       struct tw_capture_batch *batch)
{
	struct tw_scan_start start = tw_scan_start(block, raw);

	batch->first = (const struct tw_capture_record *)(const void *)start.first;
	batch->end = (const struct tw_capture_record *)(const void *)(raw + block->header.raw_bytes);
	batch->first_sequence = start.sequence;
	batch->records = start.records;
	batch->stream = block->stream;
	batch->image = capture->streams[block->stream].info.image;
	batch->tracee_id = start.tracee_id;
	batch->start_ticks = block->header.first_ticks;
	batch->end_ticks = block->header.last_ticks;
}

bool *tw_scan_wanted_streams(const struct tw_capture *capture, const struct tw_capture_filter *filter)
{
	bool *wants = malloc(capture->stream_count + 1);

	for (uint32_t i = 0; wants && i < capture->stream_count; i++)
		wants[i] = !filter || !filter->wants_stream ||
			   filter->wants_stream(filter->context, &capture->streams[i].info);
	return wants;
}

/* ---- blocks one by one ---- */

struct tw_capture_blocks {
	struct tw_capture *capture;
	struct tw_decode_pool *pool;
	struct tw_decode_job *jobs[DEPTH_MAX];
	uint32_t *order; /* selected blocks */
	uint32_t count, begun, done;
	bool is_lent, is_ordered;
	size_t clock_hint;
};

static int compare_blocks(const void *one, const void *other, void *context)
{
	const struct tw_capture *capture = context;
	uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;
	uint64_t a_ticks = capture->blocks[a].header.first_ticks, b_ticks = capture->blocks[b].header.first_ticks;

	return TW_ORDER(a_ticks, b_ticks) ?: TW_ORDER(a, b);
}

/* Sorted by time: is one over before the next begins, and are there no runs of several streams, whose order would count more? */
static bool is_in_order(const struct tw_capture *capture, const uint32_t *order, uint32_t count)
{
	bool has_runs = false;

	for (uint32_t i = 0; i < capture->image_count; i++)
		if (capture->images[i]->loss_count)
			return false;
	for (uint32_t i = 0; i < count; i++) {
		const struct tw_source_block *block = &capture->blocks[order[i]];
		const struct tw_source_block *next = i + 1 < count ? &capture->blocks[order[i + 1]] : NULL;

		has_runs |= block->header.run_seq || block->header.switch_count;
		if (has_runs && block->stream != capture->blocks[*order].stream)
			return false;
		if (next && next->stream == block->stream && order[i + 1] < order[i])
			return false;
		if (next && (next->stream == block->stream ? next->header.first_ticks < block->header.last_ticks
							   : next->header.first_ticks <= block->header.last_ticks))
			return false;
	}
	return true;
}

static int order_blocks(struct tw_capture_blocks *blocks, const struct tw_capture_filter *filter, bool by_time)
{
	struct tw_capture *capture = blocks->capture;
	bool *wants = tw_scan_wanted_streams(capture, filter);

	blocks->order = malloc((capture->block_count + (size_t)1) * sizeof *blocks->order);
	for (uint32_t i = 0; wants && blocks->order && i < capture->block_count; i++) {
		const struct tw_source_block *block = &capture->blocks[i];

		if (wants[block->stream] && tw_scan_wants_block(capture, filter, &block->header))
			blocks->order[blocks->count++] = i;
	}
	free(wants);
	if (!wants || !blocks->order)
		return TW_ENOMEM;
	if (!by_time)
		return 0;
	qsort_r(blocks->order, blocks->count, sizeof *blocks->order, compare_blocks, capture);
	blocks->is_ordered = is_in_order(capture, blocks->order, blocks->count);
	return 0;
}

TW_API int tw_capture_blocks_create(struct tw_capture *capture, const struct tw_capture_filter *filter, bool by_time,
				    struct tw_capture_blocks **out)
{
	struct tw_capture_blocks *blocks;
	int error;

	if (capture->stream_in)
		return TW_ENOTSUP;
	blocks = calloc(1, sizeof *blocks);
	if (!blocks)
		return TW_ENOMEM;
	blocks->capture = capture;
	error = order_blocks(blocks, filter, by_time);
	if (!error)
		error = tw_decode_pool_create(capture, &blocks->pool);
	if (error)
		tw_capture_blocks_destroy(blocks);
	else
		*out = blocks;
	return error;
}

TW_API bool tw_capture_blocks_are_ordered(const struct tw_capture_blocks *blocks)
{
	return blocks->is_ordered;
}

static void give_back(struct tw_capture_blocks *blocks)
{
	if (blocks->is_lent)
		tw_decode_put_back(blocks->pool, blocks->jobs[blocks->done++ % DEPTH_MAX]);
	blocks->is_lent = false;
}

TW_API void tw_capture_blocks_destroy(struct tw_capture_blocks *blocks)
{
	if (!blocks)
		return;
	while (blocks->done < blocks->begun)
		tw_decode_put_back(blocks->pool, blocks->jobs[blocks->done++ % DEPTH_MAX]);
	if (blocks->pool)
		tw_decode_pool_destroy(blocks->pool);
	free(blocks->order);
	free(blocks);
}

/* Begins to decode as many blocks as may wait. */
static int begin_ahead(struct tw_capture_blocks *blocks)
{
	uint32_t depth = tw_decode_pool_depth(blocks->pool);

	while (blocks->begun < blocks->count && blocks->begun - blocks->done < depth) {
		const struct tw_source_block *block = &blocks->capture->blocks[blocks->order[blocks->begun]];
		struct tw_decode_job *job = tw_decode_begin(blocks->pool, block);

		if (!job)
			return TW_ENOMEM;
		blocks->jobs[blocks->begun++ % DEPTH_MAX] = job;
	}
	return 0;
}

TW_API int tw_capture_blocks_next(struct tw_capture_blocks *blocks, struct tw_capture_batch *batch)
{
	for (;;) {
		struct tw_decode_job *job;
		int error;

		give_back(blocks);
		error = begin_ahead(blocks);
		if (error)
			return error;
		if (blocks->done == blocks->begun)
			return 0;
		job = blocks->jobs[blocks->done % DEPTH_MAX];
		error = tw_decode_wait(blocks->pool, job);
		blocks->is_lent = true;
		if (error) {
			tw_source_note_block(blocks->capture, job->block, error);
			continue;
		}
		make_batch(blocks->capture, job->block, job->raw, batch);
		if (batch->records)
			return 1;
	}
}

TW_API uint64_t tw_capture_blocks_ns(struct tw_capture_blocks *blocks, uint64_t ticks)
{
	return tw_clockmap_near_ns(&blocks->capture->clocks, ticks, &blocks->clock_hint);
}

TW_API int tw_capture_scan(struct tw_capture *capture, const struct tw_capture_filter *filter,
			   tw_capture_scan_fn *callback, void *context)
{
	struct tw_capture_blocks *blocks;
	struct tw_capture_batch batch;
	int result = tw_capture_blocks_create(capture, filter, false, &blocks), found;

	if (result)
		return result;
	while (!result && (found = tw_capture_blocks_next(blocks, &batch)) != 0)
		result = found < 0 ? found : callback(context, &batch);
	tw_capture_blocks_destroy(blocks);
	return result;
}

TW_API int tw_capture_check(struct tw_capture *capture, void (*progress)(void *context, uint64_t bytes), void *context)
{
	struct tw_block_decoder *decoder;
	uint64_t bytes = 0;

	if (capture->stream_in)
		return TW_ENOTSUP;
	decoder = tw_block_decoder_create();
	if (!decoder)
		return TW_ENOMEM;
	for (uint32_t i = 0; i < capture->block_count; i++) {
		const struct tw_source_block *block = &capture->blocks[i];
		int error = tw_source_check(capture, block, decoder);

		if (error)
			tw_source_note_block(capture, block, error);
		bytes += tw_block_file_bytes(&block->header);
		if (progress)
			progress(context, bytes);
	}
	tw_block_decoder_destroy(decoder);
	return 0;
}
