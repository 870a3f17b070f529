/* SPDX-License-Identifier: Apache-2.0 */
/* process_memory.c - blocks of processes.  Compiled without vector registers, as hit.c. */
#include "pipeline/hit/process_memory.h"
#include "base/atomic.h"
#include "base/filter.h"
#include "base/quiet_lock.h"
#include "breakpoints/own_stack.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/mman.h>

#define CHUNK_BLOCKS	1024
#define CHUNKS		(TW_BLOCKS_MAX / CHUNK_BLOCKS)
#define GENERATION_MASK ((1u << (32 - TW_BLOCK_NUMBER_BITS)) - 1)
_Static_assert(GENERATION_MASK <= UINT16_MAX, "a block counts as many");
/* Blocks taken at a time, and the number of spare ones above which all of them are given back. */
#define TAKEN_AT_ONCE 8
#define SPARE_MAX     64

_Static_assert(sizeof(struct tw_block) == 256, "the documented limits assume it");
_Static_assert(TW_BLOCKS_MAX == 1u << TW_BLOCK_NUMBER_BITS, "a number fits a reference");

static struct tw_quiet_lock lock = TW_QUIET_LOCK_INIT;
static struct tw_block *chunks[CHUNKS];
/* Under the lock. */
static struct tw_block *free_blocks;
static uint32_t fresh = 1; /* the next number that was never used */
static uint32_t in_use;

/* ---- blocks of the program ---- */

/* A block that was never used; NULL: no memory, or all are used. */
static struct tw_block *take_fresh(void)
{
	struct tw_block *chunk, *block;

	if (fresh >= TW_BLOCKS_MAX)
		return NULL;
	chunk = chunks[fresh / CHUNK_BLOCKS];
	if (!chunk) {
		chunk = mmap(NULL, CHUNK_BLOCKS * sizeof *chunk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			     -1, 0);
		if (chunk == MAP_FAILED)
			return NULL;
		/* Read by holders of a reference into it, which are made after this. */
		chunks[fresh / CHUNK_BLOCKS] = chunk;
	}
	block = &chunk[fresh % CHUNK_BLOCKS];
	block->number = fresh++;
	return block;
}

static void refill(void *arg)
{
	struct tw_process_memory *memory = arg;
	int saved_errno = errno;

	tw_quiet_lock(&lock);
	for (int i = 0; i < TAKEN_AT_ONCE; i++) {
		struct tw_block *block = free_blocks;

		if (block)
			free_blocks = block->next;
		else
			block = take_fresh();
		if (!block)
			break;
		block->next = memory->spare;
		memory->spare = block;
		memory->spare_count++;
		in_use++;
	}
	tw_quiet_unlock(&lock);
	errno = saved_errno;
}

static void give_spare(void *arg)
{
	struct tw_process_memory *memory = arg;
	struct tw_block *last = memory->spare;

	if (!last)
		return;
	while (last->next)
		last = last->next;
	tw_quiet_lock(&lock);
	last->next = free_blocks;
	free_blocks = memory->spare;
	in_use -= memory->spare_count;
	tw_quiet_unlock(&lock);
	memory->spare = NULL;
	memory->spare_count = 0;
}

uint32_t tw_blocks_in_use(void)
{
	uint32_t count;

	tw_quiet_lock(&lock);
	count = in_use;
	tw_quiet_unlock(&lock);
	return count;
}

void tw_process_memory_before_fork(void)
{
	tw_quiet_lock_before_fork(&lock);
}

void tw_process_memory_after_fork(void)
{
	tw_quiet_unlock_after_fork(&lock);
}

/*
 * ---- blocks of a process ----
 *
 * A signal handler may jump out of a hit between any two steps here. In this order that costs at most a block, which
 * stays used until the process exits or forever, and never puts a block into two lists: a block whose predecessor
 * does not point to it is left alone.
 */

struct tw_block *tw_block_take(struct tw_process_memory *memory, uint32_t capacity)
{
	struct tw_block *block;

	if (memory->used_count + capacity >= TW_PROCESS_BLOCKS_MAX)
		return NULL;
	if (!memory->spare && tw_thread_may_call_system())
		tw_own_stack_try(refill, memory);
	block = memory->spare;
	if (!block)
		return NULL;
	memory->spare = block->next;
	memory->spare_count--;
	block->next = memory->used;
	block->link = &memory->used;
	tw_compiler_barrier();
	memory->used = block;
	if (block->next)
		block->next->link = &block->next;
	memory->used_count++;
	block->owner = memory;
	return block;
}

static void give(struct tw_process_memory *memory, struct tw_block *block)
{
	if (*block->link != block)
		return;
	if (block->next)
		block->next->link = block->link;
	tw_compiler_barrier();
	*block->link = block->next;
	memory->used_count--;
	block->owner = NULL;
	block->is_chain = false;
	block->generation++;
	block->next = memory->spare;
	memory->spare = block;
	memory->spare_count++;
}

void tw_block_give(struct tw_process_memory *memory, struct tw_block *block)
{
	give(memory, block);
	if (memory->spare_count > SPARE_MAX && tw_thread_may_call_system())
		tw_own_stack_try(give_spare, memory);
}

uint32_t tw_block_reference(const struct tw_block *block)
{
	return block->number | ((uint32_t)block->generation & GENERATION_MASK) << TW_BLOCK_NUMBER_BITS;
}

struct tw_block *tw_block_find(const struct tw_process_memory *memory, uint32_t reference)
{
	uint32_t number = reference & (TW_BLOCKS_MAX - 1);
	struct tw_block *chunk = chunks[number / CHUNK_BLOCKS], *block = &chunk[number % CHUNK_BLOCKS];

	if (!chunk || block->owner != memory || tw_block_reference(block) != reference)
		return NULL;
	return block;
}

void tw_process_memory_fini(struct tw_process_memory *memory)
{
	while (memory->used) {
		memory->used->link = &memory->used;
		give(memory, memory->used);
	}
	give_spare(memory);
}
