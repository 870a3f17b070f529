/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker.h - threads of our own, which take no signal of the program: its handlers run on its own threads.
 *
 * Threads  any.
 */
#ifndef TW_BASE_WORKER_H
#define TW_BASE_WORKER_H

#include <pthread.h>
#include <signal.h>

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

#endif
