/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interpret.c - the interpreter proper: programs that build, compare or call.
 *
 * Its memory is the scratch of the run: variables, then the stack, then the terms that it builds.  Labels and
 * instructions have the same names; match/ops.h says what each does.
 */
#include "match/machine.h"

static inline struct tw_term argument(const struct tw_match_machine *m, unsigned int index)
{
	int64_t word;

	if (!m->is_raw)
		return ((const struct tw_term *)m->args)[index];
	word = (int64_t)((const uint64_t *)m->args)[index];
	return tw_likely(tw_small_fits(word)) ? tw_small(word) : tw_term_integer(&m->run->arena, word);
}

/* The integer that an argument is; false when it is no small one. */
static inline bool integer_argument(const struct tw_match_machine *m, unsigned int index, uint64_t *word)
{
	struct tw_term x;

	if (m->is_raw) {
		*word = ((const uint64_t *)m->args)[index];
		return true;
	}
	x = ((const struct tw_term *)m->args)[index];
	*word = (uint64_t)tw_small_value(x);
	return tw_is_small(x);
}

static struct tw_term all_arguments(const struct tw_match_machine *m)
{
	struct tw_term list = tw_term_nil();
	unsigned int i = m->count;

	while (i-- > 0)
		list = tw_term_cons(&m->run->arena, argument(m, i), list);
	return list;
}

int tw_match_compare(const struct tw_match_machine *m, struct tw_term a, struct tw_term b, bool is_exact,
		     int *order)
{
	int error = tw_term_try_compare(a, b, is_exact, order);

	if (error && m->run->may_allocate) {
		*order = is_exact ? tw_term_compare_exact(a, b) : tw_term_compare(a, b);
		return 0;
	}
	return error;
}

/* =:= for patterns: what is too deep to compare does not match. */
static inline bool is_equal(const struct tw_match_machine *m, struct tw_term a, struct tw_term b)
{
	int order;

	if (tw_term_is_same(a, b))
		return true;
	if ((tw_is_small(a) || tw_is_atom(a)) && tw_tag(a) == tw_tag(b))
		return false;
	return tw_match_compare(m, a, b, true, &order) == 0 && order == 0;
}

static inline bool holds(enum tw_match_comparison op, int order)
{
	switch (op) {
	case TW_MATCH_LT:
		return order < 0;
	case TW_MATCH_LE:
		return order <= 0;
	case TW_MATCH_GT:
		return order > 0;
	case TW_MATCH_GE:
		return order >= 0;
	case TW_MATCH_EQ:
	case TW_MATCH_EXACT_EQ:
		return order == 0;
	default:
		return order != 0;
	}
}

/* true, false, or none where the terms are too deep. */
static inline struct tw_term compare(const struct tw_match_machine *m, enum tw_match_comparison op,
				     struct tw_term a, struct tw_term b)
{
	int order;

	if (tw_likely(tw_is_small(a) && tw_is_small(b)))
		order = (int64_t)a.word < (int64_t)b.word ? -1 : (int64_t)a.word > (int64_t)b.word;
	else if (tw_match_compare(m, a, b, op >= TW_MATCH_EXACT_EQ, &order) != 0)
		return tw_word(0);
	return tw_term_bool(holds(op, order));
}

static inline bool is_true(struct tw_term t)
{
	return t.word == tw_atom(TW_ATOM_TRUE).word;
}

static inline bool is_boolean(struct tw_term t)
{
	return is_true(t) || t.word == tw_atom(TW_ATOM_FALSE).word;
}

/* All must be booleans; none where one is not. */
static struct tw_term conclude(const struct tw_term *values, unsigned int count, bool is_and)
{
	bool result = is_and;
	unsigned int i;

	for (i = 0; i < count; i++) {
		if (!is_boolean(values[i]))
			return tw_word(0);
		if (is_true(values[i]) != is_and)
			result = !is_and;
	}
	return tw_term_bool(result);
}

/* @top	the first element; the others lie below it. */
static struct tw_term make_tuple(const struct tw_match_machine *m, const struct tw_term *top, unsigned int count)
{
	struct tw_term *elements;
	struct tw_term tuple = tw_tuple_open(&m->run->arena, count, &elements);
	unsigned int i;

	for (i = 0; i < count && !tw_term_is_none(tuple); i++)
		elements[i] = top[-(ptrdiff_t)i];
	return tuple;
}

static struct tw_term make_map(const struct tw_match_machine *m, const struct tw_term *top, unsigned int count)
{
	struct tw_term_pair *pairs = tw_arena_take(&m->run->arena, count * sizeof(*pairs));
	unsigned int i;

	for (i = 0; i < count && pairs; i++) {
		pairs[i].key = top[-(ptrdiff_t)i];
		pairs[i].value = top[-(ptrdiff_t)(count + i)];
	}
	return pairs ? tw_term_map(&m->run->arena, pairs, count) : tw_word(0);
}

static void silence(struct tw_match_machine *m, struct tw_term value)
{
	if (is_boolean(value)) {
		m->actions &= (uint8_t) ~(TW_MATCH_SILENCE | TW_MATCH_UNSILENCE);
		m->actions |= is_true(value) ? TW_MATCH_SILENCE : TW_MATCH_UNSILENCE;
	}
}

/* Sets up the memory of the run; answers where the stack begins. */
static struct tw_term *begin(struct tw_match_machine *m, struct tw_term **variables)
{
	struct tw_match_run *run = m->run;
	size_t slots = m->program->variable_count + m->program->stack_count;
	size_t bytes = slots * sizeof(struct tw_term);

	TW_ASSERT(run->scratch_bytes >= TW_MATCH_SCRATCH_BYTES_MIN);
	m->message = tw_atom(TW_ATOM_TRUE);
	*variables = run->scratch;
	tw_arena_init_fixed(&run->arena, (char *)run->scratch + bytes, run->scratch_bytes - bytes);
	return *variables + m->program->variable_count;
}

/*
 * The dispatch is threaded: each instruction jumps to the next one itself.  VALUE replaces so many values
 * by one, or fails where that is none.
 */
#define NEXT                                                                                                 \
	do {                                                                                                 \
		insn++;                                                                                      \
		goto *labels[insn->op];                                                                      \
	} while (0)
#define VALUE(pops, value)                                                                                   \
	do {                                                                                                 \
		x = (value);                                                                                 \
		sp -= (pops);                                                                                \
		if (tw_unlikely(tw_term_is_none(x)))                                                         \
			goto exit;                                                                           \
		*sp++ = x;                                                                                   \
		NEXT;                                                                                        \
	} while (0)

enum tw_match_verdict tw_match_go_on(struct tw_match_machine *m, const struct tw_match_insn *insn)
{
	static const void *const labels[] = {
#define TW_MATCH_LABEL(op, name, a, b, c, pops, pushes) &&op_##op,
		TW_MATCH_OPS(TW_MATCH_LABEL)
#undef TW_MATCH_LABEL
	};
	const struct tw_match_insn *const insns = m->program->insns;
	const struct tw_term *const constants = m->program->constants;
	struct tw_term *variables;
	struct tw_term *const bottom = begin(m, &variables);
	struct tw_term *sp = bottom; /* the first free place */
	struct tw_term x;
	uint64_t word;

	goto *labels[insn->op];

op_ARITY:
	if (insn->a ? m->count < insn->b : m->count != insn->b)
		goto fail;
	NEXT;
op_RANGE:
	if (!integer_argument(m, insn->a, &word))
		NEXT;
	if ((word - m->program->ranges[insn->b].low) << m->program->ranges[insn->b].shift >
	    m->program->ranges[insn->b].span)
		goto fail;
	insn = insns + insn->d;
	goto *labels[insn->op];
op_MASK:
	if (!integer_argument(m, insn->a, &word))
		NEXT;
	if ((word & m->program->ranges[insn->b].low) != m->program->ranges[insn->b].span)
		goto fail;
	insn = insns + insn->d;
	goto *labels[insn->op];
op_MASK_NOT:
	if (!integer_argument(m, insn->a, &word))
		NEXT;
	if ((word & m->program->ranges[insn->b].low) == m->program->ranges[insn->b].span)
		goto fail;
	insn = insns + insn->d;
	goto *labels[insn->op];
op_STRING:
op_STRING_NOT:
	/* Only behind what the small loops could not do: rare enough for the general code at the next. */
	NEXT;
op_ARG_IS:
	if (argument(m, insn->a).word != constants[insn->b].word)
		goto fail;
	NEXT;
op_ARG_TYPE:
	/* A machine word is an integer, even where there is no room for it as a term. */
	x = m->is_raw ? tw_small(0) : argument(m, insn->a);
	if (!tw_match_is_type((enum tw_match_type)insn->b, x))
		goto fail;
	NEXT;
op_ACCEPT:
	return tw_match_accept(m->run, constants[insn->b], insn->a);
op_REJECT:
	return TW_MATCH_NO;

op_ARG:
	VALUE(0, argument(m, insn->b));
op_WHOLE:
	VALUE(0, all_arguments(m));
op_VAR:
	*sp++ = variables[insn->b];
	NEXT;
op_CONST:
	*sp++ = constants[insn->b];
	NEXT;
op_POP:
	sp--;
	NEXT;
op_TUPLE:
	VALUE(insn->b, make_tuple(m, sp - 1, insn->b));
op_CONS:
	VALUE(2, tw_term_cons(&m->run->arena, sp[-1], sp[-2]));
op_SNOC:
	VALUE(2, tw_term_cons(&m->run->arena, sp[-2], sp[-1]));
op_MAP:
	VALUE(insn->b * 2, make_map(m, sp - 1, insn->b));

op_BIND:
	variables[insn->b] = *--sp;
	NEXT;
op_MATCH_VAR:
	if (!is_equal(m, *--sp, variables[insn->b]))
		goto fail;
	NEXT;
op_MATCH_ARG:
	x = argument(m, insn->b);
	if (tw_term_is_none(x) || !is_equal(m, *--sp, x))
		goto fail;
	NEXT;
op_MATCH_CONST:
	if (!is_equal(m, *--sp, constants[insn->b]))
		goto fail;
	NEXT;
op_MATCH_TUPLE:
	if (!tw_is_tuple(sp[-1]) || tw_block_size(sp[-1]) != insn->b)
		goto fail;
	NEXT;
op_ELEMENT:
	if (!tw_is_tuple(sp[-1]) || tw_block_size(sp[-1]) <= insn->b)
		goto fail;
	*sp = tw_elements(sp[-1])[insn->b];
	sp++;
	NEXT;
op_MATCH_CONS:
	x = sp[-1];
	if (!tw_is_cons(x))
		goto fail;
	sp[-1] = tw_cell(x)->tail;
	*sp++ = tw_cell(x)->head;
	NEXT;
op_MATCH_MAP:
	if (!tw_is_map(sp[-1]))
		goto fail;
	NEXT;
op_MATCH_KEY:
	x = tw_term_map_get(sp[-1], constants[insn->b]);
	if (tw_term_is_none(x))
		goto fail;
	*sp++ = x;
	NEXT;

op_TEST:
	sp[-1] = tw_term_bool(tw_match_is_type((enum tw_match_type)insn->a, sp[-1]));
	NEXT;
op_COMPARE:
	VALUE(2, compare(m, (enum tw_match_comparison)insn->a, sp[-1], sp[-2]));
op_AND:
	VALUE(insn->b, conclude(sp - insn->b, insn->b, true));
op_OR:
	VALUE(insn->b, conclude(sp - insn->b, insn->b, false));
op_ANDALSO:
	if (is_true(sp[-1])) {
		sp--;
		NEXT;
	}
	goto decided;
op_ORELSE:
	if (sp[-1].word == tw_atom(TW_ATOM_FALSE).word) {
		sp--;
		NEXT;
	}
decided:
	if (!is_boolean(sp[-1])) {
		if (insn->c)
			goto fail;
		sp[-1] = tw_atom(TW_ATOM_EXIT);
	}
	insn = insns + insn->d;
	goto *labels[insn->op];
op_CALL:
	VALUE(tw_match_functions[insn->a].arity, tw_match_functions[insn->a].call(m, sp - 1));
op_GUARD:
	if (!is_true(*--sp))
		goto fail;
	NEXT;

op_MESSAGE:
	m->message = sp[-1];
	sp[-1] = tw_atom(TW_ATOM_TRUE);
	NEXT;
op_SILENT:
	silence(m, sp[-1]);
	sp[-1] = tw_atom(TW_ATOM_TRUE);
	NEXT;
op_ACTION:
	m->actions |= insn->a;
	*sp++ = tw_atom(TW_ATOM_TRUE);
	NEXT;
op_HALT:
	return tw_match_accept(m->run, m->message, m->actions);
op_RESULT:
	tw_match_accept(m->run, sp[-1], m->actions);
	m->run->result.verdict = TW_MATCH_YES;
	return TW_MATCH_YES;

exit:
	if (!insn->c) {
		*sp++ = tw_atom(TW_ATOM_EXIT);
		NEXT;
	}
fail:
	sp = bottom;
	insn = insns + insn->c;
	goto *labels[insn->op];
}
