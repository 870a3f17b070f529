/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process with one thread, whose main() is open at the end, and which has no event in its last 300 ms.
 *
 * open_silent exit|killed: calls silent_step() and prints how long main() lasts at least: its time so far by the clock,
 * and these 300 ms. It ends in this way after them.
 *
 * open_silent stays|rests: the same, and stays for 1.5 s after them; or rests in silent_rest(), 20 ms at a
 * time for 0.8 s and then a second at a time, for a recorder that attaches to it.
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

static __attribute__((noinline)) void silent_rest(long ns)
{
	struct timespec rest = {ns / 1000000000, ns % 1000000000};
	sink = (int)ns;
	while (nanosleep(&rest, &rest))
		;
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
	if (count > 1 && strcmp(arguments[1], "stays") == 0)
		silent_rest(1500000000);
	for (int i = 0; count > 1 && strcmp(arguments[1], "rests") == 0 && i < 50; i++)
		silent_rest(i < 40 ? 20000000 : 1000000000);
	if (count > 1 && strcmp(arguments[1], "killed") == 0)
		kill(getpid(), SIGKILL);
	exit(0);
}
