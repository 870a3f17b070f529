/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copies.h - copies of rings that overwrite, made and encoded by several threads: rings do not depend on each other.
 *
 *	copying	  each thread takes the next ring that is to be copied
 *	encoding  each thread takes the next ring, and makes its blocks; the thread that stores takes them in the order of rings, so that
 *		  files do not depend on the number of threads
 *
 * Threads  the writer's; those that are made here end before tw_copies_each() returns, or tw_copies_stop().
 * Limits   blocks of @ahead_bytes, one more of each thread, and those of the ring that is being stored, wait at once.
 */
#ifndef TW_PIPELINE_COPIES_H
#define TW_PIPELINE_COPIES_H

#include "pipeline/recorder/writer.h"

/* The threads that work at once: of processors, at most so many. */
#define TW_COPIES_THREADS_MAX 16u
uint32_t tw_copies_threads(uint32_t count);

/* Calls fn(arg, number) for all numbers below @count, on tw_copies_threads() threads, of which the caller's is one. */
void tw_copies_each(uint32_t count, void (*fn)(void *arg, uint32_t number), void *arg);

/* A block of records that were not stored yet. */
struct tw_copies_block {
	struct tw_copies_block *next;
	struct tw_block_header header;
	struct tw_block_tracee tracee; /* behind it */
	const uint8_t *raw;	       /* the records, in the copy */
	uint32_t raw_bytes;
	bool is_bad;	  /* they are invalid */
	uint8_t stored[]; /* header.stored_bytes */
};

/* The blocks of one ring, as they are made. */
struct tw_copies_ring {
	struct tw_writer_ring ring; /* as it is when its first block begins */
	const struct tw_writer_copy *copy;
	uint64_t at; /* where in the copy */
	struct tw_copies_block *first, **end;
	bool is_done;
	int error;
};

struct tw_copies;

/*
 * tw_copies_start - begin to encode these copies.
 *
 * @rings	borrows until tw_copies_stop(); `ring`, `copy` and `at` are set, and the rest is zero.
 * @out		gives; tw_copies_stop() takes.
 *
 * Returns 0, or TW_ENOMEM: there is no thread, and @rings is as it was.
 */
int tw_copies_start(struct tw_copies_ring *rings, uint32_t count, uint64_t ahead_bytes, struct tw_copies **out);
/*
 * tw_copies_take - wait for the next block of a ring.
 *
 * @number	of the ring: all blocks of one are taken before those of the next.
 *
 * Gives the block; free() ends it.  NULL: there are no more, and *error is 0, or says why.
 */
struct tw_copies_block *tw_copies_take(struct tw_copies *copies, uint32_t number, int *error);
/* Ends the threads; blocks that were not taken are freed. */
void tw_copies_stop(struct tw_copies *copies);

#endif
