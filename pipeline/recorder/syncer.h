/* SPDX-License-Identifier: Apache-2.0 */
/*
 * syncer.h - syncs segments to the disk, on a thread of its own.
 *
 *	recorder: dirty for so long -> sync -----------+
 *	recorder: sealed            -> publish --------+-> the thread: fdatasync; rename, fsync of the directory
 *	recorder: has it failed? <---------------------+
 *
 * Meanwhile blocks are written to the same file: those written after a sync began are covered by the next one. At
 * most one sync of a segment is in progress, so a slow disk gets fewer syncs.
 *
 * Threads    all calls: one, the recorder's.  The syncer's own thread has all signals blocked.
 * Ownership  tw_syncer_create() gives, tw_syncer_destroy() takes, and waits for jobs in progress.
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
 * tw_syncer_sync - sync the present contents of the segment to the disk.
 *
 * False: a sync of it is still in progress, or there is no file descriptor left; call again.
 */
bool tw_syncer_sync(struct tw_syncer *syncer, const struct tw_segment *segment);

/* Syncs a sealed segment, and gives it its final name. @sealed takes. Waits if many jobs are in progress. */
void tw_syncer_publish(struct tw_syncer *syncer, const struct tw_segment_sealed *sealed);

/* The error of a sync of the segment, reported once; 0: none. The kernel forgets what it could not write. */
int tw_syncer_failed(struct tw_syncer *syncer, uint32_t number);

/* Waits until the segment has its final name, if its publication was requested. */
void tw_syncer_await(struct tw_syncer *syncer, uint32_t number);

/*
 * Waits for all jobs. Returns 0, or the first error of a publication since the last call; @count: the number of
 * errors.
 */
int tw_syncer_await_all(struct tw_syncer *syncer, uint64_t *count);

#endif
