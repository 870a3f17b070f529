/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	A table of addresses finds its entries, after growing, replacing and removing.
 * Method	A hundred thousand keys that resemble addresses (multiples of 8); every third one removed again.
 */
#include "base/ck_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void entries_are_found(void **state)
{
	static char values[4];
	struct tw_ck_table table = {0};
	const uintptr_t base = 0x7f0000001000, count = 100000;

	assert_null(tw_ck_table_get(&table, base));
	for (uintptr_t i = 0; i < count; i++)
		assert_int_equal(tw_ck_table_put(&table, base + 8 * i, &values[i % 3]), 0);
	for (uintptr_t i = 0; i < count; i += 3)
		assert_ptr_equal(tw_ck_table_remove(&table, base + 8 * i), &values[0]);
	assert_int_equal(tw_ck_table_put(&table, base + 8, &values[3]), 0);
	for (uintptr_t i = 0; i < count; i++) {
		void *expected = i % 3 == 0 ? NULL : i == 1 ? &values[3] : &values[i % 3];

		assert_ptr_equal(tw_ck_table_get(&table, base + 8 * i), expected);
	}
	assert_null(tw_ck_table_remove(&table, base));
	tw_ck_table_fini(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
