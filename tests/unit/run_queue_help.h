/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_queue_help.h - a run queue for each scheduler of a test, until MESSAGES messages were sent.
 *
 * Define before including it: ACTORS, SCHEDULERS, MESSAGES.
 */
#ifndef TW_TESTS_RUN_QUEUE_HELP_H
#define TW_TESTS_RUN_QUEUE_HELP_H

#include <pthread.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static int queue[SCHEDULERS][ACTORS + 1];
static int queued[SCHEDULERS];
static int messages; /* sent so far, under the lock */

/* The next actor to run there; -1: enough messages were sent. */
static int next_actor(int scheduler)
{
	int actor = -1;

	pthread_mutex_lock(&lock);
	while (!queued[scheduler] && messages < MESSAGES)
		pthread_cond_wait(&more, &lock);
	if (messages < MESSAGES) {
		actor = queue[scheduler][0];
		memmove(queue[scheduler], queue[scheduler] + 1, (size_t)--queued[scheduler] * sizeof(int));
	}
	pthread_mutex_unlock(&lock);
	return actor;
}

static void schedule_on(int actor, int scheduler)
{
	pthread_mutex_lock(&lock);
	queue[scheduler][queued[scheduler]++] = actor;
	pthread_cond_broadcast(&more);
	pthread_mutex_unlock(&lock);
}

static void count_message(void)
{
	pthread_mutex_lock(&lock);
	messages++;
	pthread_cond_broadcast(&more);
	pthread_mutex_unlock(&lock);
}

#endif
