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
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed; /* jobs, is_ending: for the thread; jobs: for the recorder */
	/* Protected by the mutex from here on: */
	struct job jobs[JOBS_MAX]; /* the oldest first; the first one is being processed */
	size_t count;
	bool is_ending;
	struct failure failures[JOBS_MAX]; /* of syncs, not yet reported */
	size_t failure_count;
	int publish_error; /* the first */
	uint64_t publish_errors;
};

/* Called with the mutex. */
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

/* Called with the mutex. */
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
	pthread_cond_broadcast(&syncer->changed);
}

static void *work(void *arg)
{
	struct tw_syncer *syncer = arg;

	pthread_mutex_lock(&syncer->mutex);
	while (syncer->count || !syncer->is_ending) {
		struct job job;
		int error;

		if (!syncer->count) {
			pthread_cond_wait(&syncer->changed, &syncer->mutex);
			continue;
		}
		job = syncer->jobs[0];
		error = job.is_publication ? take_failure(syncer, job.segment.number) : 0;
		pthread_mutex_unlock(&syncer->mutex);
		error = run(&job, error);
		pthread_mutex_lock(&syncer->mutex);
		finish_first(syncer, error);
	}
	pthread_mutex_unlock(&syncer->mutex);
	return NULL;
}

int tw_syncer_create(struct tw_syncer **out)
{
	struct tw_syncer *syncer = calloc(1, sizeof *syncer);
	int error;

	if (!syncer)
		return TW_ENOMEM;
	pthread_mutex_init(&syncer->mutex, NULL);
	pthread_cond_init(&syncer->changed, NULL);
	error = tw_worker_start(&syncer->thread, 0, work, syncer);
	if (error) {
		pthread_cond_destroy(&syncer->changed);
		pthread_mutex_destroy(&syncer->mutex);
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
	pthread_mutex_lock(&syncer->mutex);
	syncer->is_ending = true;
	pthread_cond_broadcast(&syncer->changed);
	pthread_mutex_unlock(&syncer->mutex);
	pthread_join(syncer->thread, NULL);
	pthread_cond_destroy(&syncer->changed);
	pthread_mutex_destroy(&syncer->mutex);
	free(syncer);
}

/* Called with the mutex. */
static bool is_under_way(const struct tw_syncer *syncer, uint32_t number, bool is_publication)
{
	for (size_t i = 0; i < syncer->count; i++)
		if (syncer->jobs[i].segment.number == number && syncer->jobs[i].is_publication == is_publication)
			return true;
	return false;
}

/* Called with the mutex, when a slot is free. */
static void add(struct tw_syncer *syncer, const struct tw_segment_sealed *segment, bool is_publication)
{
	syncer->jobs[syncer->count++] = (struct job){*segment, is_publication};
	pthread_cond_broadcast(&syncer->changed);
}

bool tw_syncer_sync(struct tw_syncer *syncer, const struct tw_segment *segment)
{
	struct tw_segment_sealed file = {.number = segment->number,
					 .directory_fd = segment->directory_fd,
					 .io = segment->io};
	bool has_space;

	pthread_mutex_lock(&syncer->mutex);
	has_space = syncer->count < JOBS_MAX && !is_under_way(syncer, segment->number, false);
	/* A descriptor of its own: the segment may be closed meanwhile. */
	file.fd = has_space ? fcntl(segment->fd, F_DUPFD_CLOEXEC, 0) : -1;
	if (file.fd >= 0)
		add(syncer, &file, false);
	pthread_mutex_unlock(&syncer->mutex);
	return file.fd >= 0;
}

void tw_syncer_publish(struct tw_syncer *syncer, const struct tw_segment_sealed *sealed)
{
	pthread_mutex_lock(&syncer->mutex);
	while (syncer->count == JOBS_MAX)
		pthread_cond_wait(&syncer->changed, &syncer->mutex);
	add(syncer, sealed, true);
	pthread_mutex_unlock(&syncer->mutex);
}

int tw_syncer_failed(struct tw_syncer *syncer, uint32_t number)
{
	int error;

	pthread_mutex_lock(&syncer->mutex);
	error = take_failure(syncer, number);
	pthread_mutex_unlock(&syncer->mutex);
	return error;
}

void tw_syncer_await(struct tw_syncer *syncer, uint32_t number)
{
	pthread_mutex_lock(&syncer->mutex);
	while (is_under_way(syncer, number, true))
		pthread_cond_wait(&syncer->changed, &syncer->mutex);
	pthread_mutex_unlock(&syncer->mutex);
}

int tw_syncer_await_all(struct tw_syncer *syncer, uint64_t *count)
{
	int error;

	pthread_mutex_lock(&syncer->mutex);
	while (syncer->count)
		pthread_cond_wait(&syncer->changed, &syncer->mutex);
	error = syncer->publish_error;
	*count = syncer->publish_errors;
	syncer->publish_error = 0;
	syncer->publish_errors = 0;
	pthread_mutex_unlock(&syncer->mutex);
	return error;
}
