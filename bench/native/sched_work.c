/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sched_work.c - two threads on one processor wake each other by pipes, for sched.sh: sched_work ROUNDS.
 *
 * Prints how often they blocked, the wall time in us, and the processor time of the process in us.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static int there[2], back[2];
static long rounds;

__attribute__((noinline)) void turn(int from, int to)
{
	char byte;

	if (read(from, &byte, 1) != 1 || write(to, &byte, 1) != 1)
		_exit(1);
}

static void *other(void *arg)
{
	for (long i = 0; i < rounds; i++)
		turn(there[0], back[1]);
	return arg;
}

static long us_of(struct timeval time)
{
	return time.tv_sec * 1000000 + time.tv_usec;
}

int main(int argc, char **argv)
{
	struct timespec from, to;
	struct rusage usage;
	pthread_t thread;
	cpu_set_t one;

	rounds = argc > 1 ? atol(argv[1]) : 100000;
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof one, &one);
	if (pipe(there) || pipe(back) || pthread_create(&thread, NULL, other, NULL))
		return 1;
	clock_gettime(CLOCK_MONOTONIC, &from);
	if (write(there[1], "", 1) != 1)
		return 1;
	for (long i = 0; i < rounds; i++)
		turn(back[0], there[1]);
	pthread_join(thread, NULL);
	clock_gettime(CLOCK_MONOTONIC, &to);
	getrusage(RUSAGE_SELF, &usage);
	printf("%ld %ld %ld\n", usage.ru_nvcsw + usage.ru_nivcsw,
	       (to.tv_sec - from.tv_sec) * 1000000 + (to.tv_nsec - from.tv_nsec) / 1000,
	       us_of(usage.ru_utime) + us_of(usage.ru_stime));
	return 0;
}
