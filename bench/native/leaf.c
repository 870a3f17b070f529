/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leaf.c - a function that does next to nothing, called in a loop: the cost of tracing one call and its return.
 *
 *	leaf [CALLS]		prints: CALLS, seconds of the loop, nanoseconds a call
 *
 * Question  what does one call (with its return, if traced) cost under a tracer?
 * Unit	     nanoseconds a call, the loop included; subtract the untraced figure of the same run.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

uint64_t leaf(uint64_t a, uint64_t b);

__attribute__((noinline)) uint64_t leaf(uint64_t a, uint64_t b)
{
	__asm__ volatile("" : "+r"(a));
	return a + b;
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	uint64_t calls = argc > 1 ? strtoull(argv[1], NULL, 10) : 20000000, sum = 0;
	double start, seconds;

	/* The first calls join the thread and fault memory in. */
	for (uint64_t i = 0; i < 1000; i++)
		sum = leaf(sum, i);
	start = now();
	for (uint64_t i = 0; i < calls; i++)
		sum = leaf(sum, i);
	seconds = now() - start;
	printf("%" PRIu64 " %.6f %.3f\n", calls, seconds, seconds * 1e9 / (double)calls);
	return sum == 42;
}
