/* SPDX-License-Identifier: Apache-2.0 */
/* mallocs.h - 2,400 calls of malloc, directly, by pointer, from inside libc and in threads; of these 300 by strdup. */
#ifndef TW_TESTS_MALLOCS_H
#define TW_TESTS_MALLOCS_H

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static void *(*volatile by_pointer)(size_t);

/* Each of three threads runs @in_thread, if it is not NULL, and calls malloc 200 times. */
static void *malloc_200_times(void *in_thread)
{
	if (in_thread)
		((void (*)(void))in_thread)();
	for (int i = 0; i < 200; i++)
		free(malloc(20));
	return NULL;
}

static void malloc_2400_times(void (*in_thread)(void))
{
	pthread_t threads[3];

	by_pointer = malloc;
	for (int i = 0; i < 1000; i++)
		free(malloc(10));
	for (int i = 0; i < 500; i++)
		free(by_pointer(10));
	/* libc itself calls malloc. */
	for (int i = 0; i < 300; i++)
		free(strdup("a"));
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, malloc_200_times, (void *)in_thread);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}

#endif
