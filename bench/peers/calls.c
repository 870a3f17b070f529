/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls.c - a program that calls one function so many times, for peers.py: each tracer records these calls.
 *
 *	calls none N		a function without arguments
 *	calls two N		a function of two integers, which returns their sum
 *	calls system N		a call of the system, getppid()
 *	calls clock N		no call: the clock is read, which is the floor of each event with a time
 *
 * Prints the calls made, and the nanoseconds that the loop took: of the processor, in all threads of the program, and of the clock.
 * A thousand calls come before the loop, and are among those made. With -DLTTNG each function has a tracepoint of LTTng-UST.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef LTTNG
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "calls_lttng.h"
#define POINT(...) lttng_ust_tracepoint(calls, __VA_ARGS__)
#else
#define POINT(...) ((void)0)
#endif

#define UNTRACED __attribute__((no_instrument_function))
#define WARM	 1000

/* What the program itself counts: the calls that a tracer must have seen. */
uint64_t made;

__attribute__((noinline, noipa)) void none(void)
{
	POINT(none);
	made++;
}

__attribute__((noinline, noipa)) int two(int a, int b)
{
	POINT(two, a, b);
	made++;
	return a + b;
}

UNTRACED static void call_none(uint64_t calls)
{
	for (uint64_t i = 0; i < calls; i++)
		none();
}

UNTRACED static void call_two(uint64_t calls)
{
	unsigned sum = 0;

	for (uint64_t i = 0; i < calls; i++)
		sum = (unsigned)two((int)(sum & 0xffff), (int)(i & 0xffff));
}

UNTRACED static void call_system(uint64_t calls)
{
	for (uint64_t i = 0; i < calls; i++) {
		getppid();
		made++;
	}
}

UNTRACED static void read_clock(uint64_t reads)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < reads; i++)
		sum += __builtin_ia32_rdtsc();
	__asm__ volatile("" : : "r"(sum));
	made += reads;
}

UNTRACED static uint64_t now_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

UNTRACED int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(uint64_t calls);
	} modes[] = {{"none", call_none}, {"two", call_two}, {"system", call_system}, {"clock", read_clock}};
	uint64_t calls = argc == 3 ? strtoull(argv[2], NULL, 10) : 0;

	for (size_t i = 0; calls && i < sizeof modes / sizeof modes[0]; i++) {
		uint64_t processor, clock;

		if (strcmp(argv[1], modes[i].name) != 0)
			continue;
		modes[i].run(WARM);
		clock = now_ns(CLOCK_MONOTONIC);
		processor = now_ns(CLOCK_PROCESS_CPUTIME_ID);
		modes[i].run(calls);
		processor = now_ns(CLOCK_PROCESS_CPUTIME_ID) - processor;
		clock = now_ns(CLOCK_MONOTONIC) - clock;
		printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", made, calls, processor, clock);
		return 0;
	}
	fprintf(stderr, "usage: calls none|two|system|clock CALLS\n");
	return 2;
}
