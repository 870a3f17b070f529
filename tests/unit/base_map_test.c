/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: each key of a map leads to its number, exact keys to one, equal hashes to the item that is wanted, while the map grows
 * from empty; what was never added is not found. Method: an array beside it is the truth, with keys that are alike: dense,
 * multiples of large powers of two, and hashes of which eight items share each.
 */
#include "base/map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define ITEMS 20000u

static uint64_t key_of(uint32_t i, unsigned way)
{
	return way == 0 ? i : way == 1 ? (uint64_t)i << 44 : (uint64_t)i << 32 | (ITEMS - i);
}

static void leads_exact_keys_to_their_numbers(void **state)
{
	for (unsigned way = 0; way < 3; way++) {
		struct tw_map map = {0};

		assert_int_equal(tw_map_get(&map, 0), TW_MAP_NONE);
		for (uint32_t i = 0; i < ITEMS; i++) {
			assert_int_equal(tw_map_get(&map, key_of(i, way)), TW_MAP_NONE);
			assert_true(tw_map_put(&map, key_of(i, way), i ^ 5));
		}
		for (uint32_t i = 0; i < ITEMS; i++)
			assert_int_equal(tw_map_get(&map, key_of(i, way)), i ^ 5);
		assert_int_equal(tw_map_get(&map, key_of(ITEMS, way)), TW_MAP_NONE);
		/* A key has one number. */
		assert_int_equal(map.count, ITEMS);
		assert_true(tw_map_put(&map, key_of(7, way), TW_MAP_NONE - 1));
		assert_int_equal(tw_map_get(&map, key_of(7, way)), TW_MAP_NONE - 1);
		assert_int_equal(map.count, ITEMS);
		tw_map_fini(&map);
		assert_int_equal(tw_map_get(&map, key_of(7, way)), TW_MAP_NONE);
	}
}

static void tells_items_with_one_hash_apart(void **state)
{
	struct tw_map map = {0};
	static uint32_t items[ITEMS];

	for (uint32_t i = 0; i < ITEMS; i++) {
		items[i] = i * 3;
		assert_int_equal(tw_map_find(&map, i / 8, at, items[at] == i * 3), TW_MAP_NONE);
		assert_true(tw_map_add(&map, i / 8, i));
	}
	for (uint32_t i = 0; i < ITEMS; i++)
		assert_int_equal(tw_map_find(&map, i / 8, at, items[at] == i * 3), i);
	assert_int_equal(tw_map_find(&map, 1, at, items[at] == 1), TW_MAP_NONE);
	/* The number may be changed in its slot. */
	tw_map_slot(&map, 2, at, items[at] == 17 * 3)->after = 3 + 1;
	assert_int_equal(tw_map_find(&map, 2, at, items[at] == 17 * 3), TW_MAP_NONE);
	assert_int_equal(tw_map_find(&map, 2, at, items[at] == 9), 3);
	tw_map_fini(&map);
}

static void hashes_all_bytes_and_words(void **state)
{
	char text[] = "the same text, but for one bit";
	uint64_t hash = tw_hash_bytes(text, sizeof text, 0);

	for (size_t i = 0; i < sizeof text; i++) {
		text[i] ^= 1;
		assert_true(tw_hash_bytes(text, sizeof text, 0) != hash);
		text[i] ^= 1;
	}
	assert_true(tw_hash_bytes(text, sizeof text, 0) == hash);
	for (unsigned bit = 0; bit < 64; bit++)
		assert_true(tw_hash_word(hash, UINT64_C(1) << bit) != tw_hash_word(hash, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(leads_exact_keys_to_their_numbers),
		cmocka_unit_test(tells_items_with_one_hash_apart),
		cmocka_unit_test(hashes_all_bytes_and_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
