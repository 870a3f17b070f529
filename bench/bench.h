/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench.h - benchmarks in C over Google Benchmark.
 *
 * A benchmark is a C function that prepares, takes the number of iterations, runs its own loop and
 * says that it is done; nothing but the loop stands between two iterations:
 *
 *	TW_BENCH(clock_ticks)
 *	{
 *		uint64_t sum = 0;
 *		for (uint64_t i = 0, n = tw_bench_start(bench); i < n; i++)
 *			sum += tw_clock_ticks();
 *		tw_bench_stop(bench);
 *		tw_bench_keep(&sum);
 *	}
 *
 *	TW_BENCH(ring_pass, .threads = 2, .is_cross_core = true, .values = { 64, 4096 })
 *
 * Every benchmark runs in repetitions (9 unless asked otherwise); the table shows the median and how
 * far the repetitions lie apart.  Those that cross cores show the one-way hop of a cache line before
 * and after, and run again when it was above TW_BENCH_HOP_FAIR_NS: that was the machine's weather.
 *
 * A file bench/WHAT_bench.c opens with its question, its unit and what it is compared with, and is
 * found by glob.
 *
 * Threads  the function runs on `threads` threads at once; thread_index tells them apart.
 * Units    nanoseconds of wall clock for one iteration.
 */
#ifndef TW_BENCH_H
#define TW_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A hop above this is foul weather: figures between cores say nothing then. */
#define TW_BENCH_HOP_FAIR_NS 60.0
#define TW_BENCH_VALUES_MAX  8

/* One thread's view of one run. */
struct tw_bench {
	int64_t value; /* of options.values, 0 where there are none */
	int thread_index;
	int thread_count;
	void *state; /* Google Benchmark's */
};

/* Zeroed fields mean the defaults. */
struct tw_bench_options {
	int threads;		/* 1 */
	int repetitions;	/* 9 */
	uint64_t iterations;	/* as many as take a quarter of a second */
	bool is_cross_core;	/* threads talk to each other: look at the weather */
	uint64_t per_iteration; /* operations in one iteration of the loop: the time is divided by it */
	int64_t values[TW_BENCH_VALUES_MAX + 1]; /* one run for each, up to the first 0 */
};

struct tw_bench_entry {
	const char *name;
	void (*run)(struct tw_bench *bench);
	struct tw_bench_options options;
	struct tw_bench_entry *next;
};

/* Called by TW_BENCH before main(). */
void tw_bench_register(struct tw_bench_entry *entry);

#define TW_BENCH(name_, ...)                                                               \
	static void name_(struct tw_bench *bench);                                         \
	static struct tw_bench_entry name_##_entry = {#name_, name_, {__VA_ARGS__}, NULL}; \
	__attribute__((constructor)) static void name_##_register(void)                    \
	{                                                                                  \
		tw_bench_register(&name_##_entry);                                         \
	}                                                                                  \
	static void name_(struct tw_bench *bench)

/* All threads have arrived; the clock runs.  Returns the iterations to run, the same on each thread. */
uint64_t tw_bench_start(struct tw_bench *bench);
/* The clock stops when all threads are here.  Once for each tw_bench_start(), on every thread. */
void tw_bench_stop(struct tw_bench *bench);

/* A further column: as given, and as given divided by the seconds between start and stop. */
void tw_bench_counter(struct tw_bench *bench, const char *name, double value);
void tw_bench_rate(struct tw_bench *bench, const char *name, double count);

/* Ends this benchmark with a sentence; call it before tw_bench_start(), which then answers 0. */
void tw_bench_skip(struct tw_bench *bench, const char *why);

/* Binds the calling thread to a processor, counted round those that the process may use. */
void tw_bench_pin(int index);
/* The calling thread may run where the process could at its start. */
void tw_bench_unpin(void);

/* One way of a cache line between processors 0 and 1, in nanoseconds; 0 where there is only one. */
double tw_bench_hop(void);

/* The compiler must believe that somebody reads this. */
static inline void tw_bench_keep(const void *p)
{
	__asm__ volatile("" : : "g"(p) : "memory");
}

#ifdef __cplusplus
}
#endif

#endif
