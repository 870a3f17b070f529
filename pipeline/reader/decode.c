/* SPDX-License-Identifier: Apache-2.0 */
/* decode.c - the pool of decoding workers. */
#include "pipeline/reader/decode.h"
#include "base/error.h"
#include "base/worker.h"

#include <pthread.h>
#include <stdlib.h>

/* The most unused jobs that are kept for later. */
#define FREE_JOBS_MAX 64

enum { JOB_OF_OWNER, JOB_QUEUED, JOB_TAKEN, JOB_DONE };

struct worker {
	struct tw_decode_pool *pool;
	struct tw_block_decoder *decoder;
	pthread_t thread;
};

struct tw_decode_pool {
	struct tw_capture *capture;
	struct tw_block_decoder *decoder; /* used by the owner itself */
	struct worker *workers;
	uint32_t worker_count;
	struct tw_decode_job *free_jobs;
	uint32_t free_count;
	/* A block takes some 100 us: a lock for two hand-overs of each costs nothing beside it. */
	pthread_mutex_t lock;
	pthread_cond_t is_wanted, is_done;
	/* Under the lock, as is the state of jobs that are queued or taken. */
	struct tw_decode_job *queue, **queue_end;
	bool is_ending;
};

/* Called with the lock. */
static struct tw_decode_job *take_job(struct tw_decode_pool *pool)
{
	struct tw_decode_job *job = pool->queue;

	pool->queue = job->next_free;
	if (!pool->queue)
		pool->queue_end = &pool->queue;
	job->state = JOB_TAKEN;
	return job;
}

static void *work(void *argument)
{
	struct worker *worker = argument;
	struct tw_decode_pool *pool = worker->pool;

	pthread_mutex_lock(&pool->lock);
	for (;;) {
		struct tw_decode_job *job;

		while (!pool->queue && !pool->is_ending)
			pthread_cond_wait(&pool->is_wanted, &pool->lock);
		if (!pool->queue)
			break;
		job = take_job(pool);
		pthread_mutex_unlock(&pool->lock);
		job->error = tw_source_load(pool->capture, job->block, worker->decoder, job->raw);
		pthread_mutex_lock(&pool->lock);
		job->state = JOB_DONE;
		pthread_cond_signal(&pool->is_done);
	}
	pthread_mutex_unlock(&pool->lock);
	return NULL;
}

/* Signals are handled by the program's own threads. */
static bool start(struct worker *worker, struct tw_decode_pool *pool)
{
	worker->pool = pool;
	worker->decoder = tw_block_decoder_create();
	if (!worker->decoder)
		return false;
	if (tw_worker_start(&worker->thread, 0, work, worker) == 0)
		return true;
	tw_block_decoder_destroy(worker->decoder);
	return false;
}

int tw_decode_pool_create(struct tw_capture *capture, struct tw_decode_pool **out)
{
	struct tw_decode_pool *pool = calloc(1, sizeof *pool);

	if (!pool)
		return TW_ENOMEM;
	pool->capture = capture;
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->is_wanted, NULL);
	pthread_cond_init(&pool->is_done, NULL);
	pool->queue_end = &pool->queue;
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
	pthread_mutex_lock(&pool->lock);
	pool->is_ending = true;
	pthread_cond_broadcast(&pool->is_wanted);
	pthread_mutex_unlock(&pool->lock);
	for (uint32_t i = 0; i < pool->worker_count; i++) {
		pthread_join(pool->workers[i].thread, NULL);
		tw_block_decoder_destroy(pool->workers[i].decoder);
	}
	while (pool->free_jobs) {
		struct tw_decode_job *job = pool->free_jobs;

		pool->free_jobs = job->next_free;
		free(job->raw);
		free(job);
	}
	pthread_cond_destroy(&pool->is_done);
	pthread_cond_destroy(&pool->is_wanted);
	pthread_mutex_destroy(&pool->lock);
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
	job->is_lent = false;
	job->state = JOB_OF_OWNER;
	if (!pool->worker_count)
		return job;
	pthread_mutex_lock(&pool->lock);
	job->state = JOB_QUEUED;
	*pool->queue_end = job;
	pool->queue_end = &job->next_free;
	pthread_cond_signal(&pool->is_wanted);
	pthread_mutex_unlock(&pool->lock);
	return job;
}

/* Takes a job that no worker has begun out of the queue. Called with the lock. */
static void take_back(struct tw_decode_pool *pool, struct tw_decode_job *job)
{
	struct tw_decode_job **link = &pool->queue;

	while (*link != job)
		link = &(*link)->next_free;
	*link = job->next_free;
	if (!*link)
		pool->queue_end = link;
	job->next_free = NULL;
	job->state = JOB_OF_OWNER;
}

/* Afterwards the job is the owner's: it is done, or no worker has begun it. */
static void get_back(struct tw_decode_pool *pool, struct tw_decode_job *job)
{
	if (!pool->worker_count)
		return;
	pthread_mutex_lock(&pool->lock);
	if (job->state == JOB_QUEUED)
		take_back(pool, job);
	while (job->state == JOB_TAKEN)
		pthread_cond_wait(&pool->is_done, &pool->lock);
	pthread_mutex_unlock(&pool->lock);
}

int tw_decode_wait(struct tw_decode_pool *pool, struct tw_decode_job *job)
{
	get_back(pool, job);
	if (job->state == JOB_OF_OWNER)
		job->error = tw_source_load(pool->capture, job->block, pool->decoder, job->raw);
	job->state = JOB_DONE;
	return job->error;
}

void tw_decode_empty(struct tw_decode_job *job)
{
	free(job->raw);
	job->raw = NULL;
	job->raw_capacity = 0;
}

void tw_decode_put_back(struct tw_decode_pool *pool, struct tw_decode_job *job)
{
	if (!job)
		return;
	get_back(pool, job);
	if (pool->free_count >= FREE_JOBS_MAX || job->raw_capacity < TW_BLOCK_RAW_BYTES_MAX) {
		free(job->raw);
		free(job);
		return;
	}
	job->next_free = pool->free_jobs;
	pool->free_jobs = job;
	pool->free_count++;
}
