/* SPDX-License-Identifier: Apache-2.0 */
/*
 * front.h - the small loop, which starts every run; included once for each kind of argument.
 *
 * The number of arguments and comparisons of one argument decide most events.  These instructions need no stack, no
 * memory and no call, so the function's prologue is short; at any other instruction it mostly continues in the interpreter.
 *
 *	FRONT_NAME	the function's head
 *	FRONT_ARG	the type of an argument
 *	FRONT_OTHER	what to do at another instruction
 *	FRONT_VALUE(x)	the integer x; continues at the next instruction if x is not small
 *	FRONT_IS(x, constant), FRONT_TYPE(x, type)	conditions
 *	FRONT_STRING(x)	how to compare a string: decides, or continues in the interpreter
 *	FRONT_FIRST	the first instruction
 */
FRONT_NAME
{
	static const void *const labels[] = {
#define FRONT_LABEL(op, name, a, b, c, pops, pushes) &&op_##op,
#define OTHER_LABEL(op, name, a, b, c, pops, pushes) &&other,
		TW_MATCH_FRONT_OPS(FRONT_LABEL) TW_MATCH_OTHER_OPS(OTHER_LABEL)
#undef FRONT_LABEL
#undef OTHER_LABEL
	};
	const struct tw_match_insn *const insns = program->insns;
	const struct tw_match_insn *insn = FRONT_FIRST;
	const struct tw_match_range *range;

	goto *labels[insn->op];
op_ARITY:
	if (tw_unlikely(insn->a ? count < insn->b : count != insn->b))
		goto fail;
	insn++;
	goto *labels[insn->op];
op_RANGE:
	range = &program->ranges[insn->b];
	if ((FRONT_VALUE(args[insn->a]) - range->low) << range->shift > range->span)
		goto fail;
	insn = insns + insn->d;
	goto *labels[insn->op];
op_MASK:
	range = &program->ranges[insn->b];
	if ((FRONT_VALUE(args[insn->a]) & range->low) != range->span)
		goto fail;
	insn = insns + insn->d;
	goto *labels[insn->op];
op_MASK_NOT:
	range = &program->ranges[insn->b];
	if ((FRONT_VALUE(args[insn->a]) & range->low) == range->span)
		goto fail;
	insn = insns + insn->d;
	goto *labels[insn->op];
op_STRING:
	if (!FRONT_STRING(args[insn->a]))
		goto fail;
	insn = insns + insn->d;
	goto *labels[insn->op];
op_STRING_NOT:
	if (FRONT_STRING(args[insn->a]))
		goto fail;
	insn = insns + insn->d;
	goto *labels[insn->op];
op_ARG_IS:
	if (!FRONT_IS(args[insn->a], program->constants[insn->b]))
		goto fail;
	insn++;
	goto *labels[insn->op];
op_ARG_TYPE:
	if (!FRONT_TYPE(args[insn->a], insn->b))
		goto fail;
	insn++;
	goto *labels[insn->op];
fail:
	insn = insns + insn->c;
	goto *labels[insn->op];
op_ACCEPT:
	return tw_match_accept(run, program->constants[insn->b], insn->a);
op_REJECT:
	return TW_MATCH_NO;
other:
	FRONT_OTHER;
}
