/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that end inside their first function, in a process that lives on for 300 ms.
 *
 * open_leaves exit|cancelled: a thread enters leaves(), stays there for 50 ms, and ends there in this way. Prints the least and
 * the most that leaves() can have lasted, in ns: by the thread's clock, and by that of the thread that has joined it.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile int sink;
static int is_cancelled, ready[2];
static struct timespec entered, left;

static __attribute__((noinline)) void other_step(int number)
{
	sink = number;
}

static long long ns_between(const struct timespec *from, const struct timespec *to)
{
	return (long long)(to->tv_sec - from->tv_sec) * 1000000000 + to->tv_nsec - from->tv_nsec;
}

static __attribute__((noinline)) void *leaves(void *unused)
{
	clock_gettime(CLOCK_MONOTONIC, &entered);
	other_step(1);
	usleep(50000);
	clock_gettime(CLOCK_MONOTONIC, &left);
	while (write(ready[1], "", 1) == 1 && is_cancelled)
		pause();
	pthread_exit(unused);
}

int main(int count, char **arguments)
{
	struct timespec begun, joined;
	pthread_t thread;
	char byte;
	is_cancelled = count > 1 && strcmp(arguments[1], "cancelled") == 0;
	clock_gettime(CLOCK_MONOTONIC, &begun);
	if (pipe(ready) || pthread_create(&thread, NULL, leaves, NULL))
		return 1;
	if (read(ready[0], &byte, 1) != 1 || (is_cancelled && pthread_cancel(thread)))
		return 1;
	pthread_join(thread, NULL);
	clock_gettime(CLOCK_MONOTONIC, &joined);
	printf("%lld %lld\n", ns_between(&entered, &left), ns_between(&begun, &joined));
	fflush(stdout);
	usleep(300000);
	other_step(2);
	return 0;
}
