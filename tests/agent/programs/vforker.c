/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vforker.c - the first traced call of a thread is made by its vfork() child; then the thread and others call.
 *
 * Usage: vforker ROUNDS.  Each round is a new thread whose child makes one call, and which makes 1,000 itself.
 */
#include "edgelib.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALLS 1000

static volatile int sum;

static void *work(void *arg)
{
	pid_t child = vfork();
	int status = 1;

	if (child == 0) {
		sum = edge_add(1, 2);
		_exit(0);
	}
	waitpid(child, &status, 0);
	for (int i = 0; i < CALLS; i++) {
		sum = edge_add(i, 1);
		/* Time for the recorder to check which threads live. */
		if (i % 100 == 0)
			usleep(2000);
	}
	return status ? (void *)1 : NULL;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 4, wrong = 0;
	pthread_t threads[64];

	for (int i = 0; i < rounds && i < 64; i++) {
		pthread_create(&threads[i], NULL, work, NULL);
		usleep(1000);
	}
	for (int i = 0; i < rounds && i < 64; i++) {
		void *result;

		pthread_join(threads[i], &result);
		wrong |= result != NULL;
	}
	printf("%d\n", rounds * (CALLS + 1));
	return wrong;
}
