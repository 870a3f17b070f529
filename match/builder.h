/* SPDX-License-Identifier: Apache-2.0 */
/*
 * builder.h - state shared by the parts of the compiler: the code being built, the current clause, the position in
 * the specification.
 *
 * compile.c walks the clauses, pattern.c compiles heads, expression.c guards and bodies, fuse.c finds the guards that
 * compare one argument.  A function of type int returns 0, or an error that it has reported with its position.
 */
#ifndef TW_MATCH_BUILDER_H
#define TW_MATCH_BUILDER_H

#include "match/match.h"
#include "match/ops.h"

/* Steps of a path may go a little deeper than expressions: clause, part, element. */
#define TW_MATCH_PATH_MAX (TW_MATCH_DEPTH_MAX + 4)

/* The location of a variable's value. */
enum tw_variable_home {
	TW_HOME_ARGUMENT, /* a whole argument */
	TW_HOME_REGISTER, /* bound inside an argument */
	TW_HOME_WHOLE,	  /* the list of all arguments */
};

struct tw_match_variable {
	uint32_t number; /* N of '$N' */
	uint16_t index;
	uint8_t home;
};

/* The number of arguments that a clause requires; clauses with the same requirement share its test. */
struct tw_match_arity {
	uint16_t count;
	bool is_prefix;
	bool is_free; /* no requirement */
};

struct tw_match_builder {
	enum tw_match_target target;
	struct tw_match_code *code;
	uint32_t insn_capacity, constant_capacity, range_capacity;
	/* For errors. */
	struct tw_match_error *report;
	const char *text;
	size_t text_bytes;
	uint32_t path[TW_MATCH_PATH_MAX];
	uint32_t depth;
	/* The current clause. */
	struct tw_match_variable *variables;
	uint32_t variable_count, variable_capacity;
	uint32_t register_count;
	uint32_t stack; /* values on the stack at this point */
	bool in_body;
	struct tw_match_arity arity;
	/* Instructions whose c is not known yet: to the next clause, or to the next of another arity. */
	uint32_t *fails;
	uint32_t fail_count, fail_capacity;
	uint32_t *arity_fails;
	uint32_t arity_fail_count, arity_fail_capacity;
};

/* ---- builder.c ---- */

/* Reports at the current position why the specification is refused; returns @error. */
int tw_match_refuse(struct tw_match_builder *b, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The same, with the offending term. */
int tw_match_refuse_term(struct tw_match_builder *b, const char *what, struct tw_term term);

/* Steps down to a child of the specification; TW_ELIMIT if that is too deep. */
int tw_match_enter(struct tw_match_builder *b, uint32_t child);
void tw_match_leave(struct tw_match_builder *b);

/* Appends an instruction. */
int tw_match_emit(struct tw_match_builder *b, enum tw_match_op op, unsigned a, unsigned operand);

/* Appends an instruction that may fail: in heads and guards to the next clause, in bodies with 'EXIT'. */
int tw_match_emit_failing(struct tw_match_builder *b, enum tw_match_op op, unsigned a, unsigned operand);

/* Appends an instruction that pops @pops values, pushes @pushes and may fail. */
int tw_match_emit_counted(struct tw_match_builder *b, enum tw_match_op op, unsigned a, unsigned operand, unsigned pops);

/* Counts values pushed on the stack. */
int tw_match_push(struct tw_match_builder *b, uint32_t count);

/* The index of a constant in the pool. */
int tw_match_constant(struct tw_match_builder *b, struct tw_term term, uint32_t *index);

int tw_match_add_range(struct tw_match_builder *b, struct tw_match_range range, uint32_t *index);

/* The N of the variable '$N', or -1 for any other term. */
int64_t tw_match_variable_number(struct tw_term term);

const struct tw_match_variable *tw_match_find(const struct tw_match_builder *b, uint32_t number);
int tw_match_bind(struct tw_match_builder *b, uint32_t number, enum tw_variable_home home, uint32_t index);

/* ---- pattern.c ---- */

/* Finds the number of arguments that the head requires and the variables that are whole arguments; emits nothing. */
int tw_match_head_survey(struct tw_match_builder *b, struct tw_term head);

/* Emits the tests of arguments that the small loop supports. */
int tw_match_head_quick(struct tw_match_builder *b, struct tw_term head);

/* Emits all other tests. */
int tw_match_head_general(struct tw_match_builder *b, struct tw_term head);

/* ---- fuse.c ---- */

/* Emits the guards that are tests of one argument; sets is_done for each of those. */
int tw_match_guards_quick(struct tw_match_builder *b, const struct tw_term *guards, bool *is_done, uint32_t count);

/* Emits a test that argument @index is the integer @value. */
int tw_match_fuse_literal(struct tw_match_builder *b, uint32_t index, struct tw_term value);

/* ---- expression.c ---- */

/* Emits code that leaves the value of an expression on the stack. */
int tw_match_expression(struct tw_match_builder *b, struct tw_term term);

/* True if an expression is a constant; gives it. */
bool tw_match_fold(struct tw_match_builder *b, struct tw_term term, uint32_t depth, struct tw_term *constant);

/* The index of a function's name in TW_MATCH_COMPARISONS or TW_MATCH_TYPES; -1: none. */
int tw_match_comparison_of(struct tw_term name);
int tw_match_type_of(struct tw_term name);

/* ---- locate.c ---- */

/*
 * The offset, in a term's text, of the part that a path leads to: elements of lists and tuples, counted from 0; a
 * list's tail counts after its elements.  Stops at maps and strings.
 */
size_t tw_match_locate(const char *text, size_t bytes, const uint32_t *path, uint32_t depth);

#endif
