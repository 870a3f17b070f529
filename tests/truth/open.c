/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process whose main() is open at the end, and has no event for a while before it.
 *
 * open exit|killed|exec: calls open_step(), and waits 300 ms for a thread that calls it meanwhile, and prints how long
 * main() has lasted by the clock then. After further 100 ms the thread calls it a last time, and the process ends in
 * this way.
 * With exec it is alone, waits as long, and executes itself, to exit at once.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile int sink;
static struct timespec begun;

static __attribute__((noinline)) void open_step(int number)
{
	sink = number;
}

static void say_duration(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	printf("%lld\n", (long long)(now.tv_sec - begun.tv_sec) * 1000000000 + now.tv_nsec - begun.tv_nsec);
	fflush(stdout);
	usleep(100000);
}

static void *works(void *unused)
{
	for (int i = 0; i < 3; i++) {
		usleep(100000);
		open_step(i);
	}
	say_duration();
	open_step(3);
	return unused;
}

int main(int count, char **arguments)
{
	pthread_t thread;
	clock_gettime(CLOCK_MONOTONIC, &begun);
	open_step(count);
	if (count < 2)
		exit(0);
	if (strcmp(arguments[1], "exec") == 0) {
		usleep(300000);
		say_duration();
		execl(arguments[0], arguments[0], (char *)NULL);
		return 1;
	}
	if (pthread_create(&thread, NULL, works, NULL))
		return 1;
	pthread_join(thread, NULL);
	if (strcmp(arguments[1], "killed") == 0)
		kill(getpid(), SIGKILL);
	exit(0);
}
