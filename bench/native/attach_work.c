/* SPDX-License-Identifier: Apache-2.0 */
/* attach_work.c - eight threads that call one function, all the time or for so many seconds, for attach.py. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_int rests;

__attribute__((noinline)) int work(int x)
{
	volatile int sums[4] = {x, x + 1, x + 2, x + 3};

	return sums[x & 3] + 1;
}

static void *run(void *arg)
{
	for (int x = 0; !atomic_load_explicit(&rests, memory_order_relaxed); x = work(x))
		;
	for (;;)
		pause();
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	for (int i = 0; i < 8; i++)
		pthread_create(&thread, NULL, run, NULL);
	if (argc > 1) {
		sleep((unsigned)atoi(argv[1]));
		atomic_store(&rests, 1);
	}
	for (;;)
		pause();
	return 0;
}
