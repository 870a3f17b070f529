/* SPDX-License-Identifier: Apache-2.0 */
/* decode.c - the pool of decoding workers. */
#include "pipeline/reader/decode.h"
#include "base/ck.h"
#include "base/error.h"
#include "base/sys.h"
#include "base/worker.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

#define RING_SLOTS 16
/* The most unused jobs that are kept for later. */
#define FREE_JOBS_MAX 64

struct worker {
	struct tw_decode_pool *pool;
	struct tw_block_decoder *decoder;
	pthread_t thread;
	sem_t wanted; /* posted once for each job in the ring, and once to end */
	struct tw_ck_ring jobs;
	ck_ring_buffer_t slots[RING_SLOTS];
};

struct tw_decode_pool {
	struct tw_capture *capture;
	struct tw_block_decoder *decoder; /* used by the caller itself */
	struct worker *workers;
	uint32_t worker_count;
	uint32_t next_worker;
	struct tw_decode_job *free_jobs;
	uint32_t free_count;
};

static void finish(struct tw_decode_job *job)
{
	/* PAIR decode.done: release; acquire in tw_decode_wait().  Records and error are seen with it. */
	tw_store_release(&job->is_done, 1);
	tw_sys_futex_wake(&job->is_done, 1);
}

static void *work(void *argument)
{
	struct worker *worker = argument;

	for (;;) {
		struct tw_decode_job *job;

		while (sem_wait(&worker->wanted) < 0)
			continue;
		job = tw_ck_ring_take(&worker->jobs);
		if (!job)
			return NULL;
		job->error = tw_source_load(worker->pool->capture, job->block, worker->decoder, job->raw);
		finish(job);
	}
}

/* Signals are handled by the program's own threads. */
static bool start(struct worker *worker, struct tw_decode_pool *pool)
{
	int error;

	worker->pool = pool;
	worker->decoder = tw_block_decoder_create();
	if (!worker->decoder)
		return false;
	tw_ck_ring_init(&worker->jobs, worker->slots, RING_SLOTS);
	sem_init(&worker->wanted, 0, 0);
	error = tw_worker_start(&worker->thread, 0, work, worker);
	if (error) {
		sem_destroy(&worker->wanted);
		tw_block_decoder_destroy(worker->decoder);
	}
	return error == 0;
}

int tw_decode_pool_create(struct tw_capture *capture, struct tw_decode_pool **out)
{
	struct tw_decode_pool *pool = calloc(1, sizeof *pool);

	if (!pool)
		return TW_ENOMEM;
	pool->capture = capture;
	pool->decoder = tw_block_decoder_create();
	pool->workers = calloc(capture->workers ? capture->workers : 1, sizeof *pool->workers);
	if (!pool->decoder || !pool->workers) {
		tw_decode_pool_destroy(pool);
		return TW_ENOMEM;
	}
	while (pool->worker_count < capture->workers && start(&pool->workers[pool->worker_count], pool))
		pool->worker_count++;
	*out = pool;
	return 0;
}

void tw_decode_pool_destroy(struct tw_decode_pool *pool)
{
	if (!pool)
		return;
	for (uint32_t i = 0; i < pool->worker_count; i++) {
		struct worker *worker = &pool->workers[i];

		sem_post(&worker->wanted);
		pthread_join(worker->thread, NULL);
		sem_destroy(&worker->wanted);
		tw_block_decoder_destroy(worker->decoder);
	}
	while (pool->free_jobs) {
		struct tw_decode_job *job = pool->free_jobs;

		pool->free_jobs = job->next_free;
		free(job->raw);
		free(job);
	}
	tw_block_decoder_destroy(pool->decoder);
	free(pool->workers);
	free(pool);
}

uint32_t tw_decode_pool_depth(const struct tw_decode_pool *pool)
{
	return pool->worker_count ? pool->worker_count * 2 + 1 : 1;
}

/* Reuses an earlier job if its memory is large enough; small blocks get memory of their own size. */
static struct tw_decode_job *get_job(struct tw_decode_pool *pool, uint64_t raw_bytes)
{
	uint64_t capacity = raw_bytes + TW_COLUMN_SLACK_BYTES;
	struct tw_decode_job *job = pool->free_jobs;

	if (job && job->raw_capacity >= capacity) {
		pool->free_jobs = job->next_free;
		pool->free_count--;
		return job;
	}
	job = malloc(sizeof *job);
	if (!job)
		return NULL;
	if (capacity > TW_BLOCK_RAW_BYTES_MAX / 4)
		capacity = TW_BLOCK_RAW_BYTES_MAX + TW_COLUMN_SLACK_BYTES;
	job->raw_capacity = capacity;
	job->raw = malloc(capacity);
	if (!job->raw) {
		free(job);
		return NULL;
	}
	return job;
}

struct tw_decode_job *tw_decode_begin(struct tw_decode_pool *pool, const struct tw_source_block *block)
{
	struct tw_decode_job *job = get_job(pool, block->header.raw_bytes);

	if (!job)
		return NULL;
	job->block = block;
	job->next_free = NULL;
	job->error = 0;
	job->is_given = job->is_waited = false;
	/* RELAXED decode.reset: the job belongs to this thread until the ring passes it on. */
	tw_store_relaxed(&job->is_done, 0);
	for (uint32_t i = 0; i < pool->worker_count && !job->is_given; i++) {
		struct worker *worker = &pool->workers[pool->next_worker++ % pool->worker_count];

		job->is_given = true;
		if (tw_ck_ring_put(&worker->jobs, job))
			sem_post(&worker->wanted);
		else
			job->is_given = false;
	}
	return job;
}

int tw_decode_wait(struct tw_decode_pool *pool, struct tw_decode_job *job)
{
	if (job->is_given) {
		/* PAIR decode.done: acquire; release in finish(). */
		while (!tw_load_acquire(&job->is_done))
			tw_sys_futex_wait(&job->is_done, 0, UINT64_MAX);
	} else if (!job->is_waited) {
		job->error = tw_source_load(pool->capture, job->block, pool->decoder, job->raw);
	}
	if (job->error && !job->is_waited)
		tw_source_note_block(pool->capture, job->block, job->error);
	job->is_waited = true;
	return job->error;
}

void tw_decode_put_back(struct tw_decode_pool *pool, struct tw_decode_job *job)
{
	if (!job)
		return;
	if (job->is_given)
		tw_decode_wait(pool, job);
	if (pool->free_count >= FREE_JOBS_MAX || job->raw_capacity < TW_BLOCK_RAW_BYTES_MAX) {
		free(job->raw);
		free(job);
		return;
	}
	job->next_free = pool->free_jobs;
	pool->free_jobs = job;
	pool->free_count++;
}
