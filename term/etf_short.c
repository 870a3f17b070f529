/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etf_short.c - tw_etf_try_encode(): a fast encoder for typical messages.
 *
 * Small integers, atoms, pids, and shallow tuples and lists of them are written straight into the buffer, with one
 * check of the remaining space for each part.  Rare, deep and long terms are left to etf.c from the start.
 * A tuple of 4 words takes 8 ns here, 25 ns there.
 */
#include "term/etf.h"
#include "term/term.h"

/* Levels of tuples and lists. */
#define LEVELS_MAX 6
/* Elements of a list. */
#define LIST_MAX 64
/* Largest encoding of a part that is neither an atom nor a binary. */
#define PART_BYTES 40

/* Copies a short name in overlapping steps. */
static inline void copy_name(uint8_t *to, const char *from, size_t bytes)
{
	if (bytes >= 8 && bytes <= 16) {
		uint64_t first, last;

		memcpy(&first, from, 8);
		memcpy(&last, from + bytes - 8, 8);
		memcpy(to, &first, 8);
		memcpy(to + bytes - 8, &last, 8);
	} else if (bytes >= 4 && bytes < 8) {
		uint32_t first, last;

		memcpy(&first, from, 4);
		memcpy(&last, from + bytes - 4, 4);
		memcpy(to, &first, 4);
		memcpy(to + bytes - 4, &last, 4);
	} else if (bytes < 4) {
		for (size_t i = 0; i < bytes; i++)
			to[i] = (uint8_t)from[i];
	} else {
		memcpy(to, from, bytes);
	}
}

static inline uint8_t *put_atom(uint8_t *at, const uint8_t *end, struct tw_term atom)
{
	const struct tw_atom_entry *entry = tw_atom_entry(tw_atom_index(atom));

	if (entry->name_bytes > 255 || (size_t)(end - at) < entry->name_bytes + 2)
		return NULL;
	at[0] = TW_ETF_SMALL_ATOM_UTF8;
	at[1] = (uint8_t)entry->name_bytes;
	copy_name(at + 2, entry->name, entry->name_bytes);
	return at + 2 + entry->name_bytes;
}

static inline uint8_t *put_small(uint8_t *at, int64_t value)
{
	if (value >= 0 && value <= 255) {
		at[0] = TW_ETF_SMALL_INTEGER;
		at[1] = (uint8_t)value;
		return at + 2;
	}
	if (value < INT32_MIN || value > INT32_MAX)
		return NULL;
	at[0] = TW_ETF_INTEGER;
	return tw_etf_put32(at + 1, (uint32_t)value);
}

static inline uint8_t *put_pid(uint8_t *at, const struct tw_block_identifier *pid)
{
	if (!tw_term_is_none(pid->node))
		return NULL;
	return tw_etf_put_local_pid(at, pid->words[0], pid->words[1], pid->creation);
}

static uint8_t *put_term(uint8_t *at, const uint8_t *end, struct tw_term term, unsigned levels);

static __attribute__((noinline)) uint8_t *put_list(uint8_t *at, const uint8_t *end, struct tw_term list,
						   unsigned levels)
{
	bool is_string = true;
	unsigned count = 0;
	struct tw_term t;

	for (t = list; tw_is_cons(t) && count <= LIST_MAX; t = tw_cell(t)->tail, count++) {
		struct tw_term head = tw_cell(t)->head;

		is_string = is_string && tw_is_small(head) && (uint64_t)tw_small_value(head) <= 255;
	}
	/* Strings have an encoding of their own. */
	if (count > LIST_MAX || !levels || (is_string && tw_is_nil(t)))
		return NULL;
	*at = TW_ETF_LIST;
	at = tw_etf_put32(at + 1, count);
	for (t = list; at && tw_is_cons(t); t = tw_cell(t)->tail)
		at = put_term(at, end, tw_cell(t)->head, levels - 1);
	return at ? put_term(at, end, t, levels - 1) : NULL;
}

static uint8_t *put_tuple(uint8_t *at, const uint8_t *end, struct tw_term tuple, unsigned levels)
{
	size_t count = tw_block_size(tuple);
	const struct tw_term *elements = tw_elements(tuple);

	if (count > 255 || !levels)
		return NULL;
	at[0] = TW_ETF_SMALL_TUPLE;
	at[1] = (uint8_t)count;
	at += 2;
	/* Leaves are encoded inline: calls would take longer than the encoding. */
	for (size_t i = 0; at && i < count; i++) {
		if (tw_is_small(elements[i]) && (size_t)(end - at) >= PART_BYTES)
			at = put_small(at, tw_small_value(elements[i]));
		else
			at = put_term(at, end, elements[i], levels - 1);
	}
	return at;
}

static uint8_t *put_block(uint8_t *at, const uint8_t *end, struct tw_term term, unsigned levels)
{
	switch (tw_header_kind(*tw_block(term))) {
	case TW_BLOCK_TUPLE: return put_tuple(at, end, term, levels);
	case TW_BLOCK_PID: return put_pid(at, (const struct tw_block_identifier *)tw_block(term));
	default: return NULL;
	}
}

/* Returns the end of the encoding; NULL: the term does not qualify or does not fit. */
static uint8_t *put_term(uint8_t *at, const uint8_t *end, struct tw_term term, unsigned levels)
{
	if ((size_t)(end - at) < PART_BYTES)
		return NULL;
	if (tw_is_small(term))
		return put_small(at, tw_small_value(term));
	if (tw_is_atom(term))
		return put_atom(at, end, term);
	if (tw_is_block(term))
		return put_block(at, end, term, levels);
	if (tw_is_cons(term))
		return put_list(at, end, term, levels);
	*at = TW_ETF_NIL;
	return tw_is_nil(term) ? at + 1 : NULL;
}

size_t tw_etf_try_encode(struct tw_term term, void *buffer, size_t bytes)
{
	uint8_t *at = buffer, *end = at + bytes;

	if (bytes) {
		*at = TW_ETF_VERSION;
		at = put_term(at + 1, end, term, LEVELS_MAX);
		if (at)
			return (size_t)(at - (uint8_t *)buffer);
	}
	return tw_etf_encode_fixed(term, buffer, bytes);
}
