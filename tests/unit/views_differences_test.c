/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	What may be chance in a difference is said rightly: series that differ by nothing else are called different in
 *	about 5 of 100 cases, also if values that follow each other are alike; a true difference is found; without enough
 *	values nothing is said. Sums of a function that was never called are certain.
 * Method	Series of random values with a known mean, and many pairs of them.
 */
#include "views/folds/spread.h"
#include "tests/common/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define PAIRS 400

static uint64_t seed = 12345;

static double next_random(void)
{
	return (double)(random_word(&seed) >> 11) / 9007199254740992.0;
}

/* Durations: most are short, some long. Alike: those that follow each other have a mean that seldom changes. */
static struct tw_estimate make(unsigned count, double mean, bool are_alike)
{
	struct tw_spread spread = {0};
	uint64_t sum = 0;
	double level = 1;
	for (unsigned i = 0; i < count; i++) {
		if (are_alike && next_random() < 0.02)
			level = 0.5 + next_random();
		uint64_t value = (uint64_t)(-log(1 - next_random()) * mean * level);
		tw_spread_add(&spread, value);
		sum += value;
	}
	return tw_spread_sum(&spread, sum);
}

/* How many of a hundred pairs are called different. */
static double found(unsigned count, double factor, bool are_alike)
{
	unsigned found = 0;
	for (unsigned i = 0; i < PAIRS; i++) {
		struct tw_estimate a = make(count, 1000, are_alike), b = make(count, 1000 * factor, are_alike);
		double noise;
		assert_true(tw_estimates_noise(&a, &b, &noise));
		found += fabs(a.value - b.value) > noise;
	}
	return 100.0 * found / PAIRS;
}

static void test_chance_is_no_difference(void **state)
{
	assert_true(found(40, 1, false) < 9);
	assert_true(found(1000, 1, false) < 9);
	/* And not because everything is called chance. */
	assert_true(found(1000, 1, false) > 1);
	assert_true(found(40000, 1, true) < 9);
}

static void test_differences_are_found(void **state)
{
	assert_true(found(1000, 1.5, false) > 99);
	assert_true(found(40000, 1.2, true) > 99);
}

static void test_batches(void **state)
{
	struct tw_spread spread = {0};
	/* A value that never changes has no noise, whatever the number of values. */
	for (unsigned i = 0; i < 100; i++)
		tw_spread_add(&spread, 7);
	struct tw_estimate seven = tw_spread_sum(&spread, 700), never = {.freedom = INFINITY}, once = {.value = 9};
	double noise;
	assert_true(seven.value == 700 && seven.variance == 0 && spread.values == 100);
	assert_true(tw_estimates_noise(&seven, &never, &noise));
	assert_true(noise == 0);
	/* One call says nothing. */
	assert_false(tw_estimates_noise(&seven, &once, &noise));
	struct tw_spread one = {0};
	tw_spread_add(&one, 5);
	assert_true(tw_spread_sum(&one, 5).freedom == 0);
	tw_spread_add(&one, 15);
	/* Two: the interval of Student's distribution with one degree of freedom, 12.7 times the deviation of the sum, which is 10. */
	struct tw_estimate two = tw_spread_sum(&one, 20);
	assert_true(tw_estimates_noise(&two, &never, &noise));
	assert_true(fabs(noise - 127.06) < 0.1);
}

static void test_runs(void **state)
{
	const double old[] = {10, 12, 14}, new[] = {20, 22, 24};
	struct tw_estimate a = tw_estimate_runs(old, 3), b = tw_estimate_runs(new, 3);
	double noise;
	assert_true(a.value == 12 && b.value == 22);
	/* Variance 4 each, of three runs: 2.776 (four degrees of freedom) times the root of 4/3 + 4/3. */
	assert_true(tw_estimates_noise(&a, &b, &noise));
	assert_true(fabs(noise - 2.776 * sqrt(8.0 / 3)) < 0.02);
	assert_true(tw_estimate_runs(old, 1).freedom == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chance_is_no_difference),
		cmocka_unit_test(test_differences_are_found),
		cmocka_unit_test(test_batches),
		cmocka_unit_test(test_runs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
