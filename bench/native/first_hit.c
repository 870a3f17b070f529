/* SPDX-License-Identifier: Apache-2.0 */
/*
 * first_hit.c - the time that a tracer adds to a thread's first call, above its second.
 *
 *	first_hit turn|once THREADS [CALLS]
 *
 * Question  how much time does a thread's first traced call add?
 * Method    `turn`: threads one after another.  `once`: all exist before the first call of any; as many run then as
 *	     there are processors, and the wait for one is in the first two figures.  Each thread reads the processor's
 *	     counter, and the clock of its processor time, around its first call and around its second, and makes CALLS
 *	     (2) in all.  Prints the median and the 90th percentile of the difference, by the counter and by processor
 *	     time.
 * Unit	     microseconds.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

int leaf(int a);

__attribute__((noinline)) int leaf(int a)
{
	__asm__ volatile("" : "+r"(a));
	return a;
}

struct sample {
	pthread_t thread;
	double late, late_cpu; /* microseconds */
};

static pthread_barrier_t barrier;
static int is_at_once;
static long calls = 2;

static double ticks_a_us;

struct moment {
	unsigned long long ticks;
	struct timespec cpu;
};

static struct moment now(void)
{
	struct moment moment;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &moment.cpu);
	moment.ticks = __rdtsc();
	return moment;
}

static double cpu_us(const struct moment *from, const struct moment *to)
{
	return (double)(to->cpu.tv_sec - from->cpu.tv_sec) * 1e6 + (double)(to->cpu.tv_nsec - from->cpu.tv_nsec) / 1e3;
}

static void *run(void *arg)
{
	struct sample *sample = arg;
	struct moment at[3];

	now();
	if (is_at_once)
		pthread_barrier_wait(&barrier);
	at[0] = now();
	leaf(1);
	at[1] = now();
	leaf(2);
	at[2] = now();
	sample->late = ((double)(at[1].ticks - at[0].ticks) - (double)(at[2].ticks - at[1].ticks)) / ticks_a_us;
	sample->late_cpu = cpu_us(&at[0], &at[1]) - cpu_us(&at[1], &at[2]);
	for (long i = 2; i < calls; i++)
		leaf((int)i);
	return NULL;
}

static double measure_ticks(void)
{
	struct timespec from, to, nap = {0, 20000000};
	unsigned long long before, after;

	clock_gettime(CLOCK_MONOTONIC, &from);
	before = __rdtsc();
	nanosleep(&nap, NULL);
	clock_gettime(CLOCK_MONOTONIC, &to);
	after = __rdtsc();
	return (double)(after - before) /
	       ((double)(to.tv_sec - from.tv_sec) * 1e6 + (double)(to.tv_nsec - from.tv_nsec) / 1e3);
}

static int by_late(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;

	return (x->late > y->late) - (x->late < y->late);
}

static int by_late_cpu(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;

	return (x->late_cpu > y->late_cpu) - (x->late_cpu < y->late_cpu);
}

static void make(struct sample *sample, pthread_attr_t *attr)
{
	if (pthread_create(&sample->thread, attr, run, sample)) {
		fputs("first_hit: no thread\n", stderr);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	unsigned count = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 200;
	struct sample *samples = calloc(count, sizeof *samples);
	pthread_attr_t attr;

	ticks_a_us = measure_ticks();
	is_at_once = argc > 1 && strcmp(argv[1], "once") == 0;
	if (argc > 3)
		calls = strtol(argv[3], NULL, 10);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 128 << 10);
	pthread_barrier_init(&barrier, NULL, count);
	for (unsigned i = 0; i < count; i++) {
		make(&samples[i], &attr);
		if (!is_at_once)
			pthread_join(samples[i].thread, NULL);
	}
	for (unsigned i = 0; is_at_once && i < count; i++)
		pthread_join(samples[i].thread, NULL);
	qsort(samples, count, sizeof *samples, by_late);
	printf("%.1f %.1f", samples[count / 2].late, samples[count * 9 / 10].late);
	qsort(samples, count, sizeof *samples, by_late_cpu);
	printf(" %.1f %.1f\n", samples[count / 2].late_cpu, samples[count * 9 / 10].late_cpu);
	return 0;
}
