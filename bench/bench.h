/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench.h - benchmarks in C over Google Benchmark.
 *
 * A benchmark is a C function that prepares, gets the number of iterations, runs its own loop and reports the end;
 * nothing but the loop runs between two iterations:
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
 * Every benchmark runs in repetitions (9 by default); the table shows their median and spread.  Those that cross cores
 * show the one-way transfer time of a cache line before and after, and run again if it was above TW_BENCH_TRANSFER_FAIR_NS:
 * the machine was then disturbed.  All run again if reading the clock, or a loop that fills the core (the probe of the sibling), took
 * more than TW_BENCH_PROBE_FAIR times the least that was seen.
 *
 * Each run says what its loop made happen, by tw_bench_happened(): events in the rings, calls in a counter, a sum of results.
 * The program ends where that is not so, and where a run says nothing.
 *
 * A file bench/WHAT_bench.c opens with its question, its unit and its peers, and is found by glob.
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

/* Above this transfer time of a cache line, figures between cores are meaningless. */
#define TW_BENCH_TRANSFER_FAIR_NS 60.0
/* Above so many times the least that was seen, the clock or the probe of the sibling says that the processor has other work. */
#define TW_BENCH_PROBE_FAIR 1.25
#define TW_BENCH_VALUES_MAX 8

/* One thread's view of one run. */
struct tw_bench {
	int64_t value; /* one of options.values; 0 if there are none */
	int thread_index;
	int thread_count;
	void *state;   /* Google Benchmark's state */
	void *said;    /* what this run said by tw_bench_happened() */
	bool is_timed; /* false: only what happens is wanted (--happened) */
};

/* Zeroed fields select the defaults. */
struct tw_bench_options {
	int threads;	     /* 1 */
	int repetitions;     /* 9 */
	uint64_t iterations; /* as many as take a quarter of a second */
	bool is_cross_core;  /* threads communicate: measure the transfer time of a cache line */
	/*
	 * Runs on threads that run nothing else: the row makes something of its thread that lasts (a scheduler).  Other rows need
	 * a process of one thread, in which sleds and entries can be armed.
	 */
	bool is_apart;
	uint64_t per_iteration; /* operations per iteration of the loop, by which the time is divided */
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

/* All threads have arrived; starts the clock.  Returns the iterations to run, the same on each thread. */
uint64_t tw_bench_start(struct tw_bench *bench);
/* Stops the clock when all threads have arrived.  Once for each tw_bench_start(), on every thread. */
void tw_bench_stop(struct tw_bench *bench);

/* Adds a column: the value, or the value per second between start and stop. */
void tw_bench_counter(struct tw_bench *bench, const char *name, double value);
void tw_bench_rate(struct tw_bench *bench, const char *name, double count);

/*
 * tw_bench_happened - what the measured loop made happen: `got` of `what` are `each` of every iteration.
 *
 * Called on the thread that ran the loop, after tw_bench_stop().  Ends the program, with a sentence, if the numbers differ: the
 * time of the row would be that of something else.
 */
void tw_bench_happened(struct tw_bench *bench, const char *what, uint64_t got, uint64_t each);
/* The same for what happens `expected` times, however many iterations there are. */
void tw_bench_happened_in_all(struct tw_bench *bench, const char *what, uint64_t got, uint64_t expected);
/* For loops that call nothing that could fail: clocks, and what others are compared with. */
void tw_bench_is_alone(struct tw_bench *bench);

/* Ends the program if this is false: a result of the library, or of the system. */
#define TW_BENCH_MUST(is_so) ((is_so) ? (void)0 : tw_bench_fail(__FILE__, __LINE__, #is_so))
void tw_bench_fail(const char *file, int line, const char *what) __attribute__((noreturn));

/* Ends this benchmark with a sentence; call it before tw_bench_start(), which then returns 0. */
void tw_bench_skip(struct tw_bench *bench, const char *why);

/* Binds the calling thread to a processor, counted modulo those that the process may use. */
void tw_bench_pin(int index);
/* Lets the calling thread run on all processors that the process had at its start. */
void tw_bench_unpin(void);

/* The one-way transfer time of a cache line between processors 0 and 1, in nanoseconds; 0 if there is only one. */
double tw_bench_transfer_ns(void);
/* What reading the clock takes now, and one step of a loop that fills the core; in nanoseconds, the least of 25 short runs. */
double tw_bench_clock_ns(void);
double tw_bench_sibling_ns(void);

/* Makes the compiler believe that this is read. */
static inline void tw_bench_keep(const void *p)
{
	__asm__ volatile("" : : "g"(p) : "memory");
}

#ifdef __cplusplus
}
#endif

#endif
