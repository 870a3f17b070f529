/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deflate.c - see deflate.h.
 *
 * The fastest level of libdeflate: the higher ones take longer for a tenth less of packets of a timeline.
 */
#include "views/output/deflate.h"
#include "base/grow.h"
#include "base/worker.h"

#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

#define LEVEL 1

struct piece {
	uint8_t *data;
	size_t used, capacity;
};

struct tw_deflate {
	tw_deflate_fn *put;
	void *context;
	struct piece filling;			  /* of the user */
	struct libdeflate_compressor *compressor; /* of the thread that packs, as the rest */
	struct piece packing, packed;
	bool has_worker, has_no_memory;
	struct tw_worker worker;
	bool is_asked; /* under the worker's lock: a piece is to be packed */
};

static void pack(struct tw_deflate *packer)
{
	const struct piece *plain = &packer->packing;
	struct piece *packed = &packer->packed;
	size_t most = libdeflate_zlib_compress_bound(packer->compressor, plain->used);
	packed->used = 0;
	if (tw_grow_by(packed->data, packed->used, packed->capacity, most))
		packed->used = libdeflate_zlib_compress(packer->compressor, plain->data, plain->used, packed->data,
							packed->capacity);
	packer->has_no_memory |= !packed->used;
}

static void *run(void *arg)
{
	struct tw_deflate *packer = arg;
	struct tw_worker *worker = &packer->worker;
	pthread_mutex_lock(&worker->lock);
	while (true) {
		while (!packer->is_asked && !worker->is_ending)
			pthread_cond_wait(&worker->changed, &worker->lock);
		if (!packer->is_asked)
			break;
		pthread_mutex_unlock(&worker->lock);
		pack(packer);
		pthread_mutex_lock(&worker->lock);
		packer->is_asked = false;
		pthread_cond_broadcast(&worker->changed);
	}
	pthread_mutex_unlock(&worker->lock);
	return NULL;
}

struct tw_deflate *tw_deflate_create(tw_deflate_fn *put, void *context)
{
	struct tw_deflate *packer = calloc(1, sizeof *packer);
	if (!packer)
		return NULL;
	packer->put = put;
	packer->context = context;
	packer->compressor = libdeflate_alloc_compressor(LEVEL);
	if (!packer->compressor) {
		free(packer);
		return NULL;
	}
	packer->has_worker = tw_worker_init(&packer->worker, run, packer);
	return packer;
}

/* Waits for the piece that is being packed, and puts it. */
static void put_packed(struct tw_deflate *packer)
{
	if (packer->has_worker) {
		pthread_mutex_lock(&packer->worker.lock);
		while (packer->is_asked)
			pthread_cond_wait(&packer->worker.changed, &packer->worker.lock);
		pthread_mutex_unlock(&packer->worker.lock);
	}
	if (packer->packed.used && !packer->has_no_memory)
		packer->put(packer->context, packer->packed.data, packer->packed.used);
	packer->packed.used = 0;
}

/* The piece that was being filled is packed from now on. */
static bool hand_over(struct tw_deflate *packer)
{
	struct piece free_piece;
	put_packed(packer);
	free_piece = packer->packing;
	packer->packing = packer->filling;
	packer->filling = free_piece;
	packer->filling.used = 0;
	if (!packer->has_worker) {
		pack(packer);
		return !packer->has_no_memory;
	}
	pthread_mutex_lock(&packer->worker.lock);
	packer->is_asked = true;
	pthread_cond_broadcast(&packer->worker.changed);
	pthread_mutex_unlock(&packer->worker.lock);
	return true;
}

uint8_t *tw_deflate_space(struct tw_deflate *packer, size_t bytes)
{
	struct piece *piece = &packer->filling;
	/* No item is so large. */
	if (bytes > (size_t)1 << 30 || !tw_grow_by(piece->data, piece->used, piece->capacity, bytes))
		return NULL;
	return piece->data + piece->used;
}

bool tw_deflate_added(struct tw_deflate *packer, size_t bytes)
{
	packer->filling.used += bytes;
	return packer->filling.used < TW_DEFLATE_BYTES || hand_over(packer);
}

bool tw_deflate_add(struct tw_deflate *packer, const void *head, size_t head_bytes, const void *data, size_t bytes)
{
	uint8_t *at = tw_deflate_space(packer, head_bytes + bytes);
	if (!at)
		return false;
	memcpy(at, head, head_bytes);
	memcpy(at + head_bytes, data, bytes);
	return tw_deflate_added(packer, head_bytes + bytes);
}

bool tw_deflate_finish(struct tw_deflate *packer)
{
	if (packer->filling.used && !hand_over(packer))
		return false;
	put_packed(packer);
	return !packer->has_no_memory;
}

void tw_deflate_destroy(struct tw_deflate *packer)
{
	if (!packer)
		return;
	if (packer->has_worker)
		tw_worker_fini(&packer->worker);
	libdeflate_free_compressor(packer->compressor);
	free(packer->filling.data);
	free(packer->packing.data);
	free(packer->packed.data);
	free(packer);
}
