/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuse.c - compiles guards that one instruction can decide.
 *
 * Comparisons of a whole argument, or of its lower bits with or without a sign, with integers become one range test;
 * {'==',{'band','$N',Mask},Value} becomes a test of bits, {is_T,'$N'} of a whole argument a type test,
 * {'==',{string_at,'$N'},Binary} a call of the host.  They run in the small loop, without a stack.  Tests of ranges and
 * bits decide small integers only, and tests of strings decide machine words only:
 *
 *	range arg, range, fail -> over	smalls continue at over or fail
 *	...				the guards in general code: big integers, floats, any term
 *	over:
 *
 * Guards have no effects, and guards that raise fail, so their order is not visible.
 */
#include "match/builder.h"

#include <string.h>

/* Wide enough for the bounds of unsigned words. */
typedef __int128 wide;

/* Guards on one argument, or on the value of its lower 64 - shift bits, true for the integers low .. high. */
struct fused {
	uint32_t argument;
	uint32_t shift;
	wide min, max; /* the possible values */
	wide low, high;
};

/* The argument that an expression is; -1 if it is no whole argument. */
static int argument_of(const struct tw_match_builder *b, struct tw_term term)
{
	int64_t number = tw_match_variable_number(term);
	const struct tw_match_variable *v = number < 0 ? NULL : tw_match_find(b, (uint32_t)number);

	return v && v->home == TW_HOME_ARGUMENT && v->index <= UINT8_MAX ? v->index : -1;
}

static enum tw_match_comparison mirrored(enum tw_match_comparison op)
{
	switch (op) {
	case TW_MATCH_LT: return TW_MATCH_GT;
	case TW_MATCH_GT: return TW_MATCH_LT;
	case TW_MATCH_LE: return TW_MATCH_GE;
	case TW_MATCH_GE: return TW_MATCH_LE;
	default: return op;
	}
}

static bool is_unequal(enum tw_match_comparison op)
{
	return op == TW_MATCH_NE || op == TW_MATCH_EXACT_NE;
}

static enum tw_match_comparison inverted(enum tw_match_comparison op)
{
	switch (op) {
	case TW_MATCH_LT: return TW_MATCH_GE;
	case TW_MATCH_GT: return TW_MATCH_LE;
	case TW_MATCH_LE: return TW_MATCH_GT;
	case TW_MATCH_GE: return TW_MATCH_LT;
	case TW_MATCH_EQ: return TW_MATCH_NE;
	case TW_MATCH_NE: return TW_MATCH_EQ;
	case TW_MATCH_EXACT_EQ: return TW_MATCH_EXACT_NE;
	default: return TW_MATCH_EXACT_EQ;
	}
}

/* The interval of integers that are in relation @op to a value; false: no interval. */
static bool interval_of(enum tw_match_comparison op, wide value, struct fused *f)
{
	f->low = f->min;
	f->high = f->max;
	if (op == TW_MATCH_LT || op == TW_MATCH_LE)
		f->high = op == TW_MATCH_LT ? value - 1 : value;
	else if (op == TW_MATCH_GT || op == TW_MATCH_GE)
		f->low = op == TW_MATCH_GT ? value + 1 : value;
	else
		f->low = f->high = value;
	if (f->low > f->max || f->high < f->min)
		return false;
	f->low = f->low < f->min ? f->min : f->low;
	f->high = f->high > f->max ? f->max : f->high;
	return true;
}

static bool integer_of(struct tw_term term, wide *value)
{
	int64_t number;
	uint64_t large;

	if (tw_term_get_int64(term, &number) == 0)
		*value = number;
	else if (tw_term_get_uint64(term, &large) == 0)
		*value = large;
	else
		return false;
	return true;
}

/* {Name,A,B}: A and B. */
static const struct tw_term *operands_of(struct tw_term term, struct tw_term name)
{
	const struct tw_term *e = tw_is_tuple(term) && tw_block_size(term) == 3 ? tw_elements(term) : NULL;

	return e && tw_term_is_same(e[0], name) ? e + 1 : NULL;
}

/*
 * An argument as a whole; {'band','$N',2^k-1}, its lower k bits; {'-',{'bxor',that,2^(k-1)},2^(k-1)}, the same with a
 * sign, as types from debug information are written.
 */
static bool read_operand(const struct tw_match_builder *b, struct tw_term term, struct fused *f)
{
	const struct tw_term *minus = operands_of(term, tw_atom(TW_ATOM_SUB));
	const struct tw_term * xor = minus ? operands_of(minus[0], tw_atom(TW_ATOM_BXOR)) : NULL;
	const struct tw_term *and = operands_of(xor? xor[0] : term, tw_atom(TW_ATOM_BAND));
	int argument = argument_of(b, and? and[0] : term);
	wide mask, sign, subtrahend;

	if (argument < 0)
		return false;
	*f = (struct fused){.argument = (uint32_t)argument, .min = INT64_MIN, .max = INT64_MAX};
	if (!and)
		return true;
	if (!integer_of(and[1], &mask) || mask < 1 || (mask & (mask + 1)))
		return false;
	f->shift = (uint32_t)__builtin_clzll((uint64_t)mask);
	f->min = 0;
	f->max = mask;
	if (!xor)
		return true;
	if (!integer_of(xor[1], &sign) || !integer_of(minus[1], &subtrahend) || sign != subtrahend ||
	    sign != mask / 2 + 1)
		return false;
	f->min = -sign;
	f->max = sign - 1;
	return true;
}

/* The comparison G in {'not',G}, {'==',G,false} and similar guards, and whether it is inverted. */
static struct tw_term bare_guard(struct tw_term guard, bool *is_inverted)
{
	for (*is_inverted = false; tw_is_tuple(guard);) {
		const struct tw_term *e = tw_elements(guard);
		uint64_t size = tw_block_size(guard);
		int op = size == 3 ? tw_match_comparison_of(e[0]) : -1;

		if (size == 2 && tw_term_is_same(e[0], tw_atom(TW_ATOM_NOT)))
			*is_inverted ^= true;
		else if (op >= TW_MATCH_EQ && tw_is_tuple(e[1]) && tw_block_size(e[1]) == 3 &&
			 tw_match_comparison_of(tw_elements(e[1])[0]) >= 0 &&
			 (tw_term_is_same(e[2], tw_atom(TW_ATOM_TRUE)) ||
			  tw_term_is_same(e[2], tw_atom(TW_ATOM_FALSE))))
			*is_inverted ^= is_unequal((enum tw_match_comparison)op) ^
					tw_term_is_same(e[2], tw_atom(TW_ATOM_FALSE));
		else
			break;
		guard = e[1];
	}
	return guard;
}

/* Reads a comparison of an argument with an integer: {Op,'$N',Integer}, or with swapped operands. */
static bool read_comparison(const struct tw_match_builder *b, struct tw_term guard, struct fused *f, int *op)
{
	bool is_inverted;
	struct tw_term bare = bare_guard(guard, &is_inverted);
	const struct tw_term *e;
	wide value;

	if (!tw_is_tuple(bare) || tw_block_size(bare) != 3)
		return false;
	e = tw_elements(bare);
	*op = tw_match_comparison_of(e[0]);
	if (*op < 0)
		return false;
	if (is_inverted)
		*op = (int)inverted((enum tw_match_comparison) * op);
	if (read_operand(b, e[1], f) && integer_of(e[2], &value))
		return interval_of((enum tw_match_comparison) * op, value, f);
	if (!read_operand(b, e[2], f) || !integer_of(e[1], &value))
		return false;
	*op = (int)mirrored((enum tw_match_comparison) * op);
	return interval_of((enum tw_match_comparison) * op, value, f);
}

static struct tw_match_range range_of(const struct fused *f, bool is_outside)
{
	uint64_t low = (uint64_t)f->low;
	uint64_t high = (uint64_t)f->high;
	struct tw_match_range range = {.low = low, .span = high - low, .shift = f->shift};

	if (is_outside)
		range = (struct tw_match_range){.low = high + 1, .span = low - 1 - (high + 1), .shift = f->shift};
	range.span <<= range.shift;
	return range;
}

/* Emits the instruction; the caller sets its jump over the general code. */
static int emit_test(struct tw_match_builder *b, enum tw_match_op op, uint32_t argument, struct tw_match_range range,
		     uint32_t *place)
{
	uint32_t index;
	int error = tw_match_add_range(b, range, &index);

	if (error)
		return error;
	*place = b->code->insn_count;
	return tw_match_emit_failing(b, op, argument, index);
}

static void jump_here(struct tw_match_builder *b, uint32_t place)
{
	b->code->insns[place].d = (uint16_t)b->code->insn_count;
}

int tw_match_fuse_literal(struct tw_match_builder *b, uint32_t index, struct tw_term value)
{
	const struct fused f = {.argument = index, .low = tw_small_value(value), .high = tw_small_value(value)};
	uint32_t place;
	uint32_t constant;
	int error = emit_test(b, TW_OP_RANGE, index, range_of(&f, false), &place);

	if (!error)
		error = tw_match_constant(b, value, &constant);
	if (!error)
		error = tw_match_emit_failing(b, TW_OP_ARG_IS, index, constant);
	if (!error)
		jump_here(b, place);
	return error;
}

/* Emits a whole guard in general code. */
static int emit_general(struct tw_match_builder *b, struct tw_term guard)
{
	int error = tw_match_expression(b, guard);

	return error ? error : tw_match_emit_counted(b, TW_OP_GUARD, 0, 0, 1);
}

static bool is_same_value(const struct fused *f, const struct fused *g)
{
	return g->argument == f->argument && g->shift == f->shift && g->min == f->min;
}

/*
 * Fuses the guard at @first with later guards that bound the same argument from the other side into one range.  An
 * empty range stays two tests, one of which always fails.
 */
static int fuse_from(struct tw_match_builder *b, const struct tw_term *guards, bool *is_done, uint32_t count,
		     uint32_t first)
{
	struct fused f, g;
	uint32_t place;
	uint32_t i;
	int op;
	int error;

	if (!read_comparison(b, guards[first], &f, &op))
		return 0;
	is_done[first] = true;
	for (i = first + 1; i < count && i < first + 64 && !is_unequal((enum tw_match_comparison)op); i++) {
		int other;

		if (is_done[i] || !read_comparison(b, guards[i], &g, &other) || !is_same_value(&f, &g) ||
		    is_unequal((enum tw_match_comparison)other) || g.low > f.high || g.high < f.low)
			continue;
		f.low = g.low > f.low ? g.low : f.low;
		f.high = g.high < f.high ? g.high : f.high;
		is_done[i] = true;
	}
	error = emit_test(b, TW_OP_RANGE, f.argument, range_of(&f, is_unequal((enum tw_match_comparison)op)), &place);
	for (i = first; !error && i < count && i < first + 64; i++) {
		if (is_done[i] && read_comparison(b, guards[i], &g, &op) && is_same_value(&f, &g))
			error = emit_general(b, guards[i]);
	}
	if (!error)
		jump_here(b, place);
	return error;
}

/* Reads {'band','$N',Mask}, or with swapped operands. */
static int read_mask(const struct tw_match_builder *b, struct tw_term term, int64_t *mask)
{
	const struct tw_term *e;
	int argument;

	if (!tw_is_tuple(term) || tw_block_size(term) != 3)
		return -1;
	e = tw_elements(term);
	if (!tw_term_is_same(e[0], tw_atom(TW_ATOM_BAND)))
		return -1;
	argument = argument_of(b, e[1]);
	if (argument >= 0)
		return tw_term_get_int64(e[2], mask) == 0 ? argument : -1;
	return tw_term_get_int64(e[1], mask) == 0 ? argument_of(b, e[2]) : -1;
}

/* Fuses {'==',{'band','$N',Mask},Value}, also with '/=', into a test of bits. */
static int fuse_mask(struct tw_match_builder *b, struct tw_term guard, bool *is_done)
{
	struct tw_match_range bits;
	const struct tw_term *e;
	uint32_t place;
	int64_t mask, value;
	int op, argument, error;

	if (!tw_is_tuple(guard) || tw_block_size(guard) != 3)
		return 0;
	e = tw_elements(guard);
	op = tw_match_comparison_of(e[0]);
	if (op < TW_MATCH_EQ)
		return 0;
	argument = read_mask(b, e[1], &mask);
	if (argument < 0 || tw_term_get_int64(e[2], &value) != 0)
		return 0;
	*is_done = true;
	bits = (struct tw_match_range){.low = (uint64_t)mask, .span = (uint64_t)value};
	error = emit_test(b, is_unequal((enum tw_match_comparison)op) ? TW_OP_MASK_NOT : TW_OP_MASK, (uint32_t)argument,
			  bits, &place);
	if (!error)
		error = emit_general(b, guard);
	if (!error)
		jump_here(b, place);
	return error;
}

static int fuse_type(struct tw_match_builder *b, struct tw_term guard, bool *is_done)
{
	int type;
	int argument;

	if (!tw_is_tuple(guard) || tw_block_size(guard) != 2)
		return 0;
	type = tw_match_type_of(tw_elements(guard)[0]);
	argument = argument_of(b, tw_elements(guard)[1]);
	if (type < 0 || argument < 0)
		return 0;
	*is_done = true;
	return tw_match_emit_failing(b, TW_OP_ARG_TYPE, (unsigned)argument, (unsigned)type);
}

/* Reads {'==',{string_at,'$N'},Binary}, also swapped or with '/='; for words only, since no term has a string. */
static bool read_string(const struct tw_match_builder *b, struct tw_term side, struct tw_term other, int *argument)
{
	const unsigned char *text;

	if (!tw_is_tuple(side) || tw_block_size(side) != 2 ||
	    !tw_term_is_same(tw_elements(side)[0], tw_atom(TW_ATOM_STRING_AT)) || !tw_is_binary(other) ||
	    tw_bits_count(other) > 8 * TW_MATCH_STRING_BYTES_MAX)
		return false;
	text = tw_bits_data(other);
	*argument = argument_of(b, tw_elements(side)[1]);
	return *argument >= 0 && !memchr(text, 0, tw_bits_count(other) / 8);
}

static int fuse_string(struct tw_match_builder *b, struct tw_term guard, bool *is_done)
{
	bool is_inverted;
	struct tw_term bare = bare_guard(guard, &is_inverted), text;
	const struct tw_term *e;
	uint32_t constant, place;
	int op, argument, error;

	if (!tw_is_tuple(bare) || tw_block_size(bare) != 3)
		return 0;
	e = tw_elements(bare);
	op = tw_match_comparison_of(e[0]);
	if (op < TW_MATCH_EQ)
		return 0;
	if (read_string(b, e[1], e[2], &argument))
		text = e[2];
	else if (read_string(b, e[2], e[1], &argument))
		text = e[1];
	else
		return 0;
	*is_done = true;
	error = tw_match_constant(b, text, &constant);
	if (error)
		return error;
	place = b->code->insn_count;
	error = tw_match_emit_failing(b,
				      is_unequal((enum tw_match_comparison)op) ^ is_inverted ? TW_OP_STRING_NOT
											     : TW_OP_STRING,
				      (unsigned)argument, constant);
	if (!error)
		error = emit_general(b, guard);
	if (!error)
		jump_here(b, place);
	return error;
}

/* Strings last: they are the slowest. */
int tw_match_guards_quick(struct tw_match_builder *b, const struct tw_term *guards, bool *is_done, uint32_t count)
{
	uint32_t i;
	int error = 0;

	for (i = 0; !error && i < count; i++) {
		if (!is_done[i])
			error = fuse_type(b, guards[i], &is_done[i]);
		if (!error && !is_done[i])
			error = fuse_from(b, guards, is_done, count, i);
		if (!error && !is_done[i])
			error = fuse_mask(b, guards[i], &is_done[i]);
	}
	for (i = 0; !error && i < count; i++)
		if (!is_done[i])
			error = fuse_string(b, guards[i], &is_done[i]);
	return error;
}
