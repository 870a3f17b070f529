/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge_runs.c - finds the runs of tracees that the capture holds: reads switch records ahead of the records that are
 * handed out.
 */
#include "base/error.h"
#include "base/search.h"
#include "pipeline/reader/merge.h"
#include "pipeline/reader/scan.h"

#include <stdlib.h>

#define DEPTH_MAX 32

static bool note_runs(struct tw_merge *merge, const struct tw_source_block *block, const uint8_t *raw)
{
	uint32_t image = merge->capture->streams[block->stream].info.image;

	for (uint32_t at = 0; at < block->header.raw_bytes; at += TW_RB_HEAD_BYTES(tw_record_head(raw + at))) {
		uint64_t head = tw_record_head(raw + at), run;

		if (TW_RB_HEAD_KIND(head) != TW_EVENT_SWITCH || !TW_RB_HEAD_ID(head))
			continue;
		run = tw_get64(raw + at + TW_CODEC_HEAD_BYTES);
		if (run && !tw_runs_add(&merge->runs, image, TW_RB_HEAD_ID(head), run))
			return false;
	}
	return true;
}

static int compare_times(const void *a, const void *b)
{
	const struct tw_source_block *left = *(const struct tw_source_block *const *)a;
	const struct tw_source_block *right = *(const struct tw_source_block *const *)b;

	return TW_ORDER(left->header.first_ticks, right->header.first_ticks) ?: TW_ORDER(left, right);
}

/* Reads all switches, nearly in order of time, so that intervals join. */
static int find_runs_in(struct tw_merge *merge, const struct tw_source_block **blocks, uint32_t count)
{
	struct tw_decode_job *jobs[DEPTH_MAX];
	uint32_t depth = tw_decode_pool_depth(merge->pool), begun = 0, done = 0;
	int error = 0;

	while (done < count && !error) {
		struct tw_decode_job *job;

		for (; begun < count && begun - done < depth; begun++) {
			jobs[begun % DEPTH_MAX] = tw_decode_begin(merge->pool, blocks[begun]);
			if (!jobs[begun % DEPTH_MAX])
				break;
		}
		if (begun == done)
			return TW_ENOMEM;
		job = jobs[done++ % DEPTH_MAX];
		/* Damage is reported when the block is read for its events. */
		if (tw_decode_wait(merge->pool, job) == 0 && !note_runs(merge, job->block, job->raw))
			error = TW_ENOMEM;
		tw_decode_put_back(merge->pool, job);
	}
	while (done < begun)
		tw_decode_put_back(merge->pool, jobs[done++ % DEPTH_MAX]);
	return error;
}

int tw_merge_find_runs_until(struct tw_merge *merge, uint64_t ticks)
{
	uint64_t until = ticks + 2 * merge->margin_ticks < ticks ? UINT64_MAX : ticks + 2 * merge->margin_ticks;
	uint32_t end = merge->run_next;
	int error;

	while (end < merge->run_count && merge->run_blocks[end]->header.first_ticks <= until)
		end++;
	error = find_runs_in(merge, merge->run_blocks + merge->run_next, end - merge->run_next);
	merge->run_next = end;
	merge->runs_through = UINT64_MAX;
	if (end < merge->run_count)
		merge->runs_through = merge->run_blocks[end]->header.first_ticks - merge->margin_ticks;
	return error;
}

int tw_merge_find_runs(struct tw_merge *merge)
{
	const struct tw_capture *capture = merge->capture;
	int error = 0;

	merge->run_blocks = malloc((capture->block_count + (size_t)1) * sizeof *merge->run_blocks);
	if (!merge->run_blocks)
		return TW_ENOMEM;
	/* A tenth of a second. */
	if (capture->image_count)
		merge->margin_ticks = capture->images[0]->header.ticks_per_second / 10 + 1;
	for (uint32_t i = 0; !error && i < capture->block_count; i++) {
		const struct tw_source_block *block = &capture->blocks[i];
		const struct tw_block_header *header = &block->header;

		if (!merge->wants[block->stream] || !tw_scan_wants_block(capture, merge->filter, header))
			continue;
		merge->has_runs |= header->switch_count || header->run_seq;
		if (header->run_seq && header->tracee_id &&
		    !tw_runs_add(&merge->runs, capture->streams[block->stream].info.image, header->tracee_id,
				 header->run_seq))
			error = TW_ENOMEM;
		if (header->switch_count)
			merge->run_blocks[merge->run_count++] = block;
	}
	if (merge->run_count)
		qsort(merge->run_blocks, merge->run_count, sizeof *merge->run_blocks, compare_times);
	merge->runs_through = merge->run_count ? 0 : UINT64_MAX;
	return error;
}
