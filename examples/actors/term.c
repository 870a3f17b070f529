/* SPDX-License-Identifier: Apache-2.0 */
/* term.c - values as terms. */
#ifndef ACTORS_NO_TRACE

#include "term.h"

#include "sync.h"

#define ATOMS_MAX    65536
#define NUMBER_SHIFT 24 /* of a pid: see run.h */
#define ARRAY_COUNT  8	/* elements that need no memory of the arena */

static _Atomic(uint64_t) atom_terms[ATOMS_MAX];

static struct tw_term atom_term(struct value atom)
{
	_Atomic(uint64_t) *known = &atom_terms[number_of(atom)];
	/* RELAXED actors.atom_term: only the word itself matters, and each thread would find the same. */
	struct tw_term term = {load_relaxed(known)};
	if (tw_term_is_none(term)) {
		term = number_of(atom) == NUMBER_NIL ? tw_term_nil() : tw_term_atom_z(atom_name(atom));
		/* RELAXED actors.atom_term: as above. */
		store_relaxed(known, term.word);
	}
	return term;
}

static struct tw_term or_dots(struct tw_term term)
{
	return tw_term_is_none(term) ? tw_term_atom_z("...") : term;
}

static struct tw_term tuple_term(struct tw_arena *arena, struct value value)
{
	size_t count = tuple_count(value);
	struct tw_term few[ARRAY_COUNT], *elements = few;
	if (count > ARRAY_COUNT)
		elements = tw_arena_alloc(arena, count * sizeof *elements);
	for (size_t i = 0; elements && i < count; i++)
		elements[i] = term_of(arena, element(value, i));
	return elements ? tw_term_tuple(arena, elements, count) : (struct tw_term){0};
}

static struct tw_term list_term(struct tw_arena *arena, struct value value)
{
	size_t count = 0, i = 0;
	struct value rest = value;
	for (; is_box(rest, BOX_CONS); rest = tail(rest))
		count++;
	struct tw_term *elements = tw_arena_alloc(arena, count * sizeof *elements);
	if (!elements)
		return (struct tw_term){0};
	for (rest = value; is_box(rest, BOX_CONS); rest = tail(rest))
		elements[i++] = term_of(arena, head(rest));
	return tw_term_list(arena, elements, count, term_of(arena, rest));
}

static struct tw_term box_term(struct tw_arena *arena, struct value value)
{
	size_t bytes;
	if (is_box(value, BOX_TUPLE))
		return tuple_term(arena, value);
	if (is_box(value, BOX_CONS))
		return list_term(arena, value);
	if (is_box(value, BOX_FUN))
		return tw_term_export(arena, tw_term_atom_z("actors"), tw_term_atom_z("fun"), 0);
	const char *data = binary_bytes(value, &bytes);
	return tw_term_binary(arena, data, bytes);
}

struct tw_term term_of(struct tw_arena *arena, struct value value)
{
	uint64_t number = value.word >> 3;
	switch (value.word & TAG_MASK) {
	case TAG_INTEGER: return or_dots(tw_term_integer(arena, number_of(value)));
	case TAG_ATOM: return atom_term(value);
	case TAG_PID: return or_dots(tw_term_pid(arena, (uint32_t)(number >> NUMBER_SHIFT), 0));
	case TAG_REFERENCE:
		return or_dots(
			tw_term_reference(arena, (const uint32_t[3]){(uint32_t)number, (uint32_t)(number >> 32), 0}));
	case TAG_PORT: return or_dots(tw_term_port(arena, number));
	case TAG_BOXED: return or_dots(box_term(arena, value));
	default: return (struct tw_term){0};
	}
}

#endif
