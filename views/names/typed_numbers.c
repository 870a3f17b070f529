/* SPDX-License-Identifier: Apache-2.0 */
/* typed_numbers.c - floating-point numbers, and integers of two words. */
#include "views/names/typed_numbers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Prints numbers that no format has digits for. */
static bool put_infinite(struct tw_out *out, enum tw_typed_form form, long double number)
{
	const char *name = isnan(number) ? "nan" : number > 0 ? "inf" : "-inf";
	if (isfinite(number))
		return false;
	tw_out_format(out, form == TW_TYPED_TEXT ? "%s" : form == TW_TYPED_ERLANG ? "'%s'" : "\"%s\"", name);
	return true;
}

/* Erlang's floats have a point, also before an exponent. */
static void put_pointed(struct tw_out *out, const char *text)
{
	const char *exponent = strchr(text, 'e');
	if (strchr(text, '.'))
		tw_out_text(out, text);
	else if (exponent)
		tw_out_format(out, "%.*s.0%s", (int)(exponent - text), text, exponent);
	else
		tw_out_format(out, "%s.0", text);
}

void tw_typed_put_float(struct tw_out *out, enum tw_typed_form form, unsigned bytes, uint64_t word)
{
	char text[64];
	double number;
	if (bytes == 4) {
		uint32_t half = (uint32_t)word;
		float single;
		memcpy(&single, &half, sizeof single);
		number = (double)single;
	} else {
		memcpy(&number, &word, sizeof number);
	}
	if (put_infinite(out, form, (long double)number))
		return;
	snprintf(text, sizeof text, "%.*g", bytes == 4 ? 7 : 15, number);
	if (bytes != 4 && strtod(text, NULL) != number)
		snprintf(text, sizeof text, "%.17g", number);
	put_pointed(out, text);
}

void tw_typed_put_x87(struct tw_out *out, enum tw_typed_form form, const uint64_t words[2])
{
	long double number = 0;
	char text[64];
	memcpy(&number, words, 10);
	if (put_infinite(out, form, number))
		return;
	snprintf(text, sizeof text, "%.18Lg", number);
	if (strtold(text, NULL) != number)
		snprintf(text, sizeof text, "%.21Lg", number);
	put_pointed(out, text);
}

void tw_typed_put_wide(struct tw_out *out, bool is_signed, const uint64_t words[2])
{
	unsigned __int128 number = (unsigned __int128)words[1] << 64 | words[0];
	char text[48], *at = text + sizeof text;
	bool is_negative = is_signed && words[1] >> 63;
	if (is_negative)
		number = -number;
	*--at = 0;
	do
		*--at = (char)('0' + (unsigned)(number % 10));
	while (number /= 10);
	if (is_negative)
		*--at = '-';
	tw_out_text(out, at);
}
