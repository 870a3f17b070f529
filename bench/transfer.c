/* SPDX-License-Identifier: Apache-2.0 */
/* transfer.c - placement of benchmark threads, and the present transfer time of a cache line between two processors. */
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
