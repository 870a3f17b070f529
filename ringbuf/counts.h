/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counts.h - counters of one process image in the shared memory of a ring set: {place, thread} -> number of calls.
 *
 *	rows	one for each thread that counts, from 1 on; row 0 is shared by all threads, which add atomically
 *	blocks	TW_RS_COUNT_GROUP words for as many places with consecutive ids, of one row: calls, or those of them that were
 *		recorded after all; or its aggregates
 *
 * A thread takes a block at its first call of a place of the group, and is its only writer: a count is one store.  A thread that gets
 * no row or no block counts in row 0, whose blocks exist before anything is counted: no count is lost, only its thread.
 * The total of a place is the sum over all blocks, at any time, also after kill -9.  Rows of threads that have ended stay until the
 * owner has stored them and gives their memory back.
 *
 *	row:	FREE --member--> CLAIMED --> LIVE --member--> ENDED --owner: stored--> FREE
 *	block:	0 --member--> taken --> LIVE, until the owner frees its row--> 0
 *
 * Threads  tw_rs_counts_open(): under the permit.  Other functions of members: any thread, with signals blocked.
 * Limits   TW_RS_COUNT_ROWS_MAX, TW_RS_COUNT_BLOCKS_MAX: at most 66 MiB per image, of which used pages take memory.
 */
#ifndef TW_RINGBUF_COUNTS_H
#define TW_RINGBUF_COUNTS_H

#include "base/atomic.h"
#include "base/cacheline.h"
#include "base/limits.h"

#include <stdbool.h>
#include <stdint.h>

struct tw_rs;

/* ---- in shared memory ---- */

/* In the head of an image. */
struct tw_rs_counting {
	_Atomic uint32_t row_count;   /* upper bound of the rows ever used; PAIR rs.count_row */
	_Atomic uint32_t block_count; /* the same for blocks; PAIR rs.count_block */
	_Atomic uint32_t ended_count; /* rows that ended so far */
	_Atomic uint32_t free_count;  /* blocks that the owner gave back and no thread has taken; a hint */
};

enum tw_rs_count_state { TW_RS_COUNT_FREE, TW_RS_COUNT_CLAIMED, TW_RS_COUNT_LIVE, TW_RS_COUNT_ENDED };

/* The thread of a row. */
struct tw_rs_count_row {
	_Alignas(64) _Atomic uint32_t state; /* enum tw_rs_count_state */
	/* Written by the member before LIVE. */
	uint32_t tracee_id; /* 0: none */
	int32_t thread_id;
	uint32_t is_own_tracee; /* the tracee is the thread: the row defines it */
	uint64_t lease;		/* one ownership of a row; never reused in an image */
	char thread_name[16];
};

struct tw_rs_count_words {
	_Atomic uint64_t words[TW_RS_COUNT_GROUP];
};

/* Calls of one place that have a key in common, in a block of one row.  Words that are not written yet are 0. */
struct tw_rs_aggregate {
	uint32_t place_id;
	uint32_t is_rest;	 /* calls that found no room for their key */
	uint64_t aggregation[2]; /* struct tw_aggregation: what the others mean */
	uint64_t key, number;
	_Atomic uint64_t count; /* from 1 on the members above are there */
	_Atomic uint64_t sum;
	uint64_t reserved;
};
#define TW_RS_AGGREGATES      (TW_RS_COUNT_GROUP * sizeof(uint64_t) / sizeof(struct tw_rs_aggregate)) /* of a block */
#define TW_RS_AGGREGATE_GROUP (UINT32_C(1) << 31) /* the group of their blocks */
/* Added to the group of some places: of their calls, those that were recorded.  Counted after the calls themselves. */
#define TW_RS_COUNT_RECORDED_GROUP (TW_DEF_IDS_MAX / TW_RS_COUNT_GROUP)

/* The last section of an image's file. */
struct tw_rs_counts {
	struct tw_rs_count_row rows[TW_RS_COUNT_ROWS_MAX]; /* row 1 is the first */
	_Atomic uint64_t blocks[TW_RS_COUNT_BLOCKS_MAX];   /* TW_RS_COUNT_BLOCK(); 0: free */
	struct tw_rs_count_words words[TW_RS_COUNT_BLOCKS_MAX];
};

/* The owner of a block: the row, and the group of places, which begins at group * TW_RS_COUNT_GROUP. */
#define TW_RS_COUNT_BLOCK(state, row, group) ((uint64_t)(state) << 56 | (uint64_t)(row) << 32 | (group))

/* ---- private to each side ---- */

/* The member's mapping of the section. */
struct tw_rs_own_counts {
	uint8_t *mapped; /* NULL: no image */
	uint64_t mapped_bytes;
	_Atomic uint64_t last_lease;
};

#define TW_RS_COUNTS_BYTES sizeof(struct tw_rs_counts)
_Static_assert(TW_RS_COUNTS_BYTES % TW_PAGE_BYTES == 0, "a section is whole pages");

/*
 * tw_rs_counts_open - map the section of this process's image.  Idempotent.
 *
 * Errors: TW_ENOMEM; TW_ENOTSUP (there is no image).
 */
int tw_rs_counts_open(struct tw_rs *rs);

/* The thread of a row, as tw_rs_counts_claim() takes it. */
struct tw_rs_count_claim {
	uint32_t tracee_id;
	int32_t thread_id;
	bool is_own_tracee;
};

/* Takes a row for the calling thread; 0: there is none, or the section is not open. */
uint32_t tw_rs_counts_claim(struct tw_rs *rs, const struct tw_rs_count_claim *claim);
/* The thread of the row ends, or gives it up.  It counts no more. */
void tw_rs_counts_end(struct tw_rs *rs, uint32_t row);
/*
 * tw_rs_counts_take - take a block of zeros.
 *
 * @row		0, or one that the calling thread has claimed.
 *
 * Lends until the row ends; NULL: there is none, or no memory.
 */
struct tw_rs_count_words *tw_rs_counts_take(struct tw_rs *rs, uint32_t row, uint32_t group);

/* In a forked child: memory of its own replaces the section, for a hit that the fork interrupted. */
void tw_rs_counts_after_fork_in_child(struct tw_rs *rs);

/* ---- owner, and recovery ---- */

/* A block, as it was read. */
struct tw_rs_seen_counts {
	/* Of the row. */
	uint64_t lease; /* 0: row 0 */
	uint32_t tracee_id;
	int32_t thread_id;
	bool is_own_tracee;
	char thread_name[16];
	uint32_t first_place; /* the place of the first word */
	bool is_recorded;     /* the calls that were recorded, which are among the others */
	uint64_t words[TW_RS_COUNT_GROUP];
};

/* Which rows tw_rs_counts_each() reads: one byte each. */
struct tw_rs_count_choice {
	bool rows[TW_RS_COUNT_ROWS_MAX + 1];
	uint32_t count;
};

/* Was anything counted in a LIVE or ENDED image? */
bool tw_rs_counts_are_there(const struct tw_rs *rs, uint32_t slot);
/* Rows that ended so far in a LIVE or ENDED image. */
uint32_t tw_rs_counts_ended(const struct tw_rs *rs, uint32_t slot);
/* Chooses all rows, row 0 as well, or those whose threads have ended. */
void tw_rs_counts_choose(const struct tw_rs *rs, uint32_t slot, bool only_ended, struct tw_rs_count_choice *out);
/*
 * tw_rs_counts_each - call fn for each block of the rows chosen: those of recorded calls first, so that they are never more than the
 * calls.
 *
 * Counts of threads that run are those of some moment during the call.  Stops and returns what fn returns, if not 0.
 * Threads: any of the owner's process.
 */
typedef int (*tw_rs_counts_fn)(void *arg, const struct tw_rs_seen_counts *counts);
int tw_rs_counts_each(const struct tw_rs *rs, uint32_t slot, const struct tw_rs_count_choice *choice,
		      tw_rs_counts_fn fn, void *arg);
/* The same for the aggregates of these rows: @count is at most TW_RS_AGGREGATES.  `words` are not read. */
typedef int (*tw_rs_aggregates_fn)(void *arg, const struct tw_rs_seen_counts *row, const struct tw_rs_aggregate *seen,
				   uint32_t count);
int tw_rs_aggregates_each(const struct tw_rs *rs, uint32_t slot, const struct tw_rs_count_choice *choice,
			  tw_rs_aggregates_fn fn, void *arg);
/* The rows chosen, which have ended, are stored: gives them and their blocks back. */
void tw_rs_counts_recycle(const struct tw_rs *rs, uint32_t slot, const struct tw_rs_count_choice *choice);

#endif
