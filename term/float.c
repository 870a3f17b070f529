/* SPDX-License-Identifier: Apache-2.0 */
/*
 * float.c - prints the shortest decimal text that reads back as the same double.
 *
 * Finds the digits as in Raffaello Giulietti, "The Schubfach way to render doubles" (2022): the double c * 2^q has
 * neighbours; among the decimals of the interval that rounds to it, the shortest is a multiple of 10^k or 10^(k+1) for
 * one k that follows from q.  All is computed with 128-bit approximations of powers of ten, g(k) = ceil(10^k * 2^-e)
 * with e such that g has 128 bits; "round to odd" keeps the lost part in one bit.  The powers are computed once,
 * exactly, from powers of five.
 *
 * The form is OTP's: the shorter of 123.4 and 1.234e2, the first when they have the same length, and always the second
 * from 2^53 on, where neighbours are more than 1 apart.
 */
#include "term/print.h"
#include "term/term.h"

#include <gmp.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#define POWER_MIN  (-292)
#define POWER_MAX  324
#define FIVE_LIMBS 12 /* 5^324 has 753 bits */

struct power {
	uint64_t high, low;
};

static struct power powers[POWER_MAX - POWER_MIN + 1];
static pthread_once_t powers_once = PTHREAD_ONCE_INIT;

static size_t bits_of(const mp_limb_t *limbs, mp_size_t count)
{
	return (size_t)count * 64 - (size_t)__builtin_clzll(limbs[count - 1]);
}

/* ceil(five / 2^(bits - 128)), or five shifted left if it is shorter. */
static struct power power_above(const mp_limb_t *five, mp_size_t count)
{
	mp_limb_t padded[FIVE_LIMBS + 3] = {0};
	unsigned zeros = (unsigned)__builtin_clzll(five[count - 1]);
	bool is_exact = true;
	mp_size_t i;
	struct power power;

	/* Two zero limbs below, so that there are always two full limbs on top. */
	memcpy(padded + 2, five, (size_t)count * sizeof *five);
	if (zeros)
		mpn_lshift(padded, padded, count + 2, zeros);
	for (i = 0; i < count; i++)
		is_exact = is_exact && padded[i] == 0;
	power.high = padded[count + 1];
	power.low = padded[count];
	if (!is_exact && ++power.low == 0)
		power.high++;
	return power;
}

/* ceil(2^n / five) with n such that the quotient has 128 bits. */
static struct power power_below(const mp_limb_t *five, mp_size_t count)
{
	mp_limb_t numerator[FIVE_LIMBS + 3] = {0}, quotient[FIVE_LIMBS + 3], rest[FIVE_LIMBS];
	size_t bit = bits_of(five, count) + 127;
	struct power power;

	numerator[bit / 64] = UINT64_C(1) << bit % 64;
	mpn_tdiv_qr(quotient, rest, 0, numerator, (mp_size_t)(bit / 64) + 1, five, count);
	power.low = quotient[0] + 1;
	power.high = quotient[1] + (power.low == 0);
	return power;
}

static void compute_powers(void)
{
	mp_limb_t five[FIVE_LIMBS] = {1};
	mp_size_t count = 1;
	int k;

	for (k = 0; k <= POWER_MAX; k++) {
		mp_limb_t carry;

		powers[k - POWER_MIN] = power_above(five, count);
		if (k > 0 && -k >= POWER_MIN)
			powers[-k - POWER_MIN] = power_below(five, count);
		if (k == POWER_MAX)
			break;
		carry = mpn_mul_1(five, five, count, 5);
		if (carry)
			five[count++] = carry;
	}
}

/* floor(log2(10^e)), floor(log10(2^e)), floor(log10(3/4 * 2^e)) for the exponents of doubles. */
static int log2_of_ten_to(int e)
{
	return (int)(((int64_t)e * 1741647) >> 19);
}

static int log10_of_two_to(int e)
{
	return (int)(((int64_t)e * 1262611) >> 22);
}

static int log10_of_three_quarters_two_to(int e)
{
	return (int)(((int64_t)e * 1262611 - 524031) >> 22);
}

static uint64_t round_to_odd(struct power g, uint64_t c)
{
	unsigned __int128 low = (unsigned __int128)g.low * c;
	unsigned __int128 high = (unsigned __int128)g.high * c + (uint64_t)(low >> 64);

	return (uint64_t)(high >> 64) | ((uint64_t)high > 1);
}

struct decimal {
	uint64_t digits;
	int exponent;
};

/* Chooses the multiple of 10^k, or of 10^(k+1), that is shortest and nearest. */
static struct decimal choose(uint64_t v, uint64_t lower, uint64_t upper, int k)
{
	uint64_t s = v / 4, tens = s / 10, middle = 4 * s + 2;
	bool below_fits, above_fits;

	if (s >= 10) {
		below_fits = lower <= 40 * tens;
		above_fits = 40 * tens + 40 <= upper;
		if (below_fits != above_fits)
			return (struct decimal){tens + above_fits, k + 1};
	}
	below_fits = lower <= 4 * s;
	above_fits = 4 * s + 4 <= upper;
	if (below_fits != above_fits)
		return (struct decimal){s + above_fits, k};
	return (struct decimal){s + (v > middle || (v == middle && (s & 1))), k};
}

/* @bits	of a positive finite double. */
static struct decimal shortest(uint64_t bits)
{
	uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1), c = fraction;
	int biased = (int)(bits >> 52), q = -1074, k, shift;
	bool is_odd, is_lower_closer = fraction == 0 && biased > 1;
	struct power g;

	if (biased) {
		c |= UINT64_C(1) << 52;
		q = biased - 1075;
		if (q <= 0 && q > -53 && (c & ((UINT64_C(1) << -q) - 1)) == 0)
			return (struct decimal){c >> -q, 0};
	}
	is_odd = c & 1;
	k = is_lower_closer ? log10_of_three_quarters_two_to(q) : log10_of_two_to(q);
	shift = q + log2_of_ten_to(-k) + 1;
	g = powers[-k - POWER_MIN];
	return choose(round_to_odd(g, (4 * c) << shift),
		      round_to_odd(g, (4 * c - 2 + is_lower_closer) << shift) + is_odd,
		      round_to_odd(g, (4 * c + 2) << shift) - is_odd, k);
}

static size_t put_zeros(char *at, int count)
{
	memset(at, '0', (size_t)count);
	return (size_t)count;
}

/* 0.00123, 1.23, 123.0: the point comes after @place digits. */
static size_t put_fixed(char *at, const char *digits, int count, int place)
{
	char *p = at;

	if (place <= 0) {
		memcpy(p, "0.", 2);
		p += 2 + put_zeros(p + 2, -place);
		memcpy(p, digits, (size_t)count);
		return (size_t)(p + count - at);
	}
	if (place < count) {
		memcpy(p, digits, (size_t)place);
		p[place] = '.';
		memcpy(p + place + 1, digits + place, (size_t)(count - place));
		return (size_t)count + 1;
	}
	memcpy(p, digits, (size_t)count);
	p += count + put_zeros(p + count, place - count);
	memcpy(p, ".0", 2);
	return (size_t)(p + 2 - at);
}

static size_t put_scientific(char *at, const char *digits, int count, int exponent)
{
	char *p = at;

	*p++ = digits[0];
	*p++ = '.';
	if (count == 1)
		*p++ = '0';
	memcpy(p, digits + 1, (size_t)count - 1);
	p += count - 1;
	*p++ = 'e';
	if (exponent < 0)
		*p++ = '-';
	p += tw_print_uint64(p, (uint64_t)abs(exponent));
	return (size_t)(p - at);
}

static int fixed_length(int count, int place)
{
	if (place <= 0)
		return 2 - place + count;
	return place < count ? count + 1 : place + 2;
}

static int scientific_length(int count, int exponent)
{
	int size = abs(exponent);

	return (count == 1 ? 3 : count + 1) + 1 + (exponent < 0) + (size >= 100 ? 3 : size >= 10 ? 2 : 1);
}

size_t tw_print_float(char *at, double value)
{
	char digits[20], *p = at;
	struct decimal decimal;
	uint64_t bits;
	int count, place;

	memcpy(&bits, &value, sizeof bits);
	if (bits >> 63)
		*p++ = '-';
	bits &= ~(UINT64_C(1) << 63);
	if (bits == 0) {
		memcpy(p, "0.0", 3);
		return (size_t)(p + 3 - at);
	}
	pthread_once(&powers_once, compute_powers);
	decimal = shortest(bits);
	while (decimal.digits % 10 == 0) {
		decimal.digits /= 10;
		decimal.exponent++;
	}
	count = (int)tw_print_uint64(digits, decimal.digits);
	place = count + decimal.exponent;
	if (fabs(value) < 0x1p53 && fixed_length(count, place) <= scientific_length(count, place - 1))
		p += put_fixed(p, digits, count, place);
	else
		p += put_scientific(p, digits, count, place - 1);
	return (size_t)(p - at);
}
