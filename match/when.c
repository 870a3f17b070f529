/* SPDX-License-Identifier: Apache-2.0 */
/*
 * when.c - parses one guard as an expression: $1 > 4096 and $2 == "users".
 *
 *	expression	operand, then operators and operands, by precedence
 *	operand		$N | literal | 10ms, 4K | name | name(expression, ...) | (expression) | -operand | not operand
 *			[expression, ... | expression] | {expression, ...} | #{expression => expression, ...}
 *
 * Literals are cut out of the text and parsed by the parser of terms.
 */
#include "match/parse.h"
#include "base/export.h"
#include "base/grow.h"

#include <stdio.h>
#include <stdlib.h>

#define DEPTH_MAX 200

struct reader {
	struct tw_arena *arena;
	const char *text;
	size_t bytes;
	size_t at;
	uint32_t depth;
	uint32_t argument_max; /* the highest N of $N */
	bool has_words;	       /* names stand for values that the caller knows; 'atoms' are quoted */
	const char *why;       /* set on failure */
};

/* ---- operators ---- */

/* By rising precedence; among spellings with a common prefix, the longest first. */
static const struct operator_name {
	const char *spelling;
	const char *name;
	int power;
	bool is_chainless; /* a < b < c is not allowed */
} operators[] = {
	{"orelse", "orelse", 1, false},
	{"||", "orelse", 1, false},
	{"or", "or", 1, false},
	{"xor", "xor", 1, false},
	{"andalso", "andalso", 2, false},
	{"&&", "andalso", 2, false},
	{"and", "and", 2, false},
	{"=:=", "=:=", 3, true},
	{"=/=", "=/=", 3, true},
	{"==", "==", 3, true},
	{"/=", "/=", 3, true},
	{"!=", "/=", 3, true},
	{"=<", "=<", 3, true},
	{"<=", "=<", 3, true},
	{">=", ">=", 3, true},
	{"<", "<", 3, true},
	{">", ">", 3, true},
	{"+", "+", 4, false},
	{"-", "-", 4, false},
	{"bor", "bor", 4, false},
	{"bxor", "bxor", 4, false},
	{"bsl", "bsl", 4, false},
	{"bsr", "bsr", 4, false},
	{"*", "*", 5, false},
	{"/", "/", 5, false},
	{"div", "div", 5, false},
	{"rem", "rem", 5, false},
	{"%", "rem", 5, false},
	{"band", "band", 5, false},
	{"&", "band", 5, false},
};

static const struct operator_name unaries[] = {
	{"not", "not", 6, false}, {"!", "not", 6, false}, {"bnot", "bnot", 6, false},
	{"~", "bnot", 6, false},  {"-", "-", 6, false},	  {"+", "+", 6, false},
};

static struct tw_term expression(struct reader *r, int power);

static struct tw_term none(void)
{
	return (struct tw_term){0};
}

static struct tw_term fail(struct reader *r, const char *why)
{
	if (!r->why)
		r->why = why;
	return none();
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '@';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static char peek(struct reader *r)
{
	while (r->at < r->bytes &&
	       (r->text[r->at] == ' ' || r->text[r->at] == '\t' || r->text[r->at] == '\n' || r->text[r->at] == '\r'))
		r->at++;
	return r->at < r->bytes ? r->text[r->at] : '\0';
}

/* Looks ahead, without skipping anything. */
static char peek_behind(const struct reader *r, size_t distance)
{
	return r->at + distance < r->bytes ? r->text[r->at + distance] : '\0';
}

static bool take(struct reader *r, char c)
{
	if (peek(r) != c || r->at >= r->bytes)
		return false;
	r->at++;
	return true;
}

static const struct operator_name *find_operator(struct reader *r, const struct operator_name *table, size_t count)
{
	size_t i;

	peek(r);
	for (i = 0; i < count; i++) {
		size_t bytes = strlen(table[i].spelling);
		char behind;

		if (r->bytes - r->at < bytes || memcmp(r->text + r->at, table[i].spelling, bytes) != 0)
			continue;
		behind = peek_behind(r, bytes);
		/* "order" is not "or", and a map's "=> " is no operator. */
		if (is_letter(table[i].spelling[0]) && (is_letter(behind) || is_digit(behind)))
			continue;
		if (table[i].spelling[0] == '=' && table[i].spelling[1] == '<' && behind == '<')
			continue;
		return &table[i];
	}
	return NULL;
}

static struct tw_term apply(struct reader *r, const char *name, struct tw_term a, struct tw_term b)
{
	struct tw_term call[3] = {tw_term_atom_z(name), a, b};

	return tw_term_tuple(r->arena, call, tw_term_is_none(b) ? 2 : 3);
}

/* ---- operands ---- */

/* A literal from @start to the current position, as Erlang reads it. */
static struct tw_term literal(struct reader *r, size_t start)
{
	struct tw_term term;
	int error = tw_term_parse(r->arena, r->text + start, r->at - start, &term, NULL);

	if (!error)
		return term;
	r->at = start;
	return error == TW_EBADARG ? fail(r, "this is not a value") : none();
}

/* Skips "..." or '...', from the quote at the current position. */
static void skip_quoted(struct reader *r)
{
	char quote = r->text[r->at++];

	while (r->at < r->bytes && r->text[r->at] != quote)
		r->at += r->text[r->at] == '\\' ? 2 : 1;
	r->at = r->at < r->bytes ? r->at + 1 : r->bytes;
}

static struct tw_term quoted(struct reader *r)
{
	size_t start = r->at;

	skip_quoted(r);
	if (!r->has_words || r->text[start] != '\'')
		return literal(r, start);
	return apply(r, "const", literal(r, start), none());
}

static struct tw_term binary(struct reader *r)
{
	size_t start = r->at;

	r->at += 2;
	while (r->at < r->bytes && !(r->text[r->at] == '>' && peek_behind(r, 1) == '>')) {
		if (r->text[r->at] == '"')
			skip_quoted(r);
		else
			r->at++;
	}
	r->at = r->at + 2 < r->bytes ? r->at + 2 : r->bytes;
	return literal(r, start);
}

/* "1.5": digits with at most one point, in any locale; gives what follows. Negative: no number. */
static double decimal(const char *text, const char **behind)
{
	double value = 0, place = 1;
	bool has_digits = false, has_point = false;

	for (; (*text >= '0' && *text <= '9') || (*text == '.' && !has_point); text++) {
		has_point |= *text == '.';
		has_digits |= *text != '.';
		if (*text == '.')
			continue;
		value = has_point ? value + (*text - '0') * (place /= 10) : value * 10 + (*text - '0');
	}
	*behind = text;
	return has_digits ? value : -1;
}

/* 10ms, 1.5s, 4K: a decimal number of nanoseconds, or of bytes. False: it has no unit. */
static bool scaled(const char *text, size_t bytes, uint64_t *out)
{
	static const struct {
		const char *name;
		double factor;
	} units[] = {{"ns", 1},
		     {"us", 1e3},
		     {"ms", 1e6},
		     {"s", 1e9},
		     {"k", 1024},
		     {"K", 1024},
		     {"M", 1024 * 1024},
		     {"G", 1024 * 1048576.},
		     {"T", 1048576. * 1048576.}};
	char number[40];
	const char *unit;
	double value;
	size_t i;

	snprintf(number, sizeof number, "%.*s", (int)(bytes < 39 ? bytes : 39), text);
	value = decimal(number, &unit);
	for (i = 0; i < TW_COUNT_OF(units) && strcmp(units[i].name, unit) != 0; i++)
		;
	if (i == TW_COUNT_OF(units) || value < 0 || value * units[i].factor >= 9e18)
		return false;
	value *= units[i].factor;
	*out = (uint64_t)(value + 0.5);
	return true;
}

/* -N, where the number of an operand has a sign. */
static struct tw_term with_sign(struct reader *r, size_t start, uint64_t value)
{
	if (r->text[start] != '-')
		return tw_term_unsigned(r->arena, value);
	return apply(r, "-", tw_term_unsigned(r->arena, value), none());
}

/* 17, 16#1F, 1.5e-3, 10ms, and C's 0x1F. */
static struct tw_term number(struct reader *r, size_t start)
{
	if (r->text[r->at] == '0' && (peek_behind(r, 1) | 32) == 'x') {
		char hex[40];
		char *end;
		unsigned long long value;

		snprintf(hex, sizeof hex, "%.*s", (int)(r->bytes - r->at < 39 ? r->bytes - r->at : 39),
			 r->text + r->at);
		errno = 0;
		value = strtoull(hex, &end, 16);
		if (errno || end == hex + 2 || is_letter(*end) || is_digit(*end))
			return fail(r, "this is not a number of 64 bits");
		r->at += (size_t)(end - hex);
		return with_sign(r, start, value);
	}
	size_t digits = r->at;
	uint64_t count;

	while (r->at < r->bytes) {
		char c = r->text[r->at];
		bool is_sign = (c == '-' || c == '+') && (r->text[r->at - 1] | 32) == 'e' && r->at > start + 2 &&
			       memchr(r->text + start, '.', r->at - start);
		bool is_dot = c == '.' && is_digit(peek_behind(r, 1));

		if (!is_digit(c) && !is_letter(c) && c != '#' && !is_sign && !is_dot)
			break;
		r->at++;
	}
	if (scaled(r->text + digits, r->at - digits, &count))
		return with_sign(r, start, count);
	return literal(r, start);
}

/* $1 is an argument, $a a character; $_ and $$ are all arguments. */
static struct tw_term dollar(struct reader *r)
{
	size_t start = r->at++;
	char name[12];
	unsigned long index;

	if (!is_digit(peek_behind(r, 0))) {
		if (peek_behind(r, 0) == '_' || peek_behind(r, 0) == '$') {
			snprintf(name, sizeof name, "$%c", r->text[r->at++]);
			return tw_term_atom_z(name);
		}
		r->at += peek_behind(r, 0) == '\\' ? 2 : 1;
		while (r->at < r->bytes && (r->text[r->at] & 0xc0) == 0x80)
			r->at++;
		r->at = r->at < r->bytes ? r->at : r->bytes;
		return literal(r, start);
	}
	index = strtoul(r->text + r->at, NULL, 10);
	if (r->text[r->at] == '0' || index > TW_ARITY_MAX)
		return fail(r, "arguments are $1 to $255");
	while (is_digit(peek_behind(r, 0)))
		r->at++;
	if (index > r->argument_max)
		r->argument_max = (uint32_t)index;
	snprintf(name, sizeof name, "$%lu", index);
	return tw_term_atom_z(name);
}

struct elements {
	struct tw_term *terms;
	size_t count, capacity;
};

static bool add(struct reader *r, struct elements *e, struct tw_term term)
{
	if (tw_term_is_none(term))
		return false;
	if (!tw_grow(e->terms, e->count, e->capacity))
		return false;
	e->terms[e->count++] = term;
	return true;
}

/* Expressions up to a closing bracket, or up to a bar if a list allows one. */
static bool elements(struct reader *r, struct elements *e, char close, bool has_tail)
{
	if (take(r, close))
		return true;
	do {
		if (!add(r, e, expression(r, 0)))
			return false;
	} while (take(r, ','));
	if (has_tail && peek(r) == '|')
		return true;
	if (take(r, close))
		return true;
	fail(r, "a comma or a closing bracket is missing here");
	return false;
}

static struct tw_term list(struct reader *r)
{
	struct elements e = {0};
	struct tw_term tail = tw_term_nil();
	bool is_read = elements(r, &e, ']', true);
	struct tw_term result = none();

	if (is_read && e.count > 0 && take(r, '|')) {
		tail = expression(r, 0);
		is_read = !tw_term_is_none(tail);
		if (is_read && !take(r, ']')) {
			fail(r, "a closing bracket is missing here");
			is_read = false;
		}
	}
	if (is_read)
		result = tw_term_list(r->arena, e.terms, e.count, tail);
	free(e.terms);
	return result;
}

static struct tw_term tuple(struct reader *r)
{
	struct elements e = {0};
	struct tw_term inner = none();

	if (elements(r, &e, '}', false))
		inner = tw_term_tuple(r->arena, e.terms, e.count);
	free(e.terms);
	return tw_term_tuple(r->arena, &inner, 1);
}

static struct tw_term map(struct reader *r)
{
	struct elements e = {0};
	struct tw_term result = none();
	bool is_read = take(r, '}');

	while (!is_read && add(r, &e, expression(r, 0))) {
		if (peek(r) != '=' || peek_behind(r, 1) != '>') {
			fail(r, "=> is missing here");
			break;
		}
		r->at += 2;
		if (!add(r, &e, expression(r, 0)))
			break;
		is_read = take(r, '}');
		if (!is_read && !take(r, ',')) {
			fail(r, "a comma or a closing brace is missing here");
			break;
		}
	}
	if (is_read)
		result = tw_term_map(r->arena, (struct tw_term_pair *)e.terms, e.count / 2);
	free(e.terms);
	return result;
}

/* A name of the caller's; true and false are atoms in any case. */
static struct tw_term word(struct reader *r, size_t start)
{
	if (r->at - start > 255)
		return fail(r, "this name is too long");
	return tw_term_atom(r->text + start, r->at - start);
}

/* An atom, or a call. */
static struct tw_term name(struct reader *r)
{
	size_t start = r->at;
	struct elements e = {0};
	struct tw_term result = none();

	while (is_letter(peek_behind(r, 0)) || is_digit(peek_behind(r, 0)))
		r->at++;
	if (r->has_words && peek_behind(r, 0) != '(')
		return word(r, start);
	if (peek_behind(r, 0) != '(')
		return r->text[start] == '_' || (r->text[start] >= 'A' && r->text[start] <= 'Z')
			       ? (r->at = start, fail(r, "names begin with a small letter; arguments are $1, $2"))
			       : literal(r, start);
	if (r->at - start > 255)
		return fail(r, "this name is too long");
	if (!add(r, &e, tw_term_atom(r->text + start, r->at - start)))
		return none();
	r->at++;
	if (elements(r, &e, ')', false))
		result = tw_term_tuple(r->arena, e.terms, e.count);
	free(e.terms);
	return result;
}

static struct tw_term operand(struct reader *r)
{
	char c = peek(r);
	const struct operator_name *unary;
	struct tw_term inner;

	if (c == '-' && is_digit(peek_behind(r, 1))) {
		r->at++;
		return number(r, r->at - 1);
	}
	unary = find_operator(r, unaries, TW_COUNT_OF(unaries));
	if (unary) {
		r->at += strlen(unary->spelling);
		inner = expression(r, unary->power);
		return tw_term_is_none(inner) ? inner : apply(r, unary->name, inner, none());
	}
	if (take(r, '(')) {
		inner = expression(r, 0);
		return tw_term_is_none(inner) || take(r, ')') ? inner : fail(r, "a ) is missing here");
	}
	if (is_digit(c))
		return number(r, r->at);
	if (c == '$')
		return dollar(r);
	if (c == '"' || c == '\'')
		return quoted(r);
	if (c == '<' && peek_behind(r, 1) == '<')
		return binary(r);
	if (take(r, '['))
		return list(r);
	if (take(r, '{'))
		return tuple(r);
	if (c == '#' && peek_behind(r, 1) == '{') {
		r->at += 2;
		return map(r);
	}
	return is_letter(c) ? name(r) : fail(r, "a value, $N or a function is missing here");
}

/* An expression of operators with a higher precedence than @power. */
static struct tw_term expression(struct reader *r, int power)
{
	struct tw_term left;
	int chainless = 0;

	if (++r->depth > DEPTH_MAX)
		return fail(r, "nested too deeply");
	left = operand(r);
	while (!tw_term_is_none(left)) {
		const struct operator_name *op = find_operator(r, operators, TW_COUNT_OF(operators));
		struct tw_term right;

		if (!op || op->power <= power)
			break;
		if (op->is_chainless && chainless++)
			return fail(r, "comparisons cannot be chained; write $1 < $2 and $2 < $3");
		r->at += strlen(op->spelling);
		right = expression(r, op->power);
		if (tw_term_is_none(right))
			return right;
		left = apply(r, op->name, left, right);
	}
	r->depth--;
	return left;
}

/* [{['$1', ..., '$N' | '_'], [Guard], []}] */
static struct tw_term spec_of(struct reader *r, struct tw_term guard)
{
	struct tw_term head = tw_atom(TW_ATOM_ANY);
	struct tw_term clause[3];
	char variable[12];
	uint32_t i;

	for (i = r->argument_max; i > 0; i--) {
		snprintf(variable, sizeof variable, "$%u", i);
		head = tw_term_cons(r->arena, tw_term_atom_z(variable), head);
	}
	clause[0] = head;
	clause[1] = tw_term_cons(r->arena, guard, tw_term_nil());
	clause[2] = tw_term_nil();
	return tw_term_cons(r->arena, tw_term_tuple(r->arena, clause, 3), tw_term_nil());
}

/* The whole text as one guard. */
static int read_guard(struct reader *r, struct tw_term *out, struct tw_match_error *error)
{
	struct tw_term guard;

	if (r->bytes > TW_MATCH_TEXT_BYTES_MAX) {
		tw_match_parse_refuse(error, r->text, 0, "the text is longer than 4 MiB");
		return TW_ELIMIT;
	}
	guard = expression(r, 0);
	if (!tw_term_is_none(guard) && peek(r))
		guard = fail(r, "an operator is missing here");
	if (tw_term_is_none(guard))
		return r->why ? tw_match_parse_refuse(error, r->text, r->at < r->bytes ? r->at : r->bytes, r->why)
			      : TW_ENOMEM;
	*out = guard;
	return 0;
}

int tw_match_parse_when(struct tw_arena *arena, const char *text, size_t bytes, struct tw_term *spec,
			struct tw_match_error *error)
{
	struct reader r = {.arena = arena, .text = text, .bytes = bytes};
	struct tw_term guard = none(), whole;
	int result = read_guard(&r, &guard, error);

	if (result)
		return result;
	whole = spec_of(&r, guard);
	if (tw_term_is_none(whole))
		return TW_ENOMEM;
	*spec = whole;
	return 0;
}

TW_API int tw_match_guard_parse(struct tw_arena *arena, const char *text, size_t bytes, struct tw_term *out,
				struct tw_match_error *error)
{
	struct reader r = {.arena = arena, .text = text, .bytes = bytes, .has_words = true};

	return read_guard(&r, out, error);
}
