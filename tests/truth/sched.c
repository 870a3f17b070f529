/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that know how they spent their time: sched.py compares them with what views say.
 *
 * sched: prints a line `FUNCTION THREAD WALL CPU VOLUNTARY INVOLUNTARY` for each call: by CLOCK_MONOTONIC and
 * CLOCK_THREAD_CPUTIME_ID, in ns, and the kernel's counts of context switches (getrusage), from the beginning of the call to
 * its end.
 */
#include "tests/common/clock.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MS	   UINT64_C(1000000)
#define NOT_INLINE __attribute__((noinline))

void begins(void), sleeps(void), spins(void), blinks(void), waits(void), competes(void), all_of_it(void);

struct spent {
	uint64_t wall_ns, cpu_ns;
	long voluntary, involuntary;
};

static struct spent spent_now(void)
{
	struct rusage usage;
	getrusage(RUSAGE_THREAD, &usage);
	return (struct spent){clock_ns(CLOCK_MONOTONIC), clock_ns(CLOCK_THREAD_CPUTIME_ID), usage.ru_nvcsw,
			      usage.ru_nivcsw};
}

/* Lines are printed at the end: so little of a call lies outside of what it measures. */
static struct line {
	const char *function;
	long thread;
	struct spent from, to;
} lines[16];
static atomic_int line_count;

static void tell(const char *function, struct spent from)
{
	struct spent to = spent_now();
	lines[atomic_fetch_add(&line_count, 1)] = (struct line){function, syscall(SYS_gettid), from, to};
}

static void print_lines(void)
{
	for (int i = 0; i < line_count; i++) {
		const struct spent *from = &lines[i].from, *to = &lines[i].to;
		printf("%s %ld %llu %llu %ld %ld\n", lines[i].function, lines[i].thread,
		       (unsigned long long)(to->wall_ns - from->wall_ns),
		       (unsigned long long)(to->cpu_ns - from->cpu_ns), to->voluntary - from->voluntary,
		       to->involuntary - from->involuntary);
	}
}

static void rest(uint64_t ns)
{
	struct timespec left = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

static void work(uint64_t ns)
{
	uint64_t until = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns;
	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < until)
		for (volatile int i = 0; i < 1000; i++)
			;
}

static void use_one_processor(void)
{
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	sched_setaffinity(0, sizeof one, &one);
}

/* ---- the functions ---- */

/* The first call of each thread: in it the tracer sets up what it needs. */
NOT_INLINE void begins(void)
{
	__asm__ volatile("");
}

NOT_INLINE void sleeps(void)
{
	struct spent from = spent_now();
	rest(20 * MS);
	tell("sleeps", from);
}

NOT_INLINE void spins(void)
{
	struct spent from = spent_now();
	work(50 * MS);
	tell("spins", from);
}

/* Many short sleeps. */
NOT_INLINE void blinks(void)
{
	struct spent from = spent_now();
	for (int i = 0; i < 200; i++)
		rest(50000);
	tell("blinks", from);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;

NOT_INLINE void waits(void)
{
	struct spent from = spent_now();
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
	tell("waits", from);
}

static void *holder(void *arg)
{
	pthread_mutex_lock(&mutex);
	pthread_barrier_wait(&both);
	rest(30 * MS);
	pthread_mutex_unlock(&mutex);
	return arg;
}

static atomic_bool is_over;

/* It never blocks, and so does the competitor: one processor for both. */
NOT_INLINE void competes(void)
{
	struct spent from = spent_now();
	work(60 * MS);
	tell("competes", from);
}

static void *competitor(void *arg)
{
	use_one_processor();
	pthread_barrier_wait(&both);
	while (!atomic_load(&is_over))
		;
	return arg;
}

static void *contender(void *arg)
{
	use_one_processor();
	begins();
	pthread_barrier_wait(&both);
	competes();
	atomic_store(&is_over, 1);
	return arg;
}

NOT_INLINE void all_of_it(void)
{
	struct spent from = spent_now();
	sleeps();
	spins();
	blinks();
	tell("all_of_it", from);
}

static void two(void *(*one)(void *), void *(*other)(void *))
{
	pthread_t threads[2];
	pthread_create(&threads[0], NULL, one, NULL);
	pthread_create(&threads[1], NULL, other, NULL);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
}

static void *waiter(void *arg)
{
	begins();
	pthread_barrier_wait(&both);
	waits();
	return arg;
}

int main(void)
{
	pthread_barrier_init(&both, NULL, 2);
	begins();
	all_of_it();
	two(holder, waiter);
	two(competitor, contender);
	print_lines();
	return 0;
}
