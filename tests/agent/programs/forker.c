/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forker.c - "forker N" forks N children that work and exit, execs itself once, and works itself;
 * "forker -t" forks from eight threads at once while all of them work.
 */
#include "edgelib.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int work(uint64_t n)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < n; i++)
		sum = edge_add(sum, 1);
	return sum == n ? 0 : 1;
}

static void *fork_often(void *failed)
{
	for (int i = 0; i < 50; i++) {
		pid_t pid;
		int status;

		work(100);
		pid = fork();
		if (pid == 0) {
			char *text = malloc(100);

			snprintf(text, 100, "%d", i);
			free(text);
			_exit(work(10));
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
			*(volatile int *)failed = 1;
	}
	return NULL;
}

static int fork_from_threads(void)
{
	pthread_t threads[8];
	volatile int failed = 0;

	for (int i = 0; i < 8; i++)
		if (pthread_create(&threads[i], NULL, fork_often, (void *)&failed))
			return 1;
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	return failed;
}

int main(int argc, char **argv)
{
	int children = argc > 1 ? atoi(argv[1]) : 0, status, failed = 0;
	char *again[] = {argv[0], "0", NULL};

	if (argc > 1 && !strcmp(argv[1], "-t"))
		return fork_from_threads();
	failed |= work(100);
	for (int i = 0; i < children; i++)
		if (fork() == 0)
			exit(work(10));
	for (int i = 0; i < children; i++)
		failed |= wait(&status) < 0 || status != 0;
	if (failed)
		return 1;
	if (children)
		execv("/proc/self/exe", again);
	return 0;
}
