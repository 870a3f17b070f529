/* SPDX-License-Identifier: Apache-2.0 */
/*
 * syncer.h - brings segments to the disk itself, on a thread of its own.
 *
 *	recorder: dirty for so long -> sync -----------+
 *	recorder: sealed            -> publish --------+-> the thread: fdatasync; rename, fsync of the directory
 *	recorder: has it failed? <---------------------+
 *
 * A sync takes as long as the disk likes.  While it does, blocks are written to the same file: what is written after
 * the sync began waits for the next one.  At most one sync of a segment is under way, so a slow disk has fewer of them.
 *
 * Threads    all calls: one, the recorder's.  The thread of its own has all signals blocked.
 * Ownership  tw_syncer_create() gives, tw_syncer_destroy() takes, and waits for what is under way.
 */
#ifndef TW_PIPELINE_SYNCER_H
#define TW_PIPELINE_SYNCER_H

#include "pipeline/block/segment.h"

struct tw_syncer;

/* TW_ENOMEM: no memory, or no thread. */
int tw_syncer_create(struct tw_syncer **out);
/* NULL is allowed. */
void tw_syncer_destroy(struct tw_syncer *syncer);

/*
 * tw_syncer_sync - what the segment holds now, to the disk.
 *
 * False: a sync of it is under way still, or there is no file descriptor left; to be asked again.
 */
bool tw_syncer_sync(struct tw_syncer *syncer, const struct tw_segment *segment);

/* Sync a sealed segment, and give it its final name.  @sealed takes.  Waits where many are under way. */
void tw_syncer_publish(struct tw_syncer *syncer, const struct tw_segment_sealed *sealed);

/* What a sync of the segment failed with, once; 0: none has.  The kernel forgets what it could not write. */
int tw_syncer_failed(struct tw_syncer *syncer, uint32_t number);

/* Waits until the segment has its final name, if it is to get one. */
void tw_syncer_await(struct tw_syncer *syncer, uint32_t number);

/* Waits for all.  Returns 0, or the first error of a publication since the last call; @count: how many there were. */
int tw_syncer_settle(struct tw_syncer *syncer, uint64_t *count);

#endif
