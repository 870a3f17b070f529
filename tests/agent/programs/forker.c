/* SPDX-License-Identifier: Apache-2.0 */
/* forker.c - forks N children that work and exit, execs itself once, and works itself: "forker N". */
#include "oddlib.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int work(uint64_t n)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < n; i++)
		sum = odd_add(sum, 1);
	return sum == n ? 0 : 1;
}

int main(int argc, char **argv)
{
	int children = argc > 1 ? atoi(argv[1]) : 0, status, failed = 0;
	char *again[] = { argv[0], "0", NULL };

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
