/* SPDX-License-Identifier: Apache-2.0 */
/* clock.c - choice of the source, snapshots, calibration. */
#include "base/clock.h"
#include "base/atomic.h"
#include "base/sys.h"

#include <time.h>
#if defined __x86_64__
#include <cpuid.h>
#endif

#define NS_PER_SECOND	       UINT64_C(1000000000)
#define CALIBRATION_MINIMUM_NS UINT64_C(2000000)
#define CALIBRATION_SLEEP_NS   UINT64_C(200000)
/* Good enough for pauses. */
#define ROUGH_MINIMUM_NS UINT64_C(10000)

enum tw_clock_source tw_clock_chosen;

static struct tw_clock_snapshot first_snapshot;
static _Atomic uint64_t measured_rate;

static uint64_t read_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * NS_PER_SECOND + (uint64_t)t.tv_nsec;
}

uint64_t tw_clock_monotonic_ns(void)
{
	return read_ns(CLOCK_MONOTONIC);
}

/* Leaf 0x80000007, EDX bit 8: the counter runs at one rate in every power state. */
static int is_tsc_invariant(void)
{
#if defined __x86_64__
	unsigned a, b, c, d;

	return __get_cpuid(0x80000007u, &a, &b, &c, &d) && (d >> 8 & 1);
#else
	return 0;
#endif
}

static void choose(enum tw_clock_source source)
{
	tw_clock_chosen = source;
	tw_clock_snapshot(&first_snapshot);
}

void tw_clock_init(void)
{
	if (tw_clock_chosen == TW_CLOCK_UNKNOWN)
		choose(is_tsc_invariant() ? TW_CLOCK_TSC : TW_CLOCK_MONOTONIC);
}

void tw_clock_init_as(uint32_t source)
{
	if (tw_clock_chosen == TW_CLOCK_UNKNOWN && (source == TW_CLOCK_TSC || source == TW_CLOCK_MONOTONIC))
		choose((enum tw_clock_source)source);
}

enum tw_clock_source tw_clock_source(void)
{
	return tw_clock_chosen;
}

/*
 * The ticks are read before and after the clocks and averaged; of several tries the one with the shortest distance is
 * used, so that a preemption between any two of the reads has no effect.
 */
void tw_clock_snapshot(struct tw_clock_snapshot *out)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < 4; i++) {
		uint64_t before = tw_clock_ticks();
		uint64_t boottime = read_ns(CLOCK_BOOTTIME);
		uint64_t monotonic = read_ns(CLOCK_MONOTONIC);
		uint64_t realtime = read_ns(CLOCK_REALTIME);
		uint64_t after = tw_clock_ticks();

		if (after - before >= best)
			continue;
		best = after - before;
		*out = (struct tw_clock_snapshot){.ticks = before + best / 2,
						  .monotonic_ns = monotonic,
						  .realtime_ns = realtime,
						  .boottime_ns = boottime};
	}
}

static uint64_t rate_between(const struct tw_clock_snapshot *from, const struct tw_clock_snapshot *to)
{
	return (uint64_t)((unsigned __int128)(to->ticks - from->ticks) * NS_PER_SECOND /
			  (to->monotonic_ns - from->monotonic_ns));
}

/* The rate measured over at least @least_ns since the start, or an earlier result; 0: too early. */
static uint64_t rate_now(uint64_t least_ns)
{
	struct tw_clock_snapshot now;
	uint64_t ns, rate;

	if (tw_clock_chosen == TW_CLOCK_MONOTONIC)
		return NS_PER_SECOND;
	/* RELAXED clock.rate: a single number; two threads that measure at once both store a valid one. */
	rate = tw_load_relaxed(&measured_rate);
	if (rate)
		return rate;
	tw_clock_snapshot(&now);
	ns = now.monotonic_ns - first_snapshot.monotonic_ns;
	if (ns < least_ns)
		return 0;
	rate = rate_between(&first_snapshot, &now);
	if (ns >= CALIBRATION_MINIMUM_NS) {
		/* RELAXED clock.rate: as above. */
		tw_store_relaxed(&measured_rate, rate);
	}
	return rate;
}

uint64_t tw_clock_ticks_per_second(void)
{
	uint64_t rate;

	while (!(rate = rate_now(CALIBRATION_MINIMUM_NS)))
		tw_sys_sleep(CALIBRATION_SLEEP_NS);
	return rate;
}

uint64_t tw_clock_ticks_of_us(uint64_t us)
{
	uint64_t rate = rate_now(ROUGH_MINIMUM_NS);

	return us * ((rate ? rate : NS_PER_SECOND) / 1000000);
}
