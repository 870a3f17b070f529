/* SPDX-License-Identifier: Apache-2.0 */
/* gcc: -pthread -ldl */
/*
 * A lock profiler: pthread_mutex_lock() and unlock() are the program's own, and make traced calls while they hold the
 * locks.
 */
#include "edge.h"
#include <dlfcn.h>
#include <pthread.h>
#include <time.h>

static long held_ns;
static __thread int depth;

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	static int (*real)(pthread_mutex_t *);
	struct timespec at;

	if (!real)
		real = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_lock");
	int result = real(mutex);

	if (!depth++)
		clock_gettime(CLOCK_MONOTONIC, &at), held_ns -= at.tv_nsec & 1;
	depth--;
	return result;
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	static int (*real)(pthread_mutex_t *);
	struct timespec at;

	if (!real)
		real = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_unlock");
	if (!depth++)
		clock_gettime(CLOCK_MONOTONIC, &at), held_ns += at.tv_nsec & 1;
	depth--;
	return real(mutex);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long total;

static void *run(void *arg)
{
	for (int i = 0; i < 5000; i++) {
		pthread_mutex_lock(&lock);
		edge_call(i);
		total++;
		pthread_mutex_unlock(&lock);
	}
	return arg;
}

int main(void)
{
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, run, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	return edge_end(total == 20000);
}
