/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process_memory.h - memory that a process' hits need beyond its structure: chains of tail calls (chain.h), accounts
 * beyond the first ones (count.h).
 *
 *	struct tw_process_memory	of each process: its used blocks, and a few spare ones
 *	struct tw_block			256 bytes, of one process at a time
 *	a reference			32 bits in a frame: number and generation; a freed block is not found by it
 *
 * Blocks come from mappings of 256 KiB, which are never unmapped, so a reference that has outlived its block can be
 * checked safely. A block is given back when its frame ends, and all blocks of a process when it exits.
 *
 * Limits   TW_PROCESS_BLOCKS_MAX a process, TW_BLOCKS_MAX the program (base/limits.h).
 * Threads  In a hit, on the thread that runs the process; give_all: the thread that ends it.  Take and give lock only
 *	    if there is no spare block, or too many; take may then map memory, as joining does.
 */
#ifndef TW_PIPELINE_PROCESS_MEMORY_H
#define TW_PIPELINE_PROCESS_MEMORY_H

#include "base/limits.h"

#include <stddef.h>
#include <stdint.h>

#define TW_BLOCK_WORDS 28

struct tw_process_memory;

struct tw_block {
	struct tw_block *next, **link;	 /* of the owner's list; spare and free blocks use next only */
	struct tw_process_memory *owner; /* NULL: none */
	uint32_t number;		 /* 1 .. TW_BLOCKS_MAX - 1 */
	uint16_t generation;		 /* raised when the block is given back */
	uint16_t is_chain;		 /* the head of a chain */
	uint64_t words[TW_BLOCK_WORDS];	 /* undefined when the block is taken */
};

struct tw_process_memory {
	struct tw_block *used, *spare;
	uint32_t used_count, spare_count;
	/* tw_hit_alive and tw_hit_epoch when its chains were last swept. */
	uint64_t alive, epoch;
};

/*
 * tw_block_take - a block for this process.
 *
 * @capacity	blocks of the process' limit that must stay free.
 *
 * NULL: the limit of the process or of the program is reached, there is no memory, or system calls are not allowed
 * (filter.h). Keeps vector registers.
 */
struct tw_block *tw_block_take(struct tw_process_memory *memory, uint32_t capacity);
void tw_block_give(struct tw_process_memory *memory, struct tw_block *block);

/* The reference of a block, for a frame: never 0. */
uint32_t tw_block_reference(const struct tw_block *block);
/* NULL: the block was given back since, or belongs to another process. */
struct tw_block *tw_block_find(const struct tw_process_memory *memory, uint32_t reference);

/* The process exits; in a forked child also called for processes that are not there. */
void tw_process_memory_fini(struct tw_process_memory *memory);
/* Blocks that belong to processes now, spare ones included. */
uint32_t tw_blocks_in_use(void);

void tw_process_memory_before_fork(void);
void tw_process_memory_after_fork(void);

#endif
