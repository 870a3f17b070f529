/* SPDX-License-Identifier: Apache-2.0 */
/* gcc: -pthread */
/* Hundreds of threads with the smallest stacks, some ended by cancellation, some by pthread_exit(). */
#include "edge.h"
#include <limits.h>
#include <pthread.h>
#include <unistd.h>

static void *run(void *arg)
{
	edge_calls(50);
	if ((long)arg % 3 == 1)
		pthread_exit(arg);
	if ((long)arg % 3 == 2)
		for (;;)
			usleep(100);
	return arg;
}

int main(void)
{
	pthread_attr_t attributes;
	int is_right = 1;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, (size_t)sysconf(_SC_THREAD_STACK_MIN) > 16384
						       ? (size_t)sysconf(_SC_THREAD_STACK_MIN)
						       : 16384);
	for (long i = 0; i < 300; i++) {
		pthread_t thread;
		void *result;

		if (pthread_create(&thread, &attributes, run, (void *)i))
			return edge_end(0);
		if (i % 3 == 2)
			pthread_cancel(thread);
		pthread_join(thread, &result);
		is_right &= i % 3 == 2 ? result == PTHREAD_CANCELED : result == (void *)i;
	}
	return edge_end(is_right);
}
