/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuse.c - guards that one instruction decides.
 *
 * Comparisons of a whole argument with integers become one range test, {'==',{'band','$N',Mask},Value}
 * a test of bits, {is_T,'$N'} of a whole argument a type test; they run in the small loop, without a
 * stack.  Tests of ranges and bits decide small integers only:
 *
 *	range arg, range, fail -> over	smalls go on at over or fail
 *	...				what the guards say in general: big integers, floats, any term
 *	over:
 *
 * Guards have no effects and those that raise fail, so their order cannot be seen.
 */
#include "match/builder.h"

/* Guards on one argument whose integers are low .. high. */
struct fused {
	uint32_t argument;
	int64_t low, high;
};

/* The argument that an expression is as a whole; -1 for any other expression. */
static int argument_of(const struct tw_match_builder *b, struct tw_term term)
{
	int64_t number = tw_match_variable_number(term);
	const struct tw_match_variable *v = number < 0 ? NULL : tw_match_find(b, (uint32_t)number);

	return v && v->home == TW_HOME_ARGUMENT && v->index <= UINT8_MAX ? v->index : -1;
}

static enum tw_match_comparison mirrored(enum tw_match_comparison op)
{
	switch (op) {
	case TW_MATCH_LT:
		return TW_MATCH_GT;
	case TW_MATCH_GT:
		return TW_MATCH_LT;
	case TW_MATCH_LE:
		return TW_MATCH_GE;
	case TW_MATCH_GE:
		return TW_MATCH_LE;
	default:
		return op;
	}
}

static bool is_unequal(enum tw_match_comparison op)
{
	return op == TW_MATCH_NE || op == TW_MATCH_EXACT_NE;
}

/* The integers that stand in the given relation to a value; false for none. */
static bool interval_of(enum tw_match_comparison op, int64_t value, struct fused *f)
{
	f->low = INT64_MIN;
	f->high = INT64_MAX;
	if ((op == TW_MATCH_LT && value == INT64_MIN) || (op == TW_MATCH_GT && value == INT64_MAX))
		return false;
	if (op == TW_MATCH_LT || op == TW_MATCH_LE)
		f->high = op == TW_MATCH_LT ? value - 1 : value;
	else if (op == TW_MATCH_GT || op == TW_MATCH_GE)
		f->low = op == TW_MATCH_GT ? value + 1 : value;
	else
		f->low = f->high = value;
	return true;
}

/* Is it a comparison of an argument with an integer?  {Op,'$N',Integer} or the other way round. */
static bool read_comparison(const struct tw_match_builder *b, struct tw_term guard, struct fused *f, int *op)
{
	const struct tw_term *e;
	int argument;
	int64_t value;

	if (!tw_is_tuple(guard) || tw_block_size(guard) != 3)
		return false;
	e = tw_elements(guard);
	*op = tw_match_comparison_of(e[0]);
	if (*op < 0)
		return false;
	argument = argument_of(b, e[1]);
	if (argument >= 0 && tw_term_get_int64(e[2], &value) == 0) {
		f->argument = (uint32_t)argument;
		return interval_of((enum tw_match_comparison)*op, value, f);
	}
	argument = argument_of(b, e[2]);
	if (argument < 0 || tw_term_get_int64(e[1], &value) != 0)
		return false;
	f->argument = (uint32_t)argument;
	*op = (int)mirrored((enum tw_match_comparison)*op);
	return interval_of((enum tw_match_comparison)*op, value, f);
}

static struct tw_match_range range_of(const struct fused *f, bool is_outside)
{
	uint64_t low = (uint64_t)f->low;
	uint64_t high = (uint64_t)f->high;

	if (is_outside)
		return (struct tw_match_range){.low = high + 1, .span = low - 1 - (high + 1)};
	return (struct tw_match_range){.low = low, .span = high - low};
}

/* The instruction itself; the jump over the general code is set by the caller. */
static int emit_test(struct tw_match_builder *b, enum tw_match_op op, uint32_t argument,
		     struct tw_match_range range, uint32_t *place)
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
	struct fused f = {.argument = index, .low = tw_small_value(value), .high = tw_small_value(value)};
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

/* A guard as a whole in general code. */
static int emit_general(struct tw_match_builder *b, struct tw_term guard)
{
	int error = tw_match_expression(b, guard);

	return error ? error : tw_match_emit_counted(b, TW_OP_GUARD, 0, 0, 1);
}

/*
 * The guard at @first, and those behind it that bound the same argument from the other side: one range.
 * An empty range stays two tests, of which one always fails.
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

		if (is_done[i] || !read_comparison(b, guards[i], &g, &other) || g.argument != f.argument ||
		    is_unequal((enum tw_match_comparison)other) || g.low > f.high || g.high < f.low)
			continue;
		f.low = g.low > f.low ? g.low : f.low;
		f.high = g.high < f.high ? g.high : f.high;
		is_done[i] = true;
	}
	error = emit_test(b, TW_OP_RANGE, f.argument, range_of(&f, is_unequal((enum tw_match_comparison)op)), &place);
	for (i = first; !error && i < count && i < first + 64; i++) {
		if (is_done[i] && read_comparison(b, guards[i], &g, &op) && g.argument == f.argument)
			error = emit_general(b, guards[i]);
	}
	if (!error)
		jump_here(b, place);
	return error;
}

/* {'band','$N',Mask} or the other way round. */
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

/* {'==',{'band','$N',Mask},Value}, and with '/=': a test of bits. */
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
	error = emit_test(b, is_unequal((enum tw_match_comparison)op) ? TW_OP_MASK_NOT : TW_OP_MASK,
			  (uint32_t)argument, bits, &place);
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
	return tw_match_emit_failing(b, TW_OP_ARG_TYPE, (unsigned int)argument, (unsigned int)type);
}

int tw_match_guards_quick(struct tw_match_builder *b, const struct tw_term *guards, bool *is_done, uint32_t count)
{
	uint32_t i;
	int error = 0;

	for (i = 0; !error && i < count; i++) {
		if (!is_done[i])
			error = fuse_type(b, guards[i], &is_done[i]);
		if (!error && !is_done[i])
			error = fuse_mask(b, guards[i], &is_done[i]);
		if (!error && !is_done[i])
			error = fuse_from(b, guards, is_done, count, i);
	}
	return error;
}
