/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse_binary.c - << Value:Size/Types, ... >> as io:read/1 evaluates it.
 *
 * Reads a whole segment, then appends its value bit by bit.  The total size is limited (TW_PARSE_SPARE_BITS), because a
 * few characters of text can request any number of bits.
 */
#include "term/integer.h"
#include "term/parse.h"
#include "term/utf8.h"

#include <gmp.h>
#include <math.h>
#include <stdlib.h>

struct bits {
	unsigned char *data;
	size_t count;
	size_t capacity_bytes;
	unsigned char fixed[256];
};

enum segment_type { INTEGER, FLOAT, BITS, UTF8, UTF16, UTF32 };

struct segment {
	const char *place;
	enum segment_type type;
	bool has_type, has_order, is_little;
	bool has_size;
	uint64_t size;
	uint64_t unit; /* 0: not specified */
};

/* ---- bits ---- */

/* Appends the low @count bits of a byte, 1 to 8. */
static bool put(struct tw_reader *r, struct bits *bits, unsigned byte, unsigned count)
{
	size_t at = bits->count / 8;
	unsigned used = bits->count % 8;
	unsigned char *data;

	if (at + 2 > bits->capacity_bytes) {
		data = malloc(bits->capacity_bytes * 2);
		if (!data) {
			tw_reader_full(r);
			return false;
		}
		memcpy(data, bits->data, at + 1);
		if (bits->data != bits->fixed)
			free(bits->data);
		bits->data = data;
		bits->capacity_bytes *= 2;
	}
	byte = byte << (8 - count) & 0xff;
	bits->data[at] = (unsigned char)((used ? bits->data[at] : 0) | byte >> used);
	bits->data[at + 1] = (unsigned char)(byte << (8 - used));
	bits->count += count;
	return true;
}

/* Appends bytes in the given order, or reversed. */
static bool put_bytes(struct tw_reader *r, struct bits *bits, const unsigned char *bytes, size_t count,
		      bool is_reversed)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (!put(r, bits, bytes[is_reversed ? count - 1 - i : i], 8))
			return false;
	}
	return true;
}

/* ---- values ---- */

/* Gives byte @index of a number in two's complement, extended without limit. */
struct complement {
	mp_limb_t limbs[TW_INTEGER_LIMBS_MAX];
	size_t count;
	unsigned fill;
};

static unsigned byte_of(const struct complement *number, size_t index)
{
	if (index / 8 >= number->count)
		return number->fill;
	return number->limbs[index / 8] >> index % 8 * 8 & 0xff;
}

static __attribute__((noinline)) bool put_integer(struct tw_reader *r, struct bits *bits, struct tw_term value,
						  uint64_t size, bool is_little)
{
	struct complement number;
	uint64_t small;
	const uint64_t *limbs;
	bool is_negative;
	size_t bytes = size / 8, i;
	unsigned rest = size % 8;

	limbs = tw_integer_limbs(value, &small, &number.count, &is_negative);
	memcpy(number.limbs, limbs, number.count * 8);
	if (is_negative)
		mpn_neg(number.limbs, number.limbs, (mp_size_t)number.count);
	number.fill = is_negative ? 0xff : 0;
	if (!is_little && rest && !put(r, bits, byte_of(&number, bytes) & ((1u << rest) - 1), rest))
		return false;
	for (i = 0; i < bytes; i++) {
		if (!put(r, bits, byte_of(&number, is_little ? i : bytes - 1 - i), 8))
			return false;
	}
	if (is_little && rest)
		return put(r, bits, byte_of(&number, bytes) & ((1u << rest) - 1), rest);
	return true;
}

static bool put_float(struct tw_reader *r, struct bits *bits, struct tw_term value, const struct segment *segment,
		      uint64_t size)
{
	unsigned char bytes[8];
	double number;
	float narrow;

	if (tw_term_get_double(value, &number) != 0) {
		tw_reader_fail(r, segment->place, "a float segment needs a number of a double's range");
		return false;
	}
	if (size == 64) {
		memcpy(bytes, &number, 8);
		return put_bytes(r, bits, bytes, 8, !segment->is_little);
	}
	narrow = (float)number;
	if (size != 32 || !isfinite(narrow)) {
		tw_reader_fail(r, segment->place, "a float segment has 64 bits, or 32 where the number fits");
		return false;
	}
	memcpy(bytes, &narrow, 4);
	return put_bytes(r, bits, bytes, 4, !segment->is_little);
}

static bool put_unicode(struct tw_reader *r, struct bits *bits, struct tw_term value, const struct segment *segment)
{
	uint32_t c = tw_is_small(value) && tw_small_value(value) >= 0 && tw_is_unicode((uint64_t)tw_small_value(value))
			     ? (uint32_t)tw_small_value(value)
			     : UINT32_MAX;
	unsigned char bytes[4];
	char text[4];

	if (c == UINT32_MAX) {
		tw_reader_fail(r, segment->place, "this segment needs a Unicode character");
		return false;
	}
	if (segment->type == UTF8)
		return put_bytes(r, bits, (unsigned char *)text, tw_utf8_put(text, c), false);
	if (segment->type == UTF16 && c < 0x10000)
		return put_integer(r, bits, value, 16, segment->is_little);
	if (segment->type == UTF16) {
		uint32_t high = 0xd800 + ((c - 0x10000) >> 10), low = 0xdc00 + ((c - 0x10000) & 0x3ff);

		return put_integer(r, bits, tw_small(high), 16, segment->is_little) &&
		       put_integer(r, bits, tw_small(low), 16, segment->is_little);
	}
	memcpy(bytes, &c, 4);
	return put_bytes(r, bits, bytes, 4, !segment->is_little);
}

static bool put_bit_string(struct tw_reader *r, struct bits *bits, struct tw_term value, const struct segment *segment)
{
	uint64_t unit = segment->unit ? segment->unit : 1, have, want, i;
	const unsigned char *data;

	if (!tw_is_bits(value)) {
		tw_reader_fail(r, segment->place, "this segment needs a binary");
		return false;
	}
	have = tw_bits_count(value);
	want = segment->has_size ? segment->size * unit : have;
	if (want > have || have % unit != 0) {
		tw_reader_fail(r, segment->place, "the binary does not have the size of its segment");
		return false;
	}
	data = tw_bits_data(value);
	for (i = 0; i + 8 <= want; i += 8) {
		if (!put(r, bits, data[i / 8], 8))
			return false;
	}
	return want == i || put(r, bits, data[i / 8] >> (8 - (want - i)), (unsigned)(want - i));
}

static bool put_value(struct tw_reader *r, struct bits *bits, struct tw_term value, const struct segment *segment)
{
	uint64_t size = segment->type == FLOAT ? 64 : 8;

	if (segment->type == BITS)
		return put_bit_string(r, bits, value, segment);
	if (segment->type == UTF8 || segment->type == UTF16 || segment->type == UTF32)
		return put_unicode(r, bits, value, segment);
	if (segment->has_size)
		size = segment->size * (segment->unit ? segment->unit : 1);
	if (size > r->spare_bits) {
		tw_reader_fail(r, segment->place, "the sizes in binaries come to more than 1 MiB");
		return false;
	}
	r->spare_bits -= segment->has_size ? size : 0;
	if (segment->type == FLOAT)
		return put_float(r, bits, value, segment, size);
	if (!tw_is_integer(value)) {
		tw_reader_fail(r, segment->place,
			       "this segment needs an integer; add a type such as /float or /binary");
		return false;
	}
	return put_integer(r, bits, value, size, segment->is_little);
}

/* ---- segments ---- */

static bool set_type(struct segment *segment, enum segment_type type, uint64_t unit)
{
	if (segment->has_type && segment->type != type)
		return false;
	segment->type = type;
	segment->has_type = true;
	if (unit && !segment->unit)
		segment->unit = unit;
	return true;
}

static bool set_order(struct segment *segment, bool is_little)
{
	if (segment->has_order && segment->is_little != is_little)
		return false;
	segment->has_order = true;
	segment->is_little = is_little;
	return true;
}

/* Applies one word of the types; false if it is unknown or contradicts another. */
static bool set_word(struct segment *segment, const char *name)
{
	static const struct {
		const char *name;
		enum segment_type type;
		unsigned unit;
	} types[] = {
		{"integer", INTEGER, 0}, {"float", FLOAT, 0},	 {"binary", BITS, 8},
		{"bytes", BITS, 8},	 {"bitstring", BITS, 1}, {"bits", BITS, 1},
		{"utf8", UTF8, 0},	 {"utf16", UTF16, 0},	 {"utf32", UTF32, 0},
	};
	size_t i;

	for (i = 0; i < TW_COUNT_OF(types); i++) {
		if (strcmp(types[i].name, name) == 0)
			return set_type(segment, types[i].type, types[i].unit);
	}
	if (strcmp(name, "big") == 0)
		return set_order(segment, false);
	if (strcmp(name, "little") == 0 || strcmp(name, "native") == 0)
		return set_order(segment, true);
	return strcmp(name, "signed") == 0 || strcmp(name, "unsigned") == 0;
}

static bool read_unit(struct tw_reader *r, struct segment *segment)
{
	const char *place = r->at;

	tw_reader_skip(r);
	if (!tw_reader_take(r, ":")) {
		tw_reader_fail(r, r->at, "expected unit:N");
		return false;
	}
	tw_reader_skip(r);
	if (!tw_read_uint(r, 256, &segment->unit, "expected unit:N with N of 1 to 256"))
		return false;
	if (segment->unit == 0)
		tw_reader_fail(r, place, "expected unit:N with N of 1 to 256");
	return segment->unit != 0;
}

static bool read_types(struct tw_reader *r, struct segment *segment)
{
	const char *place;
	struct tw_term word;

	do {
		tw_reader_skip(r);
		place = r->at;
		if (r->at == r->end || !tw_char_is(*r->at, TW_CHAR_LOWER)) {
			tw_reader_fail(r, r->at, "expected the type of a segment");
			return false;
		}
		word = tw_read_plain_atom(r);
		if (tw_term_is_none(word))
			return false;
		if (strcmp(tw_term_atom_name(word, NULL), "unit") == 0) {
			if (!read_unit(r, segment))
				return false;
		} else if (!set_word(segment, tw_term_atom_name(word, NULL))) {
			tw_reader_fail(r, place, "no type of a segment, or one that contradicts another");
			return false;
		}
		tw_reader_skip(r);
	} while (tw_reader_take(r, "-"));
	return true;
}

static bool read_size(struct tw_reader *r, struct segment *segment)
{
	const char *place;
	struct tw_term size;

	tw_reader_skip(r);
	place = r->at;
	size = tw_read_term(r);
	if (tw_term_is_none(size))
		return false;
	if (!tw_is_small(size) || tw_small_value(size) < 0 || tw_small_value(size) > (int64_t)TW_PARSE_SPARE_BITS) {
		tw_reader_fail(r, place, "the size of a segment must be an integer, and not too large");
		return false;
	}
	segment->size = (uint64_t)tw_small_value(size);
	segment->has_size = true;
	return true;
}

static bool read_size_and_types(struct tw_reader *r, struct segment *segment)
{
	tw_reader_skip(r);
	if (tw_reader_take(r, ":") && !read_size(r, segment))
		return false;
	tw_reader_skip(r);
	if (tw_reader_take(r, "/") && !read_types(r, segment))
		return false;
	if (segment->has_size && segment->type >= UTF8) {
		tw_reader_fail(r, segment->place, "a segment of utf8, utf16 or utf32 has no size");
		return false;
	}
	if (!segment->has_size && segment->unit && segment->type != BITS) {
		tw_reader_fail(r, segment->place, "a unit needs a size");
		return false;
	}
	return true;
}

static bool read_segment(struct tw_reader *r, struct bits *bits)
{
	struct segment segment = {.type = INTEGER};
	size_t bottom = r->value_count, i;
	struct tw_term value;
	bool is_good = true;

	tw_reader_skip(r);
	segment.place = r->at;
	if (tw_reader_is_at(r, '"')) {
		if (!tw_read_characters(r))
			return false;
	} else {
		value = tw_read_term(r);
		if (tw_term_is_none(value) || !tw_reader_push(r, value))
			return false;
	}
	if (!read_size_and_types(r, &segment))
		return false;
	for (i = bottom; is_good && i < r->value_count; i++)
		is_good = put_value(r, bits, r->values[i], &segment);
	r->value_count = bottom;
	return is_good;
}

static struct tw_term read_segments(struct tw_reader *r, struct bits *bits)
{
	tw_reader_skip(r);
	if (tw_reader_take(r, ">>"))
		return tw_reader_built(r, tw_term_binary(r->arena, NULL, 0));
	for (;;) {
		if (!read_segment(r, bits))
			return tw_word(0);
		tw_reader_skip(r);
		if (tw_reader_take(r, ">>"))
			return tw_reader_built(r, tw_term_bitstring(r->arena, bits->data, bits->count));
		if (!tw_reader_take(r, ","))
			return tw_reader_fail(r, r->at, "expected ',' or '>>' in a binary");
	}
}

struct tw_term tw_read_binary(struct tw_reader *r)
{
	struct bits bits;
	struct tw_term term;

	bits.data = bits.fixed;
	bits.count = 0;
	bits.capacity_bytes = sizeof bits.fixed;
	r->at += 2;
	term = read_segments(r, &bits);
	if (bits.data != bits.fixed)
		free(bits.data);
	return term;
}
