/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pattern.c - compiles heads.
 *
 * A variable that is a whole argument needs no code.  A variable inside an argument is bound to a register.  The order
 * of the tests is not visible, so the cheap ones come first: literals that are whole arguments, then (after the cheap
 * guards) everything else.
 */
#include "match/builder.h"

static bool is_any(struct tw_term t)
{
	return tw_term_is_same(t, tw_atom(TW_ATOM_ANY));
}

/* True if a pattern matches one value only.  Maps match supersets, so they are not ground. */
static bool is_ground(struct tw_term t, uint32_t depth)
{
	uint64_t i;

	if (depth > TW_MATCH_DEPTH_MAX)
		return false;
	for (; tw_is_cons(t); t = tw_cell(t)->tail) {
		if (!is_ground(tw_cell(t)->head, depth + 1))
			return false;
	}
	if (tw_is_map(t) || is_any(t) || tw_match_variable_number(t) >= 0)
		return false;
	for (i = 0; tw_is_tuple(t) && i < tw_block_size(t); i++) {
		if (!is_ground(tw_elements(t)[i], depth + 1))
			return false;
	}
	return true;
}

/* Matches a pattern against the value on top of the stack, and pops it. */
static int match_top(struct tw_match_builder *b, struct tw_term pattern);

static int match_child(struct tw_match_builder *b, struct tw_term pattern, uint32_t child)
{
	int error = tw_match_enter(b, child);

	if (!error)
		error = match_top(b, pattern);
	if (!error)
		tw_match_leave(b);
	return error;
}

static int pop(struct tw_match_builder *b)
{
	b->stack--;
	return tw_match_emit(b, TW_OP_POP, 0, 0);
}

static int match_constant(struct tw_match_builder *b, struct tw_term constant)
{
	uint32_t index;
	int error = tw_match_constant(b, constant, &index);

	return error ? error : tw_match_emit_counted(b, TW_OP_MATCH_CONST, 0, index, 1);
}

static int match_variable(struct tw_match_builder *b, uint32_t number)
{
	const struct tw_match_variable *v = tw_match_find(b, number);
	int error;

	if (v)
		return tw_match_emit_counted(b, v->home == TW_HOME_ARGUMENT ? TW_OP_MATCH_ARG : TW_OP_MATCH_VAR, 0,
					     v->index, 1);
	error = tw_match_bind(b, number, TW_HOME_REGISTER, b->register_count);
	if (error)
		return error;
	b->stack--;
	return tw_match_emit(b, TW_OP_BIND, 0, b->register_count++);
}

static int match_tuple(struct tw_match_builder *b, struct tw_term pattern)
{
	uint64_t count = tw_block_size(pattern);
	uint32_t i;
	int error;

	if (count > UINT16_MAX)
		return tw_match_refuse(b, TW_ELIMIT, "a pattern of more than %d elements", UINT16_MAX);
	error = tw_match_emit_failing(b, TW_OP_MATCH_TUPLE, 0, (unsigned)count);
	for (i = 0; !error && i < count; i++) {
		if (is_any(tw_elements(pattern)[i]))
			continue;
		error = tw_match_emit_failing(b, TW_OP_ELEMENT, 0, i);
		if (!error)
			error = tw_match_push(b, 1);
		if (!error)
			error = match_child(b, tw_elements(pattern)[i], i);
	}
	return error ? error : pop(b);
}

/* The number of elements of a list up to the last that is not ground; the rest is compared as a whole. */
static uint32_t open_count(struct tw_term list)
{
	uint32_t count = 0;
	uint32_t i;

	for (i = 1; tw_is_cons(list); i++, list = tw_cell(list)->tail) {
		if (!is_ground(tw_cell(list)->head, 0))
			count = i;
	}
	return is_ground(list, 0) ? count : i - 1;
}

static int match_list(struct tw_match_builder *b, struct tw_term pattern)
{
	uint32_t count = open_count(pattern);
	uint32_t i;
	int error = 0;

	for (i = 0; !error && i < count; i++, pattern = tw_cell(pattern)->tail) {
		error = tw_match_emit_failing(b, TW_OP_MATCH_CONS, 0, 0);
		if (!error)
			error = tw_match_push(b, 1);
		if (!error)
			error = match_child(b, tw_cell(pattern)->head, i);
	}
	if (error)
		return error;
	return tw_is_cons(pattern) ? match_constant(b, pattern) : match_child(b, pattern, i);
}

static int match_map(struct tw_match_builder *b, struct tw_term pattern)
{
	uint64_t count = tw_block_size(pattern);
	const struct tw_term *keys = tw_elements(pattern);
	uint32_t key;
	uint32_t i;
	int error = tw_match_emit_failing(b, TW_OP_MATCH_MAP, 0, 0);

	for (i = 0; !error && i < count; i++) {
		if (is_any(keys[i]))
			return tw_match_refuse(b, TW_EBADARG, "'_' cannot be a key of a map in a head");
		if (tw_match_variable_number(keys[i]) >= 0)
			return tw_match_refuse_term(b, "a variable cannot be a key of a map in a head", keys[i]);
		error = tw_match_constant(b, keys[i], &key);
		if (!error)
			error = tw_match_emit_failing(b, TW_OP_MATCH_KEY, 0, key);
		if (!error)
			error = tw_match_push(b, 1);
		if (!error)
			error = match_child(b, keys[count + i], i);
	}
	return error ? error : pop(b);
}

static int match_top(struct tw_match_builder *b, struct tw_term pattern)
{
	int64_t number = tw_match_variable_number(pattern);

	if (is_any(pattern))
		return pop(b);
	if (number >= 0)
		return match_variable(b, (uint32_t)number);
	if (tw_is_map(pattern))
		return match_map(b, pattern);
	if (is_ground(pattern, 0))
		return match_constant(b, pattern);
	return tw_is_cons(pattern) ? match_list(b, pattern) : match_tuple(b, pattern);
}

/* ---- heads ---- */

/* The patterns of a head that is a list, or a tuple, which OTP treats as a list. */
struct arguments {
	struct tw_term list;
	struct tw_term tuple;
	uint64_t index;
};

static struct arguments arguments_of(struct tw_term head)
{
	struct arguments a = {.list = head, .tuple = head};

	return a;
}

static bool next_argument(struct arguments *a, struct tw_term *pattern)
{
	if (tw_is_tuple(a->tuple)) {
		if (a->index >= tw_block_size(a->tuple))
			return false;
		*pattern = tw_elements(a->tuple)[a->index++];
		return true;
	}
	if (!tw_is_cons(a->list))
		return false;
	*pattern = tw_cell(a->list)->head;
	a->list = tw_cell(a->list)->tail;
	a->index++;
	return true;
}

/* True for a table's object, which is the only argument, and for heads that match any arguments. */
static bool is_whole(const struct tw_match_builder *b, struct tw_term head)
{
	return b->target == TW_MATCH_TABLE || is_any(head) || tw_match_variable_number(head) >= 0;
}

static int survey_whole(struct tw_match_builder *b, struct tw_term head)
{
	int64_t number = tw_match_variable_number(head);
	bool is_table = b->target == TW_MATCH_TABLE;

	b->arity = (struct tw_match_arity){.is_free = true};
	if (number < 0)
		return 0;
	return tw_match_bind(b, (uint32_t)number, is_table ? TW_HOME_ARGUMENT : TW_HOME_WHOLE, 0);
}

int tw_match_head_survey(struct tw_match_builder *b, struct tw_term head)
{
	struct arguments a = arguments_of(head);
	struct tw_term pattern;
	bool is_prefix;
	int error;

	if (is_whole(b, head))
		return survey_whole(b, head);
	if (!tw_is_list(head) && !tw_is_tuple(head))
		return tw_match_refuse_term(b, "a head is a list of patterns, '_' or a variable", head);
	while (next_argument(&a, &pattern)) {
		int64_t number = tw_match_variable_number(pattern);

		if (a.index > UINT16_MAX)
			return tw_match_refuse(b, TW_ELIMIT, "a head of more than %d patterns", UINT16_MAX);
		if (number < 0 || tw_match_find(b, (uint32_t)number))
			continue;
		error = tw_match_bind(b, (uint32_t)number, TW_HOME_ARGUMENT, (uint32_t)a.index - 1);
		if (error)
			return error;
	}
	/* OTP 29: ['$1' | '_'] matches calls with one argument or more. */
	is_prefix = !tw_is_tuple(head) && is_any(a.list);
	if (!tw_is_tuple(head) && !is_prefix && !tw_is_nil(a.list))
		return tw_match_refuse_term(b, "the head is not a proper list; only '_' may stand behind the |", head);
	b->arity = (struct tw_match_arity){.count = (uint16_t)a.index, .is_prefix = is_prefix};
	return 0;
}

/* True if the pattern of argument @index is the variable that stands for it. */
static bool is_alias(const struct tw_match_builder *b, struct tw_term pattern, uint64_t index)
{
	int64_t number = tw_match_variable_number(pattern);
	const struct tw_match_variable *v;

	if (number < 0)
		return false;
	v = tw_match_find(b, (uint32_t)number);
	return v && v->home == TW_HOME_ARGUMENT && v->index == index;
}

static bool is_quick(struct tw_term pattern, uint64_t index)
{
	if (index > UINT8_MAX || is_any(pattern) || tw_match_variable_number(pattern) >= 0)
		return false;
	return tw_is_small(pattern) || tw_is_atom(pattern) || tw_is_nil(pattern);
}

int tw_match_head_quick(struct tw_match_builder *b, struct tw_term head)
{
	struct arguments a = arguments_of(head);
	struct tw_term pattern;
	uint32_t constant;
	int error = 0;

	if (is_whole(b, head))
		return 0;
	while (!error && next_argument(&a, &pattern)) {
		uint32_t index = (uint32_t)a.index - 1;

		if (!is_quick(pattern, index))
			continue;
		if (tw_is_small(pattern)) {
			error = tw_match_fuse_literal(b, index, pattern);
			continue;
		}
		error = tw_match_constant(b, pattern, &constant);
		if (!error)
			error = tw_match_emit_failing(b, TW_OP_ARG_IS, index, constant);
	}
	return error;
}

static int match_argument(struct tw_match_builder *b, struct tw_term pattern, uint32_t index, uint32_t depth)
{
	int error = tw_match_emit_failing(b, TW_OP_ARG, 0, index);

	if (!error)
		error = tw_match_push(b, 1);
	if (error)
		return error;
	return depth ? match_child(b, pattern, index) : match_top(b, pattern);
}

int tw_match_head_general(struct tw_match_builder *b, struct tw_term head)
{
	struct arguments a = arguments_of(head);
	struct tw_term pattern;
	int error = 0;

	if (is_whole(b, head)) {
		if (b->target != TW_MATCH_TABLE || is_any(head) || tw_match_variable_number(head) >= 0)
			return 0;
		return match_argument(b, head, 0, 0);
	}
	while (!error && next_argument(&a, &pattern)) {
		uint32_t index = (uint32_t)a.index - 1;

		if (!is_any(pattern) && !is_alias(b, pattern, index) && !is_quick(pattern, index))
			error = match_argument(b, pattern, index, 1);
	}
	return error;
}
