/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compile.c - compiles a specification to code.
 *
 * Each clause becomes
 *
 *	arity	n	(omitted if the previous clause has the same test)
 *	...		literals that are arguments; guards that test one argument
 *	...		the rest of the head, the rest of the guards
 *	...		the body; accept, halt or result
 *
 * A failing test continues at the next clause: after that clause's test of the number of arguments if it is the same.
 * Thus clauses that differ in one comparison cost one instruction each.  After the last clause comes reject.
 */
#include "match/builder.h"
#include "base/grow.h"

#include <stdlib.h>

/* ---- consecutive clauses ---- */

static bool is_same_arity(struct tw_match_arity x, struct tw_match_arity y)
{
	return x.is_free == y.is_free && x.is_prefix == y.is_prefix && x.count == y.count;
}

static void patch(struct tw_match_builder *b, const uint32_t *places, uint32_t count, uint32_t target)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		b->code->insns[places[i]].c = (uint16_t)target;
}

/*
 * Begins a clause: sets the target of the previous clause's failing tests, and tests the number of arguments unless it
 * is known.
 */
static int begin_clause(struct tw_match_builder *b, struct tw_match_arity before)
{
	uint32_t place = b->code->insn_count;
	bool is_tested = !b->arity.is_free && is_same_arity(b->arity, before);
	int error;

	/* A failed test of the same number fails here too: it stays on the list for a later clause. */
	if (!is_tested) {
		patch(b, b->arity_fails, b->arity_fail_count, place);
		b->arity_fail_count = 0;
	}
	if (b->arity.is_free || is_tested) {
		patch(b, b->fails, b->fail_count, place);
		b->fail_count = 0;
		return 0;
	}
	if (!tw_grow(b->arity_fails, b->arity_fail_count, b->arity_fail_capacity))
		return TW_ENOMEM;
	error = tw_match_emit(b, TW_OP_ARITY, b->arity.is_prefix, b->arity.count);
	if (error)
		return error;
	b->arity_fails[b->arity_fail_count++] = place;
	patch(b, b->fails, b->fail_count, place);
	b->fail_count = 0;
	return 0;
}

/* After the last clause. */
static int end_clauses(struct tw_match_builder *b)
{
	patch(b, b->fails, b->fail_count, b->code->insn_count);
	patch(b, b->arity_fails, b->arity_fail_count, b->code->insn_count);
	return tw_match_emit(b, TW_OP_REJECT, 0, 0);
}

/* ---- guards ---- */

/* More deeply nested conjunctions are not split. */
#define SPLIT_MAX 8

/* A guard, or an operand of conjunctions; its path begins with the index of the guard. */
struct guard_path {
	uint32_t steps[SPLIT_MAX];
	uint32_t depth;
};

struct guards {
	struct tw_term *terms;
	struct guard_path *paths;
	bool *is_done;
	uint32_t count, term_capacity, path_capacity;
};

/* {'and',A,B} and {'andalso',A,B} as a whole guard are equivalent to the guards A and B. */
static bool is_conjunction(struct tw_term t)
{
	struct tw_term name;

	if (!tw_is_tuple(t) || tw_block_size(t) < 2)
		return false;
	name = tw_elements(t)[0];
	return tw_term_is_same(name, tw_atom(TW_ATOM_AND)) || tw_term_is_same(name, tw_atom(TW_ATOM_ANDALSO));
}

static int add_guard(struct guards *g, struct tw_term term, const struct guard_path *path)
{
	if (!tw_grow(g->terms, g->count, g->term_capacity) || !tw_grow(g->paths, g->count, g->path_capacity))
		return TW_ENOMEM;
	g->terms[g->count] = term;
	g->paths[g->count++] = *path;
	return 0;
}

static int split_guard(struct guards *g, struct tw_term guard, struct guard_path *path)
{
	uint64_t i;
	int error = 0;

	if (path->depth == SPLIT_MAX || !is_conjunction(guard))
		return add_guard(g, guard, path);
	path->depth++;
	for (i = 1; !error && i < tw_block_size(guard); i++) {
		path->steps[path->depth - 1] = (uint32_t)i;
		error = split_guard(g, tw_elements(guard)[i], path);
	}
	path->depth--;
	return error;
}

static int collect_guards(struct tw_match_builder *b, struct tw_term list, struct guards *g)
{
	uint32_t index;
	int error = 0;

	for (index = 0; !error && tw_is_cons(list); index++, list = tw_cell(list)->tail) {
		struct guard_path path = {.steps = {index}, .depth = 1};

		error = split_guard(g, tw_cell(list)->head, &path);
	}
	if (!error && !tw_is_nil(list))
		return tw_match_refuse(b, TW_EBADARG, "guards stand in a proper list");
	if (!error) {
		g->is_done = calloc(g->count + 1, sizeof *g->is_done);
		error = g->is_done ? 0 : TW_ENOMEM;
	}
	return error;
}

static int emit_guard(struct tw_match_builder *b, struct guards *g, uint32_t index)
{
	const struct guard_path *path = &g->paths[index];
	uint32_t i;
	int error = 0;

	for (i = 0; !error && i < path->depth; i++)
		error = tw_match_enter(b, path->steps[i]);
	if (!error)
		error = tw_match_expression(b, g->terms[index]);
	if (!error)
		error = tw_match_emit_counted(b, TW_OP_GUARD, 0, 0, 1);
	for (i = 0; !error && i < path->depth; i++)
		tw_match_leave(b);
	return error;
}

static int emit_guards(struct tw_match_builder *b, struct guards *g)
{
	uint32_t i;
	int error = 0;

	for (i = 0; !error && i < g->count; i++) {
		if (!g->is_done[i] && !tw_term_is_same(g->terms[i], tw_atom(TW_ATOM_TRUE)))
			error = emit_guard(b, g, i);
	}
	return error;
}

/* ---- bodies ---- */

/* The result of a body that is the same for each event. */
struct constant_body {
	struct tw_term message;
	unsigned actions;
};

static void add_silence(struct tw_term value, struct constant_body *body)
{
	bool is_on = tw_term_is_same(value, tw_atom(TW_ATOM_TRUE));

	if (!is_on && !tw_term_is_same(value, tw_atom(TW_ATOM_FALSE)))
		return;
	body->actions &= ~(unsigned)(TW_MATCH_SILENCE | TW_MATCH_UNSILENCE);
	body->actions |= is_on ? TW_MATCH_SILENCE : TW_MATCH_UNSILENCE;
}

/* Adds one term of a body; false if its effect depends on the event. */
static bool add_constant_action(struct tw_match_builder *b, struct tw_term term, struct constant_body *body)
{
	struct tw_term value;
	struct tw_term name;
	uint64_t arity;

	if (tw_match_fold(b, term, 0, &value))
		return true;
	if (!tw_is_tuple(term) || tw_block_size(term) == 0)
		return false;
	name = tw_elements(term)[0];
	arity = tw_block_size(term) - 1;
	if (arity == 0 && tw_term_is_same(name, tw_atom(TW_ATOM_RETURN_TRACE))) {
		body->actions |= TW_MATCH_RETURN_TRACE;
		return true;
	}
	if (arity == 0 && tw_term_is_same(name, tw_atom(TW_ATOM_EXCEPTION_TRACE))) {
		body->actions |= TW_MATCH_EXCEPTION_TRACE;
		return true;
	}
	if (arity != 1 || !tw_match_fold(b, tw_elements(term)[1], 0, &value))
		return false;
	if (tw_term_is_same(name, tw_atom(TW_ATOM_MESSAGE))) {
		body->message = value;
		return true;
	}
	/* receive refuses it; the general path reports that. */
	if (!tw_term_is_same(name, tw_atom(TW_ATOM_SILENT)) || b->target == TW_MATCH_RECEIVE)
		return false;
	add_silence(value, body);
	return true;
}

static int emit_constant_body(struct tw_match_builder *b, struct tw_term list, bool *is_constant)
{
	struct constant_body body = {.message = tw_atom(TW_ATOM_TRUE)};
	uint32_t index;
	int error;

	*is_constant = b->target != TW_MATCH_TABLE;
	for (; *is_constant && tw_is_cons(list); list = tw_cell(list)->tail)
		*is_constant = add_constant_action(b, tw_cell(list)->head, &body);
	if (!*is_constant || !tw_is_nil(list)) {
		*is_constant = false;
		return 0;
	}
	error = tw_match_constant(b, body.message, &index);
	return error ? error : tw_match_emit(b, TW_OP_ACCEPT, body.actions, index);
}

static int emit_body_term(struct tw_match_builder *b, struct tw_term term, uint32_t index, bool is_result)
{
	int error = tw_match_enter(b, index);

	if (!error)
		error = tw_match_expression(b, term);
	if (!error)
		error = tw_match_emit(b, is_result ? TW_OP_RESULT : TW_OP_POP, 0, 0);
	if (error)
		return error;
	b->stack--;
	tw_match_leave(b);
	return 0;
}

static int emit_body(struct tw_match_builder *b, struct tw_term list)
{
	bool is_table = b->target == TW_MATCH_TABLE;
	bool is_constant;
	uint32_t index;
	int error;

	if (!tw_is_list(list))
		return tw_match_refuse_term(b, "the body is not a list", list);
	if (is_table && tw_is_nil(list))
		return tw_match_refuse(b, TW_EBADARG, "the body has no term that could be the result");
	error = emit_constant_body(b, list, &is_constant);
	if (error || is_constant)
		return error;
	for (index = 0; !error && tw_is_cons(list); index++, list = tw_cell(list)->tail) {
		error = emit_body_term(b, tw_cell(list)->head, index, is_table && !tw_is_cons(tw_cell(list)->tail));
	}
	if (error)
		return error;
	if (!tw_is_nil(list))
		return tw_match_refuse(b, TW_EBADARG, "the body is not a proper list");
	return is_table ? 0 : tw_match_emit(b, TW_OP_HALT, 0, 0);
}

/* ---- clauses ---- */

/* Runs one step of one part of the clause, which errors then name. */
static int in_part(struct tw_match_builder *b, uint32_t part,
		   int (*step)(struct tw_match_builder *b, struct tw_term term), struct tw_term term)
{
	int error = tw_match_enter(b, part);

	if (!error)
		error = step(b, term);
	if (!error)
		tw_match_leave(b);
	return error;
}

static int guard_list(struct tw_match_builder *b, struct tw_term term)
{
	return tw_is_list(term) ? 0 : tw_match_refuse_term(b, "guards stand in a list", term);
}

static int guards_and_head(struct tw_match_builder *b, const struct tw_term *parts, struct guards *g)
{
	int error = tw_match_enter(b, 1);

	if (!error)
		error = collect_guards(b, parts[1], g);
	if (!error)
		error = tw_match_guards_quick(b, g->terms, g->is_done, g->count);
	if (!error)
		tw_match_leave(b);
	if (!error)
		error = in_part(b, 0, tw_match_head_general, parts[0]);
	if (!error)
		error = tw_match_enter(b, 1);
	if (!error)
		error = emit_guards(b, g);
	if (!error)
		tw_match_leave(b);
	return error;
}

static int compile_clause(struct tw_match_builder *b, struct tw_term clause)
{
	struct tw_match_arity before = b->arity;
	struct guards g = {0};
	const struct tw_term *parts;
	int error;

	if (!tw_is_tuple(clause) || tw_block_size(clause) != 3)
		return tw_match_refuse_term(b, "a clause is a tuple {Head, [Guard], [Body]}", clause);
	parts = tw_elements(clause);
	b->variable_count = 0;
	b->register_count = 0;
	b->stack = 0;
	b->in_body = false;
	error = in_part(b, 0, tw_match_head_survey, parts[0]);
	if (!error)
		error = in_part(b, 1, guard_list, parts[1]);
	if (!error)
		error = begin_clause(b, before);
	if (!error)
		error = in_part(b, 0, tw_match_head_quick, parts[0]);
	if (!error)
		error = guards_and_head(b, parts, &g);
	free(g.terms);
	free(g.paths);
	free(g.is_done);
	b->in_body = true;
	return error ? error : in_part(b, 2, emit_body, parts[2]);
}

static int compile_spec(struct tw_match_builder *b, struct tw_term spec)
{
	uint32_t index;
	int error = 0;

	if (!tw_is_cons(spec))
		return tw_match_refuse_term(b, "a match specification is a list of clauses", spec);
	b->arity.is_free = true;
	for (index = 0; !error && tw_is_cons(spec); index++, spec = tw_cell(spec)->tail) {
		error = tw_match_enter(b, index);
		if (!error)
			error = compile_clause(b, tw_cell(spec)->head);
		if (!error)
			tw_match_leave(b);
	}
	if (!error && !tw_is_nil(spec))
		return tw_match_refuse_term(b, "the clauses are not a proper list", spec);
	return error ? error : end_clauses(b);
}

int tw_match_code_build_from(struct tw_term spec, const struct tw_match_options *options, const char *text,
			     size_t bytes, struct tw_match_code **out, struct tw_match_error *error)
{
	struct tw_match_builder b = {.report = error, .text = text, .text_bytes = bytes};
	struct tw_match_code *code = calloc(1, sizeof *code);
	int result;

	if (!code)
		return TW_ENOMEM;
	b.code = code;
	b.target = code->target = options ? options->target : TW_MATCH_CALL;
	tw_arena_init(&code->terms, SIZE_MAX);
	result = tw_term_copy(&code->terms, spec, SIZE_MAX, &code->spec);
	if (!result)
		result = compile_spec(&b, code->spec);
	free(b.variables);
	free(b.fails);
	free(b.arity_fails);
	if (result) {
		tw_match_code_destroy(code);
		return result < 0 ? result : TW_ENOMEM;
	}
	*out = code;
	return 0;
}

int tw_match_code_build(struct tw_term spec, const struct tw_match_options *options, struct tw_match_code **out,
			struct tw_match_error *error)
{
	return tw_match_code_build_from(spec, options, NULL, 0, out, error);
}

void tw_match_code_destroy(struct tw_match_code *code)
{
	if (!code)
		return;
	tw_arena_fini(&code->terms);
	free(code->insns);
	free(code->constants);
	free(code->ranges);
	free(code);
}
