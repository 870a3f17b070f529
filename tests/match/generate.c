/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generate.c - random values, patterns that often match them, guards, bodies.
 *
 * Only features of OTP 25: no is_boolean, is_bitstring, tuple_size, floor, ceil, max and min, no [... | '_'] as a
 * head.  No pids in results, and no float zeros, whose sign matters since OTP 27.  At least one argument: OTP 25
 * answers '$_' of none with a term that crashes it.
 */
#include "differential.h"

#include <stdio.h>
#include <string.h>

#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

static const char *const integers[] = {
	"0",
	"1",
	"2",
	"3",
	"-1",
	"-3",
	"7",
	"10",
	"255",
	"576460752303423487",
	"576460752303423488",
	"-576460752303423489",
	"18446744073709551616",
	"1180591620717411303424",
	"-1180591620717411303424",
};
static const char *const floats[] = {"1.5", "2.5", "-2.0", "0.5", "1.0e20", "1.0", "3.0", "-1.0e300"};
static const char *const atoms[] = {"a", "b", "true", "false", "foo", "'EXIT'", "undefined"};
static const char *const binaries[] = {"<<>>", "<<1>>", "<<1,2>>", "<<\"bin\">>", "<<1:3>>", "<<1,2:2>>"};

/* Functions by their number of arguments; those that yield booleans first. */
static const char *const tests[] = {
	"is_atom", "is_float",	   "is_integer", "is_list", "is_number", "is_pid",
	"is_port", "is_reference", "is_tuple",	 "is_map",  "is_binary", "is_function",
};
static const char *const unary[] = {
	"abs",	 "hd",	  "tl",	   "length", "size", "byte_size", "bit_size", "map_size",
	"round", "trunc", "float", "+",	     "-",    "bnot",	  "not",      "node",
};
static const char *const comparisons[] = {"<", "=<", ">", ">=", "==", "/=", "=:=", "=/="};
static const char *const binary[] = {
	"+",   "-",    "*",	  "div",     "rem",	   "/",	  "band",
	"bor", "bxor", "element", "map_get", "is_map_key", "xor", "binary_part",
};
static const char *const nullary[] = {"node", "get_tcw", "is_seq_trace"};
static const char *const body_calls[] = {
	"{return_trace}",
	"{exception_trace}",
	"{silent,true}",
	"{caller}",
	"{caller_line}",
	"{get_seq_token}",
	"{set_seq_token,label,1}",
	"{set_seq_token,foo,1}",
	"{set_seq_token,send,true}",
	"{enable_trace,send}",
	"{enable_trace,foo}",
	"{disable_trace,{self},call}",
	"{trace,[],[call]}",
	"{trace,[foo],[]}",
	"{set_tcw,5}",
	"{set_tcw,-1}",
	"{is_binary,{process_dump}}",
	"{set_seq_token,label}",
	"{is_pid,{self}}",
};

uint32_t random_below(struct random *r, uint32_t bound)
{
	r->state ^= r->state << 13;
	r->state ^= r->state >> 7;
	r->state ^= r->state << 17;
	return (uint32_t)((r->state >> 32) % bound);
}

static struct tw_term parsed(struct random *r, const char *text)
{
	struct tw_term t = {0};

	tw_term_parse(r->arena, text, strlen(text), &t, NULL);
	return t;
}

#define ONE_OF(r, table) parsed(r, table[random_below(r, COUNT_OF(table))])

static struct tw_term call_of(struct random *r, const char *name, const struct tw_term *args, uint32_t count)
{
	struct tw_term elements[5] = {tw_term_atom_z(name)};

	memcpy(elements + 1, args, count * sizeof(*args));
	return tw_term_tuple(r->arena, elements, count + 1);
}

/* ---- values ---- */

static struct tw_term key(struct random *r)
{
	static const char *const keys[] = {"a", "b", "1", "1.0", "{a}", "<<1>>"};

	return ONE_OF(r, keys);
}

static struct tw_term value(struct random *r, uint32_t depth)
{
	struct tw_term e[3];
	struct tw_term_pair pairs[3];
	uint32_t count = random_below(r, 4);
	uint32_t kind = random_below(r, depth ? 9 : 5);
	uint32_t i;

	if (kind <= 1)
		return ONE_OF(r, integers);
	if (kind == 2)
		return ONE_OF(r, atoms);
	if (kind == 3)
		return random_below(r, 2) ? ONE_OF(r, floats) : ONE_OF(r, binaries);
	if (kind == 4)
		return random_below(r, 2) ? tw_term_nil() : parsed(r, "{}");
	for (i = 0; i < count && i < 3; i++) {
		e[i] = value(r, depth - 1);
		pairs[i] = (struct tw_term_pair){.key = key(r), .value = e[i]};
	}
	if (kind == 5 || kind == 6)
		return tw_term_tuple(r->arena, e, i);
	if (kind == 7)
		return tw_term_list(r->arena, e, i, random_below(r, 8) ? tw_term_nil() : value(r, 0));
	return tw_term_map(r->arena, pairs, i);
}

/* ---- patterns ---- */

static struct tw_term variable(struct random *r)
{
	uint32_t index = random_below(r, 4) + 1;
	char name[12];

	r->bound |= 1u << index;
	snprintf(name, sizeof(name), "$%u", index);
	return tw_term_atom_z(name);
}

/* A variable that the head binds; at times one that it does not. */
static struct tw_term bound_variable(struct random *r)
{
	uint32_t index = random_below(r, 4) + 1;
	char name[12];

	if (random_below(r, 200) && r->bound) {
		while (!(r->bound & 1u << index))
			index = index % 4 + 1;
	} else if (random_below(r, 50)) {
		return tw_term_atom_z("$_");
	}
	snprintf(name, sizeof(name), "$%u", index);
	return tw_term_atom_z(name);
}

static struct tw_term pattern(struct random *r, struct tw_term of, uint32_t depth)
{
	struct tw_term e[8];
	struct tw_term_pair pairs[8];
	size_t count;
	size_t i;
	uint32_t kind = random_below(r, 20);

	if (kind < 7)
		return variable(r);
	if (kind < 9)
		return tw_term_atom_z("_");
	if (kind == 9)
		return value(r, depth);
	switch (tw_term_type(of)) {
	case TW_TYPE_TUPLE:
		count = tw_term_tuple_count(of);
		for (i = 0; i < count && i < 8; i++)
			e[i] = pattern(r, tw_term_element(of, i), depth);
		return tw_term_tuple(r->arena, e, i);
	case TW_TYPE_CONS:
		return tw_term_cons(r->arena, pattern(r, tw_term_head(of), depth), pattern(r, tw_term_tail(of), depth));
	case TW_TYPE_MAP:
		count = tw_term_map_count(of);
		for (i = 0; i < count && i < 8; i++) {
			pairs[i] = tw_term_map_at(of, i);
			pairs[i].value = pattern(r, pairs[i].value, depth);
		}
		return tw_term_map(r->arena, pairs, random_below(r, 4) ? i : i / 2);
	default: return of;
	}
}

/* ---- expressions ---- */

static struct tw_term expression(struct random *r, uint32_t depth);

static struct tw_term boolean(struct random *r, uint32_t depth)
{
	static const char *const connectives[] = {"and", "or", "andalso", "orelse"};
	struct tw_term e[3];
	uint32_t kind = random_below(r, 10);
	uint32_t count = random_below(r, 3) + 1;
	uint32_t i;

	if (kind == 0 || depth == 0)
		return tw_term_bool(random_below(r, 2) != 0);
	if (kind < 4) {
		for (i = 0; i < count; i++)
			e[i] = random_below(r, 12) ? boolean(r, depth - 1) : expression(r, depth - 1);
		return call_of(r, connectives[random_below(r, 4)], e, count);
	}
	e[0] = expression(r, depth - 1);
	if (kind < 7) {
		e[1] = expression(r, depth - 1);
		return call_of(r, comparisons[random_below(r, COUNT_OF(comparisons))], e, 2);
	}
	if (kind == 7) {
		e[0] = boolean(r, depth - 1);
		return call_of(r, "not", e, 1);
	}
	if (kind == 8) {
		e[1] = ONE_OF(r, atoms);
		e[2] = parsed(r, random_below(r, 4) ? "2" : "a");
		return call_of(r, "is_record", e, 3);
	}
	return call_of(r, tests[random_below(r, COUNT_OF(tests))], e, 1);
}

/* Counts of shifts stay small: OTP would shift by millions of bits. */
static struct tw_term shift(struct random *r, uint32_t depth)
{
	static const char *const counts[] = {"0", "1", "3", "64", "-2", "-70", "a", "1180591620717411303424"};
	struct tw_term e[2] = {expression(r, depth - 1), ONE_OF(r, counts)};

	return call_of(r, random_below(r, 2) ? "bsl" : "bsr", e, 2);
}

static struct tw_term composed(struct random *r, uint32_t depth)
{
	struct tw_term e[3];
	struct tw_term_pair pairs[3];
	uint32_t count = random_below(r, 3) + 1;
	uint32_t i;
	struct tw_term t;

	for (i = 0; i < count; i++) {
		e[i] = expression(r, depth - 1);
		pairs[i] = (struct tw_term_pair){.key = random_below(r, 6) ? key(r) : bound_variable(r), .value = e[i]};
	}
	switch (random_below(r, 3)) {
	case 0: t = tw_term_tuple(r->arena, e, count); return tw_term_tuple(r->arena, &t, 1);
	case 1: return tw_term_list(r->arena, e, count, random_below(r, 6) ? tw_term_nil() : expression(r, 0));
	default:
		/* '{a}' as a key would be a call. */
		for (i = 0; i < count; i++) {
			if (tw_term_type(pairs[i].key) == TW_TYPE_TUPLE)
				pairs[i].key = tw_term_atom_z("c");
		}
		return tw_term_map(r->arena, pairs, count);
	}
}

static struct tw_term expression(struct random *r, uint32_t depth)
{
	struct tw_term e[3];
	uint32_t kind = random_below(r, depth ? 20 : 8);

	if (kind < 4)
		return bound_variable(r);
	if (kind == 4)
		return tw_term_atom_z(random_below(r, 2) ? "$_" : "$$");
	if (kind < 7)
		return random_below(r, 3) ? ONE_OF(r, integers) : ONE_OF(r, atoms);
	if (kind == 7) {
		e[0] = value(r, 1);
		return call_of(r, "const", e, 1);
	}
	e[0] = expression(r, depth - 1);
	e[1] = expression(r, depth - 1);
	if (kind < 11)
		return call_of(r, unary[random_below(r, COUNT_OF(unary))], e, 1);
	if (kind < 15)
		return call_of(r, binary[random_below(r, COUNT_OF(binary))], e, 2);
	if (kind == 15)
		return shift(r, depth);
	if (kind == 16)
		return boolean(r, depth);
	if (kind == 17)
		return call_of(r, nullary[random_below(r, COUNT_OF(nullary))], e, random_below(r, 200) == 0);
	return composed(r, depth);
}

/* ---- clauses ---- */

static struct tw_term body_term(struct random *r, int is_table)
{
	struct tw_term e = expression(r, 3);
	uint32_t kind = random_below(r, 10);

	if (is_table || kind == 0)
		return e;
	if (kind < 7)
		return call_of(r, "message", &e, 1);
	e = ONE_OF(r, body_calls);
	return kind < 9 ? e : call_of(r, "message", &e, 1);
}

static struct tw_term guards(struct random *r)
{
	struct tw_term list = tw_term_nil();
	uint32_t count = random_below(r, 3);

	while (count-- > 0)
		list = tw_term_cons(r->arena, random_below(r, 20) ? boolean(r, 3) : expression(r, 2), list);
	return list;
}

static struct tw_term clause(struct random *r, struct tw_term target, int is_table)
{
	struct tw_term parts[3];
	uint32_t count = random_below(r, 3) + (is_table ? 1 : 0);
	uint32_t kind = random_below(r, 16);

	r->bound = 0;
	if (kind == 0)
		parts[0] = tw_term_atom_z("_");
	else if (kind == 1)
		parts[0] = variable(r);
	else if (is_table)
		parts[0] = pattern(r, target, 2);
	else
		for (parts[0] = tw_term_nil(); tw_term_type(target) == TW_TYPE_CONS; target = tw_term_tail(target))
			parts[0] = tw_term_cons(r->arena, pattern(r, tw_term_head(target), 2), parts[0]);
	parts[1] = guards(r);
	parts[2] = tw_term_nil();
	while (count-- > 0)
		parts[2] = tw_term_cons(r->arena, body_term(r, is_table), parts[2]);
	return tw_term_tuple(r->arena, parts, 3);
}

static struct tw_term spec(struct random *r, struct tw_term target, int is_table)
{
	struct tw_term list = tw_term_nil();
	uint32_t count = random_below(r, 3) + 1;

	while (count-- > 0)
		list = tw_term_cons(r->arena, clause(r, target, is_table), list);
	/* At times something that is no specification. */
	return random_below(r, 100) ? list : tw_term_cons(r->arena, value(r, 2), list);
}

struct tw_term random_case(struct random *r)
{
	struct tw_term parts[3];
	uint32_t count = random_below(r, 3) + 1;
	uint32_t i;
	struct tw_term target = tw_term_nil();
	struct tw_term mirrored = tw_term_nil();

	if (random_below(r, 10) == 0) {
		parts[0] = tw_term_atom_z("table");
		parts[1] = value(r, 3);
		parts[2] = spec(r, parts[1], 1);
		return tw_term_tuple(r->arena, parts, 3);
	}
	/* Heads are built from the end: they see the arguments in reverse. */
	for (i = 0; i < count; i++)
		target = tw_term_cons(r->arena, value(r, 3), target);
	for (parts[0] = target; tw_term_type(parts[0]) == TW_TYPE_CONS; parts[0] = tw_term_tail(parts[0]))
		mirrored = tw_term_cons(r->arena, tw_term_head(parts[0]), mirrored);
	parts[0] = target;
	parts[1] = spec(r, mirrored, 0);
	return tw_term_tuple(r->arena, parts, 2);
}
