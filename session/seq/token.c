/* SPDX-License-Identifier: Apache-2.0 */
/* token.c - a token as terms, and by component, as OTP's seq_trace has it. */
#include "pipeline/thread/seq_label.h"
#include "session/seq/seq.h"
#include "session/session.h"
#include "session/watched.h"

/* The flag that a component is; 0: it is none. */
static unsigned flag_of(struct tw_term component)
{
	static const struct {
		enum tw_atom_index atom;
		unsigned flag;
	} flags[] = {{TW_ATOM_SEND, TW_SEQ_SEND},
		     {TW_ATOM_RECEIVE, TW_SEQ_RECEIVE},
		     {TW_ATOM_PRINT, TW_SEQ_PRINT},
		     {TW_ATOM_TIMESTAMP, TW_SEQ_TIMESTAMP},
		     {TW_ATOM_STRICT_MONOTONIC_TIMESTAMP, TW_SEQ_STRICT_MONOTONIC_TIMESTAMP},
		     {TW_ATOM_MONOTONIC_TIMESTAMP, TW_SEQ_MONOTONIC_TIMESTAMP}};

	for (size_t i = 0; i < TW_COUNT_OF(flags); i++)
		if (component.word == tw_atom(flags[i].atom).word)
			return flags[i].flag;
	return 0;
}

static bool is_atom(struct tw_term term, enum tw_atom_index atom)
{
	return term.word == tw_atom(atom).word;
}

static struct tw_term label_of(struct tw_arena *arena, const struct tw_seq_words *token)
{
	struct tw_term label = tw_seq_label_term(arena, token->label);

	return tw_term_is_none(label) ? tw_atom(TW_ATOM_CUT) : label;
}

static struct tw_term pair(struct tw_arena *arena, struct tw_term a, struct tw_term b)
{
	return tw_term_tuple(arena, (struct tw_term[]){a, b}, 2);
}

static struct tw_term serial_of(struct tw_arena *arena, const struct tw_seq_words *token)
{
	return pair(arena, tw_small(token->previous), tw_small(token->current));
}

struct tw_term tw_seq_term_of(struct tw_arena *arena, const struct tw_tracee *tracee)
{
	const struct tw_seq_words *token = &tracee->seq.token;
	struct tw_identifier from = {.node = tw_word(token->node),
				     .creation = token->creation,
				     .word_count = 2,
				     .words = {token->from, token->from_serial}};

	if (!tw_seq_has_token(tracee))
		return tw_term_nil();
	return tw_term_tuple(arena,
			     (struct tw_term[]){tw_small(token->flags), label_of(arena, token),
						tw_small(token->current), tw_term_identifier(arena, TW_TYPE_PID, &from),
						tw_small(token->previous)},
			     5);
}

static struct tw_term bool_of(unsigned flags, unsigned flag)
{
	return tw_term_bool((flags & flag) != 0);
}

/* The component's value, of no token the default. */
static struct tw_term value_of(struct tw_arena *arena, const struct tw_tracee *tracee, struct tw_term component)
{
	static const struct tw_seq_words none = {.label = TW_TAG_SMALL};
	const struct tw_seq_words *token = tw_seq_has_token(tracee) ? &tracee->seq.token : &none;

	if (is_atom(component, TW_ATOM_LABEL))
		return label_of(arena, token);
	if (is_atom(component, TW_ATOM_SERIAL))
		return serial_of(arena, token);
	return bool_of(token->flags, flag_of(component));
}

/* ---- setting ---- */

static int get_small(struct tw_term term, int64_t *out)
{
	if (!tw_is_small(term))
		return TW_EBADARG;
	*out = tw_small_value(term);
	return 0;
}

static int set_serial(struct tw_tracee *tracee, struct tw_term value)
{
	struct tw_seq_state *state;
	int64_t previous, current;

	if (tw_term_tuple_count(value) != 2 || get_small(tw_term_element(value, 0), &previous) ||
	    get_small(tw_term_element(value, 1), &current))
		return TW_EBADARG;
	state = tw_seq_begin(tracee);
	state->token.previous = state->previous = previous;
	state->token.current = state->current = current;
	return 0;
}

static int set_label(struct tw_tracee *tracee, struct tw_term value)
{
	uint64_t word;
	int error = tw_seq_label_of(value, &word);

	if (!error)
		tw_seq_begin(tracee)->token.label = word;
	return error;
}

static int set_flag(struct tw_tracee *tracee, unsigned flag, struct tw_term value)
{
	struct tw_seq_words *token;

	if (!flag || (!is_atom(value, TW_ATOM_TRUE) && !is_atom(value, TW_ATOM_FALSE)))
		return TW_EBADARG;
	token = &tw_seq_begin(tracee)->token;
	token->flags = (uint8_t)(is_atom(value, TW_ATOM_TRUE) ? token->flags | flag : token->flags & ~flag);
	return 0;
}

int tw_seq_set_of(struct tw_arena *arena, struct tw_tracee *tracee, struct tw_term component, struct tw_term value,
		  struct tw_term *old)
{
	struct tw_term before = old ? value_of(arena, tracee, component) : (struct tw_term){0};
	int error;

	if (is_atom(component, TW_ATOM_LABEL))
		error = set_label(tracee, value);
	else if (is_atom(component, TW_ATOM_SERIAL))
		error = set_serial(tracee, value);
	else
		error = set_flag(tracee, flag_of(component), value);
	if (!error && old)
		*old = before;
	return error;
}

/* ---- public ---- */

TW_API struct tw_term tw_seq_token_term(struct tw_arena *arena)
{
	const struct tw_tracee *tracee = tw_seq_is_active() ? tw_seq_self() : NULL;

	return tracee ? tw_seq_term_of(arena, tracee) : tw_term_nil();
}

TW_API int tw_seq_set_token_term(struct tw_arena *arena, struct tw_term token, struct tw_term *old)
{
	struct tw_tracee *tracee;
	int64_t flags, numbers[2];
	uint64_t label;
	int error;

	if (tw_hit_is_under_way())
		return TW_EDEADLK;
	tracee = tw_seq_self();
	if (!tracee)
		return TW_ENOMEM;
	if (tw_is_nil(token)) {
		if (old)
			*old = tw_seq_term_of(arena, tracee);
		tracee->seq.token.version = 0;
		return 0;
	}
	if (tw_term_tuple_count(token) != 5 || get_small(tw_term_element(token, 0), &flags) ||
	    get_small(tw_term_element(token, 4), &numbers[0]) || get_small(tw_term_element(token, 2), &numbers[1]))
		return TW_EBADARG;
	error = tw_seq_label_of(tw_term_element(token, 1), &label);
	if (error)
		return error;
	tw_seq_begin(tracee)->token.label = label;
	tracee->seq.token.flags = (uint8_t)(flags & TW_SEQ_FLAGS);
	tracee->seq.token.previous = tracee->seq.previous = numbers[0];
	tracee->seq.token.current = tracee->seq.current = numbers[1];
	if (old)
		*old = tw_atom(TW_ATOM_OK);
	tw_watched_follow();
	return 0;
}

TW_API int tw_seq_component(struct tw_arena *arena, struct tw_term component, struct tw_term *out)
{
	const struct tw_tracee *tracee = tw_seq_self();
	bool is_flag = flag_of(component) != 0;

	if (!is_flag && !is_atom(component, TW_ATOM_LABEL) && !is_atom(component, TW_ATOM_SERIAL))
		return TW_EBADARG;
	if (!tracee)
		return TW_ENOMEM;
	*out = is_flag || tw_seq_has_token(tracee) ? pair(arena, component, value_of(arena, tracee, component))
						   : tw_term_nil();
	return tw_term_is_none(*out) ? TW_ENOMEM : 0;
}

TW_API int tw_seq_set_component(struct tw_arena *arena, struct tw_term component, struct tw_term value,
				struct tw_term *old)
{
	struct tw_tracee *tracee;
	int error;

	if (tw_hit_is_under_way())
		return TW_EDEADLK;
	tracee = tw_seq_self();
	if (!tracee)
		return TW_ENOMEM;
	error = tw_seq_set_of(arena, tracee, component, value, old);
	tw_watched_follow();
	return error;
}
