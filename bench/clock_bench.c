/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Question: what does the clock of an event cost, which is the lower bound of every recorded event?  Unit: one
 * reading.  For comparison: the empty loop, and clock_gettime().
 */
#include "bench/bench.h"

#include "base/clock.h"

TW_BENCH(clock_empty_loop)
{
	uint64_t sum = 0;
	for (uint64_t i = 0, n = tw_bench_start(bench); i < n; i++) {
		sum += i;
		tw_bench_keep(&sum);
	}
	tw_bench_stop(bench);
	tw_bench_is_alone(bench);
}

TW_BENCH(clock_ticks)
{
	tw_clock_init();
	uint64_t sum = 0;
	for (uint64_t i = 0, n = tw_bench_start(bench); i < n; i++)
		sum += tw_clock_ticks();
	tw_bench_stop(bench);
	tw_bench_keep(&sum);
	tw_bench_is_alone(bench);
}

TW_BENCH(clock_monotonic)
{
	uint64_t sum = 0;
	for (uint64_t i = 0, n = tw_bench_start(bench); i < n; i++)
		sum += tw_clock_monotonic_ns();
	tw_bench_stop(bench);
	tw_bench_keep(&sum);
	tw_bench_is_alone(bench);
}
