/* SPDX-License-Identifier: Apache-2.0 */
/* measure.c - the callbacks, measured by the kernel's account of the calling thread: a microsecond a call. */
#define _GNU_SOURCE
#include "capture.h"

#include <string.h>
#include <sys/resource.h>
#include <time.h>

struct moment {
	uint64_t cpu_ns, wall_ns;
	struct rusage usage;
};

static uint64_t now_ns(clockid_t clock)
{
	struct timespec now = {0, 0};

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void begin(struct moment *start)
{
	getrusage(RUSAGE_THREAD, &start->usage);
	start->wall_ns = now_ns(CLOCK_MONOTONIC);
	start->cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
}

static void raise_to(_Atomic uint64_t *most, uint64_t value)
{
	uint64_t found = atomic_load_explicit(most, memory_order_relaxed);

	while (found < value && !atomic_compare_exchange_weak(most, &found, value))
		;
}

static void end(struct capture *capture, const struct moment *start)
{
	uint64_t cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) - start->cpu_ns;
	uint64_t wall_ns = now_ns(CLOCK_MONOTONIC) - start->wall_ns;
	_Atomic uint64_t *most = capture->measures.most;
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	atomic_fetch_add_explicit(&capture->measures.calls, 1, memory_order_relaxed);
	raise_to(&most[MEASURED_CPU_NS], cpu_ns);
	raise_to(&most[MEASURED_WALL_NS], wall_ns);
	if (usage.ru_nivcsw == start->usage.ru_nivcsw)
		raise_to(&most[MEASURED_UNPREEMPTED_NS], wall_ns);
	raise_to(&most[MEASURED_FAULTS], (uint64_t)(usage.ru_minflt - start->usage.ru_minflt));
	raise_to(&most[MEASURED_WAITS], (uint64_t)(usage.ru_nvcsw - start->usage.ru_nvcsw));
}

typedef ERL_NIF_TERM (*callback)(ErlNifEnv *env, void *capture, const ERL_NIF_TERM argv[]);

static ERL_NIF_TERM measure(callback call, ErlNifEnv *env, void *capture, const ERL_NIF_TERM argv[])
{
	struct moment start;
	ERL_NIF_TERM answer;

	begin(&start);
	answer = call(env, capture, argv);
	end(capture, &start);
	return answer;
}

ERL_NIF_TERM measure_enabled(ErlNifEnv *env, void *capture, const ERL_NIF_TERM argv[])
{
	return measure(event_enabled, env, capture, argv);
}

ERL_NIF_TERM measure_trace(ErlNifEnv *env, void *capture, const ERL_NIF_TERM argv[])
{
	return measure(event_trace, env, capture, argv);
}

void measure_hold(struct capture *capture, const char *name, size_t bytes)
{
	static const char held[] = "tracewheel_hold";

	if (bytes != strlen(held) || memcmp(name, held, bytes) != 0)
		return;
	for (int ms = 0; ms < MEASURE_HOLD_MS && atomic_load(&capture->unmade[UNMADE_NO_DEFINITION]) < MEASURE_LOST;
	     ms++)
		nanosleep(&(struct timespec){0, 1000000}, NULL);
}
