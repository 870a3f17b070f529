/* SPDX-License-Identifier: Apache-2.0 */
/* parse_number.c - integers of any base and floats, as erl_scan reads them. */
#include "term/integer.h"
#include "term/parse.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>

/* Longest texts of an integer and of a float; longer ones would take too long. */
#define INTEGER_BYTES_MAX 100000
#define FLOAT_BYTES_MAX	  4000

/* Every integer of this many digits fits 64 bits. */
#define QUICK_DIGITS 18

static unsigned digit_of(char c)
{
	if (tw_char_is(c, TW_CHAR_DIGIT))
		return (unsigned)(c - '0');
	if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
		return (unsigned)((c | 0x20) - 'a' + 10);
	return 99;
}

/* The end of the digits of the base, with single '_' between them; @at if there are none. */
static const char *behind_digits(const struct tw_reader *r, const char *at, unsigned base)
{
	const char *p = at;

	while (p < r->end) {
		if (digit_of(*p) < base)
			p++;
		else if (*p == '_' && p > at && p + 1 < r->end && digit_of(p[1]) < base)
			p++;
		else
			break;
	}
	return p;
}

bool tw_read_uint(struct tw_reader *r, uint64_t max, uint64_t *value, const char *message)
{
	const char *start = r->at;
	uint64_t v = 0;

	for (; r->at < r->end && tw_char_is(*r->at, TW_CHAR_DIGIT); r->at++) {
		unsigned digit = digit_of(*r->at);

		if (v > (max - digit) / 10) {
			tw_reader_fail(r, start, "the number is too large here");
			return false;
		}
		v = v * 10 + digit;
	}
	if (r->at == start) {
		tw_reader_fail(r, start, message);
		return false;
	}
	*value = v;
	return true;
}

static struct tw_term read_integer(struct tw_reader *r, const char *start, unsigned base, bool is_negative)
{
	size_t bytes = (size_t)(r->at - start);
	struct tw_term term;
	int error = bytes > INTEGER_BYTES_MAX ? TW_ELIMIT
					      : tw_integer_parse(r->arena, start, bytes, base, is_negative, &term);

	if (error == TW_ELIMIT)
		return tw_reader_fail(r, start, "the integer has more than 65536 bits");
	return error ? tw_reader_full(r) : term;
}

/* ---- floats ---- */

/* The text of a float without '_', for strtod(). */
static struct tw_term convert_float(struct tw_reader *r, const char *start, bool is_negative)
{
	char text[FLOAT_BYTES_MAX + 1];
	size_t bytes = 0;
	const char *p;
	double value;
	locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);

	if (r->at - start > FLOAT_BYTES_MAX)
		return tw_reader_fail(r, start, "the float has more than 4000 characters");
	if (!c_locale)
		return tw_reader_full(r);
	for (p = start; p < r->at; p++) {
		if (*p != '_')
			text[bytes++] = *p;
	}
	text[bytes] = '\0';
	value = strtod_l(text, NULL, c_locale);
	freelocale(c_locale);
	if (!isfinite(value))
		return tw_reader_fail(r, start, "the float is too large");
	return tw_reader_built(r, tw_term_float(r->arena, is_negative ? -value : value));
}

/*
 * Up to 15 digits and a power of ten up to 22 are exact doubles, whose product or quotient is correctly rounded.
 * False: use strtod().
 */
static bool try_quick_float(const char *start, const char *end, double *value)
{
	static const double powers[] = {
		1e0,  1e1,  1e2,  1e3,	1e4,  1e5,  1e6,  1e7,	1e8,  1e9,  1e10, 1e11,
		1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
	};
	int digits = 0, fraction = 0, exponent = 0;
	bool is_behind_point = false, is_exponent_negative = false;
	int64_t mantissa = 0;
	const char *p;

	for (p = start; p < end && *p != 'e' && *p != 'E'; p++) {
		if (*p == '.') {
			is_behind_point = true;
			continue;
		}
		if (*p == '_' || ++digits > 15)
			return false;
		mantissa = mantissa * 10 + (*p - '0');
		fraction += is_behind_point;
	}
	if (p < end) {
		p++;
		is_exponent_negative = *p == '-';
		p += *p == '-' || *p == '+';
		for (; p < end; p++) {
			if (*p == '_' || exponent > 99)
				return false;
			exponent = exponent * 10 + (*p - '0');
		}
	}
	exponent = (is_exponent_negative ? -exponent : exponent) - fraction;
	if (exponent < -22 || exponent > 22)
		return false;
	*value = exponent < 0 ? (double)mantissa / powers[-exponent] : (double)mantissa * powers[exponent];
	return true;
}

/* @at points to the point, which a digit follows. */
static struct tw_term read_float(struct tw_reader *r, const char *start, bool is_negative)
{
	const char *exponent;
	double value;

	r->at = behind_digits(r, r->at + 1, 10);
	if (r->at < r->end && (*r->at == 'e' || *r->at == 'E')) {
		exponent = r->at + 1;
		if (exponent < r->end && (*exponent == '-' || *exponent == '+'))
			exponent++;
		r->at = behind_digits(r, exponent, 10);
		if (r->at == exponent)
			return tw_reader_fail(r, exponent, "expected the digits of an exponent");
	}
	if (!try_quick_float(start, r->at, &value))
		return convert_float(r, start, is_negative);
	return tw_reader_built(r, tw_term_float(r->arena, is_negative ? -value : value));
}

/* ---- numbers ---- */

static struct tw_term read_based(struct tw_reader *r, const char *start, bool is_negative)
{
	const char *end = r->at;
	uint64_t base;

	r->at = start;
	if (!tw_read_uint(r, UINT32_MAX, &base, "expected a base"))
		return tw_word(0);
	if (r->at != end || base < 2 || base > 36)
		return tw_reader_fail(r, start, "the base must be 2 to 36");
	start = ++r->at;
	r->at = behind_digits(r, start, (unsigned)base);
	if (r->at == start)
		return tw_reader_fail(r, start, "expected a digit of the base");
	return read_integer(r, start, (unsigned)base, is_negative);
}

struct tw_term tw_read_number(struct tw_reader *r, bool is_negative)
{
	const char *start = r->at, *p = start;
	int64_t value = 0;

	while (p < r->end && tw_char_is(*p, TW_CHAR_DIGIT) && p - start < QUICK_DIGITS) {
		value = value * 10 + (*p - '0');
		p++;
	}
	if (p == r->end || (!tw_char_is(*p, TW_CHAR_NAME) && *p != '#' && *p != '.')) {
		r->at = p;
		return tw_reader_built(r, tw_term_integer(r->arena, is_negative ? -value : value));
	}
	r->at = behind_digits(r, start, 10);
	if (tw_reader_is_at(r, '#'))
		return read_based(r, start, is_negative);
	if (r->end - r->at >= 2 && r->at[0] == '.' && tw_char_is(r->at[1], TW_CHAR_DIGIT))
		return read_float(r, start, is_negative);
	return read_integer(r, start, 10, is_negative);
}

struct tw_term tw_read_signed(struct tw_reader *r)
{
	const char *start = r->at;
	bool is_negative = *start == '-';
	struct tw_term term;

	r->at++;
	tw_reader_skip(r);
	if (r->at < r->end && tw_char_is(*r->at, TW_CHAR_DIGIT))
		return tw_read_number(r, is_negative);
	if (!tw_reader_is_at(r, '$'))
		return tw_reader_fail(r, start, "expected a number behind the sign");
	term = tw_read_dollar(r);
	if (tw_term_is_none(term) || !is_negative)
		return term;
	return tw_small(-tw_small_value(term));
}
