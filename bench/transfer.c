/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer.c - placement of benchmark threads, and the present state of the machine: the transfer time of a cache line between two
 * processors, the clock, and the work that this processor does.
 */
#include "bench/bench.h"

#include "base/atomic.h"
#include "base/cacheline.h"
#include "base/clock.h"

#include <pthread.h>
#include <sched.h>

#define BOUNCES 40000
/* The first ones wake the other processor. */
#define BOUNCES_WARM (BOUNCES / 10)

static TW_CACHELINE_ALIGNED _Atomic uint64_t ball;

/* The processors of the process before any thread was bound. */
static cpu_set_t allowed;

__attribute__((constructor)) static void remember_processors(void)
{
	sched_getaffinity(0, sizeof allowed, &allowed);
}

void tw_bench_pin(int index)
{
	if (CPU_COUNT(&allowed) == 0)
		return;
	int skip = index % CPU_COUNT(&allowed);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &allowed) && skip-- == 0) {
			cpu_set_t one;
			CPU_ZERO(&one);
			CPU_SET(cpu, &one);
			pthread_setaffinity_np(pthread_self(), sizeof one, &one);
			return;
		}
	}
}

void tw_bench_unpin(void)
{
	if (CPU_COUNT(&allowed))
		pthread_setaffinity_np(pthread_self(), sizeof allowed, &allowed);
}

static void *throw_back(void *unused)
{
	tw_bench_pin(1);
	for (uint64_t i = 0; i < BOUNCES; i++) {
		/* PAIR bench.ball: acquire; release in throw_all().  The value itself is the message. */
		while (tw_load_acquire(&ball) != 2 * i + 1)
			tw_cpu_relax();
		/* PAIR bench.ball: release; acquire in throw_all(). */
		tw_store_release(&ball, 2 * i + 2);
	}
	return unused;
}

/* Throws the ball from processor 0; its partner runs already or starts now. */
static double throw_all(void)
{
	uint64_t from_ns = 0;
	for (uint64_t i = 0; i < BOUNCES; i++) {
		if (i == BOUNCES_WARM)
			from_ns = tw_clock_monotonic_ns();
		/* PAIR bench.ball: release; acquire in throw_back(). */
		tw_store_release(&ball, 2 * i + 1);
		/* PAIR bench.ball: acquire; release in throw_back(). */
		while (tw_load_acquire(&ball) != 2 * i + 2)
			tw_cpu_relax();
	}
	return (double)(tw_clock_monotonic_ns() - from_ns) / (BOUNCES - BOUNCES_WARM) / 2;
}

double tw_bench_transfer_ns(void)
{
	if (CPU_COUNT(&allowed) < 2)
		return 0;
	/* RELAXED bench.ball_reset: no other thread runs yet. */
	tw_store_relaxed(&ball, 0);
	pthread_t partner;
	if (pthread_create(&partner, NULL, throw_back, NULL) != 0)
		return 0;
	tw_bench_pin(0);
	double ns = throw_all();
	pthread_join(partner, NULL);
	tw_bench_unpin();
	return ns;
}

/*
 * The least of many short runs: one that the kernel interrupts, or that another thread preempts, does not count.  What slows all of them is
 * the processor itself: its frequency, or other work on the same core.
 */
#define PROBES 25

static double least_ns(double (*probe)(void))
{
	double least = probe();
	for (int i = 1; i < PROBES; i++) {
		double ns = probe();
		if (ns < least)
			least = ns;
	}
	return least;
}

#define CLOCK_READS 500

static double read_clock(void)
{
	uint64_t from_ns = tw_clock_monotonic_ns(), sum = 0;
	for (int i = 0; i < CLOCK_READS; i++)
		sum += tw_clock_ticks();
	tw_bench_keep(&sum);
	return (double)(tw_clock_monotonic_ns() - from_ns) / CLOCK_READS;
}

double tw_bench_clock_ns(void)
{
	return least_ns(read_clock);
}

#define STEPS 4000

/* Independent chains, as many operations a cycle as the core has: a thread on its other half takes a part of them. */
static double work(void)
{
	uint64_t a = 1, b = 2, c = 3, d = 4, e = 5, f = 6;
	uint64_t from_ns = tw_clock_monotonic_ns();
	for (int i = 0; i < STEPS; i++) {
		a += 3;
		b ^= 5;
		c += 7;
		d ^= 9;
		e *= 11;
		f += 13;
		__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
	}
	return (double)(tw_clock_monotonic_ns() - from_ns) / STEPS;
}

double tw_bench_sibling_ns(void)
{
	return least_ns(work);
}
