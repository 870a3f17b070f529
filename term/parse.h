/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse.h - declarations shared by the files of the parser.
 *
 * A struct tw_reader is one run over a text.  Functions that read return none (or false) after tw_reader_fail(),
 * which keeps the first error; at is then undefined.  Parts of a tuple,
 * list or string are collected on the stack of values until their number is known.
 */
#ifndef TW_TERM_PARSE_H
#define TW_TERM_PARSE_H

#include "term/term.h"

struct tw_reader {
	const char *at;
	const char *end;
	struct tw_arena *arena;
	unsigned depth;

	/* After a failure: TW_EBADARG with a message and its position, or TW_ENOMEM. */
	int error;
	const char *message;
	const char *place;

	/* The stack of values. */
	struct tw_term *values;
	size_t value_count;
	size_t value_capacity;
	struct tw_term fixed[64];

	/* Bits that sizes in binaries may still add beyond those written in the text. */
	uint64_t spare_bits;
};

/* Limit for the sum of the sizes of all segments of one text: a short text cannot make a huge binary. */
#define TW_PARSE_SPARE_BITS (UINT64_C(8) << 20)

/* Classes of single bytes, for unquoted names and white space. */
enum {
	TW_CHAR_SPACE = 1,
	TW_CHAR_DIGIT = 2,
	TW_CHAR_LOWER = 4,
	TW_CHAR_NAME = 8, /* inside a name */
	TW_CHAR_UPPER = 16,
	TW_CHAR_WIDE = 32, /* more than ASCII */
};

extern const unsigned char tw_char_class[256];

static inline bool tw_char_is(char c, unsigned classes)
{
	return tw_char_class[(unsigned char)c] & classes;
}

/* Records the error and returns none, which the caller returns. */
struct tw_term tw_reader_fail(struct tw_reader *r, const char *place, const char *message);
struct tw_term tw_reader_full(struct tw_reader *r);

/* Passes on a builder's result; none means that the arena is full. */
static inline struct tw_term tw_reader_built(struct tw_reader *r, struct tw_term term)
{
	return tw_term_is_none(term) ? tw_reader_full(r) : term;
}

bool tw_reader_grow(struct tw_reader *r);

static inline bool tw_reader_push(struct tw_reader *r, struct tw_term value)
{
	if (tw_unlikely(r->value_count == r->value_capacity) && !tw_reader_grow(r))
		return false;
	r->values[r->value_count++] = value;
	return true;
}

/* White space and comments. */
void tw_reader_skip(struct tw_reader *r);

static inline bool tw_reader_is_at(const struct tw_reader *r, char c)
{
	return r->at < r->end && *r->at == c;
}

/* Skips @text if the text continues with it; returns whether it did. */
bool tw_reader_take(struct tw_reader *r, const char *text);

/* The next term; white space before it is skipped. */
struct tw_term tw_read_term(struct tw_reader *r);

/* ---- parse_number.c: at points to a digit or a sign ---- */

struct tw_term tw_read_number(struct tw_reader *r, bool is_negative);

/* A sign, then a number or a character. */
struct tw_term tw_read_signed(struct tw_reader *r);

/* Reads digits up to @max; false after a failure with @message. */
bool tw_read_uint(struct tw_reader *r, uint64_t max, uint64_t *value, const char *message);

/* ---- parse_text.c: at points to the opening character ---- */

/* $c */
struct tw_term tw_read_dollar(struct tw_reader *r);

/* "..." "...": pushes each character as a small on the stack of values. */
bool tw_read_characters(struct tw_reader *r);

struct tw_term tw_read_string(struct tw_reader *r);
/* A name without quotes; tw_read_atom() reads fun M:F/A too. */
struct tw_term tw_read_plain_atom(struct tw_reader *r);
struct tw_term tw_read_atom(struct tw_reader *r);
struct tw_term tw_read_quoted_atom(struct tw_reader *r);

/* ---- parse_identifier.c, parse_binary.c ---- */

/* <N.I.S> */
struct tw_term tw_read_pid(struct tw_reader *r);
/* #Port<N.I>, #Ref<N.C.B.A>, after the '#'. */
struct tw_term tw_read_identifier(struct tw_reader *r);
/* fun M:F/A, after the word. */
struct tw_term tw_read_fun(struct tw_reader *r);
/* << ... >> */
struct tw_term tw_read_binary(struct tw_reader *r);

#endif
