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
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t added, finished_some;
	void (*wake)(void *arg);
	void *wake_arg;
	struct iovec pieces[PIECES_MAX]; /* used by the thread */
	uint64_t bytes;			 /* not given back; used by the recorder */
	/* Protected by the mutex from here on: */
	struct list waiting, finished;
	bool is_writing, is_ending;
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

/* Called with the mutex: takes all blocks for the file of the first one, in order, as many as one write holds. */
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

	pthread_mutex_lock(&queue->mutex);
	while (queue->waiting.first || !queue->is_ending) {
		struct list taken;
		uint64_t begun_ns, ended_ns;
		int error = queue->error;

		if (!queue->waiting.first) {
			pthread_cond_wait(&queue->added, &queue->mutex);
			continue;
		}
		taken = take_file(queue);
		queue->is_writing = true;
		pthread_mutex_unlock(&queue->mutex);
		begun_ns = tw_clock_monotonic_ns();
		if (!error)
			error = write_file(queue, taken.first);
		ended_ns = tw_clock_monotonic_ns();
		for (struct tw_write *write = taken.first; write; write = write->next)
			write->error = error;
		pthread_mutex_lock(&queue->mutex);
		queue->is_writing = false;
		queue->error = error;
		if (ended_ns - begun_ns >= TW_WRITE_SLOW_NS)
			queue->slow_ns = ended_ns;
		append(&queue->finished, taken.first, taken.end);
		pthread_cond_broadcast(&queue->finished_some);
		pthread_mutex_unlock(&queue->mutex);
		queue->wake(queue->wake_arg);
		pthread_mutex_lock(&queue->mutex);
	}
	pthread_mutex_unlock(&queue->mutex);
	return NULL;
}

int tw_write_queue_create(struct tw_write_queue **out, void (*wake)(void *arg), void *arg)
{
	struct tw_write_queue *queue = calloc(1, sizeof *queue);
	int error;

	if (!queue)
		return TW_ENOMEM;
	queue->wake = wake;
	queue->wake_arg = arg;
	clear(&queue->waiting);
	clear(&queue->finished);
	pthread_mutex_init(&queue->mutex, NULL);
	pthread_cond_init(&queue->added, NULL);
	pthread_cond_init(&queue->finished_some, NULL);
	error = tw_worker_start(&queue->thread, 0, work, queue);
	if (error) {
		pthread_cond_destroy(&queue->finished_some);
		pthread_cond_destroy(&queue->added);
		pthread_mutex_destroy(&queue->mutex);
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
	pthread_mutex_lock(&queue->mutex);
	queue->is_ending = true;
	pthread_cond_broadcast(&queue->added);
	pthread_mutex_unlock(&queue->mutex);
	pthread_join(queue->thread, NULL);
	pthread_cond_destroy(&queue->finished_some);
	pthread_cond_destroy(&queue->added);
	pthread_mutex_destroy(&queue->mutex);
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

	pthread_mutex_lock(&queue->mutex);
	slow_ns = queue->slow_ns;
	pthread_mutex_unlock(&queue->mutex);
	return slow_ns;
}

void tw_write_queue_add(struct tw_write_queue *queue, struct tw_write *write)
{
	queue->bytes += tw_block_file_bytes(&write->header);
	pthread_mutex_lock(&queue->mutex);
	append(&queue->waiting, write, &write->next);
	pthread_cond_signal(&queue->added);
	pthread_mutex_unlock(&queue->mutex);
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

	pthread_mutex_lock(&queue->mutex);
	while (waits && !queue->finished.first && (queue->waiting.first || queue->is_writing))
		pthread_cond_wait(&queue->finished_some, &queue->mutex);
	first = take_all(&queue->finished);
	pthread_mutex_unlock(&queue->mutex);
	return give(queue, first);
}

struct tw_write *tw_write_queue_drain(struct tw_write_queue *queue)
{
	struct tw_write *first;

	pthread_mutex_lock(&queue->mutex);
	while (queue->waiting.first || queue->is_writing)
		pthread_cond_wait(&queue->finished_some, &queue->mutex);
	first = take_all(&queue->finished);
	queue->error = 0;
	pthread_mutex_unlock(&queue->mutex);
	return give(queue, first);
}
