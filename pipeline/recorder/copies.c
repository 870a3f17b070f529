/* SPDX-License-Identifier: Apache-2.0 */
/* copies.c - see copies.h. */
#include "pipeline/recorder/copies.h"
#include "base/atomic.h"
#include "base/error.h"
#include "base/sys.h"
#include "base/worker.h"

#include <stdlib.h>
#include <string.h>

uint32_t tw_copies_threads(uint32_t count)
{
	uint32_t processors = (uint32_t)tw_sys_processors(),
		 threads = processors < TW_COPIES_THREADS_MAX ? processors : TW_COPIES_THREADS_MAX;

	return threads < count ? threads : count;
}

/* ---- any work ---- */

struct each {
	_Atomic uint32_t next;
	uint32_t count;
	void (*fn)(void *arg, uint32_t number);
	void *arg;
};

static void *run_each(void *arg)
{
	struct each *each = arg;
	uint32_t number;

	/* RELAXED copies.next: each number is taken once; all else is ordered by the start and the end of the threads. */
	while ((number = tw_fetch_add_relaxed(&each->next, 1)) < each->count)
		each->fn(each->arg, number);
	return NULL;
}

void tw_copies_each(uint32_t count, void (*fn)(void *arg, uint32_t number), void *arg)
{
	struct each each = {.count = count, .fn = fn, .arg = arg};
	pthread_t threads[TW_COPIES_THREADS_MAX];
	uint32_t wanted = tw_copies_threads(count), made = 0;

	while (made + 1 < wanted && !tw_worker_start(&threads[made], 0, run_each, &each))
		made++;
	run_each(&each);
	for (uint32_t i = 0; i < made; i++)
		pthread_join(threads[i], NULL);
}

/* ---- blocks ---- */

struct tw_copies {
	struct tw_copies_ring *rings;
	uint32_t count;
	uint64_t ahead_bytes;
	_Atomic uint32_t next;
	pthread_mutex_t lock; /* protects what follows, and lists, is_done and error of rings */
	pthread_cond_t made, taken;
	uint32_t taking;	/* the ring whose blocks are taken */
	uint64_t waiting_bytes; /* of blocks that are not taken */
	bool is_over;		/* no more blocks are wanted */
	pthread_t threads[TW_COPIES_THREADS_MAX];
	uint32_t thread_count;
};

/*
 * Waits while too much waits to be stored.  Never for the ring that is being stored: rings are begun in their order, so that
 * one is done or under way, and with it the thread that stores goes on.  False: no more blocks are wanted.
 */
static bool wait_for_space(struct tw_copies *copies, uint32_t number)
{
	while (!copies->is_over && copies->waiting_bytes > copies->ahead_bytes && number != copies->taking)
		pthread_cond_wait(&copies->taken, &copies->lock);
	return !copies->is_over;
}

/* NULL: the ring ends, with this error. Returns false if no more blocks are wanted. */
static bool put(struct tw_copies *copies, uint32_t number, struct tw_copies_block *block, int error)
{
	struct tw_copies_ring *ring = &copies->rings[number];
	bool is_wanted = true;

	pthread_mutex_lock(&copies->lock);
	if (block) {
		*ring->end = block;
		ring->end = &block->next;
		copies->waiting_bytes += sizeof *block + block->header.stored_bytes;
	} else {
		ring->is_done = true;
		ring->error = error;
	}
	pthread_cond_signal(&copies->made);
	if (block)
		is_wanted = wait_for_space(copies, number);
	pthread_mutex_unlock(&copies->lock);
	return is_wanted;
}

static struct tw_copies_block *make_block(struct tw_block_encoder *encoder, struct tw_copies_ring *from)
{
	const struct tw_writer_copy *copy = from->copy;
	const uint8_t *raw = copy->raw + from->at, *stored = NULL;
	struct tw_block_header header;
	struct tw_copies_block *block;
	uint32_t raw_bytes = tw_writer_start_copied(&from->ring, copy, from->at, &header);
	bool is_bad = tw_block_encode_copied(encoder, &header, raw, raw_bytes, &stored) != 0;

	if (is_bad)
		header.stored_bytes = 0;
	block = malloc(sizeof *block + header.stored_bytes);
	if (!block)
		return NULL;
	*block = (struct tw_copies_block){.header = header,
					  .tracee = tw_block_encoder_tracee(encoder),
					  .raw = raw,
					  .raw_bytes = raw_bytes,
					  .is_bad = is_bad};
	if (!is_bad) {
		memcpy(block->stored, stored, header.stored_bytes);
		tw_writer_advance(&from->ring.at, &header, block->tracee);
	}
	from->at += raw_bytes;
	return block;
}

static void make_blocks(struct tw_copies *copies, uint32_t number)
{
	struct tw_copies_ring *ring = &copies->rings[number];
	/* Of its own: what an encoder remembers of a ring must not depend on which one came before. */
	struct tw_block_encoder *encoder = ring->at < ring->copy->bytes ? tw_block_encoder_create() : NULL;
	bool is_wanted = encoder != NULL;
	struct tw_copies_block *block;

	while (is_wanted && ring->at < ring->copy->bytes) {
		block = make_block(encoder, ring);
		is_wanted = block && put(copies, number, block, 0);
	}
	tw_block_encoder_destroy(encoder);
	put(copies, number, NULL, ring->at < ring->copy->bytes ? TW_ENOMEM : 0);
}

static void *run_blocks(void *arg)
{
	struct tw_copies *copies = arg;
	uint32_t number;

	/* RELAXED copies.next: each ring is taken once; what is made of it is handed over under the lock. */
	while ((number = tw_fetch_add_relaxed(&copies->next, 1)) < copies->count)
		make_blocks(copies, number);
	return NULL;
}

int tw_copies_start(struct tw_copies_ring *rings, uint32_t count, uint64_t ahead_bytes, struct tw_copies **out)
{
	struct tw_copies *copies = calloc(1, sizeof *copies);
	uint32_t wanted = tw_copies_threads(count);

	if (!copies)
		return TW_ENOMEM;
	copies->rings = rings;
	copies->count = count;
	copies->ahead_bytes = ahead_bytes;
	for (uint32_t i = 0; i < count; i++)
		rings[i].end = &rings[i].first;
	pthread_mutex_init(&copies->lock, NULL);
	pthread_cond_init(&copies->made, NULL);
	pthread_cond_init(&copies->taken, NULL);
	while (copies->thread_count < wanted &&
	       !tw_worker_start(&copies->threads[copies->thread_count], 0, run_blocks, copies))
		copies->thread_count++;
	if (!copies->thread_count) {
		tw_copies_stop(copies);
		return TW_ENOMEM;
	}
	*out = copies;
	return 0;
}

struct tw_copies_block *tw_copies_take(struct tw_copies *copies, uint32_t number, int *error)
{
	struct tw_copies_ring *ring = &copies->rings[number];
	struct tw_copies_block *block;

	pthread_mutex_lock(&copies->lock);
	if (copies->taking != number) {
		copies->taking = number;
		pthread_cond_broadcast(&copies->taken);
	}
	while (!ring->first && !ring->is_done)
		pthread_cond_wait(&copies->made, &copies->lock);
	block = ring->first;
	*error = block ? 0 : ring->error;
	if (block) {
		ring->first = block->next;
		if (!ring->first)
			ring->end = &ring->first;
		copies->waiting_bytes -= sizeof *block + block->header.stored_bytes;
		pthread_cond_broadcast(&copies->taken);
	}
	pthread_mutex_unlock(&copies->lock);
	return block;
}

void tw_copies_stop(struct tw_copies *copies)
{
	struct tw_copies_block *block;

	pthread_mutex_lock(&copies->lock);
	copies->is_over = true;
	pthread_cond_broadcast(&copies->taken);
	pthread_mutex_unlock(&copies->lock);
	for (uint32_t i = 0; i < copies->thread_count; i++)
		pthread_join(copies->threads[i], NULL);
	for (uint32_t i = 0; i < copies->count; i++) {
		while ((block = copies->rings[i].first)) {
			copies->rings[i].first = block->next;
			free(block);
		}
	}
	pthread_cond_destroy(&copies->taken);
	pthread_cond_destroy(&copies->made);
	pthread_mutex_destroy(&copies->lock);
	free(copies);
}
