/* SPDX-License-Identifier: Apache-2.0 */
/*
 * integer.h - arithmetic on integers of any size, as Erlang's operators do it.
 *
 * Operands are integer terms, TW_EBADARG otherwise.  Results are built in the arena, except smalls, which need no
 * memory; scratch comes from the arena too and is returned, so with a fixed arena no function allocates (GMP is used
 * through mpn functions that take their memory from the caller
 * or, at these sizes, from the stack).
 *
 * Errors   TW_EBADARG: not an integer, division by 0.  OTP: badarith.
 *	    TW_ELIMIT: the result has more than TW_INTEGER_BITS_MAX bits.  OTP: system_limit.
 *	    TW_ENOMEM: the arena is full.
 * Threads  The arena's.  Signal handlers: yes, in a fixed arena.
 */
#ifndef TW_TERM_INTEGER_H
#define TW_TERM_INTEGER_H

#include "term/term.h"

/* Beyond this (1,024 limbs) GMP would ask malloc for scratch.  OTP's limit is 64 times as large. */
#define TW_INTEGER_BITS_MAX  65536
#define TW_INTEGER_LIMBS_MAX (TW_INTEGER_BITS_MAX / 64)

enum tw_integer_op {
	TW_INTEGER_ADD,
	TW_INTEGER_SUB,
	TW_INTEGER_MUL,
	TW_INTEGER_DIV, /* towards 0 */
	TW_INTEGER_REM, /* the sign of the dividend */
	TW_INTEGER_BAND,
	TW_INTEGER_BOR,
	TW_INTEGER_BXOR,
	TW_INTEGER_BSL, /* a negative count shifts right */
	TW_INTEGER_BSR, /* towards minus infinity; a negative count shifts left */
};

/* a op b. */
int tw_integer_binary(struct tw_arena *arena, enum tw_integer_op op, struct tw_term a, struct tw_term b,
		      struct tw_term *out);

/* -a, abs(a), bnot a. */
int tw_integer_negate(struct tw_arena *arena, struct tw_term a, struct tw_term *out);
int tw_integer_abs(struct tw_arena *arena, struct tw_term a, struct tw_term *out);
int tw_integer_bnot(struct tw_arena *arena, struct tw_term a, struct tw_term *out);

/* Below 0, 0 or above 0, for two integers. */
int tw_integer_compare(struct tw_term a, struct tw_term b);

/* The same for an integer and a finite double, exactly. */
int tw_integer_compare_double(struct tw_term a, double b);

/* -1, 0 or 1. */
int tw_integer_sign(struct tw_term a);

/* Rounded limb by limb as OTP's float/1, at most one unit off; TW_ELIMIT beyond the largest double. */
int tw_integer_to_double(struct tw_term a, double *out);

enum tw_rounding {
	TW_ROUND_NEAREST, /* halves away from 0: round/1 */
	TW_ROUND_TRUNC,
	TW_ROUND_FLOOR,
	TW_ROUND_CEIL,
};

/* A finite double as an integer. */
int tw_integer_from_double(struct tw_arena *arena, double value, enum tw_rounding rounding, struct tw_term *out);

/*
 * An integer from its magnitude.
 *
 * @limbs	borrows; low limb first, leading zeros are dropped.
 */
int tw_integer_from_limbs(struct tw_arena *arena, bool is_negative, const uint64_t *limbs, size_t count,
			  struct tw_term *out);

/*
 * The magnitude of an integer.
 *
 * @small	space for one limb, used for smalls.
 * @count	0 for the integer 0.
 *
 * Lends while the term and @small exist.
 */
const uint64_t *tw_integer_limbs(struct tw_term a, uint64_t *small, size_t *count, bool *is_negative);

/* The longest decimal text of an integer, with its sign. */
#define TW_INTEGER_PRINTED_BYTES_MAX 19730

/*
 * The integer in base 10 at the end of a buffer.
 *
 * @scratch	TW_INTEGER_LIMBS_MAX limbs, overwritten.
 * @end		the end of TW_INTEGER_PRINTED_BYTES_MAX bytes.
 *
 * Returns the first byte of the text, which ends before @end.
 */
char *tw_integer_print(struct tw_term a, uint64_t *scratch, char *end);

/*
 * An integer from digits.
 *
 * @digits	borrows; digits of the base only, '_' is skipped.
 * @base	2 .. 36.
 */
int tw_integer_parse(struct tw_arena *arena, const char *digits, size_t bytes, unsigned base, bool is_negative,
		     struct tw_term *out);

#endif
