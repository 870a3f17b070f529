/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify.c - verifies the compiler's code before the hit path may run it.
 *
 * One pass from the first instruction to the last suffices, because all jumps go forward: when an instruction is
 * checked, all paths to it are known.  The state at an instruction is the depth of the stack, the number of bound
 * variables (in the order of their numbers) and the minimum number of arguments.  At an instruction where paths meet, the stack
 * depths must be equal; of the other values the smaller is used.
 *
 * The verifier knows nothing of clauses, guards and bodies, and does not trust the compiler.
 */
#include "match/match.h"
#include "match/ops.h"

#include <stdlib.h>

/* The state at an instruction. */
struct place {
	bool is_reached;
	uint16_t stack;
	uint16_t variables;
	uint16_t arguments;
};

struct verifier {
	const struct tw_match_code *code;
	struct place *places;
	const char *why;
	uint32_t at;
	uint32_t variable_count;
	uint32_t stack_count;
};

enum operand_kind {
	KIND_NO,
	KIND_NUMBER,
	KIND_FLAG,
	KIND_CONSTANT,
	KIND_RANGE,
	KIND_ARGUMENT,
	KIND_VARIABLE,
	KIND_TYPE,
	KIND_COMPARISON,
	KIND_FUNCTION,
	KIND_ACTIONS,
	KIND_FAIL,
	KIND_EXIT,
};

static const struct {
	uint8_t a, b, c;
	uint8_t pops, pushes;
} ops[] = {
#define TW_MATCH_OP_ROW(op, name, a, b, c, pops, pushes) {KIND_##a, KIND_##b, KIND_##c, pops, pushes},
	TW_MATCH_OPS(TW_MATCH_OP_ROW)
#undef TW_MATCH_OP_ROW
};

static const uint8_t function_arities[] = {
#define TW_MATCH_FUNCTION_ARITY(atom, arity, where) arity,
	TW_MATCH_FUNCTIONS(TW_MATCH_FUNCTION_ARITY)
#undef TW_MATCH_FUNCTION_ARITY
};

static bool refuse(struct verifier *v, const char *why)
{
	v->why = why;
	return false;
}

/* Merges the current state into that of @target. */
static bool flow(struct verifier *v, uint32_t target, struct place state)
{
	struct place *p;

	if (target <= v->at)
		return refuse(v, "a jump that does not go forward");
	if (target >= v->code->insn_count)
		return refuse(v, "a way that leaves the program");
	p = &v->places[target];
	if (!p->is_reached) {
		*p = state;
		p->is_reached = true;
		return true;
	}
	if (p->stack != state.stack)
		return refuse(v, "ways meet with stacks of different depth");
	if (state.variables < p->variables)
		p->variables = state.variables;
	if (state.arguments < p->arguments)
		p->arguments = state.arguments;
	return true;
}

static bool is_immediate(struct tw_term t)
{
	return tw_is_small(t) || tw_is_atom(t) || tw_is_nil(t);
}

static bool check_operand(struct verifier *v, unsigned kind, unsigned value, const struct place *state)
{
	const struct tw_match_code *code = v->code;

	switch ((enum operand_kind)kind) {
	case KIND_NO: return value == 0 || refuse(v, "an operand that must be 0");
	case KIND_NUMBER:
	case KIND_FAIL:
	case KIND_EXIT: return true;
	case KIND_FLAG: return value <= 1 || refuse(v, "a flag that is neither 0 nor 1");
	case KIND_CONSTANT: return value < code->constant_count || refuse(v, "no such constant");
	case KIND_RANGE: return value < code->range_count || refuse(v, "no such range");
	case KIND_ARGUMENT: return value < state->arguments || refuse(v, "an argument that may not be there");
	case KIND_VARIABLE: return value < TW_MATCH_VARIABLES_MAX || refuse(v, "no such variable");
	case KIND_TYPE: return value < TW_MATCH_TYPE_COUNT || refuse(v, "no such type");
	case KIND_COMPARISON: return value < TW_MATCH_COMPARISON_COUNT || refuse(v, "no such comparison");
	case KIND_FUNCTION: return value < TW_FN_COUNT || refuse(v, "no such function");
	case KIND_ACTIONS: return (value & ~(unsigned)TW_MATCH_ACTIONS) == 0 || refuse(v, "unknown actions");
	}
	return refuse(v, "an operand of no kind");
}

/* Pops values off the stack and pushes others. */
static bool count_stack(struct verifier *v, struct place *state, unsigned pops, unsigned pushes)
{
	if (pops > state->stack)
		return refuse(v, "more values taken than are on the stack");
	if (state->stack - pops + pushes > TW_MATCH_STACK_MAX)
		return refuse(v, "too many values on the stack");
	state->stack = (uint16_t)(state->stack - pops + pushes);
	if (state->stack > v->stack_count)
		v->stack_count = state->stack;
	return true;
}

/* Instructions whose effect on the stack depends on an operand. */
static bool count_insn(struct verifier *v, const struct tw_match_insn *insn, struct place *state)
{
	switch ((enum tw_match_op)insn->op) {
	case TW_OP_TUPLE: return count_stack(v, state, insn->b, 1);
	case TW_OP_MAP:
		return insn->b > TW_MATCH_STACK_MAX ? refuse(v, "more values taken than are on the stack")
						    : count_stack(v, state, insn->b * 2u, 1);
	case TW_OP_AND:
	case TW_OP_OR:
		if (insn->b == 0)
			return refuse(v, "a boolean operator without operands");
		return count_stack(v, state, insn->b, 1);
	case TW_OP_CALL: return count_stack(v, state, function_arities[insn->a], 1);
	case TW_OP_ANDALSO:
	case TW_OP_ORELSE: return count_stack(v, state, 1, 1);
	default: return count_stack(v, state, ops[insn->op].pops, ops[insn->op].pushes);
	}
}

/* Checks an instruction's constants and variables. */
static bool check_details(struct verifier *v, const struct tw_match_insn *insn, struct place *state)
{
	const struct tw_match_code *code = v->code;

	switch ((enum tw_match_op)insn->op) {
	case TW_OP_ARG_IS:
		return is_immediate(code->constants[insn->b]) || refuse(v, "a constant that is not immediate");
	case TW_OP_STRING:
	case TW_OP_STRING_NOT:
		return (tw_is_binary(code->constants[insn->b]) &&
			tw_bits_count(code->constants[insn->b]) <= 8 * TW_MATCH_STRING_BYTES_MAX) ||
		       refuse(v, "a constant that is not a string");
	case TW_OP_RANGE: return code->ranges[insn->b].shift < 64 || refuse(v, "a range that is shifted too far");
	case TW_OP_VAR:
	case TW_OP_MATCH_VAR: return insn->b < state->variables || refuse(v, "a variable that may not be bound");
	case TW_OP_BIND:
		if (insn->b > state->variables)
			return refuse(v, "variables bound out of order");
		if (insn->b == state->variables)
			state->variables++;
		if (state->variables > v->variable_count)
			v->variable_count = state->variables;
		return true;
	case TW_OP_ACCEPT:
	case TW_OP_HALT:
	case TW_OP_REJECT: return true;
	case TW_OP_RESULT: return code->target == TW_MATCH_TABLE || refuse(v, "a result where there is none");
	default: return true;
	}
}

/* True for instructions that jump to d if they decide, and continue at the next one if they cannot. */
static bool decides_smalls(enum tw_match_op op)
{
	return op == TW_OP_RANGE || op == TW_OP_MASK || op == TW_OP_MASK_NOT || op == TW_OP_STRING ||
	       op == TW_OP_STRING_NOT;
}

static bool is_end(enum tw_match_op op)
{
	return op == TW_OP_ACCEPT || op == TW_OP_REJECT || op == TW_OP_HALT || op == TW_OP_RESULT;
}

/* Merges the state after an instruction into its successors. */
static bool flow_on(struct verifier *v, const struct tw_match_insn *insn, const struct place *before,
		    struct place state)
{
	struct place failed = {.arguments = before->arguments};
	unsigned kind = ops[insn->op].c;
	struct place skipped = state;

	if (kind == KIND_NO && insn->c != 0)
		return refuse(v, "an operand that must be 0");
	if (!decides_smalls((enum tw_match_op)insn->op) && insn->op != TW_OP_ANDALSO && insn->op != TW_OP_ORELSE &&
	    insn->d != 0)
		return refuse(v, "an operand that must be 0");
	if ((kind == KIND_FAIL || (kind == KIND_EXIT && insn->c != 0)) && !flow(v, insn->c, failed))
		return false;
	if (decides_smalls((enum tw_match_op)insn->op) && !flow(v, insn->d, skipped))
		return false;
	if (insn->op == TW_OP_ANDALSO || insn->op == TW_OP_ORELSE) {
		if (!flow(v, insn->d, skipped))
			return false;
		state.stack--;
	}
	if (insn->op == TW_OP_ARITY && insn->b > state.arguments)
		state.arguments = insn->b;
	return is_end((enum tw_match_op)insn->op) || flow(v, v->at + 1, state);
}

static bool check_insn(struct verifier *v)
{
	const struct tw_match_insn *insn = &v->code->insns[v->at];
	const struct place before = v->places[v->at];
	struct place state = before;

	if (insn->op >= TW_OP_COUNT)
		return refuse(v, "no such instruction");
	return check_operand(v, ops[insn->op].a, insn->a, &state) &&
	       check_operand(v, ops[insn->op].b, insn->b, &state) && check_details(v, insn, &state) &&
	       count_insn(v, insn, &state) && flow_on(v, insn, &before, state);
}

static bool check_code(struct verifier *v)
{
	const struct tw_match_code *code = v->code;

	if ((unsigned)code->target > TW_MATCH_TABLE)
		return refuse(v, "no such target");
	v->places[0] = (struct place){.is_reached = true, .arguments = code->target == TW_MATCH_TABLE};
	for (v->at = 0; v->at < code->insn_count; v->at++) {
		/* Unreachable code is harmless, and cannot be checked. */
		if (v->places[v->at].is_reached && !check_insn(v))
			return false;
	}
	return true;
}

/* ---- programs that the hit path evaluates inline ---- */

static struct tw_match_result accepted_result(const struct tw_match_code *code, const struct tw_match_insn *insn)
{
	struct tw_term message = code->constants[insn->b];
	struct tw_match_result result = {.message = message, .verdict = TW_MATCH_EXTRA, .actions = insn->a};

	if (tw_term_is_same(message, tw_atom(TW_ATOM_TRUE)))
		result.verdict = TW_MATCH_YES;
	else if (tw_term_is_same(message, tw_atom(TW_ATOM_FALSE)))
		result.verdict = TW_MATCH_SUPPRESS;
	return result;
}

/* A machine word is an integer: its type needs no test. */
static const struct tw_match_insn *skip_types(const struct tw_match_insn *insn)
{
	while (insn->op == TW_OP_ARG_TYPE && (insn->b == TW_MATCH_IS_INTEGER || insn->b == TW_MATCH_IS_NUMBER))
		insn++;
	return insn;
}

/* Finds [arity] [range] accept, where all failing tests end at reject. */
static void find_quick(struct tw_match_program *p)
{
	const struct tw_match_code *code = p->code;
	struct tw_match_quick quick = {.op = TW_MATCH_QUICK_ALWAYS, .is_prefix = 1, .span = UINT64_MAX};
	const struct tw_match_insn *insn = code->insns;

	if (code->target == TW_MATCH_TABLE)
		return;
	if (insn->op == TW_OP_ARITY) {
		if (code->insns[insn->c].op != TW_OP_REJECT || insn->b > UINT8_MAX)
			return;
		quick.arity = (uint8_t)insn->b;
		quick.is_prefix = insn->a;
		insn++;
	}
	insn = skip_types(insn);
	if (insn->op == TW_OP_RANGE) {
		if (code->insns[insn->c].op != TW_OP_REJECT)
			return;
		quick.op = TW_MATCH_QUICK_RANGE;
		quick.arg = insn->a;
		quick.low = code->ranges[insn->b].low;
		quick.shift = (uint8_t)code->ranges[insn->b].shift;
		quick.span = code->ranges[insn->b].span;
		insn = skip_types(&code->insns[insn->d]);
	}
	if (insn->op != TW_OP_ACCEPT)
		return;
	p->quick = quick;
	p->accepted = accepted_result(code, insn);
}

int tw_match_verify(struct tw_match_code *code, struct tw_match_program **out, const char **why, uint32_t *place)
{
	struct verifier v = {.code = code};
	struct tw_match_program *program;

	if (code->insn_count == 0 || code->insn_count >= TW_MATCH_INSNS_MAX) {
		if (why)
			*why = "no instructions, or too many";
		if (place)
			*place = 0;
		return TW_EBADARG;
	}
	program = calloc(1, sizeof *program);
	v.places = calloc(code->insn_count, sizeof *v.places);
	if (!program || !v.places) {
		free(program);
		free(v.places);
		return TW_ENOMEM;
	}
	if (!check_code(&v)) {
		free(program);
		free(v.places);
		if (why)
			*why = v.why;
		if (place)
			*place = v.at;
		return TW_EBADARG;
	}
	free(v.places);
	program->insns = code->insns;
	program->constants = code->constants;
	program->ranges = code->ranges;
	program->variable_count = v.variable_count;
	program->stack_count = v.stack_count;
	program->code = code;
	find_quick(program);
	*out = program;
	return 0;
}
