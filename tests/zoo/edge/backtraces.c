/* SPDX-License-Identifier: Apache-2.0 */
/* gcc: -pthread */
/*
 * Signals of two clocks at a high rate, each handler takes a backtrace and allocates nothing; threads make calls
 * meanwhile.
 */
#include "edge.h"
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

static volatile int ticks;
static int shallow;

static void on_signal(int number)
{
	void *frames[64];

	if (backtrace(frames, 64) < 3)
		__atomic_add_fetch(&shallow, 1, __ATOMIC_SEQ_CST);
	edge_call(number);
	__atomic_add_fetch(&ticks, 1, __ATOMIC_SEQ_CST);
}

static __attribute__((noinline)) void deep(int depth)
{
	edge_call(depth);
	if (depth)
		deep(depth - 1);
	__asm__ volatile("");
}

static void *run(void *arg)
{
	const long all = edge_rounds(400, 150);

	while (__atomic_load_n(&ticks, __ATOMIC_SEQ_CST) < all)
		deep(20);
	return arg;
}

int main(void)
{
	struct itimerval every = {{0, 700}, {0, 700}};
	pthread_t threads[3];
	void *frames[4];

	backtrace(frames, 4);
	signal(SIGALRM, on_signal);
	signal(SIGPROF, on_signal);
	setitimer(ITIMER_REAL, &every, NULL);
	setitimer(ITIMER_PROF, &every, NULL);
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, run, NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	signal(SIGALRM, SIG_IGN);
	signal(SIGPROF, SIG_IGN);
	return edge_end(!shallow);
}
