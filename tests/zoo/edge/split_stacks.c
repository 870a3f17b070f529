/* SPDX-License-Identifier: Apache-2.0 */
/* gcc: -pthread -fsplit-stack -fno-optimize-sibling-calls -fuse-ld=bfd */
/* Functions that get a new piece of stack when the old one is full, with little left in each: gcc's split stacks. */
#include "edge.h"
#include <pthread.h>

__attribute__((noinline)) static long deep(long n)
{
	volatile char bytes[1500];

	bytes[0] = 1;
	if (n % 16 == 0)
		edge_call(n);
	return n ? deep(n - 1) + bytes[0] : 1;
}

static void *run(void *arg)
{
	long sum = 0;

	for (int i = 0; i < 20; i++)
		sum += deep(400);
	return (void *)sum;
}

int main(void)
{
	pthread_attr_t attributes;
	pthread_t thread;
	void *sum;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 65536);
	if (pthread_create(&thread, &attributes, run, NULL))
		return edge_end(0);
	pthread_join(thread, &sum);
	return edge_end((long)sum == 20 * 401 && run(NULL) == sum);
}
