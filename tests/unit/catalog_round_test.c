/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	In a round of reading, a stream waits exactly as long as an earlier run of its tracee is not over.
 * Method	Handmade sets of runs, in any order; and random ones against a linear search.
 */
#include "base/assert.h"
#include "pipeline/format/round.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static void without_runs_nobody_waits(void **state)
{
	struct tw_round round = {0};

	assert_false(tw_round_must_wait(&round, 0, 1, 1));
	assert_false(tw_round_must_wait(&round, 0, 0, 0));
	tw_round_finish(&round, 0, 1, 1);
	/* Threads that are no tracees have no runs. */
	assert_int_equal(tw_round_add(&round, 0, 0, 7), 0);
	assert_int_equal(tw_round_add(&round, 0, 7, 0), 0);
	tw_round_sort(&round);
	assert_int_equal(round.count, 0);
	assert_false(tw_round_must_wait(&round, 0, 7, 9));
	tw_round_fini(&round);
}

static void runs_of_one_tracee_follow_each_other(void **state)
{
	struct tw_round round = {0};

	for (uint64_t run = 5; run; run--)
		assert_int_equal(tw_round_add(&round, 1, 4, run), 0);
	assert_int_equal(tw_round_add(&round, 1, 3, 1), 0);
	assert_int_equal(tw_round_add(&round, 2, 4, 1), 0);
	tw_round_sort(&round);
	for (uint64_t over = 1; over <= 5; over++) {
		for (uint64_t run = over + 1; run <= 5; run++)
			assert_true(tw_round_must_wait(&round, 1, 4, run));
		assert_false(tw_round_must_wait(&round, 1, 4, over));
		assert_false(tw_round_must_wait(&round, 1, 3, 1));
		assert_false(tw_round_must_wait(&round, 2, 4, 1));
		assert_false(tw_round_must_wait(&round, 1, 0, 3));
		assert_false(tw_round_must_wait(&round, 1, 4, 0));
		tw_round_finish(&round, 1, 4, over);
	}
	tw_round_fini(&round);
}

static void random_rounds_agree_with_a_plain_search(void **state)
{
	srand(11);
	for (unsigned turn = 0; turn < 200; turn++) {
		struct tw_round round = {0};
		unsigned count = (unsigned)rand() % 40;

		for (unsigned i = 0; i < count; i++)
			tw_round_add(&round, (uint32_t)rand() % 2, (uint32_t)rand() % 3, (uint64_t)rand() % 6);
		tw_round_sort(&round);
		for (unsigned i = 0; i < 60; i++) {
			uint32_t image = (uint32_t)rand() % 2, tracee = (uint32_t)rand() % 3;
			uint64_t run = (uint64_t)rand() % 6, last = 0;
			bool is_over = true;

			/* The last run before this one decides; of several with its number, the last in the order. */
			for (size_t j = 0; j < round.count; j++) {
				const struct tw_round_run *other = &round.runs[j];

				if (other->image == image && other->tracee_id == tracee && other->run < run &&
				    other->run >= last) {
					last = other->run;
					is_over = other->is_over;
				}
			}
			assert_int_equal(tw_round_must_wait(&round, image, tracee, run),
					 tracee && run && last && !is_over);
			if (rand() % 2)
				tw_round_finish(&round, image, tracee, run);
		}
		tw_round_fini(&round);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_runs_nobody_waits),
		cmocka_unit_test(runs_of_one_tracee_follow_each_other),
		cmocka_unit_test(random_rounds_agree_with_a_plain_search),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
