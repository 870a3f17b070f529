/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	Builders make what accessors read back, return none for invalid input, and stay in their arena.
 * Method	Each type with its borders; none as an argument; arenas of every alignment, with caps, reset
 *	and used again; maps of every size in every kind of order.
 */
#include "term/term.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

static const struct tw_term none;

static void integers_and_floats(void **state)
{
	static const int64_t values[] =
		{0, 1, -1, TW_SMALL_MAX, TW_SMALL_MIN, TW_SMALL_MAX + 1, TW_SMALL_MIN - 1, INT64_MAX, INT64_MIN};
	struct tw_arena arena;
	uint64_t positive;
	int64_t value;
	double number;

	tw_arena_init(&arena, SIZE_MAX);
	for (size_t i = 0; i < TW_COUNT_OF(values); i++) {
		struct tw_term t = tw_term_integer(&arena, values[i]);

		assert_int_equal(tw_term_type(t), TW_TYPE_INTEGER);
		assert_int_equal(tw_is_small(t), values[i] >= TW_SMALL_MIN && values[i] <= TW_SMALL_MAX);
		assert_int_equal(tw_term_get_int64(t, &value), 0);
		assert_int_equal(value, values[i]);
		assert_int_equal(tw_term_get_uint64(t, &positive), values[i] < 0 ? TW_ELIMIT : 0);
	}
	assert_int_equal(tw_term_get_int64(tw_term_unsigned(&arena, UINT64_MAX), &value), TW_ELIMIT);
	assert_int_equal(tw_term_get_uint64(tw_term_unsigned(&arena, UINT64_MAX), &positive), 0);
	assert_true(positive == UINT64_MAX);
	assert_int_equal(tw_term_get_double(tw_term_float(&arena, -1.5), &number), 0);
	assert_true(number == -1.5);
	assert_int_equal(tw_term_get_double(tw_small(3), &number), 0);
	assert_true(number == 3);
	assert_int_equal(tw_term_get_double(tw_term_nil(), &number), TW_EBADARG);
	assert_int_equal(tw_term_get_int64(tw_term_float(&arena, 1), &value), TW_EBADARG);
	assert_true(tw_term_is_none(tw_term_float(&arena, INFINITY)));
	assert_true(tw_term_is_none(tw_term_float(&arena, NAN)));
	tw_arena_fini(&arena);
}

static void blocks(void **state)
{
	struct tw_term parts[] = {tw_small(1), tw_atom(TW_ATOM_OK), none}, t;
	const unsigned char *data;
	struct tw_arena arena;
	size_t count, bits;

	tw_arena_init(&arena, SIZE_MAX);
	t = tw_term_tuple(&arena, parts, 2);
	assert_int_equal(tw_term_type(t), TW_TYPE_TUPLE);
	assert_int_equal(tw_term_tuple_count(t), 2);
	assert_true(tw_term_is_same(tw_term_element(t, 1), parts[1]));
	assert_true(tw_term_is_none(tw_term_element(t, 2)));
	assert_true(tw_term_is_none(tw_term_tuple(&arena, parts, 3)));
	assert_int_equal(tw_term_tuple_count(tw_term_tuple(&arena, NULL, 0)), 0);
	t = tw_term_list(&arena, parts, 2, tw_term_nil());
	assert_int_equal(tw_term_list_count(t, &count), 0);
	assert_int_equal(count, 2);
	assert_true(tw_term_is_same(tw_term_head(tw_term_tail(t)), parts[1]));
	assert_int_equal(tw_term_list_count(tw_term_list(&arena, parts, 2, parts[0]), &count), TW_EBADARG);
	assert_true(tw_term_is_none(tw_term_list(&arena, parts, 3, tw_term_nil())));
	assert_true(tw_term_is_none(tw_term_list(&arena, parts, 2, none)));
	assert_true(tw_term_is_none(tw_term_cons(&arena, none, tw_term_nil())));
	assert_true(tw_term_is_none(tw_term_head(tw_term_nil())));
	t = tw_term_bitstring(&arena, "\xff\xff", 11);
	assert_int_equal(tw_term_get_bits(t, &data, &bits), 0);
	assert_int_equal(bits, 11);
	assert_memory_equal(data, "\xff\xe0", 2);
	assert_false(tw_is_binary(t));
	assert_true(tw_is_binary(tw_term_binary(&arena, "", 0)));
	t = tw_term_string(&arena, "a\xc3\xa9", 3);
	assert_true(tw_term_is_same(tw_term_head(tw_term_tail(t)), tw_small(0xe9)));
	assert_true(tw_term_is_none(tw_term_string(&arena, "a\xc3", 2)));
	assert_true(tw_term_is_none(tw_term_export(&arena, tw_small(1), parts[1], 0)));
	tw_arena_fini(&arena);
}

static void identifiers(void **state)
{
	struct tw_identifier parts = {.node = tw_term_atom_z("a@b"),
				      .creation = 3,
				      .channel = 9,
				      .word_count = 2,
				      .words = {7, 8}},
			     got;
	struct tw_arena arena;
	struct tw_term t;

	tw_arena_init(&arena, SIZE_MAX);
	t = tw_term_identifier(&arena, TW_TYPE_PID, &parts);
	assert_int_equal(tw_term_type(t), TW_TYPE_PID);
	assert_int_equal(tw_term_get_identifier(t, &got), 0);
	assert_memory_equal(&got, &parts, sizeof(got));
	assert_true(tw_term_is_none(tw_term_identifier(&arena, TW_TYPE_TUPLE, &parts)));
	parts.word_count = 3;
	assert_true(tw_term_is_none(tw_term_identifier(&arena, TW_TYPE_PID, &parts)));
	assert_int_equal(tw_term_type(tw_term_identifier(&arena, TW_TYPE_REFERENCE, &parts)), TW_TYPE_REFERENCE);
	parts.word_count = 6;
	assert_true(tw_term_is_none(tw_term_identifier(&arena, TW_TYPE_REFERENCE, &parts)));
	parts.word_count = 2;
	parts.node = tw_small(1);
	assert_true(tw_term_is_none(tw_term_identifier(&arena, TW_TYPE_PID, &parts)));
	assert_int_equal(tw_term_get_identifier(tw_term_nil(), &got), TW_EBADARG);
	assert_int_equal(tw_term_get_identifier(tw_term_port(&arena, UINT64_C(5) << 32 | 6), &got), 0);
	assert_int_equal(got.words[0], 6);
	assert_int_equal(got.words[1], 5);
	tw_arena_fini(&arena);
}

/* Keys 0 .. count - 1 in an order derived from the seed, some of them twice with an older value. */
static void check_map(struct tw_arena *arena, size_t count, unsigned seed)
{
	struct tw_term_pair pairs[300] = {0};
	size_t n = 0;
	struct tw_term map;

	for (size_t i = 0; i < count; i++) {
		size_t key = seed == 0 ? i : seed == 1 ? count - 1 - i : (i * 7 + seed) % count;

		if (seed > 1 && count % 7 == 0)
			key = i;
		if (seed > 2 && key % 3 == 0)
			pairs[n++] = (struct tw_term_pair){tw_small((int64_t)key), tw_small(-1)};
		pairs[n++] = (struct tw_term_pair){tw_small((int64_t)key), tw_small((int64_t)key + 1000)};
	}
	map = tw_term_map(arena, pairs, n);
	assert_int_equal(tw_term_map_count(map), count);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(tw_small_value(tw_term_map_at(map, i).key), i);
		assert_int_equal(tw_small_value(tw_term_map_get(map, tw_small((int64_t)i))), i + 1000);
	}
	assert_true(tw_term_is_none(tw_term_map_get(map, tw_small(-1))));
	assert_true(tw_term_is_none(tw_term_map_get(map, tw_small((int64_t)count))));
	assert_true(tw_term_is_none(tw_term_map_at(map, count).key));
}

static void maps_sort_their_keys(void **state)
{
	struct tw_term_pair bad = {tw_small(1), none};
	struct tw_arena arena;

	tw_arena_init(&arena, SIZE_MAX);
	for (size_t count = 0; count < 140; count++) {
		for (unsigned seed = 0; seed < 6; seed++)
			check_map(&arena, count, seed);
		tw_arena_reset(&arena);
	}
	assert_true(tw_term_is_none(tw_term_map(&arena, &bad, 1)));
	assert_true(tw_term_is_none(tw_term_map_get(tw_small(1), tw_small(1))));
	tw_arena_fini(&arena);
}

static void fixed_arenas_stay_in_their_buffer(void **state)
{
	for (size_t offset = 0; offset < 17; offset++) {
		for (size_t bytes = 0; bytes < 100; bytes++) {
			char buffer[200];
			struct tw_arena arena;
			size_t count = 0;

			memset(buffer, '#', sizeof(buffer));
			tw_arena_init_fixed(&arena, buffer + offset, bytes);
			for (int round = 0; round < 2; round++) {
				count = 0;
				while (!tw_term_is_none(tw_term_cons(&arena, tw_small(0), tw_term_nil())))
					count++;
				tw_arena_reset(&arena);
			}
			assert_in_range(count * 16, bytes < 31 ? 0 : bytes - 30, bytes);
			tw_arena_fini(&arena);
			for (size_t i = 0; i < sizeof(buffer); i++)
				assert_true((i >= offset && i < offset + bytes) || buffer[i] == '#');
		}
	}
}

static void growing_arenas_keep_their_cap(void **state)
{
	static const size_t caps[] = {0, 16, 31, 32, 100, 4096, 5000, 100000, 3000000};

	for (size_t i = 0; i < TW_COUNT_OF(caps); i++) {
		struct tw_arena arena;
		size_t count = 0;

		tw_arena_init(&arena, caps[i]);
		while (tw_arena_alloc(&arena, 40))
			count++;
		assert_true(arena.held_bytes <= caps[i]);
		assert_true(count * 48 + 48 + 2000 >= caps[i]);
		assert_null(tw_arena_alloc(&arena, SIZE_MAX));
		assert_null(tw_arena_alloc(&arena, SIZE_MAX - 20));
		tw_arena_reset(&arena);
		assert_true(!arena.chunks || tw_arena_alloc(&arena, 16));
		assert_true(arena.held_bytes <= caps[i]);
		tw_arena_fini(&arena);
	}
}

/* The caller's buffer first, then the heap, then the buffer again; never beyond the cap. */
static void arenas_grow_out_of_a_buffer(void **state)
{
	static const size_t caps[] = {0, 100, 1000, 5000, 100000};
	char buffer[1000];

	for (size_t i = 0; i < TW_COUNT_OF(caps); i++) {
		struct tw_arena arena;
		struct tw_term list = tw_term_nil(), copy;

		tw_arena_init_buffer(&arena, buffer + 1, sizeof buffer - 1, caps[i]);
		for (int round = 0; round < 3; round++) {
			size_t count = 0;

			while (tw_arena_alloc(&arena, 40)) {
				count++;
				assert_int_equal(arena.chunks != NULL, count * 48 > 984);
			}
			assert_true(arena.held_bytes <= (caps[i] > 1000 ? caps[i] : 1000));
			assert_true(caps[i] <= 1000 || count * 48 + 48 + 2000 >= caps[i]);
			tw_arena_reset(&arena);
			assert_null(arena.chunks);
		}
		tw_arena_fini(&arena);
		if (caps[i] < 100000)
			continue;
		tw_arena_init_buffer(&arena, buffer, sizeof buffer, caps[i]);
		for (int k = 0; k < 1000; k++)
			list = tw_term_cons(&arena, tw_term_integer(&arena, k), list);
		assert_int_equal(tw_term_copy(&arena, list, SIZE_MAX, &copy), 0);
		assert_true(tw_term_is_equal(list, copy));
		tw_arena_fini(&arena);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(integers_and_floats),
		cmocka_unit_test(arenas_grow_out_of_a_buffer),
		cmocka_unit_test(blocks),
		cmocka_unit_test(identifiers),
		cmocka_unit_test(maps_sort_their_keys),
		cmocka_unit_test(fixed_arenas_stay_in_their_buffer),
		cmocka_unit_test(growing_arenas_keep_their_cap),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
