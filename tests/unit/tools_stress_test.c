/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	`tracewheel stress` passes, and would not if changes were two moments instead of one.
 * Method	The run behind the command for half a second each: as it is, and torn on purpose.
 */
#include "tools/stress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

static void whole_changes_pass(void **state)
{
	const struct tw_stress_options options = { .seconds = 0.5, .threads = 2, .functions = 64, .seed = 1 };
	struct tw_stress_result result;

	assert_int_equal(tw_stress_run(&options, &result), 0);
	assert_int_equal(result.moved, 0);
	assert_int_equal(result.failed, 0);
	assert_int_equal(result.disordered, 0);
	assert_int_equal(result.stored + result.lost, result.numbered);
	assert_in_range(result.counted, result.pairs - result.tolerated, result.pairs + result.tolerated);
	assert_true(tw_stress_has_passed(&result));
}

static void torn_changes_do_not(void **state)
{
	const struct tw_stress_options options = {
		.seconds = 0.5, .threads = 2, .functions = 64, .seed = 1, .is_torn = true
	};
	struct tw_stress_result result;

	assert_int_equal(tw_stress_run(&options, &result), 0);
	assert_false(tw_stress_has_passed(&result));
	assert_true(result.pairs > result.counted + result.tolerated);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_changes_pass),
		cmocka_unit_test(torn_changes_do_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
