/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	Only waiting counts: not a clock that advances while no thread runs, and not the same time for two threads.
 * Method	Clocks of the test's own: checks in time, checks after a standstill, checks by several threads at once.
 */
#include "base/stall_timer.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define MS     UINT64_C(1000000)
#define SLICE  (50 * MS)
#define SECOND (1000 * MS)

static void checks_in_time_spend_the_time(void **state)
{
	struct tw_stall_timer stall_timer = {0};
	uint64_t now = 7 * SECOND;

	assert_int_equal(tw_stall_timer_check(&stall_timer, 1, now, SLICE), 0);
	for (uint64_t i = 1; i <= 100; i++)
		assert_int_equal(tw_stall_timer_check(&stall_timer, 1, now += 20 * MS, SLICE), i * 20 * MS);
	/* At the same time again, and at an earlier time, as another processor's clock may show. */
	assert_int_equal(tw_stall_timer_check(&stall_timer, 1, now, SLICE), 2 * SECOND);
	assert_int_equal(tw_stall_timer_check(&stall_timer, 1, now - MS, SLICE), 2 * SECOND);
}

static void a_standstill_costs_a_slice(void **state)
{
	struct tw_stall_timer stall_timer = {0};
	uint64_t now = 1;

	assert_int_equal(tw_stall_timer_check(&stall_timer, 0, now, SLICE), 0);
	for (uint64_t i = 1; i < 20; i++)
		assert_int_equal(tw_stall_timer_check(&stall_timer, 0, now += i * SECOND, SLICE), i * SLICE);
	assert_int_equal(tw_stall_timer_check(&stall_timer, 0, now += SLICE, SLICE), SECOND);
}

static void a_sign_of_life_restarts_the_count(void **state)
{
	struct tw_stall_timer stall_timer = {0};
	uint64_t now = SECOND;

	tw_stall_timer_check(&stall_timer, 5, now, SLICE);
	assert_int_equal(tw_stall_timer_check(&stall_timer, 5, now += SLICE, SLICE), SLICE);
	assert_int_equal(tw_stall_timer_check(&stall_timer, 6, now += SLICE, SLICE), 0);
	assert_int_equal(tw_stall_timer_check(&stall_timer, 6, now += SLICE, SLICE), SLICE);
	/* Without a new sign of life the verdict stays, also for a thread that arrives much later. */
	for (int i = 0; i < 30; i++)
		tw_stall_timer_check(&stall_timer, 6, now += SLICE, SLICE);
	assert_true(tw_stall_timer_check(&stall_timer, 6, now += 1000 * SECOND, SLICE) > SECOND);
	assert_int_equal(tw_stall_timer_check(&stall_timer, 0, now += MS, SLICE), 0);
}

/* ---- threads ---- */

enum { THREADS = 4, LOOKS = 20000 };
static struct tw_stall_timer shared;
static _Atomic uint64_t shared_clock = 1;

static void *look_on(void *arg)
{
	for (int i = 0; i < LOOKS; i++)
		tw_stall_timer_check(&shared, 0, atomic_fetch_add(&shared_clock, 10) + 10, SLICE);
	return NULL;
}

static void threads_spend_a_time_once(void **state)
{
	pthread_t threads[THREADS];
	uint64_t spent, went_by;

	tw_stall_timer_check(&shared, 0, 1, SLICE);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, look_on, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	went_by = atomic_load(&shared_clock) - 1;
	spent = tw_stall_timer_check(&shared, 0, went_by + 1, SLICE);
	print_message("%llu went by, %llu were spent\n", (unsigned long long)went_by, (unsigned long long)spent);
	assert_true(spent > 0 && spent <= went_by);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(checks_in_time_spend_the_time),
		cmocka_unit_test(a_standstill_costs_a_slice),
		cmocka_unit_test(a_sign_of_life_restarts_the_count),
		cmocka_unit_test(threads_spend_a_time_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
