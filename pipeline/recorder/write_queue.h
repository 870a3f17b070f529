/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write_queue.h - blocks for a slow disk: a thread writes them while others are encoded.
 *
 *	recorder: a block is encoded -> add ------> the thread: one pwritev() for all blocks of the same file
 *	recorder: collect <------------------------ finished, those of one file in the order of the file
 *
 * Used only while writes take long: then the ring is freed for reading while the disk works, and the blocks that come
 * together in that time are one write. To a fast disk the recorder writes directly, without the copy and the wake.
 *
 * After a failed write nothing is written until tw_write_queue_drain() has given everything back: a file never has a
 * gap, and ends after its last whole block.
 *
 * Threads    all calls: one, the recorder's.  The thread of the queue has all signals blocked.
 * Ownership  tw_write_queue_add() takes a write, _collect() and _settle() give it back.
 * Limits     TW_WRITE_QUEUE_BYTES of blocks that were added and not given back.
 */
#ifndef TW_PIPELINE_WRITE_QUEUE_H
#define TW_PIPELINE_WRITE_QUEUE_H

#include "pipeline/block/segment.h"

/* Holds the blocks of two rings of the usual size that cannot be packed. */
#define TW_WRITE_QUEUE_BYTES (UINT64_C(8) << 20)
_Static_assert(TW_WRITE_QUEUE_BYTES >= 4 * TW_BLOCK_STORED_BYTES_MAX, "it holds several of the largest blocks");

/* A write that takes this long means that the disk is slow. */
#define TW_WRITE_SLOW_NS UINT64_C(2000000)

/* One block. Allocated by the caller with malloc(), freed by the caller after it has come back. */
struct tw_write {
	struct tw_write *next;
	int fd; /* borrows: until the write has come back */
	const struct tw_segment_io *io;
	uint64_t offset;
	int error; /* out: 0, or the reason why it is not in the file */
	/* For the caller's use. */
	uint32_t ring;
	uint32_t image;
	struct tw_block_tracee tracee; /* after the block */
	struct tw_block_header header;
	uint8_t stored[]; /* padded: tw_block_file_bytes() with the header */
};
_Static_assert(offsetof(struct tw_write, stored) == offsetof(struct tw_write, header) + sizeof(struct tw_block_header),
	       "header and payload are one piece");

struct tw_write_queue;

/*
 * tw_write_queue_create - start the thread.
 *
 * @wake	called on that thread whenever a write is finished.
 *
 * TW_ENOMEM: no memory, or no thread.
 */
int tw_write_queue_create(struct tw_write_queue **out, void (*wake)(void *arg), void *arg);
/* Ends the thread. Every write must have been given back. NULL is allowed. */
void tw_write_queue_destroy(struct tw_write_queue *queue);

/* Is there space for that many bytes of the file? */
bool tw_write_queue_has_space(const struct tw_write_queue *queue, uint64_t bytes);
/* Has every write been given back? */
bool tw_write_queue_is_empty(const struct tw_write_queue *queue);
/* CLOCK_MONOTONIC of the end of the last write that took TW_WRITE_SLOW_NS; 0: none did. */
uint64_t tw_write_queue_slow_ns(struct tw_write_queue *queue);

void tw_write_queue_add(struct tw_write_queue *queue, struct tw_write *write);

/* The finished writes, as a list; NULL: none. @waits: until one is finished, unless the queue is empty. */
struct tw_write *tw_write_queue_collect(struct tw_write_queue *queue, bool waits);

/* Waits for all writes and gives back the rest. Clears a failure. */
struct tw_write *tw_write_queue_drain(struct tw_write_queue *queue);

#endif
