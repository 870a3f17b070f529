/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: an array keeps its items while it grows, and new ones are zero where that is asked; without memory neither it nor
 * its capacity changes. Method: append far more items than the first capacity and compare all; ask for more than an
 * address space holds.
 */
#include "base/grow.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void keeps_items(void **state)
{
	uint32_t *items = NULL, count = 0, capacity = 0;

	for (uint32_t i = 0; i < 1000; i++) {
		assert_true(tw_grow(items, count, capacity));
		assert_true(capacity > count);
		items[count++] = i * 3;
	}
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(items[i], i * 3);
	free(items);
}

static void keeps_items_without_a_capacity(void **state)
{
	uint32_t *items = NULL, count = 0;

	for (uint32_t i = 0; i < 1000; i++) {
		assert_true(tw_grow_one(items, count));
		items[count++] = i * 3;
	}
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(items[i], i * 3);
	/* An array from which items were taken out grows again. */
	for (count = 5; count < 70; count++) {
		assert_true(tw_grow_one(items, count));
		items[count] = count * 3;
	}
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(items[i], i * 3);
	free(items);
}

static void has_space_for_several(void **state)
{
	char *text = NULL;
	uint32_t used = 0, capacity = 0;

	for (uint32_t bytes = 0; bytes < 500; bytes += 7) {
		uint32_t before = capacity;

		assert_true(tw_grow_by(text, used, capacity, bytes));
		assert_true(capacity - used >= bytes);
		assert_true(capacity == before || (capacity >= 64 && capacity >= 2 * before));
		memset(text + used, (int)bytes & 0x7f, bytes);
		used += bytes;
	}
	for (uint32_t bytes = 0, at = 0; bytes < 500; at += bytes, bytes += 7)
		for (uint32_t i = 0; i < bytes; i++)
			assert_int_equal(text[at + i], (int)bytes & 0x7f);
	volatile size_t far = SIZE_MAX;
	assert_false(tw_grow_by(text, used, capacity, far));
	assert_int_equal(text[used - 1], 497 & 0x7f);
	free(text);
}

static void changes_nothing_without_memory(void **state)
{
	char(*items)[4096] = NULL;
	size_t capacity = SIZE_MAX / 8192 + 1;

	assert_false(tw_grow(items, capacity, capacity));
	assert_null(items);
	assert_int_equal(capacity, SIZE_MAX / 8192 + 1);
	assert_false(tw_grow_one(items, capacity));
	assert_null(items);
}

static void zeroes_new_items(void **state)
{
	uint64_t *items = NULL;
	uint32_t count = 0;

	for (uint32_t i = 0; i < 3000; i += 7) {
		uint32_t before = count;

		assert_true(tw_grow_to(items, count, i));
		assert_true(i < count);
		for (uint32_t k = 0; k < count; k++)
			assert_int_equal(items[k], k < before ? UINT64_MAX : 0);
		memset(items, 0xff, count * sizeof *items);
	}
	count--;
	size_t far = SIZE_MAX / sizeof *items;
	assert_false(tw_grow_to(items, count, far));
	assert_int_equal(items[count], UINT64_MAX);
	free(items);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_items),
		cmocka_unit_test(keeps_items_without_a_capacity),
		cmocka_unit_test(has_space_for_several),
		cmocka_unit_test(zeroes_new_items),
		cmocka_unit_test(changes_nothing_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
