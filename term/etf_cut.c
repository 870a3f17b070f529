/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etf_cut.c - encodes as much of a term as a buffer holds, in the external term format.
 *
 * A term that fits is written whole.  Otherwise its head is written, then its parts in order as long as there is space
 * for the marks of all parts that follow: `reserved` counts those.  The mark is the atom '...', of five bytes.  A list
 * ends in the mark, and its count is filled in then; a binary becomes {'...',FirstBytes,Size}; a map keeps all its
 * keys, or becomes the mark.
 */
#include "term/etf.h"
#include "term/term.h"

static const uint8_t mark[] = {TW_ETF_SMALL_ATOM_UTF8, 3, '.', '.', '.'};

#define MARK_BYTES sizeof mark

enum cut_kind { CUT_PARTS, CUT_LIST, CUT_MAP };

struct cut_frame {
	enum cut_kind kind;
	const struct tw_term *parts; /* the remaining parts; for a map its keys */
	const struct tw_term *values;
	struct tw_term list;
	uint8_t *count_at;
	size_t count; /* remaining parts; for a list the parts written */
};

struct cutting {
	uint8_t *at, *end; /* at least one byte precedes `at` */
	size_t reserved;
	unsigned depth;
	struct cut_frame frames[TW_TERM_DEPTH_FIXED];
};

static size_t capacity(const struct cutting *c)
{
	return (size_t)(c->end - c->at) - c->reserved;
}

/*
 * Encodes a term in at most @bytes; returns 0 and writes nothing if it needs more.  The byte before `at` temporarily
 * holds the version.
 */
static size_t try_whole(struct cutting *c, struct tw_term t, size_t bytes)
{
	uint8_t kept = c->at[-1];
	size_t written = tw_etf_encode_fixed(t, c->at - 1, bytes + 1);

	c->at[-1] = kept;
	return written ? written - 1 : 0;
}

static void put_mark(struct cutting *c)
{
	memcpy(c->at, mark, MARK_BYTES);
	c->at += MARK_BYTES;
}

static void put_number(uint8_t *at, size_t value, unsigned bytes)
{
	while (bytes-- > 0)
		*at++ = (uint8_t)(value >> bytes * 8);
}

static void put_head(struct cutting *c, enum tw_etf_tag tag, size_t count, unsigned bytes)
{
	*c->at++ = (uint8_t)tag;
	put_number(c->at, count, bytes);
	c->at += bytes;
}

static bool begin_tuple(struct cutting *c, struct tw_term t)
{
	size_t count = tw_block_size(t), head = count <= 255 ? 2 : 5;

	if (!count || count > UINT16_MAX || capacity(c) < head + count * MARK_BYTES)
		return false;
	put_head(c, count <= 255 ? TW_ETF_SMALL_TUPLE : TW_ETF_LARGE_TUPLE, count, (unsigned)head - 1);
	c->reserved += count * MARK_BYTES;
	c->frames[c->depth++] = (struct cut_frame){.kind = CUT_PARTS, .parts = tw_elements(t), .count = count};
	return true;
}

/* Begins a list of at least one element; an empty one is its tail. */
static bool begin_list(struct cutting *c, struct tw_term t)
{
	if (capacity(c) < 5 + 2 * MARK_BYTES)
		return false;
	put_head(c, TW_ETF_LIST, 0, 4);
	c->reserved += MARK_BYTES;
	c->frames[c->depth++] = (struct cut_frame){.kind = CUT_LIST, .list = t, .count_at = c->at - 4};
	return true;
}

static bool begin_map(struct cutting *c, struct tw_term t)
{
	size_t count = tw_block_size(t), bytes = 5, left = capacity(c);
	const struct tw_term *keys = tw_elements(t);

	for (size_t i = 0; i < count; i++) {
		size_t key = bytes + MARK_BYTES < left ? try_whole(c, keys[i], left - bytes - MARK_BYTES) : 0;

		if (!key)
			return false;
		bytes += key + MARK_BYTES;
	}
	put_head(c, TW_ETF_MAP, count, 4);
	c->reserved += bytes - 5;
	c->frames[c->depth++] =
		(struct cut_frame){.kind = CUT_MAP, .parts = keys, .values = keys + count, .count = count};
	return count != 0;
}

static bool put_bits(struct cutting *c, struct tw_term t)
{
	/* Two heads, the mark, and a size of any length. */
	size_t others = 2 + MARK_BYTES + 5 + 11, bytes;

	if (capacity(c) <= others)
		return false;
	bytes = capacity(c) - others;
	put_head(c, TW_ETF_SMALL_TUPLE, 3, 1);
	put_mark(c);
	put_head(c, TW_ETF_BINARY, bytes, 4);
	memcpy(c->at, tw_bits_data(t), bytes);
	c->at += bytes;
	c->at += try_whole(c, tw_small((int64_t)tw_block_size(t)), 11);
	return true;
}

static void put(struct cutting *c, struct tw_term t)
{
	size_t whole = try_whole(c, t, capacity(c));
	bool is_begun = false;

	if (whole) {
		c->at += whole;
		return;
	}
	if (tw_is_bits(t))
		is_begun = put_bits(c, t);
	else if (c->depth < TW_TERM_DEPTH_FIXED)
		is_begun = tw_is_cons(t)    ? begin_list(c, t)
			   : tw_is_tuple(t) ? begin_tuple(c, t)
			   : tw_is_map(t)   ? begin_map(c, t)
					    : false;
	if (!is_begun)
		put_mark(c);
}

static void put_next(struct cutting *c)
{
	struct cut_frame *frame = &c->frames[c->depth - 1];
	struct tw_term part;
	size_t key;

	switch (frame->kind) {
	case CUT_LIST:
		part = frame->list;
		if (tw_is_cons(part) && capacity(c) >= MARK_BYTES) {
			frame->list = tw_cell(part)->tail;
			put_number(frame->count_at, ++frame->count, 4);
			part = tw_cell(part)->head;
			break;
		}
		c->reserved -= MARK_BYTES;
		c->depth--;
		if (tw_is_cons(part)) {
			put_mark(c);
			return;
		}
		break;
	case CUT_MAP:
		key = try_whole(c, *frame->parts++, (size_t)(c->end - c->at));
		c->at += key;
		c->reserved -= key + MARK_BYTES;
		part = *frame->values++;
		c->depth -= --frame->count == 0;
		break;
	default:
		c->reserved -= MARK_BYTES;
		part = *frame->parts++;
		c->depth -= --frame->count == 0;
	}
	put(c, part);
}

size_t tw_etf_encode_cut(struct tw_term term, void *buffer, size_t bytes)
{
	struct cutting c = {.at = buffer, .end = (uint8_t *)buffer + bytes};

	if (bytes < 1 + MARK_BYTES)
		return 0;
	*c.at++ = TW_ETF_VERSION;
	put(&c, term);
	while (c.depth)
		put_next(&c);
	return (size_t)(c.at - (uint8_t *)buffer);
}
