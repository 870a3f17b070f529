/* SPDX-License-Identifier: Apache-2.0 */
/* condition.c - looks at the names of a condition. */
#include "tools/record/condition.h"

#include "tracewheel/match.h"

#include <stdbool.h>
#include <string.h>

static bool is_atom(struct tw_term term, const char *name)
{
	size_t bytes;
	const char *own = tw_term_type(term) == TW_TYPE_ATOM ? tw_term_atom_name(term, &bytes) : NULL;
	return own && strlen(name) == bytes && memcmp(own, name, bytes) == 0;
}

/* Is any value of a call's end named in it? */
static bool is_of_end(struct tw_term term)
{
	static const char *const words[] = {"duration", "result", "errno", "exception"};
	size_t count = tw_term_type(term) == TW_TYPE_TUPLE ? tw_term_tuple_count(term) : 0;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (is_atom(term, words[i]))
			return true;
	for (size_t i = 1; i < count && !is_atom(tw_term_element(term, 0), "const"); i++)
		if (is_of_end(tw_term_element(term, i)))
			return true;
	return false;
}

/* duration > N, duration >= N, and the same from right to left. */
static bool is_length(struct tw_term guard, uint64_t *least_ns)
{
	if (tw_term_type(guard) != TW_TYPE_TUPLE || tw_term_tuple_count(guard) != 3)
		return false;
	struct tw_term a = tw_term_element(guard, 1),
		       b = tw_term_element(guard, 2), operator= tw_term_element(guard, 0);
	bool is_first = is_atom(a, "duration");
	bool is_above = is_atom(operator, is_first ? ">" : "<"), is_from = is_atom(operator, is_first ? ">=" : "=<");
	if ((!is_first && !is_atom(b, "duration")) || (!is_above && !is_from) ||
	    tw_term_get_uint64(is_first ? b : a, least_ns) || *least_ns > INT64_MAX)
		return false;
	*least_ns += is_above;
	return *least_ns > 0;
}

enum tw_condition_kind tw_condition_kind(const char *text, uint64_t *least_ns)
{
	struct tw_arena arena;
	struct tw_term guard;
	enum tw_condition_kind kind = TW_CONDITION_OF_BEGIN;
	tw_arena_init(&arena, SIZE_MAX);
	if (tw_match_guard_parse(&arena, text, strlen(text), &guard, NULL) == 0 && is_of_end(guard))
		kind = is_length(guard, least_ns) ? TW_CONDITION_OF_LENGTH : TW_CONDITION_OF_END;
	tw_arena_fini(&arena);
	return kind;
}
