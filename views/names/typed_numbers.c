/* SPDX-License-Identifier: Apache-2.0 */
/* typed_numbers.c - floating-point numbers, integers of two words, and values that can be compared. */
#include "views/names/typed_put.h"

#include "tracewheel/layout.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define FLOAT_BYTES 64

/* The shortest of two numbers of digits that gives the number again. */
static void compose(char text[FLOAT_BYTES], unsigned bytes, long double number)
{
	unsigned digits = bytes == 4 ? 7 : bytes == 8 ? 15 : 18, more = bytes == 8 ? 17 : 21;
	snprintf(text, FLOAT_BYTES, "%.*Lg", (int)digits, number);
	if (bytes == 8 ? strtod(text, NULL) != (double)number : bytes > 8 && strtold(text, NULL) != number)
		snprintf(text, FLOAT_BYTES, "%.*Lg", (int)more, number);
}

/* Erlang's floats have a point, also before an exponent. */
static void add_point(char text[FLOAT_BYTES])
{
	char *exponent = strchr(text, 'e'), *at = exponent ? exponent : text + strlen(text);
	if (strchr(text, '.'))
		return;
	memmove(at + 2, at, strlen(at) + 1);
	memcpy(at, ".0", 2);
}

/* The digits of a number; "nan", "inf", "-inf": false. */
static bool float_text(unsigned bytes, const uint64_t words[2], char text[FLOAT_BYTES])
{
	long double number = 0;
	double whole;
	float single;
	memcpy(&single, words, sizeof single);
	memcpy(&whole, words, sizeof whole);
	if (bytes == TW_LAYOUT_X87_BYTES)
		memcpy(&number, words, 10);
	else
		number = bytes == 4 ? (long double)single : (long double)whole;
	if (!isfinite(number)) {
		strcpy(text, isnan(number) ? "nan" : number > 0 ? "inf" : "-inf");
		return false;
	}
	compose(text, bytes == 4 || bytes == TW_LAYOUT_X87_BYTES ? bytes : 8, number);
	add_point(text);
	return true;
}

void tw_typed_put_float(struct tw_typed *typed, unsigned bytes, const uint64_t words[2])
{
	char text[FLOAT_BYTES];
	bool is_finite = float_text(bytes, words, text);
	if (!typed->out)
		tw_typed_put_term(typed,
				  is_finite ? tw_term_float(typed->arena, strtod(text, NULL)) : tw_term_atom_z(text));
	else if (is_finite || typed->form == TW_TYPED_TEXT)
		tw_typed_put_text(typed, text);
	else
		tw_out_format(typed->out, typed->form == TW_TYPED_ERLANG ? "'%s'" : "\"%s\"", text);
}

void tw_typed_put_wide(struct tw_typed *typed, bool is_signed, const uint64_t words[2])
{
	unsigned __int128 number = (unsigned __int128)words[1] << 64 | words[0];
	bool is_negative = is_signed && words[1] >> 63;
	/* The external format of an integer: its sign, and its bytes from the lowest on. */
	uint8_t bytes[20] = {131, 110, 16, is_negative};
	char text[48], *at = text + sizeof text;
	struct tw_term term = {0};
	if (is_negative)
		number = -number;
	memcpy(bytes + 4, &number, sizeof number);
	if (!typed->out) {
		tw_etf_decode(typed->arena, bytes, sizeof bytes, NULL, NULL, &term);
		tw_typed_put_term(typed, term);
		return;
	}
	*--at = 0;
	do
		*--at = (char)('0' + (unsigned)(number % 10));
	while (number /= 10);
	if (is_negative)
		*--at = '-';
	tw_typed_put_text(typed, at);
}

/* ---- as terms that can be compared ---- */

struct tw_term tw_typed_item_term(struct tw_arena *arena, const struct tw_layout_item *item)
{
	const struct tw_layout_value *value = item->value;
	struct tw_typed typed = {.form = TW_TYPED_ERLANG, .arena = arena};
	struct tw_term string;
	if (!item->word_count || value->type == 'v' || value->type == '_')
		return (struct tw_term){0};
	if (item->text) {
		string = tw_term_string(arena, item->text, item->text_bytes);
		return tw_term_is_none(string) ? tw_term_binary(arena, item->text, item->text_bytes) : string;
	}
	if (item->word_count == 1 && strchr("in", value->type))
		return tw_term_integer(arena, tw_typed_signed(value, item->words[0]));
	if (value->type == 'b')
		return tw_term_integer(arena, tw_typed_unsigned(value, item->words[0]) != 0);
	if (value->type == 'E' || (value->type == 'd' && value->bytes != TW_LAYOUT_DESCRIPTOR_STREAM))
		return tw_term_integer(arena, (int32_t)item->words[0]);
	if (item->word_count == 1 && strchr("uepgox", value->type))
		return tw_term_unsigned(arena, tw_typed_unsigned(value, item->words[0]));
	if (strchr("smMVZd", value->type))
		return tw_term_unsigned(arena, item->words[0]);
	tw_typed_put_item(&typed, item);
	return typed.count ? typed.items[0] : (struct tw_term){0};
}
