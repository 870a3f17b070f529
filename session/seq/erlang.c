/* SPDX-License-Identifier: Apache-2.0 */
/* erlang.c - a token's parts as the tuple that Erlang's nodes send each other, and back. */
#include "session/seq/parts.h"

#include "tracewheel/seq.h"
#include "term/term.h"

static bool get_serial(struct tw_term term, int64_t *out)
{
	*out = tw_is_small(term) ? tw_small_value(term) : 0;
	return tw_is_small(term);
}

struct tw_term tw_seq_parts_to_erlang(struct tw_arena *arena, const struct tw_seq_parts *parts)
{
	struct tw_identifier from = {.node = parts->node,
				     .creation = parts->creation,
				     .word_count = 2,
				     .words = {parts->number, parts->serial}};
	struct tw_term elements[5];

	if (tw_term_is_none(parts->label))
		return tw_term_nil();
	elements[0] = tw_small(parts->flags);
	elements[1] = parts->label;
	elements[2] = tw_small(parts->current);
	elements[3] = tw_term_identifier(arena, TW_TYPE_PID, &from);
	elements[4] = tw_small(parts->previous);
	return tw_term_tuple(arena, elements, 5);
}

int tw_seq_parts_from_erlang(struct tw_term token, struct tw_term own, struct tw_seq_parts *out)
{
	struct tw_seq_parts parts = {0};
	struct tw_identifier from;
	int64_t flags;

	if (tw_is_nil(token)) {
		*out = parts;
		return 0;
	}
	if (tw_term_tuple_count(token) != 5 || tw_term_get_int64(tw_term_element(token, 0), &flags) ||
	    flags & ~(int64_t)TW_SEQ_FLAGS || !get_serial(tw_term_element(token, 2), &parts.current) ||
	    !get_serial(tw_term_element(token, 4), &parts.previous) ||
	    tw_term_type(tw_term_element(token, 3)) != TW_TYPE_PID ||
	    tw_term_get_identifier(tw_term_element(token, 3), &from))
		return TW_EBADARG;
	parts.flags = (uint8_t)flags;
	parts.label = tw_term_element(token, 1);
	parts.node = tw_term_is_none(from.node) ? own : from.node;
	parts.creation = from.creation;
	parts.number = from.words[0];
	parts.serial = from.words[1];
	*out = parts;
	return 0;
}
