/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h - clocks of programs that tests start, which have no other way to read them than the system's. */
#ifndef TW_TESTS_CLOCK_H
#define TW_TESTS_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static inline uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* Processor time of all threads. */
static inline uint64_t worked_ns(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

#endif
