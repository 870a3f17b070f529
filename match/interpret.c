/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interpret.c - the interpreter: programs that build, compare or call.
 *
 * Its memory is the run's scratch: variables, then the stack, then the terms it builds.  Functions, labels and
 * instructions have the same names; match/ops.h says what each does.
 */
#include "match/machine.h"

static inline struct tw_term argument(const struct tw_match_machine *m, unsigned index)
{
	int64_t word;

	if (!m->is_raw)
		return ((const struct tw_term *)m->args)[index];
	word = (int64_t)((const uint64_t *)m->args)[index];
	return tw_likely(tw_small_fits(word)) ? tw_small(word) : tw_term_integer(&m->run->arena, word);
}

/* The value of an argument; false if it is no small integer. */
static inline bool integer_argument(const struct tw_match_machine *m, unsigned index, uint64_t *word)
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
	unsigned i = m->count;

	while (i-- > 0)
		list = tw_term_cons(&m->run->arena, argument(m, i), list);
	return list;
}

/* =:= for patterns: terms too deep to compare do not match. */
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
	case TW_MATCH_LT: return order < 0;
	case TW_MATCH_LE: return order <= 0;
	case TW_MATCH_GT: return order > 0;
	case TW_MATCH_GE: return order >= 0;
	case TW_MATCH_EQ:
	case TW_MATCH_EXACT_EQ: return order == 0;
	default: return order != 0;
	}
}

/* true, false, or none if the terms are too deep. */
static inline struct tw_term compare(const struct tw_match_machine *m, enum tw_match_comparison op, struct tw_term a,
				     struct tw_term b)
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

/* Combines values, which must all be booleans; none otherwise. */
static struct tw_term conclude(const struct tw_term *values, unsigned count, bool is_and)
{
	bool result = is_and;
	unsigned i;

	for (i = 0; i < count; i++) {
		if (!is_boolean(values[i]))
			return tw_word(0);
		if (is_true(values[i]) != is_and)
			result = !is_and;
	}
	return tw_term_bool(result);
}

/* @top	the first element; the others lie below it. */
static struct tw_term make_tuple(const struct tw_match_machine *m, const struct tw_term *top, unsigned count)
{
	struct tw_term *elements;
	struct tw_term tuple = tw_tuple_open(&m->run->arena, count, &elements);
	unsigned i;

	for (i = 0; i < count && !tw_term_is_none(tuple); i++)
		elements[i] = top[-(ptrdiff_t)i];
	return tuple;
}

static struct tw_term make_map(const struct tw_match_machine *m, const struct tw_term *top, unsigned count)
{
	struct tw_term_pair *pairs = tw_arena_take(&m->run->arena, count * sizeof *pairs);
	unsigned i;

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

/* ---- instructions ---- */

#define INLINE inline __attribute__((always_inline))

/* State kept in registers while a program runs: its address is passed to inlined functions only. */
struct registers {
	struct tw_match_machine *m;
	const struct tw_match_insn *insn;
	const struct tw_term *constants;
	struct tw_term *variables;
	struct tw_term *sp; /* the next free entry */
};

/* The next step: continue at the next instruction, d, c, 'EXIT' (c in guards), or not at all. */
enum step { NEXT, JUMP, FAIL, EXIT, STOP };

/* Replaces @pops values by one; EXIT if it is none. */
static INLINE enum step give(struct registers *r, unsigned pops, struct tw_term value)
{
	r->sp -= pops;
	if (tw_unlikely(tw_term_is_none(value)))
		return EXIT;
	*r->sp++ = value;
	return NEXT;
}

static INLINE enum step op_ARITY(struct registers *r)
{
	unsigned count = r->m->count;

	return (r->insn->a ? count < r->insn->b : count != r->insn->b) ? FAIL : NEXT;
}

static INLINE const struct tw_match_range *range_of(const struct registers *r)
{
	return &r->m->program->ranges[r->insn->b];
}

static INLINE enum step op_RANGE(struct registers *r)
{
	const struct tw_match_range *range = range_of(r);
	uint64_t word;

	if (!integer_argument(r->m, r->insn->a, &word))
		return NEXT;
	return (word - range->low) << range->shift > range->span ? FAIL : JUMP;
}

static INLINE enum step op_MASK(struct registers *r)
{
	uint64_t word;

	if (!integer_argument(r->m, r->insn->a, &word))
		return NEXT;
	return (word & range_of(r)->low) == range_of(r)->span ? JUMP : FAIL;
}

static INLINE enum step op_MASK_NOT(struct registers *r)
{
	uint64_t word;

	if (!integer_argument(r->m, r->insn->a, &word))
		return NEXT;
	return (word & range_of(r)->low) == range_of(r)->span ? FAIL : JUMP;
}

/* Reached only after the small loops have stopped: rare, so the general code that follows decides. */
static INLINE enum step op_STRING(struct registers *r)
{
	return NEXT;
}

static INLINE enum step op_STRING_NOT(struct registers *r)
{
	return NEXT;
}

static INLINE enum step op_ARG_IS(struct registers *r)
{
	return argument(r->m, r->insn->a).word == r->constants[r->insn->b].word ? NEXT : FAIL;
}

static INLINE enum step op_ARG_TYPE(struct registers *r)
{
	/* A machine word is an integer, even if the arena has no space for it as a term. */
	struct tw_term x = r->m->is_raw ? tw_small(0) : argument(r->m, r->insn->a);

	return tw_match_is_type((enum tw_match_type)r->insn->b, x) ? NEXT : FAIL;
}

static INLINE enum step op_ACCEPT(struct registers *r)
{
	tw_match_accept(r->m->run, r->constants[r->insn->b], r->insn->a);
	return STOP;
}

static INLINE enum step op_REJECT(struct registers *r)
{
	r->m->run->result.verdict = TW_MATCH_NO;
	return STOP;
}

/* ---- values ---- */

static INLINE enum step op_ARG(struct registers *r)
{
	return give(r, 0, argument(r->m, r->insn->b));
}

static INLINE enum step op_WHOLE(struct registers *r)
{
	return give(r, 0, all_arguments(r->m));
}

static INLINE enum step op_VAR(struct registers *r)
{
	*r->sp++ = r->variables[r->insn->b];
	return NEXT;
}

static INLINE enum step op_CONST(struct registers *r)
{
	*r->sp++ = r->constants[r->insn->b];
	return NEXT;
}

static INLINE enum step op_POP(struct registers *r)
{
	r->sp--;
	return NEXT;
}

static INLINE enum step op_TUPLE(struct registers *r)
{
	return give(r, r->insn->b, make_tuple(r->m, r->sp - 1, r->insn->b));
}

static INLINE enum step op_CONS(struct registers *r)
{
	return give(r, 2, tw_term_cons(&r->m->run->arena, r->sp[-1], r->sp[-2]));
}

static INLINE enum step op_SNOC(struct registers *r)
{
	return give(r, 2, tw_term_cons(&r->m->run->arena, r->sp[-2], r->sp[-1]));
}

static INLINE enum step op_MAP(struct registers *r)
{
	return give(r, r->insn->b * 2, make_map(r->m, r->sp - 1, r->insn->b));
}

/* ---- patterns ---- */

static INLINE enum step op_BIND(struct registers *r)
{
	r->variables[r->insn->b] = *--r->sp;
	return NEXT;
}

static INLINE enum step op_MATCH_VAR(struct registers *r)
{
	return is_equal(r->m, *--r->sp, r->variables[r->insn->b]) ? NEXT : FAIL;
}

static INLINE enum step op_MATCH_ARG(struct registers *r)
{
	struct tw_term x = argument(r->m, r->insn->b);

	return !tw_term_is_none(x) && is_equal(r->m, *--r->sp, x) ? NEXT : FAIL;
}

static INLINE enum step op_MATCH_CONST(struct registers *r)
{
	return is_equal(r->m, *--r->sp, r->constants[r->insn->b]) ? NEXT : FAIL;
}

static INLINE enum step op_MATCH_TUPLE(struct registers *r)
{
	return tw_is_tuple(r->sp[-1]) && tw_block_size(r->sp[-1]) == r->insn->b ? NEXT : FAIL;
}

static INLINE enum step op_ELEMENT(struct registers *r)
{
	if (!tw_is_tuple(r->sp[-1]) || tw_block_size(r->sp[-1]) <= r->insn->b)
		return FAIL;
	*r->sp = tw_elements(r->sp[-1])[r->insn->b];
	r->sp++;
	return NEXT;
}

static INLINE enum step op_MATCH_CONS(struct registers *r)
{
	struct tw_term x = r->sp[-1];

	if (!tw_is_cons(x))
		return FAIL;
	r->sp[-1] = tw_cell(x)->tail;
	*r->sp++ = tw_cell(x)->head;
	return NEXT;
}

static INLINE enum step op_MATCH_MAP(struct registers *r)
{
	return tw_is_map(r->sp[-1]) ? NEXT : FAIL;
}

static INLINE enum step op_MATCH_KEY(struct registers *r)
{
	struct tw_term x = tw_term_map_get(r->sp[-1], r->constants[r->insn->b]);

	if (tw_term_is_none(x))
		return FAIL;
	*r->sp++ = x;
	return NEXT;
}

/* ---- expressions ---- */

static INLINE enum step op_TEST(struct registers *r)
{
	r->sp[-1] = tw_term_bool(tw_match_is_type((enum tw_match_type)r->insn->a, r->sp[-1]));
	return NEXT;
}

static INLINE enum step op_COMPARE(struct registers *r)
{
	return give(r, 2, compare(r->m, (enum tw_match_comparison)r->insn->a, r->sp[-1], r->sp[-2]));
}

static INLINE enum step op_AND(struct registers *r)
{
	return give(r, r->insn->b, conclude(r->sp - r->insn->b, r->insn->b, true));
}

static INLINE enum step op_OR(struct registers *r)
{
	return give(r, r->insn->b, conclude(r->sp - r->insn->b, r->insn->b, false));
}

/* The top decides if it is a boolean: the remaining operands are then not evaluated. */
static INLINE enum step decide(struct registers *r)
{
	if (!is_boolean(r->sp[-1])) {
		if (r->insn->c)
			return FAIL;
		r->sp[-1] = tw_atom(TW_ATOM_CAUGHT);
	}
	return JUMP;
}

static INLINE enum step op_ANDALSO(struct registers *r)
{
	if (!is_true(r->sp[-1]))
		return decide(r);
	r->sp--;
	return NEXT;
}

static INLINE enum step op_ORELSE(struct registers *r)
{
	if (r->sp[-1].word != tw_atom(TW_ATOM_FALSE).word)
		return decide(r);
	r->sp--;
	return NEXT;
}

static INLINE enum step op_CALL(struct registers *r)
{
	const struct tw_match_function_entry *function = &tw_match_functions[r->insn->a];

	return give(r, function->arity, function->call(r->m, r->sp - 1));
}

static INLINE enum step op_GUARD(struct registers *r)
{
	return is_true(*--r->sp) ? NEXT : FAIL;
}

/* ---- actions ---- */

static INLINE enum step op_MESSAGE(struct registers *r)
{
	r->m->message = r->sp[-1];
	r->sp[-1] = tw_atom(TW_ATOM_TRUE);
	return NEXT;
}

static INLINE enum step op_SILENT(struct registers *r)
{
	silence(r->m, r->sp[-1]);
	r->sp[-1] = tw_atom(TW_ATOM_TRUE);
	return NEXT;
}

static INLINE enum step op_ACTION(struct registers *r)
{
	r->m->actions |= r->insn->a;
	*r->sp++ = tw_atom(TW_ATOM_TRUE);
	return NEXT;
}

static INLINE enum step op_HALT(struct registers *r)
{
	tw_match_accept(r->m->run, r->m->message, r->m->actions);
	return STOP;
}

static INLINE enum step op_RESULT(struct registers *r)
{
	tw_match_accept(r->m->run, r->sp[-1], r->m->actions);
	r->m->run->result.verdict = TW_MATCH_YES;
	return STOP;
}

/* ---- the run ---- */

/* Sets up the run's memory: variables, the stack, and space for terms. */
static void begin(struct tw_match_machine *m)
{
	struct tw_match_run *run = m->run;
	size_t slots = m->program->variable_count + m->program->stack_count;
	size_t bytes = slots * sizeof(struct tw_term);

	TW_ASSERT(run->scratch_bytes >= TW_MATCH_SCRATCH_BYTES_MIN);
	m->message = tw_atom(TW_ATOM_TRUE);
	tw_arena_init_fixed(&run->arena, (char *)run->scratch + bytes, run->scratch_bytes - bytes);
}

#define TW_MATCH_LABEL(label, name, a, b, c, pops, pushes) &&at_##label,
#define TW_MATCH_STEP(label, name, a, b, c, pops, pushes)                \
	at_##label : switch (op_##label(&r))                             \
	{                                                                \
	case NEXT: r.insn++; goto *labels[r.insn->op];                   \
	case JUMP: r.insn = insns + r.insn->d; goto *labels[r.insn->op]; \
	case FAIL: goto fail;                                            \
	case EXIT: goto exit;                                            \
	case STOP: return (enum tw_match_verdict)m->run->result.verdict; \
	}

/* Threaded dispatch: the code of each instruction, inlined after its label, jumps directly to that of the next. */
enum tw_match_verdict tw_match_go_on(struct tw_match_machine *m, const struct tw_match_insn *insn)
{
	static const void *const labels[] = {TW_MATCH_OPS(TW_MATCH_LABEL)};
	const struct tw_match_insn *const insns = m->program->insns;
	struct tw_term *const bottom = (struct tw_term *)m->run->scratch + m->program->variable_count;
	struct registers r = {m, insn, m->program->constants, m->run->scratch, bottom};

	begin(m);
	goto *labels[insn->op];
	TW_MATCH_OPS(TW_MATCH_STEP)
exit:
	if (!r.insn->c) {
		*r.sp++ = tw_atom(TW_ATOM_CAUGHT);
		r.insn++;
		goto *labels[r.insn->op];
	}
fail:
	r.sp = bottom;
	r.insn = insns + r.insn->c;
	goto *labels[r.insn->op];
}
