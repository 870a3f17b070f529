/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker.h - threads of our own, which take no signal of the program: its handlers run on its own threads; and the pair of such a thread with
 *	      the one that uses it.
 *
 * Threads  any.
 */
#ifndef TW_BASE_WORKER_H
#define TW_BASE_WORKER_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

/*
 * tw_worker_start - make a thread in which all signals are blocked.
 *
 * @open	a signal that is not, as SIGBUS of mapped files, which is raised where it cannot be blocked; 0: none.
 *
 * Returns 0 or what pthread_create() returned.
 */
static inline int tw_worker_start(pthread_t *thread, int open, void *(*run)(void *), void *arg)
{
	sigset_t all, before;
	int error;

	sigfillset(&all);
	if (open)
		sigdelset(&all, open);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

/*
 * A thread and its user, with the lock over what both of them use.  One of them waits at a time: the thread for work, or the user for what
 * it wants of the thread.  So one condition serves both.
 */
struct tw_worker {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool is_ending; /* under the lock: the thread returns when its work is done */
};

/* Starts the thread, as tw_worker_start() does.  False: there is none, and nothing is left to undo. */
static inline bool tw_worker_init(struct tw_worker *worker, void *(*run)(void *), void *arg)
{
	worker->is_ending = false;
	pthread_mutex_init(&worker->lock, NULL);
	pthread_cond_init(&worker->changed, NULL);
	if (!tw_worker_start(&worker->thread, 0, run, arg))
		return true;
	pthread_cond_destroy(&worker->changed);
	pthread_mutex_destroy(&worker->lock);
	return false;
}

/* Sets is_ending, and waits for the thread's end. */
static inline void tw_worker_fini(struct tw_worker *worker)
{
	pthread_mutex_lock(&worker->lock);
	worker->is_ending = true;
	pthread_cond_broadcast(&worker->changed);
	pthread_mutex_unlock(&worker->lock);
	pthread_join(worker->thread, NULL);
	pthread_cond_destroy(&worker->changed);
	pthread_mutex_destroy(&worker->lock);
}

#endif
