/* SPDX-License-Identifier: Apache-2.0 */
/* functions.c - functions of guards and bodies that compute: each returns none if the BIF of that name would raise. */
#include "match/machine.h"

#include "term/integer.h"

#include <math.h>

#define FUNCTION(atom, arity) \
	struct tw_term tw_match_fn_##atom##_##arity(struct tw_match_machine *m, const struct tw_term *top)

/* Arguments are on the stack, the first one on top. */
#define FIRST  (top[0])
#define SECOND (top[-1])
#define THIRD  (top[-2])

#define RAISE tw_word(0)

const struct tw_match_function_entry tw_match_functions[TW_FN_COUNT] = {
#define TW_MATCH_FUNCTION_CALL(atom, arity, where) {tw_match_fn_##atom##_##arity, arity},
	TW_MATCH_FUNCTIONS(TW_MATCH_FUNCTION_CALL)
#undef TW_MATCH_FUNCTION_CALL
};

static struct tw_arena *arena_of(struct tw_match_machine *m)
{
	return &m->run->arena;
}

static struct tw_term integer(uint64_t value)
{
	TW_ASSERT(value <= (uint64_t)TW_SMALL_MAX);
	return tw_small((int64_t)value);
}

/* ---- types ---- */

bool tw_match_is_type(enum tw_match_type type, struct tw_term t)
{
	switch (type) {
	case TW_MATCH_IS_ATOM: return tw_is_atom(t);
	case TW_MATCH_IS_BOOLEAN: return t.word == tw_atom(TW_ATOM_TRUE).word || t.word == tw_atom(TW_ATOM_FALSE).word;
	case TW_MATCH_IS_FLOAT: return tw_is_float(t);
	case TW_MATCH_IS_INTEGER: return tw_is_integer(t);
	case TW_MATCH_IS_LIST: return tw_is_list(t);
	case TW_MATCH_IS_NUMBER: return tw_is_number(t);
	case TW_MATCH_IS_PID: return tw_is_kind(t, TW_BLOCK_PID);
	case TW_MATCH_IS_PORT: return tw_is_kind(t, TW_BLOCK_PORT);
	case TW_MATCH_IS_REFERENCE: return tw_is_kind(t, TW_BLOCK_REF);
	case TW_MATCH_IS_TUPLE: return tw_is_tuple(t);
	case TW_MATCH_IS_MAP: return tw_is_map(t);
	case TW_MATCH_IS_BINARY: return tw_is_binary(t);
	case TW_MATCH_IS_BITSTRING: return tw_is_bits(t);
	case TW_MATCH_IS_FUNCTION: return tw_is_kind(t, TW_BLOCK_EXPORT) || tw_is_kind(t, TW_BLOCK_FUN);
	default: return false;
	}
}

FUNCTION(IS_RECORD, 3)
{
	if (!tw_is_atom(SECOND) || !tw_is_small(THIRD))
		return RAISE;
	return tw_term_bool(tw_is_tuple(FIRST) && tw_block_size(FIRST) > 0 &&
			    (int64_t)tw_block_size(FIRST) == tw_small_value(THIRD) &&
			    tw_term_is_same(tw_elements(FIRST)[0], SECOND));
}

/* ---- booleans ---- */

static bool is_boolean(struct tw_term t)
{
	return tw_match_is_type(TW_MATCH_IS_BOOLEAN, t);
}

FUNCTION(NOT, 1)
{
	return is_boolean(FIRST) ? tw_term_bool(FIRST.word == tw_atom(TW_ATOM_FALSE).word) : RAISE;
}

FUNCTION(XOR, 2)
{
	return is_boolean(FIRST) && is_boolean(SECOND) ? tw_term_bool(FIRST.word != SECOND.word) : RAISE;
}

/* ---- arithmetic ---- */

/* For two floats, or an integer and a float. */
static struct tw_term float_arithmetic(struct tw_match_machine *m, enum tw_integer_op op, const struct tw_term *top)
{
	double x, y;

	if (!tw_is_number(FIRST) || !tw_is_number(SECOND) || tw_term_get_double(FIRST, &x) != 0 ||
	    tw_term_get_double(SECOND, &y) != 0)
		return RAISE;
	if (op == TW_INTEGER_ADD)
		x += y;
	else if (op == TW_INTEGER_SUB)
		x -= y;
	else
		x *= y;
	return tw_term_float(arena_of(m), x); /* none if it is not finite */
}

static struct tw_term integer_arithmetic(struct tw_match_machine *m, enum tw_integer_op op, const struct tw_term *top)
{
	struct tw_term result;

	return tw_integer_binary(arena_of(m), op, FIRST, SECOND, &result) == 0 ? result : RAISE;
}

static struct tw_term arithmetic(struct tw_match_machine *m, enum tw_integer_op op, const struct tw_term *top)
{
	if (tw_likely(tw_is_integer(FIRST) && tw_is_integer(SECOND)))
		return integer_arithmetic(m, op, top);
	return float_arithmetic(m, op, top);
}

/* Most operands are smalls, which need no call. */
static inline bool are_small(const struct tw_term *top)
{
	return (FIRST.word & SECOND.word & 15) == TW_TAG_SMALL;
}

FUNCTION(ADD, 2)
{
	int64_t sum = tw_small_value(FIRST) + tw_small_value(SECOND);

	return tw_likely(are_small(top) && tw_small_fits(sum)) ? tw_small(sum) : arithmetic(m, TW_INTEGER_ADD, top);
}

FUNCTION(SUB, 2)
{
	int64_t difference = tw_small_value(FIRST) - tw_small_value(SECOND);

	return tw_likely(are_small(top) && tw_small_fits(difference)) ? tw_small(difference)
								      : arithmetic(m, TW_INTEGER_SUB, top);
}

FUNCTION(MUL, 2)
{
	return arithmetic(m, TW_INTEGER_MUL, top);
}

FUNCTION(ADD, 1)
{
	return tw_is_number(FIRST) ? FIRST : RAISE;
}

FUNCTION(SUB, 1)
{
	struct tw_term result;

	if (tw_is_float(FIRST))
		return tw_term_float(arena_of(m), -tw_float_value(FIRST));
	return tw_integer_negate(arena_of(m), FIRST, &result) == 0 ? result : RAISE;
}

FUNCTION(ABS, 1)
{
	struct tw_term result;

	if (tw_is_float(FIRST))
		return tw_term_float(arena_of(m), fabs(tw_float_value(FIRST)));
	return tw_integer_abs(arena_of(m), FIRST, &result) == 0 ? result : RAISE;
}

/* Always a float: 4 / 2 is 2.0. */
FUNCTION(DIVIDE, 2)
{
	double x, y;

	if (!tw_is_number(FIRST) || !tw_is_number(SECOND) || tw_term_get_double(FIRST, &x) != 0 ||
	    tw_term_get_double(SECOND, &y) != 0 || y == 0)
		return RAISE;
	return tw_term_float(arena_of(m), x / y);
}

#define INTEGER_FUNCTION(op)                                        \
	FUNCTION(op, 2)                                             \
	{                                                           \
		return integer_arithmetic(m, TW_INTEGER_##op, top); \
	}
INTEGER_FUNCTION(DIV)
INTEGER_FUNCTION(REM)
INTEGER_FUNCTION(BSL)
INTEGER_FUNCTION(BSR)

FUNCTION(BAND, 2)
{
	if (tw_likely(are_small(top)))
		return tw_word(FIRST.word & SECOND.word);
	return integer_arithmetic(m, TW_INTEGER_BAND, top);
}

FUNCTION(BOR, 2)
{
	if (tw_likely(are_small(top)))
		return tw_word(FIRST.word | SECOND.word);
	return integer_arithmetic(m, TW_INTEGER_BOR, top);
}

FUNCTION(BXOR, 2)
{
	if (tw_likely(are_small(top)))
		return tw_word((FIRST.word ^ SECOND.word) | TW_TAG_SMALL);
	return integer_arithmetic(m, TW_INTEGER_BXOR, top);
}

FUNCTION(BNOT, 1)
{
	struct tw_term result;

	return tw_integer_bnot(arena_of(m), FIRST, &result) == 0 ? result : RAISE;
}

static struct tw_term rounded(struct tw_match_machine *m, struct tw_term t, enum tw_rounding rounding)
{
	struct tw_term result;

	if (tw_is_integer(t))
		return t;
	if (!tw_is_float(t) || tw_integer_from_double(arena_of(m), tw_float_value(t), rounding, &result) != 0)
		return RAISE;
	return result;
}

FUNCTION(ROUND, 1)
{
	return rounded(m, FIRST, TW_ROUND_NEAREST);
}

FUNCTION(TRUNC, 1)
{
	return rounded(m, FIRST, TW_ROUND_TRUNC);
}

FUNCTION(FLOOR, 1)
{
	return rounded(m, FIRST, TW_ROUND_FLOOR);
}

FUNCTION(CEIL, 1)
{
	return rounded(m, FIRST, TW_ROUND_CEIL);
}

FUNCTION(FLOAT, 1)
{
	double x;

	if (tw_is_float(FIRST))
		return FIRST;
	if (!tw_is_integer(FIRST) || tw_term_get_double(FIRST, &x) != 0)
		return RAISE;
	return tw_term_float(arena_of(m), x);
}

int tw_match_compare(const struct tw_match_machine *m, struct tw_term a, struct tw_term b, bool is_exact, int *order)
{
	int error = tw_term_try_compare(a, b, is_exact, order);

	if (error && m->run->may_allocate) {
		*order = is_exact ? tw_term_compare_exact(a, b) : tw_term_compare(a, b);
		return 0;
	}
	return error;
}

FUNCTION(MAX, 2)
{
	int order;

	if (tw_match_compare(m, FIRST, SECOND, false, &order) != 0)
		return RAISE;
	return order >= 0 ? FIRST : SECOND;
}

FUNCTION(MIN, 2)
{
	int order;

	if (tw_match_compare(m, FIRST, SECOND, false, &order) != 0)
		return RAISE;
	return order <= 0 ? FIRST : SECOND;
}

/* ---- maps ---- */

FUNCTION(IS_MAP_KEY, 2)
{
	if (!tw_is_map(SECOND))
		return RAISE;
	return tw_term_bool(!tw_term_is_none(tw_term_map_get(SECOND, FIRST)));
}

FUNCTION(MAP_GET, 2)
{
	return tw_is_map(SECOND) ? tw_term_map_get(SECOND, FIRST) : RAISE;
}

FUNCTION(MAP_SIZE, 1)
{
	return tw_is_map(FIRST) ? integer(tw_block_size(FIRST)) : RAISE;
}

/* ---- tuples, lists, binaries ---- */

FUNCTION(ELEMENT, 2)
{
	if (!tw_is_small(FIRST) || !tw_is_tuple(SECOND) || tw_small_value(FIRST) < 1 ||
	    (uint64_t)tw_small_value(FIRST) > tw_block_size(SECOND))
		return RAISE;
	return tw_elements(SECOND)[tw_small_value(FIRST) - 1];
}

FUNCTION(HD, 1)
{
	return tw_is_cons(FIRST) ? tw_cell(FIRST)->head : RAISE;
}

FUNCTION(TL, 1)
{
	return tw_is_cons(FIRST) ? tw_cell(FIRST)->tail : RAISE;
}

FUNCTION(LENGTH, 1)
{
	size_t count;

	return tw_term_list_count(FIRST, &count) == 0 ? integer(count) : RAISE;
}

FUNCTION(TUPLE_SIZE, 1)
{
	return tw_is_tuple(FIRST) ? integer(tw_block_size(FIRST)) : RAISE;
}

FUNCTION(BIT_SIZE, 1)
{
	return tw_is_bits(FIRST) ? integer(tw_bits_count(FIRST)) : RAISE;
}

FUNCTION(BYTE_SIZE, 1)
{
	return tw_is_bits(FIRST) ? integer((tw_bits_count(FIRST) + 7) / 8) : RAISE;
}

/* For a bit string, the number of whole bytes. */
FUNCTION(SIZE, 1)
{
	if (tw_is_bits(FIRST))
		return integer(tw_bits_count(FIRST) / 8);
	return tw_match_fn_TUPLE_SIZE_1(m, top);
}

/* A negative length takes the bytes before the start. */
static struct tw_term binary_part(struct tw_match_machine *m, struct tw_term bits, struct tw_term start,
				  struct tw_term length)
{
	int64_t from, count, bytes;

	if (!tw_is_bits(bits) || !tw_is_small(start) || !tw_is_small(length))
		return RAISE;
	from = tw_small_value(start);
	count = tw_small_value(length);
	bytes = (int64_t)(tw_bits_count(bits) / 8);
	if (from < 0 || from > bytes || count > bytes - from || -count > from)
		return RAISE;
	if (count < 0) {
		from += count;
		count = -count;
	}
	return tw_term_binary(arena_of(m), tw_bits_data(bits) + from, (size_t)count);
}

FUNCTION(BINARY_PART, 3)
{
	return binary_part(m, FIRST, SECOND, THIRD);
}

FUNCTION(BINARY_PART, 2)
{
	if (!tw_is_tuple(SECOND) || tw_block_size(SECOND) != 2)
		return RAISE;
	return binary_part(m, FIRST, tw_elements(SECOND)[0], tw_elements(SECOND)[1]);
}
