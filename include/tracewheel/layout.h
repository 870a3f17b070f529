/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout.h - what a function's arguments are, and which registers bring them, as a line of text.
 *
 * Made from debug information by whoever asks for typed arguments (tracewheel/debug.h), obeyed in the traced
 * program, stored in the capture, and read again by whoever shows its events.
 *
 *	layout    = result *(" " value) [" ..."]		"..." : variable arguments may follow
 *	result    = value without a name
 *	value     = name ":" type "@" register register
 *	type      = letter [bytes] ["/" name of the type] ["{" enumerator *("," enumerator) "}"]
 *	enumerator= name "=" number; of a struct its fields: name "." letter bits "=" first bit
 *	letter    = i signed, u unsigned, b bool, e enum, n signed enum, p pointer, s string, f float,
 *		    S struct in one or two words, v void, _ unknown; of fields: i, u, b, p, f
 *	register  = "0" to "5" rdi rsi rdx rcx r8 r9, "6" rax, "7" rdx, "8" to "f" xmm0 to xmm7, "-" none
 *
 * Names hold no blanks and none of : @ / { } , = .  A value without a register is not recorded, but for one that a
 * function returns in st(0): f16.
 *
 * Threads  any; a layout does not change.  Limits: TW_LAYOUT_*_MAX.
 */
#ifndef TRACEWHEEL_LAYOUT_H
#define TRACEWHEEL_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TW_LAYOUT_VALUES_MAX 64
#define TW_LAYOUT_TEXT_BYTES_MAX 8000
/* Words that registers bring: six integer ones and eight of vectors. */
#define TW_LAYOUT_WORDS_MAX 14

/* A long double, of which the first ten bytes count. */
#define TW_LAYOUT_X87_BYTES 16

struct tw_layout_enumerator {
	const char *name;
	int64_t value;
};

struct tw_layout_value {
	const char *name;	 /* "" where it has none */
	const char *type_name;	 /* of a struct, an enum, or what a pointer points to; "" where it has none */
	char type;		 /* the letter */
	uint32_t bytes;		 /* of the type; 8 where not given */
	int8_t registers[2];	 /* 0 to 15; -1: none */
	const struct tw_layout_enumerator *enumerators;
	uint32_t enumerator_count;
};

struct tw_layout {
	uint32_t count;
	bool is_variadic;
	uint32_t word_count;   /* that a call records before its strings */
	uint32_t string_count; /* values of type 's' with a register */
	struct tw_layout_value result;
	const struct tw_layout_value *values;
};

/*
 * tw_layout_parse - read a line of text.
 *
 * @text	borrows; need not be terminated.  Nothing in it is trusted.
 * @out		gives; tw_layout_destroy() takes.
 * Errors: TW_EBADARG, TW_ENOMEM.
 */
int tw_layout_parse(const char *text, size_t bytes, struct tw_layout **out);
void tw_layout_destroy(struct tw_layout *layout);

/*
 * The payload of a call that was recorded by a layout: word_count words, one for each register of each
 * value in order; then for each string in order one word, the bytes that were copied in its low half and
 * enum tw_layout_string in its high half, and the bytes, filled with zeros up to a word.
 */
enum tw_layout_string {
	TW_LAYOUT_WHOLE = 0,
	TW_LAYOUT_CUT = 1,	  /* it goes on */
	TW_LAYOUT_UNREADABLE = 2 /* no memory there, or a null pointer */
};

/*
 * What a call returned is one word for each register of the result, or two for st(0).  Captures may have the first
 * alone: programs recorded one word before.
 */

/* One value of such a payload. */
struct tw_layout_item {
	const struct tw_layout_value *value;
	unsigned word_count; /* 0: not recorded */
	uint64_t words[2];
	const char *text; /* of a string that could be read; lends from the payload; NULL otherwise */
	size_t text_bytes;
	bool is_cut;
};

/* Zeroed at first, but for the first three. */
struct tw_layout_reader {
	const struct tw_layout *layout;
	const uint64_t *words;
	uint32_t word_count;
	uint32_t at, word_at, string_at;
};

/* A field of a struct: bits of its words. */
struct tw_layout_field {
	const char *name;    /* lent by the layout; not terminated */
	size_t name_bytes; /* 0: it is all of the value */
	char type;	     /* i, u, b, p, f */
	uint32_t first_bit, bits;
};

/* Field number @at of a value of type 'S', from 0.  False: there is none, or what is said of it is no field. */
bool tw_layout_field(const struct tw_layout_value *value, uint32_t at, struct tw_layout_field *out);

/* What a return recorded by this layout has in its payload, as tw_layout_next().  False: nothing that is known. */
bool tw_layout_result(const struct tw_layout *layout, const uint64_t *words, uint32_t word_count,
		      struct tw_layout_item *out);

/* The next value.  False behind the last, and where the payload is not what the layout says. */
bool tw_layout_next(struct tw_layout_reader *reader, struct tw_layout_item *out);

#ifdef __cplusplus
}
#endif

#endif
