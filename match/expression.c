/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expression.c - compiles guards and bodies to code that leaves a value on the stack.
 *
 * Arguments of functions and elements of tuples are evaluated from the last to the first, lists from the first, as in
 * OTP; only body functions with effects make that visible.
 */
#include "match/builder.h"
#include "base/grow.h"
#include "base/search.h"

#include <stdlib.h>

static const struct {
	uint8_t arity;
	uint8_t where;
	uint32_t atom;
} functions[] = {
#define TW_MATCH_FUNCTION_ROW(atom, arity, where) {arity, where, TW_ATOM_##atom},
	TW_MATCH_FUNCTIONS(TW_MATCH_FUNCTION_ROW)
#undef TW_MATCH_FUNCTION_ROW
};

static const uint32_t comparisons[] = {
#define TW_MATCH_COMPARISON_ROW(atom) TW_ATOM_##atom,
	TW_MATCH_COMPARISONS(TW_MATCH_COMPARISON_ROW)
#undef TW_MATCH_COMPARISON_ROW
};

static const uint32_t types[] = {
#define TW_MATCH_TYPE_ROW(atom) TW_ATOM_##atom,
	TW_MATCH_TYPES(TW_MATCH_TYPE_ROW)
#undef TW_MATCH_TYPE_ROW
};

static int index_of(const uint32_t *names, uint32_t count, struct tw_term name)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (tw_term_is_same(name, tw_atom(names[i])))
			return (int)i;
	}
	return -1;
}

int tw_match_comparison_of(struct tw_term name)
{
	return index_of(comparisons, TW_COUNT_OF(comparisons), name);
}

int tw_match_type_of(struct tw_term name)
{
	return index_of(types, TW_COUNT_OF(types), name);
}

static bool is_atom(struct tw_term t, uint32_t index)
{
	return tw_term_is_same(t, tw_atom(index));
}

static bool is_plain(struct tw_term t)
{
	return tw_match_variable_number(t) < 0 && !is_atom(t, TW_ATOM_WHOLE) && !is_atom(t, TW_ATOM_BINDINGS);
}

/* {{...}} */
static bool is_tuple_of(struct tw_term t)
{
	return tw_is_tuple(t) && tw_block_size(t) == 1 && tw_is_tuple(tw_elements(t)[0]);
}

static bool is_const(struct tw_term t)
{
	return tw_is_tuple(t) && tw_block_size(t) == 2 && is_atom(tw_elements(t)[0], TW_ATOM_CONST);
}

static int child(struct tw_match_builder *b, struct tw_term term, uint32_t index)
{
	int error = tw_match_enter(b, index);

	if (!error)
		error = tw_match_expression(b, term);
	if (!error)
		tw_match_leave(b);
	return error;
}

/* Emits an instruction that replaces @count values by one, or fails. */
static int replace(struct tw_match_builder *b, enum tw_match_op op, unsigned a, unsigned operand, unsigned pops)
{
	int error = tw_match_emit_counted(b, op, a, operand, pops);

	return error ? error : tw_match_push(b, 1);
}

/* ---- constants ---- */

/* True if the term, as an expression, is a constant equal to itself. */
static bool is_literal(struct tw_term t, uint32_t depth)
{
	uint64_t i;

	if (depth > TW_MATCH_DEPTH_MAX)
		return false;
	for (; tw_is_cons(t); t = tw_cell(t)->tail) {
		if (!is_literal(tw_cell(t)->head, depth + 1))
			return false;
	}
	for (i = 0; tw_is_map(t) && i < tw_block_size(t) * 2; i++) {
		if (!is_literal(tw_elements(t)[i], depth + 1))
			return false;
	}
	return !tw_is_tuple(t) && is_plain(t);
}

static bool fold_tuple(struct tw_match_builder *b, struct tw_term t, uint32_t depth, struct tw_term *constant)
{
	uint64_t count = tw_block_size(t);
	struct tw_term *elements = malloc((count + 1) * sizeof *elements);
	bool is_constant = elements != NULL;
	uint64_t i;

	for (i = 0; is_constant && i < count; i++)
		is_constant = tw_match_fold(b, tw_elements(t)[i], depth + 1, &elements[i]);
	if (is_constant) {
		*constant = tw_term_tuple(&b->code->terms, elements, count);
		is_constant = !tw_term_is_none(*constant);
	}
	free(elements);
	return is_constant;
}

bool tw_match_fold(struct tw_match_builder *b, struct tw_term term, uint32_t depth, struct tw_term *constant)
{
	if (depth > TW_MATCH_DEPTH_MAX)
		return false;
	if (is_const(term)) {
		*constant = tw_elements(term)[1];
		return true;
	}
	if (is_tuple_of(term))
		return fold_tuple(b, tw_elements(term)[0], depth, constant);
	*constant = term;
	return is_literal(term, depth);
}

static int push_constant(struct tw_match_builder *b, struct tw_term constant)
{
	uint32_t index;
	int error = tw_match_constant(b, constant, &index);

	if (!error)
		error = tw_match_emit(b, TW_OP_CONST, 0, index);
	return error ? error : tw_match_push(b, 1);
}

/* ---- variables ---- */

static int push_whole(struct tw_match_builder *b)
{
	int error = tw_match_emit_failing(b, b->target == TW_MATCH_TABLE ? TW_OP_ARG : TW_OP_WHOLE, 0, 0);

	return error ? error : tw_match_push(b, 1);
}

static int push_bound(struct tw_match_builder *b, const struct tw_match_variable *v)
{
	int error;

	if (v->home == TW_HOME_WHOLE)
		return push_whole(b);
	if (v->home == TW_HOME_ARGUMENT)
		error = tw_match_emit_failing(b, TW_OP_ARG, 0, v->index);
	else
		error = tw_match_emit(b, TW_OP_VAR, 0, v->index);
	return error ? error : tw_match_push(b, 1);
}

static int variable(struct tw_match_builder *b, struct tw_term term)
{
	const struct tw_match_variable *v = tw_match_find(b, (uint32_t)tw_match_variable_number(term));

	return v ? push_bound(b, v) : tw_match_refuse_term(b, "a variable that the head does not bind", term);
}

static int by_number(const void *x, const void *y)
{
	const struct tw_match_variable *a = x;
	const struct tw_match_variable *b = y;

	return TW_ORDER(a->number, b->number);
}

/* '$$': the values of all variables, in the order of their numbers. */
static int bindings(struct tw_match_builder *b)
{
	uint32_t i = b->variable_count;
	int error;

	if (b->variable_count)
		qsort(b->variables, b->variable_count, sizeof *b->variables, by_number);
	error = push_constant(b, tw_term_nil());
	while (!error && i-- > 0) {
		error = push_bound(b, &b->variables[i]);
		if (!error)
			error = replace(b, TW_OP_CONS, 0, 0, 2);
	}
	return error;
}

/* ---- lists, maps and tuples ---- */

/* True if the evaluation has effects that make its order visible. */
static bool has_effect(struct tw_term t, uint32_t depth)
{
	static const uint32_t actions[] = {TW_ATOM_MESSAGE, TW_ATOM_SILENT};
	uint64_t i;
	bool has = depth > TW_MATCH_DEPTH_MAX;

	if (is_const(t))
		return false;
	for (; !has && tw_is_cons(t); t = tw_cell(t)->tail)
		has = has_effect(tw_cell(t)->head, depth + 1);
	for (i = 0; !has && tw_is_map(t) && i < tw_block_size(t) * 2; i++)
		has = has_effect(tw_elements(t)[i], depth + 1);
	if (has || !tw_is_tuple(t) || tw_block_size(t) == 0)
		return has;
	for (i = 0; i < TW_COUNT_OF(functions); i++) {
		if ((functions[i].where & TW_MATCH_HAS_EFFECT) && is_atom(tw_elements(t)[0], functions[i].atom))
			return true;
	}
	has = index_of(actions, TW_COUNT_OF(actions), tw_elements(t)[0]) >= 0;
	for (i = 0; !has && i < tw_block_size(t); i++)
		has = has_effect(tw_elements(t)[i], depth + 1);
	return has;
}

/* The elements from first to last, then the tail, then a cell for each. */
static int list_in_order(struct tw_match_builder *b, const struct tw_term *elements, uint32_t count,
			 struct tw_term tail)
{
	uint32_t i;
	int error = 0;

	for (i = 0; !error && i < count; i++)
		error = child(b, elements[i], i);
	if (!error)
		error = child(b, tail, count);
	for (i = 0; !error && i < count; i++) {
		error = replace(b, TW_OP_SNOC, 0, 0, 2);
	}
	return error;
}

/* The tail; then each element, from last to first, becomes the head of a cell: a short stack suffices. */
static int list_from_end(struct tw_match_builder *b, const struct tw_term *elements, uint32_t count,
			 struct tw_term tail)
{
	int error = child(b, tail, count);

	while (!error && count-- > 0) {
		error = child(b, elements[count], count);
		if (!error)
			error = replace(b, TW_OP_CONS, 0, 0, 2);
	}
	return error;
}

static int list(struct tw_match_builder *b, struct tw_term term)
{
	struct tw_term *elements = NULL;
	uint32_t count = 0;
	uint32_t capacity = 0;
	struct tw_term tail;
	int error = 0;

	for (tail = term; !error && tw_is_cons(tail); tail = tw_cell(tail)->tail) {
		if (!tw_grow(elements, count, capacity))
			error = TW_ENOMEM;
		else
			elements[count++] = tw_cell(tail)->head;
	}
	if (!error && b->in_body && has_effect(term, 0))
		error = list_in_order(b, elements, count, tail);
	else if (!error)
		error = list_from_end(b, elements, count, tail);
	free(elements);
	return error;
}

static int map(struct tw_match_builder *b, struct tw_term term)
{
	uint64_t count = tw_block_size(term);
	uint64_t i;
	int error = 0;

	if (count > TW_MATCH_STACK_MAX / 2)
		return tw_match_refuse(b, TW_ELIMIT, "a map of more than %d keys that is not a constant",
				       TW_MATCH_STACK_MAX / 2);
	/* The values, then the keys, each from last to first. */
	for (i = count * 2; !error && i > count; i--)
		error = child(b, tw_elements(term)[i - 1], (uint32_t)i - 1);
	for (i = count; !error && i > 0; i--)
		error = child(b, tw_elements(term)[i - 1], (uint32_t)i - 1);
	return error ? error : replace(b, TW_OP_MAP, 0, (unsigned)count, (unsigned)count * 2);
}

static int tuple(struct tw_match_builder *b, struct tw_term term)
{
	uint64_t count = tw_block_size(term);
	uint64_t i;
	int error = 0;

	if (count > TW_MATCH_STACK_MAX)
		return tw_match_refuse(b, TW_ELIMIT, "a tuple of more than %d elements that is not a constant",
				       TW_MATCH_STACK_MAX);
	for (i = count; !error && i > 0; i--)
		error = child(b, tw_elements(term)[i - 1], (uint32_t)i - 1);
	return error ? error : replace(b, TW_OP_TUPLE, 0, (unsigned)count, (unsigned)count);
}

/* ---- functions ---- */

/* Arguments from last to first, then the instruction, which replaces them by one value. */
static int apply(struct tw_match_builder *b, struct tw_term call, enum tw_match_op op, unsigned a)
{
	uint32_t count = (uint32_t)tw_block_size(call) - 1;
	uint32_t i;
	int error = 0;

	for (i = count; !error && i > 0; i--)
		error = child(b, tw_elements(call)[i], i);
	if (error)
		return error;
	if (op == TW_OP_CALL || op == TW_OP_COMPARE)
		return replace(b, op, a, 0, count);
	/* The other instructions cannot fail. */
	error = tw_match_emit(b, op, a, 0);
	b->stack -= count;
	return error ? error : tw_match_push(b, 1);
}

/* {'and',A,B,C} is {'and',A,{'and',B,C}}: each of them raises if an operand is not a boolean. */
static int strict_boolean(struct tw_match_builder *b, struct tw_term call, enum tw_match_op op)
{
	uint32_t i = (uint32_t)tw_block_size(call) - 1;
	unsigned operands = i > 1 ? 2 : 1;
	int error = child(b, tw_elements(call)[i], i);

	do {
		if (!error && operands == 2) {
			i--;
			error = child(b, tw_elements(call)[i], i);
		}
		if (!error)
			error = replace(b, op, 0, operands, operands);
	} while (!error && i > 1);
	return error;
}

static int lazy_boolean(struct tw_match_builder *b, struct tw_term call, enum tw_match_op op)
{
	uint32_t count = (uint32_t)tw_block_size(call) - 1;
	uint32_t *jumps = malloc(count * sizeof *jumps);
	uint32_t i;
	int error = jumps ? 0 : TW_ENOMEM;

	for (i = 1; !error && i < count; i++) {
		error = child(b, tw_elements(call)[i], i);
		jumps[i] = b->code->insn_count;
		if (!error)
			error = tw_match_emit_counted(b, op, 0, 0, 1);
	}
	if (!error)
		error = child(b, tw_elements(call)[count], count);
	for (i = 1; !error && i < count; i++)
		b->code->insns[jumps[i]].d = (uint16_t)b->code->insn_count;
	free(jumps);
	return error;
}

static int refuse_context(struct tw_match_builder *b, unsigned where, struct tw_term name)
{
	if (b->target == TW_MATCH_TABLE && (where & TW_MATCH_NOT_IN_TABLE))
		return tw_match_refuse_term(b, "a function that has a meaning in tracing only", name);
	if (!b->in_body && (where & TW_MATCH_IN_BODY_ONLY))
		return tw_match_refuse_term(b, "a function that may stand in bodies only, not in guards", name);
	if (b->target == TW_MATCH_SEND && (where & TW_MATCH_NOT_IN_SEND))
		return tw_match_refuse_term(b, "a function that has no meaning for send", name);
	if (b->target == TW_MATCH_RECEIVE && (where & TW_MATCH_NOT_IN_RECEIVE))
		return tw_match_refuse_term(b, "a function that has no meaning for receive", name);
	return 0;
}

static int refuse_arity(struct tw_match_builder *b, struct tw_term call)
{
	return tw_match_refuse_term(b, "a function with the wrong number of arguments", call);
}

/* message, silent, return_trace, exception_trace: they have their own instructions. */
static int action(struct tw_match_builder *b, struct tw_term call, bool *is_action)
{
	struct tw_term name = tw_elements(call)[0];
	uint64_t arity = tw_block_size(call) - 1;
	bool is_value = is_atom(name, TW_ATOM_MESSAGE) || is_atom(name, TW_ATOM_SILENT);
	bool is_return = is_atom(name, TW_ATOM_RETURN_TRACE);
	int error;

	*is_action = is_value || is_return || is_atom(name, TW_ATOM_EXCEPTION_TRACE);
	if (!*is_action)
		return 0;
	error = refuse_context(b,
			       is_atom(name, TW_ATOM_SILENT) ? TW_MATCH_ACTS
							     : TW_MATCH_IN_BODY_ONLY | TW_MATCH_NOT_IN_TABLE,
			       name);
	if (error)
		return error;
	if (arity != is_value)
		return refuse_arity(b, call);
	if (is_value)
		return apply(b, call, is_atom(name, TW_ATOM_MESSAGE) ? TW_OP_MESSAGE : TW_OP_SILENT, 0);
	error = tw_match_emit(b, TW_OP_ACTION, is_return ? TW_MATCH_RETURN_TRACE : TW_MATCH_EXCEPTION_TRACE, 0);
	return error ? error : tw_match_push(b, 1);
}

static int boolean(struct tw_match_builder *b, struct tw_term call, bool *is_boolean)
{
	static const uint32_t names[] = {TW_ATOM_AND, TW_ATOM_OR, TW_ATOM_ANDALSO, TW_ATOM_ORELSE};
	int which = index_of(names, TW_COUNT_OF(names), tw_elements(call)[0]);

	*is_boolean = which >= 0;
	if (which < 0)
		return 0;
	if (tw_block_size(call) < 2)
		return refuse_arity(b, call);
	if (tw_block_size(call) > TW_MATCH_INSNS_MAX)
		return tw_match_refuse(b, TW_ELIMIT, "more than %d operands", TW_MATCH_INSNS_MAX);
	if (which < 2)
		return strict_boolean(b, call, which ? TW_OP_OR : TW_OP_AND);
	return lazy_boolean(b, call, which == 2 ? TW_OP_ANDALSO : TW_OP_ORELSE);
}

/* The depth must be a literal number: OTP also reads it when the specification is set. */
static int check_depth(struct tw_match_builder *b, struct tw_term call)
{
	struct tw_term depth = tw_elements(call)[1];

	if (!tw_is_small(depth) || tw_small_value(depth) < 0)
		return tw_match_refuse_term(b, "the depth of a stack trace is an integer that is not negative", depth);
	return 0;
}

static int function(struct tw_match_builder *b, struct tw_term call)
{
	struct tw_term name = tw_elements(call)[0];
	uint64_t arity = tw_block_size(call) - 1;
	bool is_known = false;
	uint32_t i;
	int error;

	for (i = 0; i < TW_COUNT_OF(functions); i++) {
		if (!is_atom(name, functions[i].atom))
			continue;
		is_known = true;
		if (functions[i].arity != arity)
			continue;
		error = refuse_context(b, functions[i].where, name);
		if (!error && i == TW_FN_CURRENT_STACKTRACE_1)
			error = check_depth(b, call);
		return error ? error : apply(b, call, TW_OP_CALL, i);
	}
	if (is_known)
		return refuse_arity(b, call);
	return tw_match_refuse_term(b, "an unknown function", call);
}

static int call(struct tw_match_builder *b, struct tw_term term)
{
	struct tw_term name = tw_elements(term)[0];
	uint64_t arity = tw_block_size(term) - 1;
	int which;
	bool is_found;
	int error;

	error = boolean(b, term, &is_found);
	if (is_found)
		return error;
	error = action(b, term, &is_found);
	if (is_found)
		return error;
	which = tw_match_comparison_of(name);
	if (which >= 0)
		return arity == 2 ? apply(b, term, TW_OP_COMPARE, (unsigned)which) : refuse_arity(b, term);
	which = tw_match_type_of(name);
	if (which >= 0)
		return arity == 1 ? apply(b, term, TW_OP_TEST, (unsigned)which) : refuse_arity(b, term);
	if (is_atom(name, TW_ATOM_CONST))
		return refuse_arity(b, term);
	return function(b, term);
}

/* One level below the enclosing term; recursion inside the expression is counted by its children. */
int tw_match_expression(struct tw_match_builder *b, struct tw_term term)
{
	struct tw_term constant;
	int error;

	if (tw_match_fold(b, term, 0, &constant))
		return push_constant(b, constant);
	if (tw_match_variable_number(term) >= 0)
		return variable(b, term);
	if (is_atom(term, TW_ATOM_WHOLE))
		return push_whole(b);
	if (is_atom(term, TW_ATOM_BINDINGS))
		return bindings(b);
	if (tw_is_cons(term))
		return list(b, term);
	if (tw_is_map(term))
		return map(b, term);
	if (is_tuple_of(term)) {
		error = tw_match_enter(b, 0);
		if (!error)
			error = tuple(b, tw_elements(term)[0]);
		if (!error)
			tw_match_leave(b);
		return error;
	}
	if (tw_is_tuple(term) && tw_block_size(term) > 0 && tw_is_atom(tw_elements(term)[0]) &&
	    tw_match_variable_number(tw_elements(term)[0]) < 0)
		return call(b, term);
	return tw_match_refuse_term(b, "neither a call nor a tuple, which is written {{...}}", term);
}
