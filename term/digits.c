/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digits.c - conversion between integers and text.
 *
 * Quadratic on purpose: GMP's faster algorithms allocate scratch with malloc, and the largest size takes only a few
 * milliseconds here.
 */
#include "term/integer.h"
#include "term/limbs.h"
#include "term/print.h"

#include <gmp.h>

/* The largest power of 10 in a limb, and its number of digits. */
#define TEN_POWER	 UINT64_C(10000000000000000000)
#define TEN_POWER_DIGITS 19

size_t tw_print_uint64(char *at, uint64_t value)
{
	static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
				    "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
				    "8081828384858687888990919293949596979899";
	char digits[20];
	char *p = digits + sizeof digits;
	size_t count;

	if (value < 10) {
		*at = (char)('0' + value);
		return 1;
	}
	for (; value >= 100; value /= 100) {
		p -= 2;
		memcpy(p, pairs + value % 100 * 2, 2);
	}
	if (value >= 10) {
		p -= 2;
		memcpy(p, pairs + value * 2, 2);
	} else {
		*--p = (char)('0' + value);
	}
	count = (size_t)(digits + sizeof digits - p);
	memcpy(at, p, count);
	return count;
}

char *tw_integer_print(struct tw_term a, uint64_t *scratch, char *end)
{
	uint64_t small;
	const uint64_t *limbs;
	size_t count, i;
	bool is_negative;
	char *p = end;

	limbs = tw_integer_limbs(a, &small, &count, &is_negative);
	TW_ASSERT(count <= TW_INTEGER_LIMBS_MAX);
	memcpy(scratch, limbs, count * 8);
	if (count == 0)
		*--p = '0';
	while (count > 0) {
		uint64_t rest =
			mpn_divrem_1((mp_limb_t *)scratch, 0, (mp_limb_t *)scratch, (mp_size_t)count, TEN_POWER);

		if (scratch[count - 1] == 0)
			count--;
		/* All parts but the highest keep their leading zeros. */
		for (i = 0; i < TEN_POWER_DIGITS && (count > 0 || rest > 0); i++) {
			*--p = (char)('0' + rest % 10);
			rest /= 10;
		}
	}
	if (is_negative)
		*--p = '-';
	return p;
}

/* ---- reading ---- */

static unsigned digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned)(c - '0');
	return (unsigned)((c | 0x20) - 'a' + 10);
}

/* Reads from @at as many digits as fit a limb: their value, and the base raised to their number. */
static const char *read_limb(const char *at, const char *end, unsigned base, uint64_t value_power[2])
{
	uint64_t value = 0, power = 1;

	for (; at < end && power <= UINT64_MAX / base; at++) {
		if (*at == '_')
			continue;
		value = value * base + digit_value(*at);
		power *= base;
	}
	value_power[0] = value;
	value_power[1] = power;
	return at;
}

int tw_integer_parse(struct tw_arena *arena, const char *digits, size_t bytes, unsigned base, bool is_negative,
		     struct tw_term *out)
{
	const char *at = digits, *end = digits + bytes;
	uint64_t value_power[2], *limbs;
	size_t capacity, count = 0;

	at = read_limb(at, end, base, value_power);
	if (at == end)
		return tw_integer_from_limbs(arena, is_negative, value_power, 1, out);
	/* A limb holds at least 12 digits, those of base 36. */
	capacity = bytes / 12 + 2;
	if (capacity > TW_INTEGER_LIMBS_MAX + 1)
		capacity = TW_INTEGER_LIMBS_MAX + 1;
	limbs = tw_limbs_open(arena, capacity);
	if (!limbs)
		return TW_ENOMEM;
	limbs[count++] = value_power[0];
	while (at < end) {
		uint64_t carry;

		at = read_limb(at, end, base, value_power);
		carry = mpn_mul_1((mp_limb_t *)limbs, (mp_limb_t *)limbs, (mp_size_t)count, value_power[1]);
		carry += mpn_add_1((mp_limb_t *)limbs, (mp_limb_t *)limbs, (mp_size_t)count, value_power[0]);
		if (carry == 0)
			continue;
		if (count == capacity) {
			tw_arena_trim(arena, limbs - 1, 8 + capacity * 8, 0);
			return TW_ELIMIT;
		}
		limbs[count++] = carry;
	}
	return tw_limbs_close(arena, limbs, count, (struct tw_limbs_shape){capacity, is_negative}, out);
}
