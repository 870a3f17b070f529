/* SPDX-License-Identifier: Apache-2.0 */
/* rate.c - threads that count events by the second, without a VM, for rate_test.sh. */
#include "rate.h"
#include "require.h"

#include <pthread.h>
#include <stdio.h>

#define THREADS 4
#define SECONDS 20000
#define EVENTS	3 /* of each thread in a second */

static _Atomic uint64_t counter;
static pthread_barrier_t barrier;

/* All threads are in the same second.  Returns the largest count that this one was told. */
static void *run(void *arg)
{
	uintptr_t most = 0;

	(void)arg;
	for (uint32_t second = 1; second <= SECONDS; second++) {
		for (unsigned i = 0; i < EVENTS; i++) {
			uint32_t count = rate_count(&counter, second, 1);

			most = count > most ? count : most;
		}
		pthread_barrier_wait(&barrier);
	}
	return (void *)most;
}

int main(void)
{
	pthread_t threads[THREADS];
	uintptr_t most = 0;
	void *result;

	/* The first second; an earlier one comes late; seconds may be skipped. */
	REQUIRE(rate_count(&counter, 0, 5) == 5);
	REQUIRE(rate_count(&counter, 2, 7) == 7);
	REQUIRE(rate_count(&counter, 1, 1) == 8);
	REQUIRE(rate_count(&counter, 2, 1) == 9);
	/* The last lots of threads, above the largest limit, reach no other second. */
	REQUIRE(rate_count(&counter, 3, RATE_MAX) == RATE_MAX);
	REQUIRE(rate_count(&counter, 3, RATE_MAX) > RATE_MAX);
	REQUIRE(rate_count(&counter, 3, 1) > RATE_MAX);

	atomic_store(&counter, 0);
	pthread_barrier_init(&barrier, NULL, THREADS);
	for (unsigned i = 0; i < THREADS; i++)
		REQUIRE(pthread_create(&threads[i], NULL, run, NULL) == 0);
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &result);
		most = (uintptr_t)result > most ? (uintptr_t)result : most;
	}
	REQUIRE(most == THREADS * EVENTS);
	REQUIRE(atomic_load(&counter) == ((uint64_t)SECONDS << 32 | THREADS * EVENTS));
	printf("ok\n");
	return 0;
}
