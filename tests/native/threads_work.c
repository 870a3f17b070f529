/* SPDX-License-Identifier: Apache-2.0 */
/* threads_work.c - a library that makes threads for its callers, as a thread pool does. */
#include <pthread.h>

int make_thread(pthread_t *thread, void *(*function)(void *), void *arg);

int make_thread(pthread_t *thread, void *(*function)(void *), void *arg)
{
	return pthread_create(thread, NULL, function, arg);
}
