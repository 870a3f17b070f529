/* SPDX-License-Identifier: Apache-2.0 */
/* syncer.c - a queue of files, and the thread that syncs them. */
#include "pipeline/recorder/syncer.h"
#include "base/error.h"
#include "base/worker.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

/* Segments end by size and by process: if more than this wait at once, the disk is too slow. */
#define JOBS_MAX 64

struct job {
	struct tw_segment_sealed segment;
	bool is_publication; /* else a sync of a file that is being written */
};

struct failure {
	uint32_t number;
	int error;
};

struct tw_syncer {
	struct tw_worker worker;
	/* Protected by its lock from here on: */
	struct job jobs[JOBS_MAX]; /* the oldest first; the first one is being processed */
	size_t count;
	struct failure failures[JOBS_MAX]; /* of syncs, not yet reported */
	size_t failure_count;
	int publish_error; /* the first */
	uint64_t publish_errors;
};

/* Called with the lock. */
static int take_failure(struct tw_syncer *syncer, uint32_t number)
{
	for (size_t i = 0; i < syncer->failure_count; i++) {
		int error = syncer->failures[i].error;

		if (syncer->failures[i].number != number)
			continue;
		syncer->failures[i] = syncer->failures[--syncer->failure_count];
		return error;
	}
	return 0;
}

/*
 * @failed: the error of an earlier sync of the same file. The kernel reports it only once.
 */
static int run(const struct job *job, int failed)
{
	int error = failed;

	if (job->is_publication && !failed)
		return tw_segment_publish(&job->segment, true);
	if (!error)
		error = tw_segment_sync_file(job->segment.io, job->segment.fd);
	close(job->segment.fd);
	return error;
}

/* Called with the lock. */
static void finish_first(struct tw_syncer *syncer, int error)
{
	const struct job *job = &syncer->jobs[0];

	if (error && job->is_publication) {
		syncer->publish_errors++;
		if (!syncer->publish_error)
			syncer->publish_error = error;
	} else if (error && syncer->failure_count < JOBS_MAX) {
		syncer->failures[syncer->failure_count++] = (struct failure){job->segment.number, error};
	}
	syncer->count--;
	memmove(syncer->jobs, syncer->jobs + 1, syncer->count * sizeof *syncer->jobs);
	pthread_cond_broadcast(&syncer->worker.changed);
}

static void *work(void *arg)
{
	struct tw_syncer *syncer = arg;

	pthread_mutex_lock(&syncer->worker.lock);
	while (syncer->count || !syncer->worker.is_ending) {
		struct job job;
		int error;

		if (!syncer->count) {
			pthread_cond_wait(&syncer->worker.changed, &syncer->worker.lock);
			continue;
		}
		job = syncer->jobs[0];
		error = job.is_publication ? take_failure(syncer, job.segment.number) : 0;
		pthread_mutex_unlock(&syncer->worker.lock);
		error = run(&job, error);
		pthread_mutex_lock(&syncer->worker.lock);
		finish_first(syncer, error);
	}
	pthread_mutex_unlock(&syncer->worker.lock);
	return NULL;
}

int tw_syncer_create(struct tw_syncer **out)
{
	struct tw_syncer *syncer = calloc(1, sizeof *syncer);

	if (!syncer || !tw_worker_init(&syncer->worker, work, syncer)) {
		free(syncer);
		return TW_ENOMEM;
	}
	*out = syncer;
	return 0;
}

void tw_syncer_destroy(struct tw_syncer *syncer)
{
	if (!syncer)
		return;
	tw_worker_fini(&syncer->worker);
	free(syncer);
}

/* Called with the lock. */
static bool is_under_way(const struct tw_syncer *syncer, uint32_t number, bool is_publication)
{
	for (size_t i = 0; i < syncer->count; i++)
		if (syncer->jobs[i].segment.number == number && syncer->jobs[i].is_publication == is_publication)
			return true;
	return false;
}

/* Called with the lock, when a slot is free. */
static void add(struct tw_syncer *syncer, const struct tw_segment_sealed *segment, bool is_publication)
{
	syncer->jobs[syncer->count++] = (struct job){*segment, is_publication};
	pthread_cond_broadcast(&syncer->worker.changed);
}

bool tw_syncer_sync(struct tw_syncer *syncer, const struct tw_segment *segment)
{
	struct tw_segment_sealed file = {.number = segment->number,
					 .directory_fd = segment->directory_fd,
					 .io = segment->io};
	bool has_space;

	pthread_mutex_lock(&syncer->worker.lock);
	has_space = syncer->count < JOBS_MAX && !is_under_way(syncer, segment->number, false);
	/* A descriptor of its own: the segment may be closed meanwhile. */
	file.fd = has_space ? fcntl(segment->fd, F_DUPFD_CLOEXEC, 0) : -1;
	if (file.fd >= 0)
		add(syncer, &file, false);
	pthread_mutex_unlock(&syncer->worker.lock);
	return file.fd >= 0;
}

void tw_syncer_publish(struct tw_syncer *syncer, const struct tw_segment_sealed *sealed)
{
	pthread_mutex_lock(&syncer->worker.lock);
	while (syncer->count == JOBS_MAX)
		pthread_cond_wait(&syncer->worker.changed, &syncer->worker.lock);
	add(syncer, sealed, true);
	pthread_mutex_unlock(&syncer->worker.lock);
}

int tw_syncer_failed(struct tw_syncer *syncer, uint32_t number)
{
	int error;

	pthread_mutex_lock(&syncer->worker.lock);
	error = take_failure(syncer, number);
	pthread_mutex_unlock(&syncer->worker.lock);
	return error;
}

void tw_syncer_await(struct tw_syncer *syncer, uint32_t number)
{
	pthread_mutex_lock(&syncer->worker.lock);
	while (is_under_way(syncer, number, true))
		pthread_cond_wait(&syncer->worker.changed, &syncer->worker.lock);
	pthread_mutex_unlock(&syncer->worker.lock);
}

int tw_syncer_await_all(struct tw_syncer *syncer, uint64_t *count)
{
	int error;

	pthread_mutex_lock(&syncer->worker.lock);
	while (syncer->count)
		pthread_cond_wait(&syncer->worker.changed, &syncer->worker.lock);
	error = syncer->publish_error;
	*count = syncer->publish_errors;
	syncer->publish_error = 0;
	syncer->publish_errors = 0;
	pthread_mutex_unlock(&syncer->worker.lock);
	return error;
}
