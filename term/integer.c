/* SPDX-License-Identifier: Apache-2.0 */
/*
 * integer.c - integers of any size: shared helpers, comparison, conversion to and from doubles.
 *
 * arith.c has the operators, digits.c conversion to and from text.
 */
#include "term/integer.h"
#include "term/limbs.h"
#include "base/export.h"
#include "base/search.h"

#include <gmp.h>
#include <math.h>

_Static_assert(sizeof(mp_limb_t) == sizeof(uint64_t) && GMP_NUMB_BITS == 64, "a limb is a word of a block");

const uint64_t *tw_integer_limbs(struct tw_term a, uint64_t *small, size_t *count, bool *is_negative)
{
	int64_t value;

	if (tw_is_big(a)) {
		*count = tw_block_size(a);
		*is_negative = tw_header_aux(*tw_block(a)) != 0;
		return tw_block(a) + 1;
	}
	value = tw_small_value(a);
	*is_negative = value < 0;
	*small = value < 0 ? -(uint64_t)value : (uint64_t)value;
	*count = value != 0;
	return small;
}

uint64_t *tw_limbs_open(struct tw_arena *arena, size_t count)
{
	uint64_t *block = tw_arena_take(arena, 8 + count * 8);

	return block ? block + 1 : NULL;
}

int tw_limbs_close(struct tw_arena *arena, uint64_t *limbs, size_t count, struct tw_limbs_shape shape,
		   struct tw_term *out)
{
	uint64_t limit;

	while (count > 0 && limbs[count - 1] == 0)
		count--;
	limit = shape.is_negative ? -(uint64_t)TW_SMALL_MIN : (uint64_t)TW_SMALL_MAX;
	if (count == 0 || (count == 1 && limbs[0] <= limit)) {
		uint64_t magnitude = count ? limbs[0] : 0;

		*out = tw_small(shape.is_negative ? -(int64_t)magnitude : (int64_t)magnitude);
		tw_arena_trim(arena, limbs - 1, 8 + shape.opened_count * 8, 0);
		return 0;
	}
	if (count > TW_INTEGER_LIMBS_MAX) {
		tw_arena_trim(arena, limbs - 1, 8 + shape.opened_count * 8, 0);
		return TW_ELIMIT;
	}
	limbs[-1] = tw_header(TW_BLOCK_BIG, shape.is_negative, count);
	tw_arena_trim(arena, limbs - 1, 8 + shape.opened_count * 8, 8 + count * 8);
	*out = tw_term_of_block(limbs - 1);
	return 0;
}

int tw_integer_from_limbs(struct tw_arena *arena, bool is_negative, const uint64_t *limbs, size_t count,
			  struct tw_term *out)
{
	uint64_t *to;

	while (count > 0 && limbs[count - 1] == 0)
		count--;
	if (count > TW_INTEGER_LIMBS_MAX)
		return TW_ELIMIT;
	if (count == 0 || (count == 1 && limbs[0] <= (uint64_t)TW_SMALL_MAX)) {
		int64_t value = count ? (int64_t)limbs[0] : 0;

		*out = tw_small(is_negative ? -value : value);
		return 0;
	}
	to = tw_limbs_open(arena, count);
	if (!to)
		return TW_ENOMEM;
	memcpy(to, limbs, count * 8);
	return tw_limbs_close(arena, to, count, (struct tw_limbs_shape){count, is_negative}, out);
}

TW_API struct tw_term tw_term_unsigned(struct tw_arena *arena, uint64_t value)
{
	struct tw_term out = {0};

	if (tw_integer_from_limbs(arena, false, &value, 1, &out) != 0)
		return tw_word(0);
	return out;
}

TW_API struct tw_term tw_term_integer(struct tw_arena *arena, int64_t value)
{
	uint64_t magnitude = value < 0 ? -(uint64_t)value : (uint64_t)value;
	struct tw_term out = {0};

	if (tw_likely(tw_small_fits(value)))
		return tw_small(value);
	if (tw_integer_from_limbs(arena, value < 0, &magnitude, 1, &out) != 0)
		return tw_word(0);
	return out;
}

TW_API int tw_term_get_int64(struct tw_term term, int64_t *out)
{
	uint64_t small;
	const uint64_t *limbs;
	size_t count;
	bool is_negative;

	if (tw_is_small(term)) {
		*out = tw_small_value(term);
		return 0;
	}
	if (!tw_is_big(term))
		return TW_EBADARG;
	limbs = tw_integer_limbs(term, &small, &count, &is_negative);
	if (count > 1 || limbs[0] > (uint64_t)INT64_MAX + is_negative)
		return TW_ELIMIT;
	*out = (int64_t)(is_negative ? -limbs[0] : limbs[0]);
	return 0;
}

TW_API int tw_term_get_uint64(struct tw_term term, uint64_t *out)
{
	uint64_t small;
	const uint64_t *limbs;
	size_t count;
	bool is_negative;

	if (!tw_is_integer(term))
		return TW_EBADARG;
	limbs = tw_integer_limbs(term, &small, &count, &is_negative);
	if (is_negative || count > 1)
		return TW_ELIMIT;
	*out = count ? limbs[0] : 0;
	return 0;
}

TW_API int tw_term_get_double(struct tw_term term, double *out)
{
	if (tw_is_float(term)) {
		*out = tw_float_value(term);
		return 0;
	}
	return tw_is_integer(term) ? tw_integer_to_double(term, out) : TW_EBADARG;
}

/* ---- comparing ---- */

int tw_integer_sign(struct tw_term a)
{
	int64_t value;

	if (tw_is_big(a))
		return tw_header_aux(*tw_block(a)) ? -1 : 1;
	value = tw_small_value(a);
	return TW_ORDER(value, 0);
}

static int compare_magnitudes(const uint64_t *a, size_t a_count, const uint64_t *b, size_t b_count)
{
	return TW_ORDER(a_count, b_count)
		       ?: (a_count ? mpn_cmp((const mp_limb_t *)a, (const mp_limb_t *)b, (mp_size_t)a_count) : 0);
}

int tw_integer_compare(struct tw_term a, struct tw_term b)
{
	uint64_t a_small, b_small;
	const uint64_t *a_limbs, *b_limbs;
	size_t a_count, b_count;
	bool a_negative, b_negative;
	int order;

	if (tw_is_small(a) && tw_is_small(b))
		return (tw_small_value(a) > tw_small_value(b)) - (tw_small_value(a) < tw_small_value(b));
	a_limbs = tw_integer_limbs(a, &a_small, &a_count, &a_negative);
	b_limbs = tw_integer_limbs(b, &b_small, &b_count, &b_negative);
	if (a_negative != b_negative)
		return a_negative ? -1 : 1;
	order = compare_magnitudes(a_limbs, a_count, b_limbs, b_count);
	return a_negative ? -order : order;
}

/* Limbs of the largest finite double without a fraction. */
#define DOUBLE_LIMBS 16

/* The limbs of a whole number that is not negative; returns their number. */
static size_t limbs_of_double(double value, uint64_t limbs[DOUBLE_LIMBS])
{
	int exponent;
	uint64_t mantissa = (uint64_t)ldexp(frexp(value, &exponent), 53);
	int shift = exponent - 53;

	memset(limbs, 0, DOUBLE_LIMBS * sizeof limbs[0]);
	if (mantissa == 0)
		return 0;
	if (shift <= 0) {
		limbs[0] = mantissa >> -shift;
		return 1;
	}
	limbs[shift / 64] = mantissa << shift % 64;
	if (shift % 64 > 11)
		limbs[shift / 64 + 1] = mantissa >> (64 - shift % 64);
	return (size_t)(exponent + 63) / 64;
}

int tw_integer_compare_double(struct tw_term a, double b)
{
	uint64_t a_small, b_limbs[DOUBLE_LIMBS];
	const uint64_t *a_limbs;
	size_t a_count, b_count;
	bool a_negative;
	double whole = trunc(b);
	int order;

	if (tw_is_small(a) && fabs(b) < 0x1p62) {
		int64_t value = tw_small_value(a), whole_value = (int64_t)whole;

		if (value != whole_value)
			return value < whole_value ? -1 : 1;
		return TW_ORDER(whole, b);
	}
	a_limbs = tw_integer_limbs(a, &a_small, &a_count, &a_negative);
	if (a_negative != (b < 0))
		return a_negative ? -1 : 1;
	b_count = limbs_of_double(fabs(whole), b_limbs);
	order = compare_magnitudes(a_limbs, a_count, b_limbs, b_count);
	/* Doubles as large as this have no fraction. */
	return a_negative ? -order : order;
}

/* ---- doubles ---- */

int tw_integer_to_double(struct tw_term a, double *out)
{
	uint64_t small;
	const uint64_t *limbs;
	bool is_negative;
	double value = 0;
	size_t count;

	if (tw_is_small(a)) {
		*out = (double)tw_small_value(a);
		return 0;
	}
	/* Rounds at each limb as Erlang does, which is not always to the nearest double. */
	limbs = tw_integer_limbs(a, &small, &count, &is_negative);
	while (count > 0)
		value = value * 0x1p64 + (double)limbs[--count];
	if (isinf(value))
		return TW_ELIMIT;
	*out = is_negative ? -value : value;
	return 0;
}

/*
 * As round(), which is in libm: without libm the agent brings one library less into each program (60 us of its start).
 * The difference between a double and its whole part is exact.
 */
static double nearest(double value)
{
	double whole = trunc(value);

	return fabs(value - whole) >= 0.5 ? whole + copysign(1, value) : whole;
}

int tw_integer_from_double(struct tw_arena *arena, double value, enum tw_rounding rounding, struct tw_term *out)
{
	uint64_t limbs[DOUBLE_LIMBS];
	size_t count;

	if (!isfinite(value))
		return TW_EBADARG;
	switch (rounding) {
	case TW_ROUND_NEAREST: value = nearest(value); break;
	case TW_ROUND_TRUNC: value = trunc(value); break;
	case TW_ROUND_FLOOR: value = floor(value); break;
	case TW_ROUND_CEIL: value = ceil(value); break;
	}
	count = limbs_of_double(fabs(value), limbs);
	return tw_integer_from_limbs(arena, value < 0, limbs, count, out);
}
