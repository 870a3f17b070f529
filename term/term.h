/* SPDX-License-Identifier: Apache-2.0 */
/*
 * term.h - the words and blocks behind struct tw_term, for the rooms above.
 *
 * The low four bits of a word are its tag:
 *
 *	0x0  none (the whole word is 0)
 *	0x1  pointer to a cons cell: {head, tail}
 *	0x2  pointer to a block: {header, ...}
 *	0x7  []
 *	0xb  atom:  index << 4 | 0xb
 *	0xf  small: value << 4 | 0xf, a signed value of 60 bits
 *
 * Blocks and cells are 16-byte aligned.  A header is  size << 16 | aux << 8 | kind:
 *
 *	kind		size	aux		then
 *	BIG		limbs	1: negative	the magnitude, low limb first; never fits a small,
 *						and the high limb is not 0
 *	FLOAT		1	-		a finite double
 *	TUPLE		n	-		n words
 *	MAP		n	-		n keys in exact term order, then their n values
 *	BITS		bytes	bits used in	the bytes; unused bits of the last one are 0
 *				the last byte,
 *				0 for all 8
 *	PID PORT REF	words	-		node word, {creation, channel}, 32-bit words
 *	EXPORT		arity	-		module word, function word
 *	FUN		bytes	-		module word, {index, uniq}, the ETF bytes it came as
 *
 * Threads  Terms never change once built.  Integers: integer.h.  The text of an atom as printed and
 *	    the names that the system itself uses: atom.h.
 */
#ifndef TW_TERM_TERM_H
#define TW_TERM_TERM_H

#include "tracewheel/error.h"
#include "tracewheel/term.h"
#include "base/assert.h"
#include "term/atom.h"

#include <stdbool.h>
#include <string.h>

enum tw_term_tag {
	TW_TAG_NONE = 0x0,
	TW_TAG_CONS = 0x1,
	TW_TAG_BLOCK = 0x2,
	TW_TAG_NIL = 0x7,
	TW_TAG_ATOM = 0xb,
	TW_TAG_SMALL = 0xf,
};

enum tw_block_kind {
	TW_BLOCK_BIG = 1,
	TW_BLOCK_FLOAT,
	TW_BLOCK_TUPLE,
	TW_BLOCK_MAP,
	TW_BLOCK_BITS,
	TW_BLOCK_PID,
	TW_BLOCK_PORT,
	TW_BLOCK_REF,
	TW_BLOCK_EXPORT,
	TW_BLOCK_FUN,
};

#define TW_SMALL_MAX ((INT64_C(1) << 59) - 1)
#define TW_SMALL_MIN (-(INT64_C(1) << 59))

/* Levels of nesting that compare, print and copy walk without allocating. */
#define TW_TERM_DEPTH_FIXED 64

struct tw_cell {
	struct tw_term head;
	struct tw_term tail;
};

struct tw_block_identifier {
	uint64_t header;
	struct tw_term node;
	uint32_t creation;
	uint32_t channel;
	uint32_t words[];
};

struct tw_block_fun {
	uint64_t header;
	struct tw_term module;
	uint32_t index;
	uint32_t uniq;
	unsigned char etf[];
};

/* ---- words ---- */

static inline struct tw_term tw_word(uint64_t word)
{
	return (struct tw_term){word};
}

static inline enum tw_term_tag tw_tag(struct tw_term t)
{
	return (enum tw_term_tag)(t.word & 15);
}

static inline bool tw_is_small(struct tw_term t)
{
	return tw_tag(t) == TW_TAG_SMALL;
}

static inline int64_t tw_small_value(struct tw_term t)
{
	return (int64_t)t.word >> 4;
}

static inline bool tw_small_fits(int64_t value)
{
	return value >= TW_SMALL_MIN && value <= TW_SMALL_MAX;
}

/* @value	TW_SMALL_MIN .. TW_SMALL_MAX. */
static inline struct tw_term tw_small(int64_t value)
{
	return tw_word((uint64_t)value << 4 | TW_TAG_SMALL);
}

static inline bool tw_is_atom(struct tw_term t)
{
	return tw_tag(t) == TW_TAG_ATOM;
}

/* The atom with an index of enum tw_atom_index, or from tw_atom_index() of an atom. */
static inline struct tw_term tw_atom(uint32_t index)
{
	return tw_word((uint64_t)index << 4 | TW_TAG_ATOM);
}

/* Is it an atom of the table? For a word that may not be a term. */
static inline bool tw_atom_is_known(struct tw_term t)
{
	return tw_is_atom(t) && t.word >> 4 < tw_atom_count();
}

static inline uint32_t tw_atom_index(struct tw_term t)
{
	return (uint32_t)(t.word >> 4);
}

static inline bool tw_is_nil(struct tw_term t)
{
	return t.word == TW_TAG_NIL;
}

static inline bool tw_is_cons(struct tw_term t)
{
	return tw_tag(t) == TW_TAG_CONS;
}

/* @t	a cons cell. */
static inline const struct tw_cell *tw_cell(struct tw_term t)
{
	return (const struct tw_cell *)(uintptr_t)(t.word - TW_TAG_CONS);
}

static inline struct tw_term tw_term_of_cell(const struct tw_cell *cell)
{
	return tw_word((uint64_t)(uintptr_t)cell + TW_TAG_CONS);
}

/* ---- blocks ---- */

static inline bool tw_is_block(struct tw_term t)
{
	return tw_tag(t) == TW_TAG_BLOCK;
}

/* @t	a block; [0] is the header. */
static inline const uint64_t *tw_block(struct tw_term t)
{
	return (const uint64_t *)(uintptr_t)(t.word - TW_TAG_BLOCK);
}

static inline struct tw_term tw_term_of_block(const void *block)
{
	return tw_word((uint64_t)(uintptr_t)block + TW_TAG_BLOCK);
}

static inline uint64_t tw_header(enum tw_block_kind kind, unsigned aux, uint64_t size)
{
	return size << 16 | (uint64_t)aux << 8 | kind;
}

static inline enum tw_block_kind tw_header_kind(uint64_t header)
{
	return (enum tw_block_kind)(header & 255);
}

static inline unsigned tw_header_aux(uint64_t header)
{
	return header >> 8 & 255;
}

static inline uint64_t tw_header_size(uint64_t header)
{
	return header >> 16;
}

static inline bool tw_is_kind(struct tw_term t, enum tw_block_kind kind)
{
	return tw_is_block(t) && tw_header_kind(*tw_block(t)) == kind;
}

static inline bool tw_is_tuple(struct tw_term t)
{
	return tw_is_kind(t, TW_BLOCK_TUPLE);
}

static inline bool tw_is_map(struct tw_term t)
{
	return tw_is_kind(t, TW_BLOCK_MAP);
}

static inline bool tw_is_float(struct tw_term t)
{
	return tw_is_kind(t, TW_BLOCK_FLOAT);
}

static inline bool tw_is_big(struct tw_term t)
{
	return tw_is_kind(t, TW_BLOCK_BIG);
}

static inline bool tw_is_integer(struct tw_term t)
{
	return tw_is_small(t) || tw_is_big(t);
}

static inline bool tw_is_number(struct tw_term t)
{
	return tw_is_integer(t) || tw_is_float(t);
}

static inline bool tw_is_list(struct tw_term t)
{
	return tw_is_cons(t) || tw_is_nil(t);
}

static inline bool tw_is_bits(struct tw_term t)
{
	return tw_is_kind(t, TW_BLOCK_BITS);
}

/* A bit string of whole bytes. */
static inline bool tw_is_binary(struct tw_term t)
{
	return tw_is_bits(t) && tw_header_aux(*tw_block(t)) == 0;
}

/* A pid, port or reference. */
static inline bool tw_is_identifier(struct tw_term t)
{
	enum tw_block_kind kind;

	if (!tw_is_block(t))
		return false;
	kind = tw_header_kind(*tw_block(t));
	return kind >= TW_BLOCK_PID && kind <= TW_BLOCK_REF;
}

/* @t	any block: elements of a tuple, arity of an export, keys of a map, limbs, bytes. */
static inline uint64_t tw_block_size(struct tw_term t)
{
	return tw_header_size(*tw_block(t));
}

/* @t	a tuple: its elements; a map: its keys, then its values. */
static inline const struct tw_term *tw_elements(struct tw_term t)
{
	return (const struct tw_term *)(tw_block(t) + 1);
}

/* @t	a float. */
static inline double tw_float_value(struct tw_term t)
{
	double value;

	memcpy(&value, tw_block(t) + 1, sizeof value);
	return value;
}

/* @t	a bit string. */
static inline const unsigned char *tw_bits_data(struct tw_term t)
{
	return (const unsigned char *)(tw_block(t) + 1);
}

static inline uint64_t tw_bits_count(struct tw_term t)
{
	unsigned rest = tw_header_aux(*tw_block(t));

	return tw_block_size(t) * 8 - (rest ? 8 - rest : 0);
}

/* ---- arena, inlined for builders ---- */

static inline void *tw_arena_take(struct tw_arena *arena, size_t bytes)
{
	size_t rounded = (bytes + 15) & ~(size_t)15;
	char *at = arena->at;

	if (tw_likely(rounded >= bytes && rounded <= (size_t)(arena->end - at))) {
		arena->at = at + rounded;
		return at;
	}
	return tw_arena_alloc(arena, bytes);
}

/* Frees the memory after the first @bytes of a block if it was the last one allocated. */
void tw_arena_trim(struct tw_arena *arena, void *block, size_t taken_bytes, size_t bytes);

/* ---- builders that leave the content to the caller ---- */

/*
 * A tuple whose elements the caller sets next (all of them, before any other code reads it).  Returns none and leaves
 * *elements untouched if the arena is full.
 */
struct tw_term tw_tuple_open(struct tw_arena *arena, size_t count, struct tw_term **elements);

/* A binary of this many bits, likewise; the caller leaves unused bits of the last byte 0. */
struct tw_term tw_bits_open(struct tw_arena *arena, size_t bits, unsigned char **data);

/*
 * A map whose keys and values the caller sets next, with keys in exact order and all different;
 * words[0 .. count - 1] are the keys, the values follow.
 */
struct tw_term tw_map_open(struct tw_arena *arena, size_t count, struct tw_term **words);

/* An opaque fun with its encoding: @etf is the whole NEW_FUN_EXT with its tag. */
struct tw_term tw_fun(struct tw_arena *arena, struct tw_term module, const uint32_t index_uniq[2], const void *etf,
		      size_t bytes);

#endif
