/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode.h - blocks decoded ahead, on other processors, by a pool of workers.
 *
 *	owner --queue of jobs--> worker 0..n --done--> owner
 *
 * The owner decodes a block itself if it needs it before a worker has begun it: so it does without workers, too. Memory of
 * finished jobs is reused.
 *
 * Threads  the pool belongs to one thread at a time, as do its jobs while no worker has them.
 */
#ifndef TW_PIPELINE_DECODE_H
#define TW_PIPELINE_DECODE_H

#include "pipeline/reader/reader.h"

/* One block to decode. */
struct tw_decode_job {
	const struct tw_source_block *block;
	struct tw_decode_job *next_free; /* or in the queue; of a job that is done its owner's */
	unsigned state;
	bool is_lent; /* a record of it was handed out; the owner's, and false at first */
	int error;
	uint64_t raw_capacity;
	uint8_t *raw; /* block->header.raw_bytes of valid records if error is 0 */
};

struct tw_decode_pool;

/* TW_ENOMEM. If threads cannot be started, the pool works with fewer or none. */
int tw_decode_pool_create(struct tw_capture *capture, struct tw_decode_pool **out);
/* Ends the workers; all jobs must have been returned. */
void tw_decode_pool_destroy(struct tw_decode_pool *pool);

/* The number of jobs that are worth starting at once. */
uint32_t tw_decode_pool_depth(const struct tw_decode_pool *pool);

/* Begins to decode a block; NULL: no memory. */
struct tw_decode_job *tw_decode_begin(struct tw_decode_pool *pool, const struct tw_source_block *block);
/* Waits until the job is done: 0, or an error, which tw_source_note_block() reports as damage. */
int tw_decode_wait(struct tw_decode_pool *pool, struct tw_decode_job *job);
/* Frees the records of a job that is done; what is left is small. */
void tw_decode_empty(struct tw_decode_job *job);
/* Makes the memory available again; waits for a worker that uses it. A job that no worker has begun is given up. */
void tw_decode_put_back(struct tw_decode_pool *pool, struct tw_decode_job *job);

#endif
