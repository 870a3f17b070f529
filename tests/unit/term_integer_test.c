/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	Arithmetic on integers is right at the limits of smalls, limbs and size, uses only the arena's memory, and
 *	returns its scratch.  (term_oracle compares random sums with Erlang's.)
 * Method	Identities that hold for all integers, over all pairs of border values; GMP's allocation functions
 *	abort; the arena is compared before and after; limits from both sides.
 */
#include "term/integer.h"

#include <gmp.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static void *no_allocate(size_t bytes)
{
	abort();
}

static void *no_reallocate(void *block, size_t from, size_t to)
{
	abort();
}

static void no_free(void *block, size_t bytes)
{
	abort();
}

#define VALUES_MAX 400
static struct tw_term values[VALUES_MAX];
static size_t value_count;
static struct tw_arena keep;
static _Alignas(16) char memory[1 << 20];

static struct tw_term op(struct tw_arena *arena, enum tw_integer_op code, struct tw_term a, struct tw_term b)
{
	struct tw_term out = {0};

	assert_int_equal(tw_integer_binary(arena, code, a, b, &out), 0);
	return out;
}

static int make_values(void **state)
{
	static const int bits[] = {0, 1, 31, 32, 58, 59, 60, 63, 64, 65, 127, 128, 192, 300, 2000, 16000, 32000};

	mp_set_memory_functions(no_allocate, no_reallocate, no_free);
	tw_arena_init(&keep, SIZE_MAX);
	values[value_count++] = tw_small(0);
	for (size_t i = 0; i < TW_COUNT_OF(bits); i++) {
		for (int d = -1; d <= 1; d++) {
			struct tw_term v = op(&keep, TW_INTEGER_ADD,
					      op(&keep, TW_INTEGER_BSL, tw_small(1), tw_small(bits[i])), tw_small(d));

			values[value_count++] = v;
			values[value_count++] = op(&keep, TW_INTEGER_SUB, tw_small(0), v);
		}
	}
	return 0;
}

static int drop_values(void **state)
{
	tw_arena_fini(&keep);
	return 0;
}

static void assert_same(struct tw_term a, struct tw_term b)
{
	assert_int_equal(tw_integer_compare(a, b), 0);
	assert_true(tw_term_is_equal(a, b));
	/* Each value has one representation. */
	assert_int_equal(tw_is_small(a), tw_is_small(b));
}

static void check_pair(struct tw_arena *x, struct tw_term a, struct tw_term b)
{
	struct tw_term sum = op(x, TW_INTEGER_ADD, a, b), product = op(x, TW_INTEGER_MUL, a, b), q, r, both, either;

	assert_same(op(x, TW_INTEGER_SUB, sum, b), a);
	assert_same(op(x, TW_INTEGER_ADD, b, a), sum);
	assert_same(op(x, TW_INTEGER_MUL, b, a), product);
	/* (a + b)^2 = a^2 + 2ab + b^2 */
	if (tw_is_small(a) || tw_block_size(a) < 200)
		assert_same(op(x, TW_INTEGER_MUL, sum, a), op(x, TW_INTEGER_ADD, op(x, TW_INTEGER_MUL, a, a), product));
	if (tw_integer_sign(b) != 0) {
		q = op(x, TW_INTEGER_DIV, a, b);
		r = op(x, TW_INTEGER_REM, a, b);
		assert_same(op(x, TW_INTEGER_ADD, op(x, TW_INTEGER_MUL, q, b), r), a);
		assert_true(tw_integer_sign(r) == 0 || tw_integer_sign(r) == tw_integer_sign(a));
		assert_same(op(x, TW_INTEGER_DIV, product, b), a);
		assert_same(op(x, TW_INTEGER_REM, product, b), tw_small(0));
	}
	both = op(x, TW_INTEGER_BAND, a, b);
	either = op(x, TW_INTEGER_BOR, a, b);
	assert_same(op(x, TW_INTEGER_ADD, both, either), sum);
	assert_same(op(x, TW_INTEGER_SUB, either, both), op(x, TW_INTEGER_BXOR, a, b));
	assert_int_equal(tw_integer_compare(a, b),
			 tw_integer_sign(op(x, TW_INTEGER_SUB, a, b)) * abs(tw_integer_compare(a, b)));
}

static void identities_hold(void **state)
{
	for (size_t i = 0; i < value_count; i++) {
		for (size_t j = 0; j < value_count; j++) {
			struct tw_arena arena;

			tw_arena_init_fixed(&arena, memory, sizeof(memory));
			check_pair(&arena, values[i], values[j]);
		}
	}
}

static void one_operand(void **state)
{
	for (size_t i = 0; i < value_count; i++) {
		struct tw_arena arena;
		struct tw_term a = values[i], out, again;

		tw_arena_init_fixed(&arena, memory, sizeof(memory));
		assert_int_equal(tw_integer_negate(&arena, a, &out), 0);
		assert_int_equal(tw_integer_sign(out), -tw_integer_sign(a));
		assert_int_equal(tw_integer_negate(&arena, out, &again), 0);
		assert_same(again, a);
		assert_int_equal(tw_integer_abs(&arena, a, &out), 0);
		assert_true(tw_integer_sign(out) >= 0);
		assert_int_equal(tw_integer_bnot(&arena, a, &out), 0);
		assert_same(op(&arena, TW_INTEGER_ADD, out, a), tw_small(-1));
		for (int shift = 0; shift < 200; shift += 13) {
			struct tw_term by = tw_small(shift), left = op(&arena, TW_INTEGER_BSL, a, by);

			assert_same(op(&arena, TW_INTEGER_BSR, left, by), a);
			assert_same(op(&arena, TW_INTEGER_BSL, left, tw_small(-shift)), a);
			/* The shift right must equal the division that rounds down. */
			again = op(&arena, TW_INTEGER_BSL, op(&arena, TW_INTEGER_BSR, a, by), by);
			assert_true(tw_integer_compare(again, a) <= 0);
			assert_true(tw_integer_compare(op(&arena, TW_INTEGER_SUB, a, again),
						       op(&arena, TW_INTEGER_BSL, tw_small(1), by)) < 0);
		}
	}
}

static void limits_are_errors(void **state)
{
	struct tw_arena arena;
	struct tw_term half, out = {77}, large;

	tw_arena_init_fixed(&arena, memory, sizeof(memory));
	half = op(&arena, TW_INTEGER_BSL, tw_small(1), tw_small(32767));
	large = op(&arena, TW_INTEGER_BSL, tw_small(1), tw_small(65535));
	assert_int_equal(tw_integer_binary(&arena, TW_INTEGER_BSL, tw_small(1), tw_small(65536), &out), TW_ELIMIT);
	assert_int_equal(tw_integer_binary(&arena, TW_INTEGER_ADD, large, large, &out), TW_ELIMIT);
	assert_int_equal(tw_integer_binary(&arena, TW_INTEGER_MUL, large, tw_small(2), &out), TW_ELIMIT);
	assert_int_equal(tw_integer_binary(&arena, TW_INTEGER_MUL, large, large, &out), TW_ELIMIT);
	op(&arena, TW_INTEGER_MUL, half, half);
	assert_int_equal(tw_integer_binary(&arena, TW_INTEGER_BSL, tw_small(-1), large, &out), TW_ELIMIT);
	assert_int_equal(out.word, 77);
	assert_same(op(&arena, TW_INTEGER_BSL, tw_small(0), large), tw_small(0));
	assert_same(op(&arena, TW_INTEGER_BSR, tw_small(-1), large), tw_small(-1));
	assert_same(op(&arena, TW_INTEGER_BSR, large, large), tw_small(0));
	assert_int_equal(tw_integer_binary(&arena, TW_INTEGER_DIV, large, tw_small(0), &out), TW_EBADARG);
	assert_int_equal(tw_integer_binary(&arena, TW_INTEGER_REM, tw_small(1), tw_small(0), &out), TW_EBADARG);
	assert_int_equal(tw_integer_binary(&arena, TW_INTEGER_ADD, tw_small(1), tw_atom(TW_ATOM_OK), &out), TW_EBADARG);
	assert_int_equal(tw_integer_abs(&arena, tw_term_nil(), &out), TW_EBADARG);
}

static void scratch_is_given_back(void **state)
{
	for (size_t i = 0; i < value_count; i++) {
		for (int code = TW_INTEGER_ADD; code <= TW_INTEGER_BXOR; code++) {
			struct tw_term a = values[i], b = values[(i + 7) % value_count], out;
			struct tw_arena arena;
			size_t needed;

			if (code >= TW_INTEGER_DIV && code <= TW_INTEGER_REM && tw_integer_sign(b) == 0)
				continue;
			tw_arena_init_fixed(&arena, memory, sizeof(memory));
			out = op(&arena, (enum tw_integer_op)code, a, b);
			needed = tw_is_small(out) ? 0 : (8 + tw_block_size(out) * 8 + 15) / 16 * 16;
			assert_int_equal(arena.at - memory, needed);
			/* Too small an arena is an error, and is unchanged. */
			tw_arena_init_fixed(&arena, memory, needed ? needed - 16 : 0);
			if (needed) {
				assert_int_equal(tw_integer_binary(&arena, (enum tw_integer_op)code, a, b, &out),
						 TW_ENOMEM);
				assert_ptr_equal(arena.at, memory);
			}
		}
	}
}

static void doubles_convert(void **state)
{
	static const double exact[] = {0,      1,      -1,     0x1p53,	-0x1p53, 0x1p59,
				       0x1p60, 0x1p63, 0x1p64, 0x1p100, 1e300,	 0x1.fffffffffffffp1023};
	static const struct {
		double value;
		int64_t rounded[4]; /* nearest, trunc, floor, ceil */
	} roundings[] = {
		{0.5, {1, 0, 0, 1}},
		{-0.5, {-1, 0, -1, 0}},
		{2.5, {3, 2, 2, 3}},
		{-2.5, {-3, -2, -3, -2}},
		{1.49, {1, 1, 1, 2}},
		{0.49999999999999994, {0, 0, 0, 1}},
		{4503599627370495.5, {4503599627370496, 4503599627370495, 4503599627370495, 4503599627370496}},
	};
	struct tw_arena arena;
	struct tw_term out;
	double back;

	tw_arena_init_fixed(&arena, memory, sizeof(memory));
	for (size_t i = 0; i < TW_COUNT_OF(exact); i++) {
		assert_int_equal(tw_integer_from_double(&arena, exact[i], TW_ROUND_TRUNC, &out), 0);
		assert_int_equal(tw_integer_compare_double(out, exact[i]), 0);
		assert_int_equal(tw_integer_to_double(out, &back), 0);
		assert_true(back == exact[i]);
	}
	for (size_t i = 0; i < TW_COUNT_OF(roundings); i++) {
		for (int how = 0; how < 4; how++) {
			assert_int_equal(tw_integer_from_double(&arena, roundings[i].value, (enum tw_rounding)how,
								&out),
					 0);
			assert_int_equal(tw_small_value(out), roundings[i].rounded[how]);
		}
	}
	assert_int_equal(tw_integer_from_double(&arena, INFINITY, TW_ROUND_TRUNC, &out), TW_EBADARG);
	assert_int_equal(tw_integer_from_double(&arena, NAN, TW_ROUND_TRUNC, &out), TW_EBADARG);
	out = op(&arena, TW_INTEGER_BSL, tw_small(1), tw_small(1024));
	assert_int_equal(tw_integer_to_double(out, &back), TW_ELIMIT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(identities_hold),   cmocka_unit_test(one_operand),
		cmocka_unit_test(limits_are_errors), cmocka_unit_test(scratch_is_given_back),
		cmocka_unit_test(doubles_convert),
	};
	return cmocka_run_group_tests(tests, make_values, drop_values);
}
