/* SPDX-License-Identifier: Apache-2.0 */
/*
 * never.c - refuses guards whose result depends on types alone: $1 == 'hello' for an integer.
 *
 * Erlang compares terms of any types, and a guard that raises is false: such a guard is legal, and never true.  Each
 * expression is given the set of types that its value may have; an operand that can have none of the required types is
 * refused, with a suggestion.
 */
#include "match/builder.h"
#include "match/parse.h"

#include <stdarg.h>
#include <stdio.h>

enum type {
	INTEGER = 1,
	FLOAT = 2,
	BOOLEAN = 4,
	ATOM = 8, /* other than true and false */
	TUPLE = 16,
	LIST = 32,
	BINARY = 64,
	MAP = 128,
	OTHER = 256,
	NUMBER = INTEGER | FLOAT,
	ANY = 511,
	REFUSED = 0
};

struct check {
	bool are_words;
	struct tw_match_error *error;
};

static unsigned type_of(struct check *check, struct tw_term t);

static unsigned refuse(struct check *check, const char *format, ...) __attribute__((format(printf, 2, 3)));

static unsigned refuse(struct check *check, const char *format, ...)
{
	va_list list;

	if (check->error) {
		memset(check->error, 0, sizeof *check->error);
		va_start(list, format);
		vsnprintf(check->error->text, sizeof check->error->text, format, list);
		va_end(list);
	}
	return REFUSED;
}

static const char *name_of(unsigned types)
{
	static const struct {
		unsigned types;
		const char *name;
	} names[] = {{INTEGER, "an integer"},
		     {FLOAT, "a floating-point number"},
		     {NUMBER, "a number"},
		     {BOOLEAN, "true or false"},
		     {BOOLEAN | ATOM, "an atom"},
		     {TUPLE, "a tuple"},
		     {LIST, "a list"},
		     {MAP, "a map"},
		     {BINARY | INTEGER, "a string"}};

	if (types == ATOM)
		return "an atom";
	for (size_t i = 0; i < TW_COUNT_OF(names); i++)
		if ((types & ~names[i].types) == 0)
			return names[i].name;
	return "a value of another type";
}

/* ---- calls ---- */

struct function {
	uint32_t atom;
	unsigned operands; /* types required of each operand */
	unsigned result;
};

static const struct function functions[] = {
	{TW_ATOM_DIV, INTEGER, INTEGER},
	{TW_ATOM_REM, INTEGER, INTEGER},
	{TW_ATOM_BAND, INTEGER, INTEGER},
	{TW_ATOM_BOR, INTEGER, INTEGER},
	{TW_ATOM_BXOR, INTEGER, INTEGER},
	{TW_ATOM_BNOT, INTEGER, INTEGER},
	{TW_ATOM_BSL, INTEGER, INTEGER},
	{TW_ATOM_BSR, INTEGER, INTEGER},
	{TW_ATOM_ADD, NUMBER, NUMBER},
	{TW_ATOM_SUB, NUMBER, NUMBER},
	{TW_ATOM_MUL, NUMBER, NUMBER},
	{TW_ATOM_DIVIDE, NUMBER, FLOAT},
	{TW_ATOM_ABS, NUMBER, NUMBER},
	{TW_ATOM_ROUND, NUMBER, INTEGER},
	{TW_ATOM_TRUNC, NUMBER, INTEGER},
	{TW_ATOM_FLOOR, NUMBER, INTEGER},
	{TW_ATOM_CEIL, NUMBER, INTEGER},
	{TW_ATOM_FLOAT, NUMBER, FLOAT},
	{TW_ATOM_LENGTH, LIST, INTEGER},
	{TW_ATOM_HD, LIST, ANY},
	{TW_ATOM_TL, LIST, ANY},
	{TW_ATOM_SIZE, TUPLE | BINARY, INTEGER},
	{TW_ATOM_TUPLE_SIZE, TUPLE, INTEGER},
	{TW_ATOM_BYTE_SIZE, BINARY, INTEGER},
	{TW_ATOM_BIT_SIZE, BINARY, INTEGER},
	{TW_ATOM_MAP_SIZE, MAP, INTEGER},
	{TW_ATOM_STRING_AT, INTEGER, BINARY | INTEGER},
	{TW_ATOM_VECTOR_FLOAT, INTEGER, FLOAT},
	{TW_ATOM_VECTOR_DOUBLE, INTEGER, FLOAT},
	{TW_ATOM_GET_TCW, ANY, INTEGER},
	{TW_ATOM_IS_SEQ_TRACE, ANY, BOOLEAN},
	{TW_ATOM_IS_MAP_KEY, ANY, BOOLEAN},
	{TW_ATOM_IS_RECORD, ANY, BOOLEAN},
	{TW_ATOM_MAX, ANY, ANY},
	{TW_ATOM_MIN, ANY, ANY},
};

static const uint32_t connectives[] = {TW_ATOM_NOT, TW_ATOM_AND,     TW_ATOM_OR,
				       TW_ATOM_XOR, TW_ATOM_ANDALSO, TW_ATOM_ORELSE};

static bool is_one_of(struct tw_term name, const uint32_t *atoms, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (tw_term_is_same(name, tw_atom(atoms[i])))
			return true;
	return false;
}

static unsigned connective(struct check *check, struct tw_term name, const struct tw_term *operands, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		unsigned types = type_of(check, operands[i]);

		if (types == REFUSED)
			return REFUSED;
		if (types & BOOLEAN)
			continue;
		if (tw_term_is_same(name, tw_atom(TW_ATOM_NOT)))
			return refuse(
				check,
				"not, or !, is of true or false, and here stands %s: write !($1 > 0) with parentheses, "
				"or $1 == 0 for C's !$1",
				name_of(types));
		return refuse(check,
			      "and, or and their like join what is true or false, and here stands %s: write $1 /= 0 "
			      "for C's $1",
			      name_of(types));
	}
	return BOOLEAN;
}

static bool is_text(struct tw_term t)
{
	return tw_is_cons(t) && tw_is_small(tw_cell(t)->head);
}

static unsigned comparison(struct check *check, int which, const struct tw_term operands[2])
{
	unsigned a = type_of(check, operands[0]), b = a ? type_of(check, operands[1]) : REFUSED;
	bool is_exact = which == TW_MATCH_EXACT_EQ || which == TW_MATCH_EXACT_NE;

	if (!b)
		return REFUSED;
	if ((a & b) || (!is_exact && (a & NUMBER) && (b & NUMBER)))
		return BOOLEAN;
	if (((a & BINARY) && is_text(operands[1])) || ((b & BINARY) && is_text(operands[0])))
		return refuse(check,
			      "a string in memory is compared with <<\"text\">>, not with \"text\", which is a list");
	if (check->are_words && (is_text(operands[0]) || is_text(operands[1])) && (a | b) == (INTEGER | LIST))
		return refuse(
			check,
			"an argument is an integer or an address, never a text: write string_at($2) == \"text\", or "
			"the name of a char * parameter");
	if (((a & BINARY) && (b & ATOM)) || ((a & ATOM) && (b & BINARY)))
		return refuse(
			check,
			"a string is compared with a text in double quotes, \"text\"; in single quotes it is an atom");
	return refuse(check, "it compares %s with %s, which always has the same answer", name_of(a), name_of(b));
}

static unsigned call(struct check *check, const struct tw_term *parts, uint64_t count)
{
	struct tw_term name = parts[0];
	int which = tw_match_comparison_of(name);
	unsigned all = 0;

	if (is_one_of(name, connectives, TW_COUNT_OF(connectives)))
		return connective(check, name, parts + 1, count - 1);
	if (which >= 0 && count == 3)
		return comparison(check, which, parts + 1);
	for (size_t i = 0; i < TW_COUNT_OF(functions); i++) {
		if (!tw_term_is_same(name, tw_atom(functions[i].atom)))
			continue;
		for (uint64_t k = 1; k < count; k++) {
			unsigned types = type_of(check, parts[k]);

			all |= types;
			if (!types)
				return REFUSED;
			if (!(types & functions[i].operands))
				return refuse(check, "an operator or function wants %s, and here stands %s",
					      name_of(functions[i].operands), name_of(types));
		}
		/* Arithmetic on integers alone yields integers. */
		return functions[i].result == NUMBER && !(all & FLOAT) ? INTEGER : functions[i].result;
	}
	for (uint64_t k = 1; k < count; k++)
		if (!type_of(check, parts[k]))
			return REFUSED;
	return tw_match_type_of(name) >= 0 ? BOOLEAN : ANY;
}

/* ---- expressions ---- */

static unsigned atom(struct check *check, struct tw_term t)
{
	int64_t number = tw_match_variable_number(t);

	if (number > 6 && check->are_words)
		return refuse(check, "$%lld: calls have $1 to $6 here, the integer registers of the processor",
			      (long long)number);
	if (number >= 0)
		return check->are_words ? INTEGER : ANY;
	if (tw_term_is_same(t, tw_atom(TW_ATOM_WHOLE)) || tw_term_is_same(t, tw_atom(TW_ATOM_BINDINGS)))
		return LIST;
	return tw_term_is_same(t, tw_atom(TW_ATOM_TRUE)) || tw_term_is_same(t, tw_atom(TW_ATOM_FALSE)) ? BOOLEAN : ATOM;
}

static unsigned type_of(struct check *check, struct tw_term t)
{
	if (tw_is_atom(t))
		return atom(check, t);
	if (tw_is_integer(t))
		return INTEGER;
	if (tw_is_float(t))
		return FLOAT;
	if (tw_is_list(t))
		return LIST;
	if (tw_is_map(t))
		return MAP;
	if (tw_is_bits(t))
		return BINARY;
	if (!tw_is_tuple(t) || tw_block_size(t) == 0)
		return tw_is_tuple(t) ? TUPLE : OTHER;
	if (tw_block_size(t) == 1 && tw_is_tuple(tw_elements(t)[0]))
		return TUPLE;
	/* {const, Term} has any type; the compiler refuses a tuple that is not a call. */
	if (tw_term_is_same(tw_elements(t)[0], tw_atom(TW_ATOM_CONST)) || !tw_is_atom(tw_elements(t)[0]))
		return ANY;
	return call(check, tw_elements(t), tw_block_size(t));
}

int tw_match_refuse_never(struct tw_term guard, bool are_words, struct tw_match_error *error)
{
	struct check check = {are_words, error};
	unsigned types = type_of(&check, guard);

	if (types && !(types & BOOLEAN))
		refuse(&check, "it is %s and never true: write a comparison, such as $1 /= 0", name_of(types));
	return types & BOOLEAN ? 0 : TW_EBADARG;
}
