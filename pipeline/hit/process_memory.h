/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process_memory.h - memory that a process' hits need beyond what is in its structure: chains of tail calls (tail.h),
 * accounts beyond the first ones (count.h).
 *
 *	struct tw_process_memory	of each process: the blocks that are used, and a few spare ones
 *	struct tw_block			256 bytes, of one process at a time
 *	a reference			32 bits in a frame: number and generation; what was given back is not found
 *
 * Blocks come from mappings of 256 KiB, which are never unmapped: so a reference that has outlived its block can be
 * looked at.  They go back when a frame ends, and all of a process' when it exits.
 *
 * Limits   TW_PROCESS_BLOCKS_MAX a process, TW_BLOCKS_MAX the program (base/limits.h).
 * Threads  In a hit, on the thread that runs the process; give_all: by who ends it.  Only take and give that find no
 *	    spare room, or too much of it, take a lock, and take may map: as joining does.
 */
#ifndef TW_PIPELINE_PROCESS_MEMORY_H
#define TW_PIPELINE_PROCESS_MEMORY_H

#include "base/limits.h"

#include <stddef.h>
#include <stdint.h>

#define TW_BLOCK_WORDS 28

struct tw_process_memory;

struct tw_block {
	struct tw_block *next, **link;	 /* of the owner's; of spare and free ones next alone */
	struct tw_process_memory *owner; /* NULL: none */
	uint32_t number;		 /* 1 .. TW_BLOCKS_MAX - 1 */
	uint16_t generation;		 /* raised when it is given back */
	uint16_t is_chain;		 /* the head of one */
	uint64_t words[TW_BLOCK_WORDS];	 /* of a block that is taken: anything */
};

struct tw_process_memory {
	struct tw_block *used, *spare;
	uint32_t used_count, spare_count;
	/* The sessions that were there when its chains were looked at last: tw_hit_alive and tw_hit_epoch. */
	uint64_t alive, epoch;
};

/*
 * tw_block_take - a block for this process.
 *
 * @room	of the limit of a process, what must stay free behind it.
 *
 * NULL: the limit of the process or of the program is reached, the system gives no memory, or may not be asked (filter.h).
 * Keeps vector registers.
 */
struct tw_block *tw_block_take(struct tw_process_memory *memory, uint32_t room);
void tw_block_give(struct tw_process_memory *memory, struct tw_block *block);

/* What a frame keeps of a block: never 0. */
uint32_t tw_block_reference(const struct tw_block *block);
/* NULL: given back since, or another process'. */
struct tw_block *tw_block_find(const struct tw_process_memory *memory, uint32_t reference);

/* The process exits; also in a forked child, for those that are not there. */
void tw_process_memory_fini(struct tw_process_memory *memory);
/* Blocks of the program that are some process' now, spare ones included. */
uint32_t tw_blocks_in_use(void);

void tw_process_memory_before_fork(void);
void tw_process_memory_after_fork(void);

#endif
