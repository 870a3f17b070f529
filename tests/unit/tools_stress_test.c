/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	`tracewheel stress` passes with each kind of place and all its operations on threads, and would fail if a change
 *	took several steps to become visible.
 * Method	The command's run for a moment each: normal, and broken on purpose.  The command breaks more:
 *	--self-test.
 */
#include "tools/stress/stress.h"
#include "tests/unit/sanitized_help.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

/* Sanitizers track each thread's calls: none may return to another address. */
#define RETURNS (IS_SANITIZED ? 0u : (unsigned)TW_STRESS_RETURNS)

static void run(unsigned what, bool is_torn, struct tw_stress_result *result)
{
	const struct tw_stress_options options = {.seconds = 0.5,
						  .threads = 2,
						  .changers = 1,
						  .functions = 64,
						  .seed = 1,
						  .pause_us = 1000,
						  .what = what,
						  .is_torn = is_torn};

	assert_int_equal(tw_stress_run(&options, result), 0);
	for (uint32_t i = 0; i < result->finding_count && !is_torn; i++)
		print_message("%s\n", result->findings[i]);
}

static void passes(unsigned what, struct tw_stress_result *result)
{
	run(what, false, result);
	assert_int_equal(result->moved, 0);
	assert_int_equal(result->wrong, 0);
	assert_int_equal(result->torn, 0);
	assert_int_equal(result->disordered, 0);
	assert_int_equal(result->unaccounted, 0);
	assert_int_equal(result->bad_ends, 0);
	assert_true(result->counted <= result->pairs + result->tolerated);
	assert_true(result->pairs <= result->counted + result->tolerated);
	assert_true(tw_stress_has_passed(result));
	assert_true(result->stored > result->excused);
	for (unsigned place = 0; place < TW_STRESS_PLACES; place++)
		assert_int_equal(!result->calls[place], !(what >> place & 1));
	assert_true(result->waits >= result->switches);
	assert_true(result->wait_ns[0] <= result->wait_ns[3]);
}

static void declared_functions(void **state)
{
	struct tw_stress_result result;

	passes(TW_STRESS_DECLARED, &result);
	assert_true(result.pairs > 0);
	assert_int_equal(result.code_waits, 0);
}

static void sleds(void **state)
{
	struct tw_stress_result result;

	passes(TW_STRESS_SLEDS, &result);
	assert_true(result.pairs > 0);
	assert_true(result.code_waits > 0);
	assert_int_equal(result.ends, 0);
}

static void slots(void **state)
{
	struct tw_stress_result result;

	passes(TW_STRESS_SLOTS, &result);
	assert_int_equal(result.code_waits, 0);
}

static void returns(void **state)
{
	struct tw_stress_result result;

	if (!RETURNS)
		skip();
	passes(TW_STRESS_SLEDS | TW_STRESS_SLOTS | TW_STRESS_RETURNS, &result);
	assert_true(result.ends > 0);
}

static void all_at_once(void **state)
{
	struct tw_stress_result result;

	passes((TW_STRESS_ALL & ~(unsigned)TW_STRESS_RETURNS) | RETURNS, &result);
	assert_true(result.threads > 0);
	assert_true(result.stalls > 0);
}

static void torn_changes_do_not_pass(void **state)
{
	struct tw_stress_result result = {0};

	for (int i = 0; i < 10 && result.pairs <= result.counted + result.tolerated; i++)
		run(TW_STRESS_DECLARED, true, &result);
	assert_false(tw_stress_has_passed(&result));
	assert_true(result.pairs > result.counted + result.tolerated);
	/* Functions that are recorded, not counted: rounds over all kinds see them. */
	for (int i = 0; i < 10 && !result.torn; i++)
		run(TW_STRESS_SLEDS | TW_STRESS_SLOTS, true, &result);
	assert_false(tw_stress_has_passed(&result));
	assert_true(result.torn > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(declared_functions),
		cmocka_unit_test(sleds),
		cmocka_unit_test(slots),
		cmocka_unit_test(returns),
		cmocka_unit_test(all_at_once),
		cmocka_unit_test(torn_changes_do_not_pass),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
