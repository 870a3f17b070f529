/* SPDX-License-Identifier: Apache-2.0 */
/* scan.c - capture.h: visits every block, without merging; or only checks it. */
#include "base/error.h"
#include "base/export.h"
#include "pipeline/reader/decode.h"
#include "pipeline/reader/scan.h"

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

/* The next selected block, from *at on; NULL after the last. */
static const struct tw_source_block *next_block(const struct tw_capture *capture,
						const struct tw_capture_filter *filter, const bool *wants, uint32_t *at)
{
	while (*at < capture->block_count) {
		const struct tw_source_block *block = &capture->blocks[(*at)++];

		if (wants[block->stream] && tw_scan_wants_block(capture, filter, &block->header))
			return block;
	}
	return NULL;
}

static int hand_out(struct tw_capture *capture, struct tw_decode_pool *pool, struct tw_decode_job *job,
		    tw_capture_scan_fn *callback, void *context)
{
	struct tw_capture_batch batch;
	int error = tw_decode_wait(pool, job);

	if (error) {
		tw_source_note_block(capture, job->block, error);
		return 0;
	}
	make_batch(capture, job->block, job->raw, &batch);
	return batch.records ? callback(context, &batch) : 0;
}

bool *tw_scan_wanted_streams(const struct tw_capture *capture, const struct tw_capture_filter *filter)
{
	bool *wants = malloc(capture->stream_count + 1);

	for (uint32_t i = 0; wants && i < capture->stream_count; i++)
		wants[i] = !filter || !filter->wants_stream ||
			   filter->wants_stream(filter->context, &capture->streams[i].info);
	return wants;
}

TW_API int tw_capture_scan(struct tw_capture *capture, const struct tw_capture_filter *filter,
			   tw_capture_scan_fn *callback, void *context)
{
	struct tw_decode_job *jobs[DEPTH_MAX] = {NULL};
	struct tw_decode_pool *pool;
	uint64_t begun = 0, done = 0;
	uint32_t at = 0, depth;
	bool *wants;
	int result;

	if (capture->stream_in)
		return TW_ENOTSUP;
	wants = tw_scan_wanted_streams(capture, filter);
	result = wants ? 0 : TW_ENOMEM;

	if (result)
		return result;
	result = tw_decode_pool_create(capture, &pool);
	if (result)
		goto free_wants;
	depth = tw_decode_pool_depth(pool);
	for (bool has_more = true; !result && (has_more || done < begun);) {
		while (has_more && begun - done < depth) {
			const struct tw_source_block *block = next_block(capture, filter, wants, &at);

			has_more = block != NULL;
			if (!block)
				break;
			jobs[begun % DEPTH_MAX] = tw_decode_begin(pool, block);
			if (!jobs[begun % DEPTH_MAX]) {
				result = TW_ENOMEM;
				break;
			}
			begun++;
		}
		if (result || done == begun)
			break;
		result = hand_out(capture, pool, jobs[done % DEPTH_MAX], callback, context);
		tw_decode_put_back(pool, jobs[done++ % DEPTH_MAX]);
	}
	while (done < begun)
		tw_decode_put_back(pool, jobs[done++ % DEPTH_MAX]);
	tw_decode_pool_destroy(pool);
free_wants:
	free(wants);
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
