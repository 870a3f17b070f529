/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load_work.c - threads that call all the time while another one opens and closes an object.
 *
 *	load_work OBJECT ROUNDS
 *
 * Prints: the median of dlopen, a call and dlclose in microseconds; how often the calling threads gave up their processor by
 * themselves meanwhile (a thread that waits for anything does); calls per microsecond of their processor time.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define THREADS 2
/* Rings are as large as they get, and all of their memory is there. */
#define WARM 2000000

static atomic_bool is_over;
static atomic_int ready;
static atomic_ulong calls, waits, cpu_ns;

static unsigned long clock_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (unsigned long)time.tv_sec * 1000000000 + (unsigned long)time.tv_nsec;
}

static unsigned long own_waits(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return (unsigned long)usage.ru_nvcsw;
}

static void *call(void *arg)
{
	unsigned long count = 0, waits_before, ns_before;

	for (int i = 0; i < WARM; i++)
		getppid();
	atomic_fetch_add(&ready, 1);
	waits_before = own_waits();
	ns_before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	for (; !atomic_load_explicit(&is_over, memory_order_relaxed); count++)
		getppid();
	atomic_fetch_add(&waits, own_waits() - waits_before);
	atomic_fetch_add(&cpu_ns, clock_ns(CLOCK_THREAD_CPUTIME_ID) - ns_before);
	atomic_fetch_add(&calls, count);
	return arg;
}

static int compare(const void *a, const void *b)
{
	unsigned long x = *(const unsigned long *)a, y = *(const unsigned long *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	int rounds = argc > 2 ? atoi(argv[2]) : 0;
	unsigned long *times = calloc((size_t)rounds + 1, sizeof *times);
	pthread_t threads[THREADS];

	if (!times || rounds < 1)
		return 2;
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, call, NULL);
	while (atomic_load(&ready) < THREADS)
		usleep(1000);
	for (int i = 0; i < rounds; i++) {
		unsigned long from = clock_ns(CLOCK_MONOTONIC);
		void *object = dlopen(argv[1], RTLD_NOW);
		int (*function)(int) = object ? (int (*)(int))dlsym(object, "loaded_function") : NULL;

		if (!function || function(i) != i + 1)
			return 1;
		dlclose(object);
		times[i] = clock_ns(CLOCK_MONOTONIC) - from;
	}
	atomic_store(&is_over, true);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	qsort(times, (size_t)rounds, sizeof *times, compare);
	printf("%.1f %lu %.2f\n", (double)times[rounds / 2] / 1e3, atomic_load(&waits),
	       (double)atomic_load(&calls) * 1e3 / (double)atomic_load(&cpu_ns));
	free(times);
	return 0;
}
