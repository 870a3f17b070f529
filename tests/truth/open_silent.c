/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process with one thread, whose main() is open at the end, and which has no event in its last 300 ms.
 *
 * open_silent exit|killed: calls silent_step() and prints how long main() lasts at least: its time so far by the clock,
 * and these 300 ms. It ends in this way after them.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SILENT_NS 300000000L

static volatile int sink;

static __attribute__((noinline)) void silent_step(int number)
{
	sink = number;
}

int main(int count, char **arguments)
{
	struct timespec begun, now, rest = {0, SILENT_NS};
	clock_gettime(CLOCK_MONOTONIC, &begun);
	silent_step(count);
	clock_gettime(CLOCK_MONOTONIC, &now);
	printf("%lld\n", (long long)(now.tv_sec - begun.tv_sec) * 1000000000 + now.tv_nsec - begun.tv_nsec + SILENT_NS);
	fflush(stdout);
	while (nanosleep(&rest, &rest))
		;
	if (count > 1 && strcmp(arguments[1], "killed") == 0)
		kill(getpid(), SIGKILL);
	exit(0);
}
