/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.h - the clock of events, and snapshots that relate it to all the others.
 *
 * Events carry ticks.  If the processor's time-stamp counter is invariant, a tick is one of its
 * cycles (read by rdtsc: 9.5 ns on the machines measured, and nothing is cheaper); elsewhere a tick
 * is a nanosecond of CLOCK_MONOTONIC, and tw_clock_source() says so.  Only the reader converts ticks to time,
 * piecewise between snapshots, so drift, suspend and clock steps are handled correctly.
 *
 * Threads  any, and signal handlers.
 * Units    *_ns are nanoseconds; ticks are those of tw_clock_ticks().
 */
#ifndef TW_BASE_CLOCK_H
#define TW_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

enum tw_clock_source { TW_CLOCK_UNKNOWN = 0, TW_CLOCK_TSC = 1, TW_CLOCK_MONOTONIC = 2 };

/* All clocks at one moment; the ticks lie in the middle of the three reads. */
struct tw_clock_snapshot {
	uint64_t ticks;
	uint64_t monotonic_ns;
	uint64_t realtime_ns;
	uint64_t boottime_ns;
};

/* Set once by tw_clock_init(), before the first tick is read; read-only afterwards. */
extern enum tw_clock_source tw_clock_chosen __attribute__((visibility("hidden")));

/* Chooses the source.  Idempotent; called by every possible first reader of ticks.  Signal handlers: no. */
void tw_clock_init(void);
/*
 * The same with a source that another process on this machine has chosen: this saves detecting it, which takes 10 to
 * 50 us in a virtual machine.  Invalid values are ignored.
 */
void tw_clock_init_as(uint32_t source);

enum tw_clock_source tw_clock_source(void);

/* Nanoseconds of CLOCK_MONOTONIC: the ticks of the slow source, and the unit of time-outs. */
uint64_t tw_clock_monotonic_ns(void);

/* Are ticks read by one instruction, tw_clock_counter(), and without a call? */
static inline bool tw_clock_is_counter(void)
{
#if defined __x86_64__
	return __builtin_expect(tw_clock_chosen == TW_CLOCK_TSC, 1);
#else
	return false;
#endif
}

static inline uint64_t tw_clock_counter(void)
{
#if defined __x86_64__
	return __builtin_ia32_rdtsc();
#else
	return 0;
#endif
}

static inline uint64_t tw_clock_ticks(void)
{
	return tw_clock_is_counter() ? tw_clock_counter() : tw_clock_monotonic_ns();
}

void tw_clock_snapshot(struct tw_clock_snapshot *out);

/*
 * tw_clock_ticks_per_second - the rate of the ticks, measured against CLOCK_MONOTONIC.
 *
 * Measures over at least 2 ms since tw_clock_init() at its first call (it may sleep for the rest of
 * them), and returns the same value afterwards.  Exact where the source is CLOCK_MONOTONIC.
 */
uint64_t tw_clock_ticks_per_second(void);

/* The approximate ticks of a pause.  Never sleeps, so the first results after tw_clock_init() may be off by one per cent. */
uint64_t tw_clock_ticks_of_us(uint64_t us);

#endif
