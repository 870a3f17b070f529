/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load.c - calls at a steady rate, until the time is over or SIGTERM arrives.
 *
 *	load SECONDS EVENTS_PER_SECOND THREADS plain|noise
 *
 * The last line on standard output is the number of calls. noise: arguments that no compressor makes smaller.
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SLED	    __attribute__((noipa, patchable_function_entry(9)))
#define THREADS_MAX 64
/* Calls between two readings of the clock, and of one outer_call(). */
#define ROUND	    500
#define OUTER_CALLS 5

static double seconds, rate;
static int is_noise;
static volatile sig_atomic_t is_over;

SLED long leaf_call(long a)
{
	__asm__ volatile("");
	return a + 1;
}
SLED long middle_call(long a)
{
	__asm__ volatile("");
	return leaf_call(a) + leaf_call(a + 1);
}
SLED long outer_call(long a)
{
	__asm__ volatile("");
	return middle_call(a) + leaf_call(a * 3);
}
SLED uint64_t noise_call(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
	return a ^ b ^ c ^ d ^ e ^ f;
}

static void end(int number)
{
	is_over = number;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint64_t next_noise(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static uint64_t call_some(uint64_t *state)
{
	uint64_t sum = 0;

	for (int i = 0; i < ROUND; i += is_noise ? 1 : OUTER_CALLS) {
		if (is_noise)
			sum += noise_call(next_noise(state), next_noise(state), next_noise(state), next_noise(state),
					  next_noise(state), next_noise(state));
		else
			sum += (uint64_t)outer_call(i);
	}
	return sum;
}

static void *run(void *arg)
{
	uint64_t *count = arg, state = (uintptr_t)arg | 1;
	double begun = now(), passed = 0;

	while (!is_over && passed < seconds) {
		struct timespec pause = {0, 0};
		double early;

		call_some(&state);
		*count += ROUND;
		passed = now() - begun;
		early = (double)*count / rate - passed;
		if (early < 0.001)
			continue;
		pause.tv_nsec = early < 0.1 ? (long)(early * 1e9) : 100000000;
		nanosleep(&pause, NULL);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static uint64_t counts[THREADS_MAX][8];
	pthread_t threads[THREADS_MAX];
	uint64_t sum = 0;
	int thread_count;

	if (argc != 5 || (thread_count = atoi(argv[3])) < 1 || thread_count > THREADS_MAX)
		return 2;
	seconds = atof(argv[1]);
	rate = atof(argv[2]) / thread_count;
	is_noise = strcmp(argv[4], "noise") == 0;
	signal(SIGTERM, end);
	for (int i = 0; i < thread_count; i++)
		pthread_create(&threads[i], NULL, run, counts[i]);
	for (int i = 0; i < thread_count; i++) {
		pthread_join(threads[i], NULL);
		sum += counts[i][0];
	}
	printf("%llu\n", (unsigned long long)sum);
	return 0;
}
