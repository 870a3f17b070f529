/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	A run of a tracee waits for the run before it, if that is known and not over, and for nothing else.
 * Method	Runs of several tracees and images, added in another order, against what each answer must be.
 */
#include "pipeline/format/round.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { RUNS = 700 };

static void nothing_waits_for_unknown_runs(void **state)
{
	struct tw_round round = {0};

	assert_false(tw_round_must_wait(&round, 0, 1, 1));
	tw_round_finish(&round, 0, 1, 1);
	/* A thread that is its own process, and one whose runs are not counted. */
	assert_int_equal(tw_round_add(&round, 0, 0, 5), 0);
	assert_int_equal(tw_round_add(&round, 0, 5, 0), 0);
	tw_round_sort(&round);
	assert_int_equal(round.count, 0);
	assert_int_equal(tw_round_add(&round, 0, 1, 1), 0);
	tw_round_sort(&round);
	assert_false(tw_round_must_wait(&round, 0, 0, 9));
	assert_false(tw_round_must_wait(&round, 0, 1, 0));
	tw_round_fini(&round);
}

static void a_run_waits_for_the_one_before_it(void **state)
{
	struct tw_round round = {0};

	/* Two images, three tracees each; of the third only one run is known. */
	for (uint64_t run = RUNS; run >= 1; run--)
		for (uint32_t image = 0; image < 2; image++)
			for (uint32_t tracee = 1; tracee <= 3; tracee++)
				if (tracee != 3 || run == 7)
					assert_int_equal(tw_round_add(&round, image, tracee, run), 0);
	tw_round_sort(&round);
	for (uint32_t image = 0; image < 2; image++) {
		for (uint64_t run = 1; run <= RUNS + 1; run++) {
			assert_int_equal(tw_round_must_wait(&round, image, 1, run), run > 1);
			assert_int_equal(tw_round_must_wait(&round, image, 2, run), run > 1);
			/* A missing number belongs to an earlier round. */
			assert_int_equal(tw_round_must_wait(&round, image, 3, run), run > 7);
			assert_false(tw_round_must_wait(&round, image, 4, run));
			assert_false(tw_round_must_wait(&round, 2, 1, run));
		}
	}
	for (uint64_t run = 1; run <= RUNS; run++) {
		assert_false(tw_round_must_wait(&round, 1, 2, run));
		assert_true(tw_round_must_wait(&round, 1, 2, run + 1));
		tw_round_finish(&round, 1, 2, run);
		assert_false(tw_round_must_wait(&round, 1, 2, run + 1));
		/* No other tracee's. */
		assert_true(tw_round_must_wait(&round, 0, 2, run + 1));
		assert_true(tw_round_must_wait(&round, 1, 1, run + 1));
	}
	tw_round_fini(&round);
	assert_int_equal(round.count, 0);
}

/* One run whose records lie in two rings: of two sessions, or of a thread whose ring grew. */
static void a_run_in_two_rings_is_over_once(void **state)
{
	struct tw_round round = {0};

	for (int ring = 0; ring < 2; ring++) {
		assert_int_equal(tw_round_add(&round, 0, 1, 1), 0);
		assert_int_equal(tw_round_add(&round, 0, 1, 2), 0);
	}
	tw_round_sort(&round);
	assert_true(tw_round_must_wait(&round, 0, 1, 2));
	tw_round_finish(&round, 0, 1, 1);
	assert_false(tw_round_must_wait(&round, 0, 1, 1));
	assert_false(tw_round_must_wait(&round, 0, 1, 2));
	assert_true(tw_round_must_wait(&round, 0, 1, 3));
	tw_round_fini(&round);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_waits_for_unknown_runs),
		cmocka_unit_test(a_run_waits_for_the_one_before_it),
		cmocka_unit_test(a_run_in_two_rings_is_over_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
