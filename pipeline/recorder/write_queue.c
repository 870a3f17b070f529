/* SPDX-License-Identifier: Apache-2.0 */
/* write_queue.c - two lists, and the thread that moves blocks from one to the other. */
#include "pipeline/recorder/write_queue.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/worker.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

/* The most pieces of one pwritev(). */
#define PIECES_MAX IOV_MAX

struct list {
	struct tw_write *first, **end;
};

struct tw_write_queue {
	struct tw_worker worker;
	void (*wake)(void *arg);
	void *wake_arg;
	struct iovec pieces[PIECES_MAX]; /* used by the thread */
	uint64_t bytes;			 /* not given back; used by the recorder */
	/* Protected by the worker's lock from here on: */
	struct list waiting, finished;
	bool is_writing;
	int error; /* of the first write that failed since the last tw_write_queue_drain() */
	uint64_t slow_ns;
};

static void clear(struct list *list)
{
	*list = (struct list){NULL, &list->first};
}

static void append(struct list *list, struct tw_write *first, struct tw_write **end)
{
	if (!first)
		return;
	*list->end = first;
	list->end = end;
	*end = NULL;
}

static struct tw_write *take_all(struct list *list)
{
	struct tw_write *first = list->first;

	clear(list);
	return first;
}

/* Called with the lock: takes all blocks for the file of the first one, in order, as many as one write holds. */
static struct list take_file(struct tw_write_queue *queue)
{
	struct list taken = {NULL, NULL};
	struct tw_write **at = &queue->waiting.first;
	int fd = queue->waiting.first->fd, count = 0;

	while (*at && count < PIECES_MAX) {
		struct tw_write *write = *at;

		if (write->fd != fd) {
			at = &write->next;
			continue;
		}
		*at = write->next;
		if (!write->next)
			queue->waiting.end = at;
		if (count++)
			*taken.end = write;
		else
			taken.first = write;
		taken.end = &write->next;
		write->next = NULL;
	}
	return taken;
}

static int write_file(struct tw_write_queue *queue, const struct tw_write *first)
{
	uint64_t offset = first->offset;
	int count = 0, error;

	for (const struct tw_write *write = first; write; write = write->next)
		queue->pieces[count++] =
			(struct iovec){(void *)(uintptr_t)&write->header, tw_block_file_bytes(&write->header)};
	error = tw_segment_write(first->io, first->fd, queue->pieces, count, offset);
	/* Nothing is left behind, as in tw_segment_append(). */
	if (error && ftruncate(first->fd, (off_t)offset) < 0)
		return TW_EIO;
	return error;
}

static void *work(void *arg)
{
	struct tw_write_queue *queue = arg;

	pthread_mutex_lock(&queue->worker.lock);
	while (queue->waiting.first || !queue->worker.is_ending) {
		struct list taken;
		uint64_t begun_ns, ended_ns;
		int error = queue->error;

		if (!queue->waiting.first) {
			pthread_cond_wait(&queue->worker.changed, &queue->worker.lock);
			continue;
		}
		taken = take_file(queue);
		queue->is_writing = true;
		pthread_mutex_unlock(&queue->worker.lock);
		begun_ns = tw_clock_monotonic_ns();
		if (!error)
			error = write_file(queue, taken.first);
		ended_ns = tw_clock_monotonic_ns();
		for (struct tw_write *write = taken.first; write; write = write->next)
			write->error = error;
		pthread_mutex_lock(&queue->worker.lock);
		queue->is_writing = false;
		queue->error = error;
		if (ended_ns - begun_ns >= TW_WRITE_SLOW_NS)
			queue->slow_ns = ended_ns;
		append(&queue->finished, taken.first, taken.end);
		pthread_cond_broadcast(&queue->worker.changed);
		pthread_mutex_unlock(&queue->worker.lock);
		queue->wake(queue->wake_arg);
		pthread_mutex_lock(&queue->worker.lock);
	}
	pthread_mutex_unlock(&queue->worker.lock);
	return NULL;
}

int tw_write_queue_create(struct tw_write_queue **out, void (*wake)(void *arg), void *arg)
{
	struct tw_write_queue *queue = calloc(1, sizeof *queue);

	if (!queue)
		return TW_ENOMEM;
	queue->wake = wake;
	queue->wake_arg = arg;
	clear(&queue->waiting);
	clear(&queue->finished);
	if (!tw_worker_init(&queue->worker, work, queue)) {
		free(queue);
		return TW_ENOMEM;
	}
	*out = queue;
	return 0;
}

void tw_write_queue_destroy(struct tw_write_queue *queue)
{
	if (!queue)
		return;
	tw_worker_fini(&queue->worker);
	free(queue);
}

bool tw_write_queue_has_space(const struct tw_write_queue *queue, uint64_t bytes)
{
	return queue->bytes + bytes <= TW_WRITE_QUEUE_BYTES;
}

bool tw_write_queue_is_empty(const struct tw_write_queue *queue)
{
	return queue->bytes == 0;
}

uint64_t tw_write_queue_slow_ns(struct tw_write_queue *queue)
{
	uint64_t slow_ns;

	pthread_mutex_lock(&queue->worker.lock);
	slow_ns = queue->slow_ns;
	pthread_mutex_unlock(&queue->worker.lock);
	return slow_ns;
}

void tw_write_queue_add(struct tw_write_queue *queue, struct tw_write *write)
{
	queue->bytes += tw_block_file_bytes(&write->header);
	pthread_mutex_lock(&queue->worker.lock);
	append(&queue->waiting, write, &write->next);
	pthread_cond_broadcast(&queue->worker.changed);
	pthread_mutex_unlock(&queue->worker.lock);
}

static struct tw_write *give(struct tw_write_queue *queue, struct tw_write *first)
{
	for (const struct tw_write *write = first; write; write = write->next)
		queue->bytes -= tw_block_file_bytes(&write->header);
	return first;
}

struct tw_write *tw_write_queue_collect(struct tw_write_queue *queue, bool waits)
{
	struct tw_write *first;

	pthread_mutex_lock(&queue->worker.lock);
	while (waits && !queue->finished.first && (queue->waiting.first || queue->is_writing))
		pthread_cond_wait(&queue->worker.changed, &queue->worker.lock);
	first = take_all(&queue->finished);
	pthread_mutex_unlock(&queue->worker.lock);
	return give(queue, first);
}

struct tw_write *tw_write_queue_drain(struct tw_write_queue *queue)
{
	struct tw_write *first;

	pthread_mutex_lock(&queue->worker.lock);
	while (queue->waiting.first || queue->is_writing)
		pthread_cond_wait(&queue->worker.changed, &queue->worker.lock);
	first = take_all(&queue->finished);
	queue->error = 0;
	pthread_mutex_unlock(&queue->worker.lock);
	return give(queue, first);
}
