/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: unsafe code never becomes a program, and is refused for the right reason.
 *
 * Method: small pieces of handmade code, each with one flaw; the reason and the position are checked.  One good piece
 * of each kind shows that the verifier does not refuse everything.
 */
#include "match/match.h"
#include "match/ops.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#define I(op_, a_, b_, c_, d_)                                                \
	{                                                                     \
		.op = TW_OP_##op_, .a = (a_), .b = (b_), .c = (c_), .d = (d_) \
	}

/* Constants: 0 is the atom true, 1 a tuple; one range, 0 .. 9. */
static struct tw_match_code *code_of(const struct tw_match_insn *insns, uint32_t count, enum tw_match_target target)
{
	struct tw_match_code *code = calloc(1, sizeof(*code));

	assert_non_null(code);
	code->target = target;
	code->insn_count = count;
	code->insns = malloc((count + 1) * sizeof(*insns));
	code->constant_count = 2;
	code->constants = malloc(2 * sizeof(*code->constants));
	code->range_count = 1;
	code->ranges = malloc(sizeof(*code->ranges));
	assert_true(code->insns && code->constants && code->ranges);
	memcpy(code->insns, insns, count * sizeof(*insns));
	tw_arena_init(&code->terms, SIZE_MAX);
	code->constants[0] = tw_term_bool(1);
	code->constants[1] = tw_term_tuple(&code->terms, code->constants, 1);
	code->ranges[0] = (struct tw_match_range){.low = 0, .span = 9};
	code->spec = tw_term_nil();
	return code;
}

static void refused_for(const struct tw_match_insn *insns, uint32_t count, const char *reason, uint32_t at)
{
	struct tw_match_code *code = code_of(insns, count, TW_MATCH_CALL);
	struct tw_match_program *program = NULL;
	const char *why = NULL;
	uint32_t place = UINT32_MAX;

	assert_int_equal(tw_match_verify(code, &program, &why, &place), TW_EBADARG);
	assert_null(program);
	assert_string_equal(why, reason);
	assert_int_equal(place, at);
	tw_match_code_destroy(code);
}

#define REFUSED(reason, at, ...)                                    \
	do {                                                        \
		const struct tw_match_insn insns[] = {__VA_ARGS__}; \
		refused_for(insns, TW_COUNT_OF(insns), reason, at); \
	} while (0)

static void accepted(const struct tw_match_insn *insns, uint32_t count, enum tw_match_target target)
{
	struct tw_match_code *code = code_of(insns, count, target);
	struct tw_match_program *program = NULL;
	const char *why = "";

	if (tw_match_verify(code, &program, &why, NULL) != 0)
		fail_msg("refused: %s", why);
	tw_match_destroy(program);
}

#define ACCEPTED(target, ...)                                       \
	do {                                                        \
		const struct tw_match_insn insns[] = {__VA_ARGS__}; \
		accepted(insns, TW_COUNT_OF(insns), target);        \
	} while (0)

static void good_code(void **state)
{
	ACCEPTED(TW_MATCH_CALL, I(REJECT, 0, 0, 0, 0));
	ACCEPTED(TW_MATCH_CALL, I(ARITY, 0, 1, 3, 0), I(RANGE, 0, 0, 3, 2), I(ACCEPT, 1, 0, 0, 0),
		 I(REJECT, 0, 0, 0, 0));
	ACCEPTED(TW_MATCH_TABLE, I(ARG, 0, 0, 0, 0), I(RESULT, 0, 0, 0, 0));
	ACCEPTED(TW_MATCH_CALL, I(ARITY, 1, 2, 6, 0), I(ARG, 0, 0, 6, 0), I(BIND, 0, 0, 0, 0), I(VAR, 0, 0, 0, 0),
		 I(GUARD, 0, 0, 6, 0), I(HALT, 0, 0, 0, 0), I(REJECT, 0, 0, 0, 0));
}

static void jumps(void **state)
{
	REFUSED("a jump that does not go forward", 0, I(ARITY, 0, 1, 0, 0), I(REJECT, 0, 0, 0, 0));
	REFUSED("a jump that does not go forward", 1, I(CONST, 0, 0, 0, 0), I(GUARD, 0, 0, 1, 0),
		I(REJECT, 0, 0, 0, 0));
	REFUSED("a jump that does not go forward", 1, I(ARITY, 0, 1, 2, 0), I(RANGE, 0, 0, 2, 0),
		I(REJECT, 0, 0, 0, 0));
	REFUSED("a way that leaves the program", 0, I(ARITY, 0, 1, 9, 0), I(REJECT, 0, 0, 0, 0));
	REFUSED("a way that leaves the program", 0, I(CONST, 0, 0, 0, 0));
	REFUSED("a way that leaves the program", 1, I(CONST, 0, 0, 0, 0), I(ANDALSO, 0, 0, 0, 7),
		I(REJECT, 0, 0, 0, 0));
}

static void operands(void **state)
{
	const struct tw_match_insn unknown = {.op = TW_OP_COUNT};

	refused_for(&unknown, 1, "no such instruction", 0);
	REFUSED("an operand that must be 0", 0, I(REJECT, 1, 0, 0, 0));
	REFUSED("an operand that must be 0", 0, I(REJECT, 0, 1, 0, 0));
	REFUSED("an operand that must be 0", 0, I(CONST, 0, 0, 1, 0), I(REJECT, 0, 0, 0, 0));
	REFUSED("an operand that must be 0", 0, I(CONST, 0, 0, 0, 1), I(REJECT, 0, 0, 0, 0));
	REFUSED("a flag that is neither 0 nor 1", 0, I(ARITY, 2, 0, 1, 0), I(REJECT, 0, 0, 0, 0));
	REFUSED("no such constant", 0, I(ACCEPT, 0, 2, 0, 0));
	REFUSED("no such constant", 0, I(CONST, 0, 2, 0, 0), I(REJECT, 0, 0, 0, 0));
	REFUSED("no such range", 1, I(ARITY, 0, 1, 2, 0), I(RANGE, 0, 1, 3, 2), I(REJECT, 0, 0, 0, 0),
		I(REJECT, 0, 0, 0, 0));
	REFUSED("no such type", 1, I(ARITY, 0, 1, 2, 0), I(ARG_TYPE, 0, TW_MATCH_TYPE_COUNT, 2, 0),
		I(REJECT, 0, 0, 0, 0));
	REFUSED("no such comparison", 2, I(CONST, 0, 0, 0, 0), I(CONST, 0, 0, 0, 0),
		I(COMPARE, TW_MATCH_COMPARISON_COUNT, 0, 0, 0), I(HALT, 0, 0, 0, 0));
	REFUSED("no such function", 0, I(CALL, TW_FN_COUNT, 0, 0, 0), I(HALT, 0, 0, 0, 0));
	REFUSED("unknown actions", 0, I(ACCEPT, 16, 0, 0, 0));
	REFUSED("a constant that is not immediate", 1, I(ARITY, 0, 1, 2, 0), I(ARG_IS, 0, 1, 2, 0),
		I(REJECT, 0, 0, 0, 0));
	REFUSED("a result where there is none", 1, I(CONST, 0, 0, 0, 0), I(RESULT, 0, 0, 0, 0));
	REFUSED("a boolean operator without operands", 0, I(AND, 0, 0, 0, 0), I(HALT, 0, 0, 0, 0));
}

static void arguments_and_variables(void **state)
{
	REFUSED("an argument that may not be there", 0, I(ARG, 0, 0, 1, 0), I(REJECT, 0, 0, 0, 0));
	REFUSED("an argument that may not be there", 1, I(ARITY, 0, 1, 2, 0), I(ARG, 0, 1, 2, 0),
		I(REJECT, 0, 0, 0, 0));
	/* After a failed test of the number, nothing is known about it. */
	REFUSED("an argument that may not be there", 2, I(ARITY, 0, 2, 2, 0), I(REJECT, 0, 0, 0, 0), I(ARG, 0, 0, 3, 0),
		I(REJECT, 0, 0, 0, 0));
	REFUSED("a variable that may not be bound", 0, I(VAR, 0, 0, 0, 0), I(HALT, 0, 0, 0, 0));
	REFUSED("variables bound out of order", 1, I(CONST, 0, 0, 0, 0), I(BIND, 0, 1, 0, 0), I(HALT, 0, 0, 0, 0));
	REFUSED("no such variable", 1, I(CONST, 0, 0, 0, 0), I(BIND, 0, TW_MATCH_VARIABLES_MAX, 0, 0),
		I(HALT, 0, 0, 0, 0));
	/* A variable bound in one clause is unknown in the next. */
	REFUSED("a variable that may not be bound", 5, I(CONST, 0, 0, 0, 0), I(BIND, 0, 0, 0, 0), I(CONST, 0, 0, 0, 0),
		I(GUARD, 0, 0, 5, 0), I(HALT, 0, 0, 0, 0), I(VAR, 0, 0, 0, 0), I(HALT, 0, 0, 0, 0));
}

static void stack(void **state)
{
	struct tw_match_insn deep[TW_MATCH_STACK_MAX + 2] = {{0}};
	uint32_t i;

	REFUSED("more values taken than are on the stack", 0, I(POP, 0, 0, 0, 0), I(HALT, 0, 0, 0, 0));
	REFUSED("more values taken than are on the stack", 1, I(CONST, 0, 0, 0, 0), I(CONS, 0, 0, 0, 0),
		I(HALT, 0, 0, 0, 0));
	REFUSED("more values taken than are on the stack", 1, I(CONST, 0, 0, 0, 0), I(TUPLE, 0, 2, 0, 0),
		I(HALT, 0, 0, 0, 0));
	REFUSED("more values taken than are on the stack", 1, I(CONST, 0, 0, 0, 0), I(MAP, 0, 40000, 0, 0),
		I(HALT, 0, 0, 0, 0));
	REFUSED("more values taken than are on the stack", 1, I(CONST, 0, 0, 0, 0), I(CALL, TW_FN_ADD_2, 0, 0, 0),
		I(HALT, 0, 0, 0, 0));
	REFUSED("ways meet with stacks of different depth", 3, I(CONST, 0, 0, 0, 0), I(ANDALSO, 0, 0, 0, 4),
		I(CONST, 0, 0, 0, 0), I(CONST, 0, 0, 0, 0), I(HALT, 0, 0, 0, 0));
	for (i = 0; i < TW_COUNT_OF(deep) - 1; i++)
		deep[i].op = TW_OP_CONST;
	deep[i].op = TW_OP_HALT;
	refused_for(deep, TW_COUNT_OF(deep), "too many values on the stack", TW_MATCH_STACK_MAX);
}

static void sizes(void **state)
{
	struct tw_match_insn *many = calloc(TW_MATCH_INSNS_MAX, sizeof(*many));
	struct tw_match_code *code;
	struct tw_match_program *program;
	const char *why;
	uint32_t i;

	assert_non_null(many);
	for (i = 0; i < TW_MATCH_INSNS_MAX; i++)
		many[i].op = TW_OP_REJECT;
	refused_for(many, TW_MATCH_INSNS_MAX, "no instructions, or too many", 0);
	refused_for(many, 0, "no instructions, or too many", 0);
	code = code_of(many, 1, (enum tw_match_target)9);
	assert_int_equal(tw_match_verify(code, &program, &why, NULL), TW_EBADARG);
	assert_string_equal(why, "no such target");
	tw_match_code_destroy(code);
	free(many);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_code), cmocka_unit_test(jumps),
		cmocka_unit_test(operands),  cmocka_unit_test(arguments_and_variables),
		cmocka_unit_test(stack),     cmocka_unit_test(sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
