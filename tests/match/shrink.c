/* SPDX-License-Identifier: Apache-2.0 */
/* shrink.c - makes cases smaller: from a random failure to a readable one. */
#include "differential.h"

#include <stdlib.h>
#include <string.h>

/* One change: part number @at, in the order of a walk, becomes @by, or is removed from its list. */
struct change {
	struct tw_arena *arena;
	uint32_t at;
	uint32_t seen;
	struct tw_term by; /* none: leave the element out */
	struct tw_term found;
};

static struct tw_term rewrite(struct change *c, struct tw_term t);

static struct tw_term rewrite_list(struct change *c, struct tw_term t)
{
	struct tw_term elements[512];
	struct tw_term tail = t;
	size_t count = 0;

	for (; tw_term_type(tail) == TW_TYPE_CONS && count < 512; tail = tw_term_tail(tail)) {
		struct tw_term element = rewrite(c, tw_term_head(tail));

		if (!tw_term_is_none(element))
			elements[count++] = element;
	}
	return tw_term_list(c->arena, elements, count, tail);
}

static struct tw_term rewrite(struct change *c, struct tw_term t)
{
	struct tw_term elements[64];
	struct tw_term_pair pairs[64];
	size_t i;

	if (c->seen++ == c->at) {
		c->found = t;
		return c->by;
	}
	switch (tw_term_type(t)) {
	case TW_TYPE_CONS: return rewrite_list(c, t);
	case TW_TYPE_TUPLE:
		for (i = 0; i < tw_term_tuple_count(t) && i < 64; i++)
			elements[i] = rewrite(c, tw_term_element(t, i));
		return tw_term_tuple(c->arena, elements, i);
	case TW_TYPE_MAP:
		for (i = 0; i < tw_term_map_count(t) && i < 64; i++) {
			pairs[i] = tw_term_map_at(t, i);
			pairs[i].value = rewrite(c, pairs[i].value);
		}
		return tw_term_map(c->arena, pairs, i);
	default: return t;
	}
}

/* Possible replacements of a part: its own parts, and the simplest values. */
static struct tw_term substitute(struct tw_term part, uint32_t which)
{
	static const char *const simple[] = {"a", "true"};
	size_t children = tw_term_tuple_count(part);

	if (which < 2)
		return tw_term_atom_z(simple[which]);
	if (which < 2 + children)
		return tw_term_element(part, which - 2);
	if (tw_term_type(part) == TW_TYPE_CONS && which < 4)
		return which == 2 ? tw_term_head(part) : tw_term_nil();
	return (struct tw_term){0};
}

static struct tw_term changed(struct tw_arena *arena, struct tw_term c, uint32_t at, struct tw_term by,
			      struct tw_term *found)
{
	struct change change = {.arena = arena, .at = at, .by = by};
	struct tw_term result = rewrite(&change, c);

	*found = change.found;
	return result;
}

uint32_t smaller_cases(struct tw_arena *arena, struct tw_term c, struct tw_term *out, uint32_t capacity)
{
	uint32_t count = 0;
	uint32_t at;

	/* Part 0 is the case itself. */
	for (at = 1; count < capacity; at++) {
		struct tw_term part, ignored, smaller, by;
		uint32_t which;

		smaller = changed(arena, c, at, (struct tw_term){0}, &part);
		if (tw_term_is_none(part))
			break;
		if (!tw_term_is_none(smaller))
			out[count++] = smaller;
		if (tw_term_type(part) == TW_TYPE_ATOM || tw_term_type(part) == TW_TYPE_NIL)
			continue;
		for (which = 0; count < capacity && !tw_term_is_none(by = substitute(part, which)); which++) {
			smaller = changed(arena, c, at, by, &ignored);
			if (!tw_term_is_none(smaller))
				out[count++] = smaller;
		}
	}
	return count;
}
