/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etf.c - encodes terms as erlang:term_to_binary/1 does.
 *
 * The format is a prefix notation: the head of a block, then its parts.  Thus one forward walk writes it. etf_decode.c
 * decodes.
 */
#include "term/etf.h"
#include "term/integer.h"
#include "term/sink.h"
#include "term/walk.h"
#include "base/export.h"

/* Larger port numbers need V4_PORT_EXT, which OTP before 24 does not know. */
#define NEW_PORT_MAX ((UINT64_C(1) << 28) - 1)

enum frame_kind { IN_PARTS, IN_LIST, IN_MAP };

struct encoding {
	struct tw_sink *sink;
	struct tw_term node;
	bool may_allocate;
	struct tw_walk walk;
};

static char *put_be(char *at, uint64_t value, unsigned bytes)
{
	while (bytes-- > 0)
		*at++ = (char)(value >> bytes * 8);
	return at;
}

/* Writes a tag and a number. */
static int put_head(struct tw_sink *sink, enum tw_etf_tag tag, uint64_t value, unsigned bytes)
{
	char head[9];

	head[0] = (char)tag;
	return tw_sink_put(sink, head, (size_t)(put_be(head + 1, value, bytes) - head));
}

/* The same for a count, which the format limits to 32 bits. */
static int put_count(struct tw_sink *sink, enum tw_etf_tag tag, uint64_t count)
{
	return count > UINT32_MAX ? TW_ELIMIT : put_head(sink, tag, count, 4);
}

static int put_atom(struct tw_sink *sink, struct tw_term atom)
{
	const struct tw_atom_entry *entry = tw_atom_entry(tw_atom_index(atom));
	bool is_small = entry->name_bytes <= 255;
	int error = put_head(sink, is_small ? TW_ETF_SMALL_ATOM_UTF8 : TW_ETF_ATOM_UTF8, entry->name_bytes,
			     is_small ? 1 : 2);

	return error ? error : tw_sink_put(sink, entry->name, entry->name_bytes);
}

static int put_integer(struct tw_sink *sink, struct tw_term t)
{
	uint64_t small;
	const uint64_t *limbs;
	size_t count, bytes;
	bool is_negative;
	int64_t value;
	int error;

	if (tw_is_small(t)) {
		value = tw_small_value(t);
		if (value >= 0 && value <= 255)
			return put_head(sink, TW_ETF_SMALL_INTEGER, (uint64_t)value, 1);
		if (value >= INT32_MIN && value <= INT32_MAX)
			return put_head(sink, TW_ETF_INTEGER, (uint64_t)value, 4);
	}
	limbs = tw_integer_limbs(t, &small, &count, &is_negative);
	bytes = count * 8 - (size_t)__builtin_clzll(limbs[count - 1]) / 8;
	error = bytes <= 255 ? put_head(sink, TW_ETF_SMALL_BIG, bytes, 1) : put_head(sink, TW_ETF_LARGE_BIG, bytes, 4);
	if (!error)
		error = tw_sink_put_byte(sink, is_negative);
	/* Low byte first, as limbs are stored in memory. */
	return error ? error : tw_sink_put(sink, limbs, bytes);
}

static int put_float(struct tw_sink *sink, struct tw_term t)
{
	return put_head(sink, TW_ETF_NEW_FLOAT, tw_block(t)[1], 8);
}

static int put_bits(struct tw_sink *sink, struct tw_term t)
{
	unsigned rest = tw_header_aux(*tw_block(t));
	size_t bytes = tw_block_size(t);
	int error = put_count(sink, rest ? TW_ETF_BIT_BINARY : TW_ETF_BINARY, bytes);

	if (!error && rest)
		error = tw_sink_put_byte(sink, (char)rest);
	return error ? error : tw_sink_put(sink, tw_bits_data(t), bytes);
}

static int put_identifier(struct encoding *e, struct tw_term t)
{
	const struct tw_block_identifier *block = (const struct tw_block_identifier *)tw_block(t);
	size_t count = tw_header_size(block->header), i;
	uint64_t port = (uint64_t)block->words[count > 1] << 32 | block->words[0];
	char rest[24], *at = rest;
	enum tw_etf_tag tag;
	int error;

	switch (tw_header_kind(block->header)) {
	case TW_BLOCK_PID:
		tag = TW_ETF_NEW_PID;
		at = put_be(put_be(at, block->words[0], 4), block->words[1], 4);
		at = put_be(at, block->creation, 4);
		break;
	case TW_BLOCK_PORT:
		tag = port > NEW_PORT_MAX ? TW_ETF_V4_PORT : TW_ETF_NEW_PORT;
		at = put_be(put_be(at, port, tag == TW_ETF_V4_PORT ? 8 : 4), block->creation, 4);
		break;
	default:
		tag = TW_ETF_NEWER_REFERENCE;
		at = put_be(at, block->creation, 4);
		for (i = 0; i < count && i < TW_COUNT_OF(((struct tw_identifier *)0)->words); i++)
			at = put_be(at, block->words[i], 4);
	}
	error = put_head(e->sink, tag, count, tag == TW_ETF_NEWER_REFERENCE ? 2 : 0);
	if (!error)
		error = put_atom(e->sink, tw_term_is_none(block->node) ? e->node : block->node);
	return error ? error : tw_sink_put(e->sink, rest, (size_t)(at - rest));
}

static int put_export(struct tw_sink *sink, struct tw_term t)
{
	int error = tw_sink_put_byte(sink, TW_ETF_EXPORT);

	if (!error)
		error = put_atom(sink, tw_word(tw_block(t)[1]));
	if (!error)
		error = put_atom(sink, tw_word(tw_block(t)[2]));
	return error ? error : put_head(sink, TW_ETF_SMALL_INTEGER, tw_block_size(t), 1);
}

/* ---- the walk ---- */

static int push(struct encoding *e, enum frame_kind kind, const struct tw_term *parts, size_t left)
{
	struct tw_walk_frame *frame;

	if (left == 0)
		return 0;
	frame = tw_walk_push(&e->walk, e->may_allocate);
	if (!frame)
		return e->may_allocate ? TW_ENOMEM : TW_ELIMIT;
	frame->kind = kind;
	frame->a = parts;
	frame->b = parts + left;
	frame->left = left;
	frame->flag = 0;
	return 0;
}

static int put_tuple(struct encoding *e, struct tw_term t)
{
	size_t count = tw_block_size(t);
	int error = count <= 255 ? put_head(e->sink, TW_ETF_SMALL_TUPLE, count, 1)
				 : put_count(e->sink, TW_ETF_LARGE_TUPLE, count);

	return error ? error : push(e, IN_PARTS, tw_elements(t), count);
}

static int put_string(struct tw_sink *sink, struct tw_term list, size_t count)
{
	int error = put_head(sink, TW_ETF_STRING, count, 2);

	for (; !error && tw_is_cons(list); list = tw_cell(list)->tail)
		error = tw_sink_put_byte(sink, (char)tw_small_value(tw_cell(list)->head));
	return error;
}

static int put_list(struct encoding *e, struct tw_term list)
{
	bool is_string = true;
	struct tw_term t;
	size_t count = 0;
	int error;

	for (t = list; tw_is_cons(t); t = tw_cell(t)->tail) {
		struct tw_term head = tw_cell(t)->head;

		is_string = is_string && tw_is_small(head) && (uint64_t)tw_small_value(head) <= 255;
		count++;
	}
	if (is_string && tw_is_nil(t) && count <= UINT16_MAX)
		return put_string(e->sink, list, count);
	error = put_count(e->sink, TW_ETF_LIST, count);
	return error ? error : push(e, IN_LIST, &tw_cell(list)->head, count);
}

static int put_map(struct encoding *e, struct tw_term t)
{
	int error = put_count(e->sink, TW_ETF_MAP, tw_block_size(t));

	return error ? error : push(e, IN_MAP, tw_elements(t), tw_block_size(t));
}

static int put_here(struct encoding *e, struct tw_term t)
{
	const struct tw_block_fun *fun;

	switch (tw_term_type(t)) {
	case TW_TYPE_INTEGER: return put_integer(e->sink, t);
	case TW_TYPE_FLOAT: return put_float(e->sink, t);
	case TW_TYPE_ATOM: return put_atom(e->sink, t);
	case TW_TYPE_REFERENCE:
	case TW_TYPE_PORT:
	case TW_TYPE_PID: return put_identifier(e, t);
	case TW_TYPE_FUN:
		if (tw_is_kind(t, TW_BLOCK_EXPORT))
			return put_export(e->sink, t);
		fun = (const struct tw_block_fun *)tw_block(t);
		return tw_sink_put(e->sink, fun->etf, tw_block_size(t));
	case TW_TYPE_TUPLE: return put_tuple(e, t);
	case TW_TYPE_MAP: return put_map(e, t);
	case TW_TYPE_NIL: return tw_sink_put_byte(e->sink, TW_ETF_NIL);
	case TW_TYPE_CONS: return put_list(e, t);
	case TW_TYPE_BITSTRING: return put_bits(e->sink, t);
	default: return TW_EBADARG;
	}
}

/* Returns the next part of the top frame, and pops the frame with its last part. */
static struct tw_term next_part(struct encoding *e)
{
	struct tw_walk_frame *frame = tw_walk_top(&e->walk);
	struct tw_term part = *frame->a;

	switch ((enum frame_kind)frame->kind) {
	case IN_LIST:
		/* The head of each cell; after the last one, its tail. */
		if (--frame->left > 0) {
			frame->a = &tw_cell(frame->a[1])->head;
		} else {
			frame->kind = IN_PARTS;
			frame->a++;
			frame->left = 1;
		}
		return part;
	case IN_MAP:
		frame->flag = !frame->flag;
		if (frame->flag)
			return part;
		part = *frame->b++;
		break;
	default: break;
	}
	frame->a++;
	if (--frame->left == 0)
		e->walk.depth--;
	return part;
}

static int encode(struct tw_term term, struct tw_term node, bool may_allocate, struct tw_sink *sink)
{
	struct encoding e;
	int error;

	e.sink = sink;
	e.node = node;
	e.may_allocate = may_allocate;
	tw_walk_init(&e.walk);
	error = tw_sink_put_byte(sink, (char)TW_ETF_VERSION);
	if (!error)
		error = put_here(&e, term);
	while (!error && e.walk.depth > 0)
		error = put_here(&e, next_part(&e));
	tw_walk_fini(&e.walk);
	return error;
}

TW_API int tw_etf_encode(struct tw_term term, struct tw_term node, struct tw_sink *sink)
{
	if (!tw_term_is_none(node) && !tw_is_atom(node))
		return TW_EBADARG;
	return encode(term, tw_term_is_none(node) ? tw_atom(TW_ATOM_NONODE) : node, true, sink);
}

size_t tw_etf_encode_fixed(struct tw_term term, void *buffer, size_t bytes)
{
	struct tw_sink sink = {.start = buffer, .at = buffer, .end = (char *)buffer + bytes};

	if (encode(term, tw_atom(TW_ATOM_NONODE), false, &sink))
		return 0;
	return (size_t)(sink.at - sink.start);
}
