/* SPDX-License-Identifier: Apache-2.0 */
/* build.c - terms from C values.  Maps are in map.c, atoms in atom.c, integers of any size in integer.c. */
#include "term/term.h"
#include "base/export.h"

#include <math.h>

#include "term/utf8.h"

static const struct tw_term none = {0};

TW_API struct tw_term tw_term_float(struct tw_arena *arena, double value)
{
	uint64_t *block;

	if (!isfinite(value))
		return none;
	block = tw_arena_take(arena, 16);
	if (!block)
		return none;
	block[0] = tw_header(TW_BLOCK_FLOAT, 0, 1);
	memcpy(block + 1, &value, sizeof value);
	return tw_term_of_block(block);
}

TW_API struct tw_term tw_term_nil(void)
{
	return tw_word(TW_TAG_NIL);
}

TW_API struct tw_term tw_term_bool(int value)
{
	return tw_atom(value ? TW_ATOM_TRUE : TW_ATOM_FALSE);
}

struct tw_term tw_tuple_open(struct tw_arena *arena, size_t count, struct tw_term **elements)
{
	uint64_t *block;

	if (count >= SIZE_MAX / 16)
		return none;
	block = tw_arena_take(arena, 8 + count * 8);
	if (!block)
		return none;
	block[0] = tw_header(TW_BLOCK_TUPLE, 0, count);
	*elements = (struct tw_term *)(block + 1);
	return tw_term_of_block(block);
}

TW_API struct tw_term tw_term_tuple(struct tw_arena *arena, const struct tw_term *elements, size_t count)
{
	struct tw_term *to;
	struct tw_term tuple = tw_tuple_open(arena, count, &to);
	size_t i;

	if (tw_term_is_none(tuple))
		return none;
	for (i = 0; i < count; i++) {
		if (tw_term_is_none(elements[i])) {
			tw_arena_trim(arena, to - 1, 8 + count * 8, 0);
			return none;
		}
		to[i] = elements[i];
	}
	return tuple;
}

TW_API struct tw_term tw_term_cons(struct tw_arena *arena, struct tw_term head, struct tw_term tail)
{
	struct tw_cell *cell;

	if (tw_term_is_none(head) || tw_term_is_none(tail))
		return none;
	cell = tw_arena_take(arena, sizeof *cell);
	if (!cell)
		return none;
	cell->head = head;
	cell->tail = tail;
	return tw_term_of_cell(cell);
}

TW_API struct tw_term tw_term_list(struct tw_arena *arena, const struct tw_term *elements, size_t count,
				   struct tw_term tail)
{
	while (count > 0 && !tw_term_is_none(tail))
		tail = tw_term_cons(arena, elements[--count], tail);
	return tail;
}

TW_API struct tw_term tw_term_string(struct tw_arena *arena, const char *text, size_t bytes)
{
	struct tw_term list = tw_term_nil();
	const char *at = text + bytes;
	uint32_t character = 0;

	if (!tw_utf8_is_valid(text, bytes))
		return none;
	while (at > text && !tw_term_is_none(list)) {
		do
			at--;
		while (((unsigned char)*at & 0xc0) == 0x80);
		tw_utf8_next(at, text + bytes, &character);
		list = tw_term_cons(arena, tw_small(character), list);
	}
	return list;
}

struct tw_term tw_bits_open(struct tw_arena *arena, size_t bits, unsigned char **data)
{
	size_t bytes = bits / 8 + (bits % 8 != 0);
	uint64_t *block;

	if (bytes >= SIZE_MAX / 16)
		return none;
	block = tw_arena_take(arena, 8 + bytes);
	if (!block)
		return none;
	block[0] = tw_header(TW_BLOCK_BITS, bits % 8, bytes);
	*data = (unsigned char *)(block + 1);
	return tw_term_of_block(block);
}

TW_API struct tw_term tw_term_bitstring(struct tw_arena *arena, const void *data, size_t bits)
{
	unsigned char *to;
	struct tw_term term = tw_bits_open(arena, bits, &to);
	size_t bytes = bits / 8 + (bits % 8 != 0);

	if (tw_term_is_none(term))
		return none;
	if (bytes)
		memcpy(to, data, bytes);
	if (bits % 8)
		to[bytes - 1] &= (unsigned char)(0xff00 >> bits % 8);
	return term;
}

TW_API struct tw_term tw_term_binary(struct tw_arena *arena, const void *data, size_t bytes)
{
	if (bytes > SIZE_MAX / 16)
		return none;
	return tw_term_bitstring(arena, data, bytes * 8);
}

static bool is_word_count_right(enum tw_term_type type, uint32_t count)
{
	switch (type) {
	case TW_TYPE_PID:
	case TW_TYPE_PORT: return count == 2;
	case TW_TYPE_REFERENCE: return count >= 1 && count <= 5;
	default: return false;
	}
}

static enum tw_block_kind kind_of_identifier(enum tw_term_type type)
{
	switch (type) {
	case TW_TYPE_PID: return TW_BLOCK_PID;
	case TW_TYPE_PORT: return TW_BLOCK_PORT;
	default: return TW_BLOCK_REF;
	}
}

TW_API struct tw_term tw_term_identifier(struct tw_arena *arena, enum tw_term_type type,
					 const struct tw_identifier *parts)
{
	struct tw_block_identifier *block;

	if (!is_word_count_right(type, parts->word_count))
		return none;
	if (!tw_term_is_none(parts->node) && !tw_is_atom(parts->node))
		return none;
	block = tw_arena_take(arena, sizeof *block + parts->word_count * sizeof(uint32_t));
	if (!block)
		return none;
	block->header = tw_header(kind_of_identifier(type), 0, parts->word_count);
	block->node = parts->node;
	block->creation = parts->creation;
	block->channel = parts->channel;
	memcpy(block->words, parts->words, parts->word_count * sizeof(uint32_t));
	return tw_term_of_block(block);
}

TW_API struct tw_term tw_term_pid(struct tw_arena *arena, uint32_t number, uint32_t serial)
{
	struct tw_identifier parts = {.word_count = 2, .words = {number, serial}};

	return tw_term_identifier(arena, TW_TYPE_PID, &parts);
}

TW_API struct tw_term tw_term_port(struct tw_arena *arena, uint64_t number)
{
	struct tw_identifier parts = {
		.word_count = 2,
		.words = {(uint32_t)number, (uint32_t)(number >> 32)},
	};

	return tw_term_identifier(arena, TW_TYPE_PORT, &parts);
}

TW_API struct tw_term tw_term_reference(struct tw_arena *arena, const uint32_t words[3])
{
	struct tw_identifier parts = {.word_count = 3, .words = {words[0], words[1], words[2]}};

	return tw_term_identifier(arena, TW_TYPE_REFERENCE, &parts);
}

TW_API struct tw_term tw_term_export(struct tw_arena *arena, struct tw_term module, struct tw_term function,
				     uint32_t arity)
{
	uint64_t *block;

	if (!tw_is_atom(module) || !tw_is_atom(function))
		return none;
	block = tw_arena_take(arena, 24);
	if (!block)
		return none;
	block[0] = tw_header(TW_BLOCK_EXPORT, 0, arity);
	block[1] = module.word;
	block[2] = function.word;
	return tw_term_of_block(block);
}

struct tw_term tw_fun(struct tw_arena *arena, struct tw_term module, const uint32_t index_uniq[2], const void *etf,
		      size_t bytes)
{
	struct tw_block_fun *block;

	if (bytes >= SIZE_MAX / 16)
		return none;
	block = tw_arena_take(arena, sizeof *block + bytes);
	if (!block)
		return none;
	block->header = tw_header(TW_BLOCK_FUN, 0, bytes);
	block->module = module;
	block->index = index_uniq[0];
	block->uniq = index_uniq[1];
	memcpy(block->etf, etf, bytes);
	return tw_term_of_block(block);
}
