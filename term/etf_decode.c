/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etf_decode.c - decodes terms from untrusted bytes.
 *
 * Recursive, to a limited depth.  Each part of a block takes at least one byte, so a block that declares more parts
 * than there are bytes is refused before memory is allocated for it.  Bytes needed by the parts of outer blocks
 * (claimed) do not count, or a thousand nested heads could each claim all the rest.
 */
#include "term/etf.h"
#include "term/integer.h"
#include "term/utf8.h"
#include "base/export.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>

struct decoder {
	const unsigned char *at;
	const unsigned char *end;
	struct tw_arena *arena;
	struct tw_term node;
	bool is_safe;
	unsigned depth;
	uint64_t claimed; /* minimum bytes of the declared parts */
	int error;
};

static struct tw_term decode(struct decoder *d);

static struct tw_term fail(struct decoder *d, int error)
{
	if (!d->error)
		d->error = error;
	return tw_word(0);
}

static struct tw_term built(struct decoder *d, struct tw_term term)
{
	return tw_term_is_none(term) ? fail(d, TW_ENOMEM) : term;
}

/* ---- bytes ---- */

static bool has(struct decoder *d, uint64_t bytes)
{
	if ((uint64_t)(d->end - d->at) >= bytes)
		return true;
	fail(d, TW_EFORMAT);
	return false;
}

/* Reads a number of @bytes bytes, which are available. */
static uint64_t take_be(struct decoder *d, unsigned bytes)
{
	uint64_t value = 0;

	while (bytes-- > 0)
		value = value << 8 | *d->at++;
	return value;
}

static bool read_be(struct decoder *d, unsigned bytes, uint64_t *value)
{
	if (!has(d, bytes))
		return false;
	*value = take_be(d, bytes);
	return true;
}

/* ---- numbers ---- */

static struct tw_term decode_small(struct decoder *d, unsigned bytes)
{
	uint64_t value;

	if (!read_be(d, bytes, &value))
		return tw_word(0);
	return tw_small(bytes == 1 ? (int64_t)value : (int32_t)value);
}

static __attribute__((noinline)) struct tw_term decode_big(struct decoder *d, unsigned count_bytes)
{
	uint64_t limbs[TW_INTEGER_LIMBS_MAX], bytes;
	struct tw_term term;
	bool is_negative;
	size_t count;
	int error;

	if (!read_be(d, count_bytes, &bytes) || !has(d, bytes + 1))
		return tw_word(0);
	is_negative = *d->at++ != 0;
	count = bytes / 8 + (bytes % 8 != 0);
	if (count > TW_INTEGER_LIMBS_MAX)
		return fail(d, TW_ELIMIT);
	if (count)
		limbs[count - 1] = 0;
	memcpy(limbs, d->at, bytes);
	d->at += bytes;
	error = tw_integer_from_limbs(d->arena, is_negative, limbs, count, &term);
	return error ? fail(d, error) : term;
}

static struct tw_term decode_new_float(struct decoder *d)
{
	uint64_t bits;
	double value;

	if (!read_be(d, 8, &bits))
		return tw_word(0);
	memcpy(&value, &bits, sizeof value);
	return isfinite(value) ? built(d, tw_term_float(d->arena, value)) : fail(d, TW_EFORMAT);
}

/* 31 characters from sprintf() with "%.20e", padded with NUL. */
static struct tw_term decode_old_float(struct decoder *d)
{
	char text[32] = {0}, *behind;
	locale_t c_locale;
	double value;

	if (!has(d, 31))
		return tw_word(0);
	memcpy(text, d->at, 31);
	d->at += 31;
	if (strspn(text, "0123456789.eE+-") != strlen(text) || !text[0])
		return fail(d, TW_EFORMAT);
	c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	if (!c_locale)
		return fail(d, TW_ENOMEM);
	value = strtod_l(text, &behind, c_locale);
	freelocale(c_locale);
	if (*behind || !isfinite(value))
		return fail(d, TW_EFORMAT);
	return built(d, tw_term_float(d->arena, value));
}

/* ---- atoms ---- */

static struct tw_term intern(struct decoder *d, const char *name, size_t bytes)
{
	struct tw_term atom = tw_term_atom_existing(name, bytes);
	const char *at = name, *end = name + bytes;
	uint32_t character;
	size_t count = 0, step;

	if (tw_likely(!tw_term_is_none(atom)))
		return atom;
	for (; at < end; at += step) {
		step = tw_utf8_next(at, end, &character);
		if (!step || ++count > TW_ATOM_CHARACTERS_MAX)
			return fail(d, TW_EFORMAT);
	}
	if (d->is_safe)
		return fail(d, TW_ENOENT);
	atom = tw_term_atom(name, bytes);
	return tw_term_is_none(atom) ? fail(d, TW_ELIMIT) : atom;
}

static struct tw_term decode_atom_utf8(struct decoder *d, unsigned count_bytes)
{
	uint64_t bytes;
	const char *name;

	if (!read_be(d, count_bytes, &bytes) || !has(d, bytes))
		return tw_word(0);
	name = (const char *)d->at;
	d->at += bytes;
	return intern(d, name, bytes);
}

static struct tw_term decode_atom_latin1(struct decoder *d, unsigned count_bytes)
{
	char name[TW_ATOM_CHARACTERS_MAX * 2];
	uint64_t count;
	size_t bytes = 0;

	if (!read_be(d, count_bytes, &count) || !has(d, count))
		return tw_word(0);
	if (count > TW_ATOM_CHARACTERS_MAX)
		return fail(d, TW_EFORMAT);
	while (count-- > 0)
		bytes += tw_utf8_put(name + bytes, *d->at++);
	return intern(d, name, bytes);
}

static bool decode_atom(struct decoder *d, struct tw_term *atom)
{
	*atom = decode(d);
	if (tw_term_is_none(*atom))
		return false;
	if (!tw_is_atom(*atom))
		fail(d, TW_EFORMAT);
	return tw_is_atom(*atom);
}

/* ---- binaries and strings ---- */

static struct tw_term decode_binary(struct decoder *d)
{
	uint64_t bytes;
	struct tw_term term;

	if (!read_be(d, 4, &bytes) || !has(d, bytes))
		return tw_word(0);
	term = tw_term_binary(d->arena, d->at, bytes);
	d->at += bytes;
	return built(d, term);
}

static struct tw_term decode_bits(struct decoder *d)
{
	uint64_t bytes, rest;
	struct tw_term term;

	if (!read_be(d, 4, &bytes) || !read_be(d, 1, &rest) || !has(d, bytes))
		return tw_word(0);
	if (rest > 8 || (rest == 0) != (bytes == 0))
		return fail(d, TW_EFORMAT);
	term = tw_term_bitstring(d->arena, d->at, bytes * 8 - (bytes ? 8 - rest : 0));
	d->at += bytes;
	return built(d, term);
}

static struct tw_term decode_string(struct decoder *d)
{
	struct tw_cell *cells;
	uint64_t count, i;

	if (!read_be(d, 2, &count) || !has(d, count))
		return tw_word(0);
	if (count == 0)
		return tw_term_nil();
	cells = tw_arena_take(d->arena, count * sizeof *cells);
	if (!cells)
		return fail(d, TW_ENOMEM);
	for (i = 0; i < count; i++) {
		cells[i].head = tw_small(*d->at++);
		cells[i].tail = i + 1 < count ? tw_term_of_cell(cells + i + 1) : tw_term_nil();
	}
	return tw_term_of_cell(cells);
}

/* ---- pids, ports, references, funs ---- */

/* Sizes in bytes of the fields after the node. */
struct identifier_shape {
	enum tw_term_type type;
	unsigned number_bytes;
	unsigned creation_bytes;
};

static void set_node(struct decoder *d, struct tw_identifier *parts)
{
	if (parts->node.word == d->node.word) {
		parts->node = tw_word(0);
		parts->creation = 0;
	} else {
		parts->channel = tw_atom_index(parts->node);
	}
}

static struct tw_term decode_identifier(struct decoder *d, struct identifier_shape shape)
{
	struct tw_identifier parts = {.word_count = shape.type == TW_TYPE_REFERENCE ? 1 : 2};
	unsigned serial_bytes = shape.type == TW_TYPE_PID ? 4 : 0;
	uint64_t number;

	if (!decode_atom(d, &parts.node) || !has(d, shape.number_bytes + serial_bytes + shape.creation_bytes))
		return tw_word(0);
	number = take_be(d, shape.number_bytes);
	parts.words[0] = (uint32_t)number;
	parts.words[1] = (uint32_t)(number >> 32);
	if (serial_bytes)
		parts.words[1] = (uint32_t)take_be(d, serial_bytes);
	parts.creation = (uint32_t)take_be(d, shape.creation_bytes);
	set_node(d, &parts);
	return built(d, tw_term_identifier(d->arena, shape.type, &parts));
}

static struct tw_term decode_reference(struct decoder *d, unsigned creation_bytes)
{
	struct tw_identifier parts = {0};
	uint64_t count, i;

	if (!read_be(d, 2, &count) || !decode_atom(d, &parts.node))
		return tw_word(0);
	if (count < 1 || count > 5)
		return fail(d, TW_EFORMAT);
	if (!has(d, creation_bytes + count * 4))
		return tw_word(0);
	parts.creation = (uint32_t)take_be(d, creation_bytes);
	parts.word_count = (uint32_t)count;
	for (i = 0; i < count; i++)
		parts.words[i] = (uint32_t)take_be(d, 4);
	set_node(d, &parts);
	return built(d, tw_term_identifier(d->arena, TW_TYPE_REFERENCE, &parts));
}

static struct tw_term decode_export(struct decoder *d)
{
	struct tw_term module, function;
	uint64_t tag, arity;

	if (!decode_atom(d, &module) || !decode_atom(d, &function))
		return tw_word(0);
	if (!read_be(d, 1, &tag) || !read_be(d, 1, &arity))
		return tw_word(0);
	if (tag != TW_ETF_SMALL_INTEGER)
		return fail(d, TW_EFORMAT);
	return built(d, tw_term_export(d->arena, module, function, (uint32_t)arity));
}

/* Decodes the terms inside a fun, whose encoding ends at @end, only to check that it is one. */
static bool check_fun(struct decoder *d, const unsigned char *end, struct tw_term *module, uint32_t index_uniq[2])
{
	struct tw_term index, uniq, pid;
	uint64_t free_count, i;

	/* Arity, 16 bytes of MD5, index. */
	d->at += 1 + 16 + 4;
	free_count = take_be(d, 4);
	if (!decode_atom(d, module))
		return false;
	index = decode(d);
	uniq = decode(d);
	pid = decode(d);
	if (d->error || !tw_is_small(index) || !tw_is_small(uniq) || tw_term_type(pid) != TW_TYPE_PID)
		return false;
	index_uniq[0] = (uint32_t)tw_small_value(index);
	index_uniq[1] = (uint32_t)tw_small_value(uniq);
	for (i = 0; i < free_count && d->at < end; i++) {
		if (tw_term_is_none(decode(d)))
			return false;
	}
	return i == free_count && d->at == end;
}

static struct tw_term decode_fun(struct decoder *d)
{
	const unsigned char *start = d->at - 1, *outer_end = d->end;
	struct tw_arena_chunk *chunks = d->arena->chunks;
	char *arena_at = d->arena->at;
	uint64_t outer_claimed = d->claimed, bytes;
	uint32_t index_uniq[2];
	struct tw_term module;

	/* The size includes itself. */
	if (!read_be(d, 4, &bytes) || bytes < 4 + 1 + 16 + 4 + 4 || !has(d, bytes - 4))
		return fail(d, TW_EFORMAT);
	d->end = start + 1 + bytes;
	d->claimed = 0;
	if (!check_fun(d, d->end, &module, index_uniq))
		return fail(d, TW_EFORMAT);
	d->end = outer_end;
	d->claimed = outer_claimed;
	if (d->arena->chunks == chunks)
		d->arena->at = arena_at;
	return built(d, tw_fun(d->arena, module, index_uniq, start, (size_t)(d->at - start)));
}

/* ---- blocks ---- */

/* True if @count more parts may follow at this depth; claims their bytes. */
static bool claim(struct decoder *d, uint64_t count)
{
	uint64_t left = (uint64_t)(d->end - d->at);

	if (d->depth > TW_TERM_DEPTH_MAX) {
		fail(d, TW_ELIMIT);
		return false;
	}
	if (left < d->claimed || count > left - d->claimed) {
		fail(d, TW_EFORMAT);
		return false;
	}
	d->claimed += count;
	return true;
}

/* Decodes one claimed part. */
static struct tw_term decode_part(struct decoder *d)
{
	d->claimed--;
	return decode(d);
}

static struct tw_term decode_tuple(struct decoder *d, unsigned count_bytes)
{
	struct tw_term *elements, tuple;
	uint64_t count, i;

	if (!read_be(d, count_bytes, &count) || !claim(d, count))
		return tw_word(0);
	tuple = tw_tuple_open(d->arena, count, &elements);
	if (tw_term_is_none(tuple))
		return fail(d, TW_ENOMEM);
	for (i = 0; i < count; i++) {
		elements[i] = decode_part(d);
		if (tw_term_is_none(elements[i]))
			return elements[i];
	}
	return tuple;
}

static struct tw_term decode_list(struct decoder *d)
{
	struct tw_cell *cells;
	uint64_t count, i;

	if (!read_be(d, 4, &count) || !claim(d, count + 1))
		return tw_word(0);
	if (count == 0)
		return decode_part(d);
	cells = tw_arena_take(d->arena, count * sizeof *cells);
	if (!cells)
		return fail(d, TW_ENOMEM);
	for (i = 0; i < count; i++) {
		cells[i].head = decode_part(d);
		if (tw_term_is_none(cells[i].head))
			return cells[i].head;
		cells[i].tail = tw_term_of_cell(cells + i + 1);
	}
	cells[count - 1].tail = decode_part(d);
	if (tw_term_is_none(cells[count - 1].tail))
		return cells[count - 1].tail;
	return tw_term_of_cell(cells);
}

static struct tw_term decode_map(struct decoder *d)
{
	struct tw_term_pair *pairs;
	struct tw_term map;
	uint64_t count, i;

	if (!read_be(d, 4, &count) || !claim(d, 2 * count))
		return tw_word(0);
	if (count == 0)
		return built(d, tw_term_map(d->arena, NULL, 0));
	pairs = tw_arena_take(d->arena, count * sizeof *pairs);
	if (!pairs)
		return fail(d, TW_ENOMEM);
	for (i = 0; i < count; i++) {
		pairs[i].key = decode_part(d);
		if (tw_term_is_none(pairs[i].key))
			return pairs[i].key;
		pairs[i].value = decode_part(d);
		if (tw_term_is_none(pairs[i].value))
			return pairs[i].value;
	}
	map = tw_term_map(d->arena, pairs, count);
	if (!tw_term_is_none(map) && tw_term_map_count(map) != count)
		return fail(d, TW_EFORMAT);
	return built(d, map);
}

/* ---- terms ---- */

static struct tw_term decode_tagged(struct decoder *d, unsigned tag)
{
	switch (tag) {
	case TW_ETF_SMALL_INTEGER: return decode_small(d, 1);
	case TW_ETF_INTEGER: return decode_small(d, 4);
	case TW_ETF_SMALL_BIG: return decode_big(d, 1);
	case TW_ETF_LARGE_BIG: return decode_big(d, 4);
	case TW_ETF_NEW_FLOAT: return decode_new_float(d);
	case TW_ETF_FLOAT: return decode_old_float(d);
	case TW_ETF_SMALL_ATOM_UTF8: return decode_atom_utf8(d, 1);
	case TW_ETF_ATOM_UTF8: return decode_atom_utf8(d, 2);
	case TW_ETF_SMALL_ATOM: return decode_atom_latin1(d, 1);
	case TW_ETF_ATOM: return decode_atom_latin1(d, 2);
	case TW_ETF_NIL: return tw_term_nil();
	case TW_ETF_STRING: return decode_string(d);
	case TW_ETF_LIST: return decode_list(d);
	case TW_ETF_SMALL_TUPLE: return decode_tuple(d, 1);
	case TW_ETF_LARGE_TUPLE: return decode_tuple(d, 4);
	case TW_ETF_MAP: return decode_map(d);
	case TW_ETF_BINARY: return decode_binary(d);
	case TW_ETF_BIT_BINARY: return decode_bits(d);
	case TW_ETF_NEW_PID: return decode_identifier(d, (struct identifier_shape){TW_TYPE_PID, 4, 4});
	case TW_ETF_PID: return decode_identifier(d, (struct identifier_shape){TW_TYPE_PID, 4, 1});
	case TW_ETF_V4_PORT: return decode_identifier(d, (struct identifier_shape){TW_TYPE_PORT, 8, 4});
	case TW_ETF_NEW_PORT: return decode_identifier(d, (struct identifier_shape){TW_TYPE_PORT, 4, 4});
	case TW_ETF_PORT: return decode_identifier(d, (struct identifier_shape){TW_TYPE_PORT, 4, 1});
	case TW_ETF_REFERENCE: return decode_identifier(d, (struct identifier_shape){TW_TYPE_REFERENCE, 4, 1});
	case TW_ETF_NEWER_REFERENCE: return decode_reference(d, 4);
	case TW_ETF_NEW_REFERENCE: return decode_reference(d, 1);
	case TW_ETF_EXPORT: return decode_export(d);
	case TW_ETF_NEW_FUN: return decode_fun(d);
	case TW_ETF_COMPRESSED:
	case TW_ETF_LOCAL: return fail(d, TW_ENOTSUP);
	default: return fail(d, TW_EFORMAT);
	}
}

static struct tw_term decode(struct decoder *d)
{
	struct tw_term term;

	if (d->at == d->end)
		return fail(d, TW_EFORMAT);
	if (d->depth > TW_TERM_DEPTH_MAX)
		return fail(d, TW_ELIMIT);
	d->depth++;
	term = decode_tagged(d, *d->at++);
	d->depth--;
	return term;
}

TW_API int tw_etf_decode(struct tw_arena *arena, const void *data, size_t bytes, const struct tw_etf_options *options,
			 size_t *used_bytes, struct tw_term *out)
{
	/* No bytes may come without an address. */
	struct decoder d = {.at = data, .end = bytes ? (const unsigned char *)data + bytes : data, .arena = arena};
	struct tw_term term;

	d.node = options && !tw_term_is_none(options->node) ? options->node : tw_atom(TW_ATOM_NONODE);
	d.is_safe = options && options->is_safe;
	if (bytes < 2 || *d.at++ != TW_ETF_VERSION)
		return TW_EFORMAT;
	term = decode(&d);
	if (d.error)
		return d.error;
	if (!used_bytes && d.at < d.end)
		return TW_EFORMAT;
	if (used_bytes)
		*used_bytes = (size_t)(d.at - (const unsigned char *)data);
	*out = term;
	return 0;
}
