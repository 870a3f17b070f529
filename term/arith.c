/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arith.c - the operators on integers.
 *
 * Smalls are tried first, in machine words; the rest works on sign and magnitude through mpn functions. band, bor and
 * bxor treat negative numbers as two's complement with one limb more than the longer operand, for the sign.
 */
#include "term/integer.h"
#include "term/limbs.h"

#include <gmp.h>

_Static_assert(sizeof(mp_limb_t) == sizeof(uint64_t), "a limb is a word of a block");

struct operand {
	const mp_limb_t *limbs;
	size_t count;
	bool is_negative;
	uint64_t small;
};

static void load(struct operand *operand, struct tw_term a)
{
	operand->limbs =
		(const mp_limb_t *)tw_integer_limbs(a, &operand->small, &operand->count, &operand->is_negative);
}

static mp_limb_t *mp(uint64_t *limbs)
{
	return (mp_limb_t *)limbs;
}

static bool is_smaller(const struct operand *a, const struct operand *b)
{
	if (a->count != b->count)
		return a->count < b->count;
	return a->count && mpn_cmp(a->limbs, b->limbs, (mp_size_t)a->count) < 0;
}

/* a + b; for a - b the caller negates b's sign. */
static int add(struct tw_arena *arena, const struct operand *a, const struct operand *b, struct tw_term *out)
{
	const struct operand *swap;
	bool is_negative;
	uint64_t *to;
	size_t count;

	if (is_smaller(a, b)) {
		swap = a;
		a = b;
		b = swap;
	}
	is_negative = a->is_negative;
	count = a->count + 1;
	to = tw_limbs_open(arena, count);
	if (!to)
		return TW_ENOMEM;
	to[a->count] = 0;
	if (b->count == 0)
		memcpy(to, a->limbs, a->count * 8);
	else if (a->is_negative == b->is_negative)
		to[a->count] = mpn_add(mp(to), a->limbs, (mp_size_t)a->count, b->limbs, (mp_size_t)b->count);
	else
		mpn_sub(mp(to), a->limbs, (mp_size_t)a->count, b->limbs, (mp_size_t)b->count);
	return tw_limbs_close(arena, to, count, (struct tw_limbs_shape){count, is_negative}, out);
}

static int multiply(struct tw_arena *arena, const struct operand *a, const struct operand *b, struct tw_term *out)
{
	const struct operand *swap;
	uint64_t *to;
	size_t count = a->count + b->count;

	if (a->count < b->count) {
		swap = a;
		a = b;
		b = swap;
	}
	if (b->count == 0) {
		*out = tw_small(0);
		return 0;
	}
	if (count - 1 > TW_INTEGER_LIMBS_MAX)
		return TW_ELIMIT;
	to = tw_limbs_open(arena, count);
	if (!to)
		return TW_ENOMEM;
	mpn_mul(mp(to), a->limbs, (mp_size_t)a->count, b->limbs, (mp_size_t)b->count);
	return tw_limbs_close(arena, to, count, (struct tw_limbs_shape){count, a->is_negative != b->is_negative}, out);
}

static int divide(struct tw_arena *arena, const struct operand *a, const struct operand *b, bool wants_rest,
		  struct tw_term *out)
{
	size_t quotient_count, kept_count, other_count;
	uint64_t *kept, *other;

	if (b->count == 0)
		return TW_EBADARG;
	if (a->count < b->count) {
		if (wants_rest)
			return tw_integer_from_limbs(arena, a->is_negative, (const uint64_t *)a->limbs, a->count, out);
		*out = tw_small(0);
		return 0;
	}
	quotient_count = a->count - b->count + 1;
	kept_count = wants_rest ? b->count : quotient_count;
	other_count = wants_rest ? quotient_count : b->count;
	kept = tw_limbs_open(arena, kept_count);
	other = kept ? tw_limbs_open(arena, other_count) : NULL;
	if (!other) {
		if (kept)
			tw_arena_trim(arena, kept - 1, 8 + kept_count * 8, 0);
		return TW_ENOMEM;
	}
	mpn_tdiv_qr(mp(wants_rest ? other : kept), mp(wants_rest ? kept : other), 0, a->limbs, (mp_size_t)a->count,
		    b->limbs, (mp_size_t)b->count);
	tw_arena_trim(arena, other - 1, 8 + other_count * 8, 0);
	return tw_limbs_close(arena, kept, kept_count,
			      (struct tw_limbs_shape){
				      kept_count,
				      wants_rest ? a->is_negative : a->is_negative != b->is_negative,
			      },
			      out);
}

/* Two's complement in @count limbs, more than the operand has. */
static void complement(uint64_t *to, const struct operand *a, size_t count)
{
	memcpy(to, a->limbs, a->count * 8);
	memset(to + a->count, 0, (count - a->count) * 8);
	if (a->is_negative)
		mpn_neg(mp(to), mp(to), (mp_size_t)count);
}

static int bitwise(struct tw_arena *arena, enum tw_integer_op op, const struct operand *a, const struct operand *b,
		   struct tw_term *out)
{
	size_t count = (a->count > b->count ? a->count : b->count) + 1;
	uint64_t *to = tw_limbs_open(arena, count);
	uint64_t *scratch = to ? tw_limbs_open(arena, count) : NULL;
	bool is_negative;

	if (!scratch) {
		if (to)
			tw_arena_trim(arena, to - 1, 8 + count * 8, 0);
		return TW_ENOMEM;
	}
	complement(to, a, count);
	complement(scratch, b, count);
	if (op == TW_INTEGER_BAND)
		mpn_and_n(mp(to), mp(to), mp(scratch), (mp_size_t)count);
	else if (op == TW_INTEGER_BOR)
		mpn_ior_n(mp(to), mp(to), mp(scratch), (mp_size_t)count);
	else
		mpn_xor_n(mp(to), mp(to), mp(scratch), (mp_size_t)count);
	tw_arena_trim(arena, scratch - 1, 8 + count * 8, 0);
	is_negative = to[count - 1] >> 63;
	if (is_negative)
		mpn_neg(mp(to), mp(to), (mp_size_t)count);
	return tw_limbs_close(arena, to, count, (struct tw_limbs_shape){count, is_negative}, out);
}

/* ---- shifts ---- */

static int shift_left(struct tw_arena *arena, const struct operand *a, uint64_t bits, struct tw_term *out)
{
	size_t skip = bits / 64, count = a->count + skip + 1;
	uint64_t *to;

	if (count - 1 > TW_INTEGER_LIMBS_MAX)
		return TW_ELIMIT;
	to = tw_limbs_open(arena, count);
	if (!to)
		return TW_ENOMEM;
	memset(to, 0, skip * 8);
	to[count - 1] = 0;
	if (bits % 64)
		to[count - 1] = mpn_lshift(mp(to + skip), a->limbs, (mp_size_t)a->count, bits % 64);
	else
		memcpy(to + skip, a->limbs, a->count * 8);
	return tw_limbs_close(arena, to, count, (struct tw_limbs_shape){count, a->is_negative}, out);
}

/* A negative number is rounded down, so its magnitude is rounded up, if any 1 bit is shifted out. */
static int shift_right(struct tw_arena *arena, const struct operand *a, uint64_t bits, struct tw_term *out)
{
	size_t skip = bits / 64, count, i;
	mp_limb_t lost = 0;
	uint64_t *to;

	if (skip >= a->count) {
		*out = tw_small(a->is_negative ? -1 : 0);
		return 0;
	}
	count = a->count - skip + 1;
	to = tw_limbs_open(arena, count);
	if (!to)
		return TW_ENOMEM;
	to[count - 1] = 0;
	for (i = 0; i < skip; i++)
		lost |= a->limbs[i];
	if (bits % 64)
		lost |= mpn_rshift(mp(to), a->limbs + skip, (mp_size_t)count - 1, bits % 64);
	else
		memcpy(to, a->limbs + skip, (count - 1) * 8);
	if (a->is_negative && lost)
		mpn_add_1(mp(to), mp(to), (mp_size_t)count, 1);
	return tw_limbs_close(arena, to, count, (struct tw_limbs_shape){count, a->is_negative}, out);
}

static int shift(struct tw_arena *arena, struct tw_term a, struct tw_term by, bool is_left, struct tw_term *out)
{
	struct operand operand;
	int64_t bits;

	load(&operand, a);
	if (operand.count == 0) {
		*out = tw_small(0);
		return 0;
	}
	if (tw_integer_sign(by) < 0)
		is_left = !is_left;
	if (tw_is_small(by)) {
		bits = tw_small_value(by);
		bits = bits < 0 ? -bits : bits;
	} else {
		bits = TW_SMALL_MAX;
	}
	if (!is_left)
		return shift_right(arena, &operand, (uint64_t)bits, out);
	return shift_left(arena, &operand, (uint64_t)bits, out);
}

/* ---- smalls ---- */

/* a op b for smalls if one machine operation suffices; false: use the general path. */
static bool try_small(enum tw_integer_op op, int64_t a, int64_t b, struct tw_term *out)
{
	int64_t value;

	switch (op) {
	case TW_INTEGER_ADD: value = a + b; break;
	case TW_INTEGER_SUB: value = a - b; break;
	case TW_INTEGER_MUL:
		if (__builtin_mul_overflow(a, b, &value))
			return false;
		break;
	case TW_INTEGER_DIV:
		if (b == 0)
			return false;
		value = a / b;
		break;
	case TW_INTEGER_REM:
		if (b == 0)
			return false;
		value = a % b;
		break;
	case TW_INTEGER_BAND: value = a & b; break;
	case TW_INTEGER_BOR: value = a | b; break;
	case TW_INTEGER_BXOR: value = a ^ b; break;
	case TW_INTEGER_BSR:
		if (b < 0)
			return false;
		value = a >> (b < 63 ? b : 63);
		break;
	default: return false;
	}
	if (!tw_small_fits(value))
		return false;
	*out = tw_small(value);
	return true;
}

int tw_integer_binary(struct tw_arena *arena, enum tw_integer_op op, struct tw_term a, struct tw_term b,
		      struct tw_term *out)
{
	struct operand left, right;

	if (!tw_is_integer(a) || !tw_is_integer(b))
		return TW_EBADARG;
	if (tw_is_small(a) && tw_is_small(b) && try_small(op, tw_small_value(a), tw_small_value(b), out))
		return 0;
	if (op == TW_INTEGER_BSL || op == TW_INTEGER_BSR)
		return shift(arena, a, b, op == TW_INTEGER_BSL, out);
	load(&left, a);
	load(&right, b);
	switch (op) {
	case TW_INTEGER_SUB: right.is_negative = !right.is_negative; return add(arena, &left, &right, out);
	case TW_INTEGER_ADD: return add(arena, &left, &right, out);
	case TW_INTEGER_MUL: return multiply(arena, &left, &right, out);
	case TW_INTEGER_DIV: return divide(arena, &left, &right, false, out);
	case TW_INTEGER_REM: return divide(arena, &left, &right, true, out);
	default: return bitwise(arena, op, &left, &right, out);
	}
}

int tw_integer_negate(struct tw_arena *arena, struct tw_term a, struct tw_term *out)
{
	return tw_integer_binary(arena, TW_INTEGER_SUB, tw_small(0), a, out);
}

int tw_integer_abs(struct tw_arena *arena, struct tw_term a, struct tw_term *out)
{
	if (!tw_is_integer(a))
		return TW_EBADARG;
	if (tw_integer_sign(a) < 0)
		return tw_integer_negate(arena, a, out);
	*out = a;
	return 0;
}

/* bnot a is -1 - a. */
int tw_integer_bnot(struct tw_arena *arena, struct tw_term a, struct tw_term *out)
{
	return tw_integer_binary(arena, TW_INTEGER_SUB, tw_small(-1), a, out);
}
