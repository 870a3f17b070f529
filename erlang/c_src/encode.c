/* SPDX-License-Identifier: Apache-2.0 */
/*
 * encode.c - terms with parts: written whole if they fit, else cut.
 *
 *	whole pass	ends with failure at the first part that does not fit; most terms need no other
 *	cutting pass	keeps MARK_BYTES for each part of a tuple and the end of a list or map that it has begun, so that
 *			what does not fit can be marked.  No part is tried twice, but keys of maps: those are whole, or end the map.
 *
 * Each pass visits as many elements as the encoder says, and each element needs a byte: so neither depends on the size of the term.
 */
#include "leaf.h"

static ERL_NIF_TERM mark_atom;

void encode_init(ErlNifEnv *env)
{
	mark_atom = enif_make_atom(env, "...");
	bits_init(env);
}

/* One part; @depth more levels are allowed.  0: it does not fit, and the writer is anywhere; never in the cutting pass. */
static int put(struct writer *w, ERL_NIF_TERM term, unsigned depth);

/* A part behind which @reserved bytes stay free. */
static int put_before(struct writer *w, size_t reserved, ERL_NIF_TERM term, unsigned depth)
{
	int is_put;

	w->end -= reserved;
	is_put = put(w, term, depth);
	w->end += reserved;
	return is_put;
}

/* The least that each part needs. */
static size_t part_bytes(const struct writer *w)
{
	return w->may_cut ? MARK_BYTES : 1;
}

/*
 * The functions below return 0 for a term that does not fit.  In the cutting pass they do so only before they have written anything:
 * the term is then replaced by the mark.
 */

static int put_tuple(struct writer *w, ERL_NIF_TERM term, unsigned depth)
{
	const ERL_NIF_TERM *elements;
	size_t least = part_bytes(w);
	int arity;

	if (!enif_get_tuple(w->e->env, term, &arity, &elements) ||
	    space(w) < (arity < 256 ? 2 : 5) + (size_t)arity * least)
		return 0;
	if (arity < 256) {
		*w->at++ = SMALL_TUPLE;
		*w->at++ = (uint8_t)arity;
	} else {
		*w->at = LARGE_TUPLE;
		w->at = put32(w->at + 1, (uint32_t)arity);
	}
	for (int i = 0; i < arity; i++)
		if (!put_before(w, (size_t)(arity - 1 - i) * least, elements[i], depth))
			return 0;
	return 1;
}

/* Copies the bytes that the list begins with behind a head of three bytes; *list is then the rest. */
static unsigned take_bytes(struct writer *w, ERL_NIF_TERM *list)
{
	ERL_NIF_TERM head, tail;
	unsigned count = 0, value;

	while (space(w) > 3 + count && count < 65535 && w->elements > 0 &&
	       enif_get_list_cell(w->e->env, *list, &head, &tail) && enif_get_uint(w->e->env, head, &value) &&
	       value < 256) {
		w->at[3 + count++] = (uint8_t)value;
		w->elements--;
		*list = tail;
	}
	return count;
}

/* Bytes behind a string's head become elements behind a list's. */
static void spread_bytes(struct writer *w, unsigned count)
{
	for (unsigned i = count; i-- > 0;) {
		uint8_t value = w->at[3 + i];

		w->at[5 + 2 * i] = SMALL_INTEGER;
		w->at[6 + 2 * i] = value;
	}
	w->at += 5 + 2 * count;
}

/* The bytes that stay free behind element @index of a list: for the end, and for each further argument. */
static size_t behind(const struct writer *w, unsigned arguments, unsigned index)
{
	return arguments ? (size_t)(arguments - 1 - index) * part_bytes(w) + 1 : part_bytes(w);
}

/* The elements behind the first @count, of which *rest is the list, as far as they fit; returns their number, or -1 for failure. */
static long put_elements(struct writer *w, ERL_NIF_TERM *rest, unsigned count, unsigned arguments, unsigned depth)
{
	ERL_NIF_TERM head, tail;

	for (; enif_get_list_cell(w->e->env, *rest, &head, &tail); count++) {
		size_t reserved = behind(w, arguments, count);

		if (w->may_cut && (w->elements <= 0 || space(w) < MARK_BYTES + reserved))
			return count;
		if (space(w) < reserved || !put_before(w, reserved, head, depth))
			return -1;
		*rest = tail;
	}
	return count;
}

/* NIL, another tail, or the mark for elements that are left. */
static int put_end(struct writer *w, ERL_NIF_TERM rest, unsigned depth)
{
	ERL_NIF_TERM head, tail;

	if (enif_is_empty_list(w->e->env, rest)) {
		*w->at++ = NIL;
		return 1;
	}
	if (!enif_get_list_cell(w->e->env, rest, &head, &tail))
		return put(w, rest, depth);
	leaf_put_mark(w);
	return 1;
}

/* @arguments: the length of a list whose elements are marked one by one; else 0. */
static int put_list(struct writer *w, ERL_NIF_TERM list, unsigned arguments, unsigned depth)
{
	size_t bytes = space(w), least = part_bytes(w);
	uint8_t *start = w->at;
	ERL_NIF_TERM rest = list;
	unsigned taken;
	long count;

	if (w->may_cut && bytes < 5 + arguments * MARK_BYTES + 1)
		arguments = 0;
	taken = bytes ? take_bytes(w, &rest) : 0;
	if (bytes && enif_is_empty_list(w->e->env, rest)) {
		if (taken) {
			*start = STRING;
			put16(start + 1, taken);
			w->at += 3 + taken;
		} else {
			*w->at++ = NIL;
		}
		return 1;
	}
	if (w->may_cut ? bytes < 5 + 2 * MARK_BYTES : bytes < 5 + 2 * (size_t)taken + least)
		return 0;
	if (5 + 2 * (size_t)taken + least > bytes) {
		count = (long)(bytes - 5 - MARK_BYTES) / 2;
		spread_bytes(w, (unsigned)count);
		rest = list; /* elements are left */
	} else {
		spread_bytes(w, taken);
		count = put_elements(w, &rest, taken, arguments, depth);
	}
	if (count > 0) {
		*start = LIST;
		put32(start + 1, (uint32_t)count);
		return put_end(w, rest, depth);
	}
	w->at = start;
	return 0;
}

/* A pair; 0: its key does not fit whole.  The value may be cut. */
static int put_pair(struct writer *w, ERL_NIF_TERM key, ERL_NIF_TERM value, size_t reserved, unsigned depth)
{
	int may_cut = w->may_cut, is_put;
	uint8_t *start = w->at;
	size_t least = part_bytes(w);

	if (space(w) < least + reserved)
		return 0;
	w->may_cut = 0;
	is_put = put_before(w, least + reserved, key, depth);
	w->may_cut = may_cut;
	if (is_put)
		is_put = put_before(w, reserved, value, depth);
	if (!is_put)
		w->at = start;
	return is_put;
}

/* The pair of marks at the end of a map that is cut. */
#define MARKS_BYTES (2 * MARK_BYTES)

static int put_map(struct writer *w, ERL_NIF_TERM map, unsigned depth)
{
	ErlNifMapIterator iterator;
	ERL_NIF_TERM key, value;
	uint8_t *start = w->at;
	size_t count, written = 0;

	if (!enif_get_map_size(w->e->env, map, &count) || space(w) < 5 + (w->may_cut ? MARKS_BYTES : 2 * count) ||
	    !enif_map_iterator_create(w->e->env, map, &iterator, ERL_NIF_MAP_ITERATOR_FIRST))
		return 0;
	w->at = start + 5;
	while (enif_map_iterator_get_pair(w->e->env, &iterator, &key, &value)) {
		size_t reserved = written + 1 == count ? 0 : w->may_cut ? MARKS_BYTES : 2 * (count - 1 - written);

		/* A key that is the mark would be there twice. */
		if ((w->may_cut && (w->elements <= 0 || key == mark_atom)) || !put_pair(w, key, value, reserved, depth))
			break;
		written++;
		enif_map_iterator_next(w->e->env, &iterator);
	}
	enif_map_iterator_destroy(w->e->env, &iterator);
	if (written < count && (!w->may_cut || !written)) {
		w->at = start;
		return 0;
	}
	if (written < count) {
		leaf_put_mark(w);
		leaf_put_mark(w);
		written++;
	}
	*start = MAP;
	put32(start + 1, (uint32_t)written);
	return 1;
}

static int put_bits(struct writer *w, ERL_NIF_TERM term)
{
	return bits_put(w, term) || (w->may_cut && bits_put_cut(w, term));
}

static int put_any(struct writer *w, ERL_NIF_TERM term, unsigned depth)
{
	switch (enif_term_type(w->e->env, term)) {
	case ERL_NIF_TERM_TYPE_ATOM: return leaf_put_atom(w, term);
	case ERL_NIF_TERM_TYPE_INTEGER: return leaf_put_number(w, term);
	case ERL_NIF_TERM_TYPE_FLOAT: return leaf_put_float(w, term);
	case ERL_NIF_TERM_TYPE_PID: return leaf_put_pid(w, term);
	case ERL_NIF_TERM_TYPE_PORT: return leaf_put_port(w, term);
	case ERL_NIF_TERM_TYPE_BITSTRING: return put_bits(w, term);
	case ERL_NIF_TERM_TYPE_FUN: return leaf_put_fun(w, term);
	case ERL_NIF_TERM_TYPE_TUPLE: return depth && put_tuple(w, term, depth - 1);
	case ERL_NIF_TERM_TYPE_LIST: return depth && put_list(w, term, 0, depth - 1);
	case ERL_NIF_TERM_TYPE_MAP: return depth && put_map(w, term, depth - 1);
	default: return leaf_put_external(w, term);
	}
}

static int put(struct writer *w, ERL_NIF_TERM term, unsigned depth)
{
	if (--w->elements >= 0 && put_any(w, term, depth))
		return 1;
	if (!w->may_cut)
		return 0;
	leaf_put_mark(w);
	return 1;
}

size_t encode_term(const struct encoder *encoder, ERL_NIF_TERM term, unsigned arguments, uint8_t *to, size_t max,
		   int *is_cut)
{
	struct writer w = {.e = encoder, .at = to + 1, .end = to + max, .elements = encoder->elements};

	*to = VERSION;
	if (put(&w, term, encoder->depth))
		return (size_t)(w.at - to);
	w = (struct writer){.e = encoder, .at = to + 1, .end = to + max, .elements = encoder->elements, .may_cut = 1};
	if (!arguments || !put_list(&w, term, arguments, encoder->depth - 1)) {
		w.at = to + 1;
		put(&w, term, encoder->depth);
	}
	*is_cut |= w.is_cut;
	return (size_t)(w.at - to);
}
