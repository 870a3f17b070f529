/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reload_work.c - threads that call declared functions all the time while another one declares a module again and again.
 *
 *	reload_work off|on ROUNDS
 *
 * With `on` a session counts calls of the steady function, and of all functions that are declared later (on_load): each
 * round checks that the first call of the new version was counted. Prints: the median of declaring a module, a call and
 * unloading it in microseconds; how often the calling threads gave up their processor by themselves meanwhile.
 */
#define _GNU_SOURCE
#include <tracewheel/tracewheel.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define THREADS 2
#define WARM	2000000

TW_DEFINE_FUNCTION(steady, "steady", "run", 1);

static atomic_bool is_over;
static atomic_int ready;
static atomic_ulong waits;

static unsigned long own_waits(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return (unsigned long)usage.ru_nvcsw;
}

static void *call(void *arg)
{
	unsigned long before;

	for (unsigned i = 0; i < WARM; i++)
		tw_call1(&steady, i);
	atomic_fetch_add(&ready, 1);
	before = own_waits();
	for (unsigned i = 0; !atomic_load_explicit(&is_over, memory_order_relaxed); i++)
		tw_call1(&steady, i);
	atomic_fetch_add(&waits, own_waits() - before);
	return arg;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* One version of the module: loaded, called once, unloaded. False: its call was not counted. */
static bool reload(struct tw_session *session, struct tw_declared_function *version)
{
	uint64_t counted = 0;

	*version = (struct tw_declared_function)TW_DECLARED_FUNCTION("loaded", "run", 1);
	if (tw_function_declare(version))
		return false;
	tw_call1(version, 1);
	if (session && (tw_trace_call_count(session, "loaded", "run", 1, &counted) < 0 || counted != 1))
		return false;
	return tw_module_unload("loaded") == 1;
}

int main(int argc, char **argv)
{
	int rounds = argc > 2 ? atoi(argv[2]) : 0;
	double *times = calloc((size_t)(rounds > 0 ? rounds : 1), sizeof *times);
	struct tw_session *session = NULL;
	struct tw_declared_function version;
	pthread_t threads[THREADS];
	struct timespec from, to;

	if (!times || rounds < 1)
		return 2;
	if (!strcmp(argv[1], "on") &&
	    (tw_session_create("reload", NULL, &session) ||
	     tw_trace_function(session, "steady", "run", 1, TW_MATCH_TRUE, TW_FUNCTION_CALL_COUNT) < 0 ||
	     tw_trace_on_load(session, TW_MATCH_TRUE, NULL, TW_FUNCTION_CALL_COUNT) < 0))
		return 3;
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, call, NULL);
	while (atomic_load(&ready) < THREADS)
		usleep(1000);
	for (int i = 0; i < rounds; i++) {
		clock_gettime(CLOCK_MONOTONIC, &from);
		if (!reload(session, &version))
			return 1;
		clock_gettime(CLOCK_MONOTONIC, &to);
		times[i] = (double)(to.tv_sec - from.tv_sec) * 1e6 + (double)(to.tv_nsec - from.tv_nsec) / 1e3;
	}
	atomic_store(&is_over, true);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	qsort(times, (size_t)rounds, sizeof *times, compare);
	printf("%.1f %lu\n", times[rounds / 2], atomic_load(&waits));
	if (session) {
		tw_session_destroy(session);
		tw_session_put(session);
	}
	free(times);
	return 0;
}
