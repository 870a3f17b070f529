/* SPDX-License-Identifier: Apache-2.0 */
/* probes_work.c - a loop that comes to a probe, or calls a function, so many times; prints its processor time in ns a turn: probes.sh. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sdt.h>
#include <time.h>

__attribute__((noinline)) static void tick(long a, long b)
{
	__asm__ volatile("" : : "r"(a), "r"(b) : "memory");
}

static void come_to_probes(long count)
{
	for (long i = 0; i < count; i++)
		DTRACE_PROBE2(bench, tick, i, count);
}

static void call_function(long count)
{
	for (long i = 0; i < count; i++)
		tick(i, count);
}

static double now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

int main(int argc, char **argv)
{
	long count = atol(argv[2]);
	double begun = now_ns();

	(strcmp(argv[1], "probe") ? call_function : come_to_probes)(count);
	printf("%.2f\n", (now_ns() - begun) / (double)count);
	return 0;
}
