/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blocks.h - the records of a capture block by block, as they are asked for.
 *
 * The blocks that tw_capture_scan() gives to a callback, for callers that take it at their own pace.  Blocks that follow are decoded meanwhile, on
 * other threads.
 *
 * Threads  one for each object; the capture is used by no other thread meanwhile, as with tw_capture_events_next().
 */
#ifndef TRACEWHEEL_BLOCKS_H
#define TRACEWHEEL_BLOCKS_H

#include "tracewheel/capture.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tw_capture_blocks;
/*
 * tw_capture_blocks_create - begin to read the blocks that a filter selects, as a whole: see tw_capture_scan().
 *
 * @filter	borrows until return; NULL: all.
 * @by_time	sort blocks by their beginnings, over all streams.
 * @out		gives: tw_capture_blocks_destroy() ends it.
 *
 * Errors: TW_ENOMEM; TW_ENOTSUP: a live stream has no blocks.
 */
int tw_capture_blocks_create(struct tw_capture *capture, const struct tw_capture_filter *filter, bool by_time,
			     struct tw_capture_blocks **out);
void tw_capture_blocks_destroy(struct tw_capture_blocks *blocks);

/* Sorted by time: does no block begin before the one before it has ended? Then records come in the order of tw_capture_events_next(). */
bool tw_capture_blocks_are_ordered(const struct tw_capture_blocks *blocks);

/*
 * tw_capture_blocks_next - the next block.
 *
 * @batch	is written, lends until the next call.
 *
 * Returns 1, 0 at the end, or an error (TW_ENOMEM).  Damage is skipped and named.
 */
int tw_capture_blocks_next(struct tw_capture_blocks *blocks, struct tw_capture_batch *batch);

/* tw_capture_ns(), fast for records one after another. */
uint64_t tw_capture_blocks_ns(struct tw_capture_blocks *blocks, uint64_t ticks);

#ifdef __cplusplus
}
#endif

#endif
