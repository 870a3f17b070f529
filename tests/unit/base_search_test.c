/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	A binary search gives the first item that is not before a position, in arrays of any length.
 * Method	Arrays of 0 to 40 even numbers, with repetitions, and every number around them; compared with a count.
 */
#include "base/search.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static void every_position_is_found(void **state)
{
	uint64_t items[40];

	for (size_t count = 0; count <= 40; count++) {
		for (size_t i = 0; i < count; i++)
			items[i] = 2 + i / 3 * 2;
		for (uint64_t wanted = 0; wanted < 40; wanted++) {
			size_t before = 0, up_to = 0;

			for (size_t i = 0; i < count; i++) {
				before += items[i] < wanted;
				up_to += items[i] <= wanted;
			}
			assert_int_equal(tw_search(i, count, items[i] < wanted), before);
			assert_int_equal(tw_search(i, count, items[i] <= wanted), up_to);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(every_position_is_found)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
