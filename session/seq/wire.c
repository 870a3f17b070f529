/* SPDX-License-Identifier: Apache-2.0 */
/* wire.c - a token's parts as bytes and back. */
#include "session/seq/parts.h"

#include "tracewheel/seq.h"
#include "pipeline/thread/seq_label.h"
#include "base/checksum.h"
#include "base/limits.h"
#include "term/term.h"

#include <string.h>

#define EMPTY 128

_Static_assert(TW_SEQ_ENCODED_BYTES_MAX >=
		       TW_SEQ_WIRE_HEAD_BYTES + 2 * 10 + 4 * 5 + TW_NAME_BYTES_MAX + TW_SEQ_LABEL_BYTES_MAX,
	       "every token fits");
_Static_assert(TW_SEQ_ENCODED_BYTES_MAX <= UINT16_MAX, "the size of a body has 16 bits");

/* Both ends move; a number that does not fit or that was cut sets at to NULL. */
struct range {
	unsigned char *at, *end;
};

static void put_number(struct range *out, uint64_t value)
{
	do {
		if (!out->at || out->at == out->end) {
			out->at = NULL;
			return;
		}
		*out->at++ = (unsigned char)((value & 127) | (value > 127 ? 128 : 0));
		value >>= 7;
	} while (value);
}

static uint64_t zigzag(int64_t value)
{
	return (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0);
}

/* One encoding for each number: no group of zero bits at the end, none beyond 64 bits. */
static uint64_t take_number(const unsigned char **at, const unsigned char *end, bool *is_bad)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 64 && *at < end; shift += 7) {
		unsigned char byte = *(*at)++;

		if ((shift == 63 && byte > 1) || (byte == 0 && shift))
			break;
		value |= (uint64_t)(byte & 127) << shift;
		if (byte < 128)
			return value;
	}
	*is_bad = true;
	return 0;
}

static uint32_t take_number32(const unsigned char **at, const unsigned char *end, bool *is_bad)
{
	uint64_t value = take_number(at, end, is_bad);

	*is_bad |= value > UINT32_MAX;
	return (uint32_t)value;
}

static int64_t take_signed(const unsigned char **at, const unsigned char *end, bool *is_bad)
{
	uint64_t value = take_number(at, end, is_bad);

	return (int64_t)(value >> 1 ^ (0 - (value & 1)));
}

static uint32_t checksum(const unsigned char *token, size_t bytes)
{
	return (uint32_t)tw_checksum64_two(token, 6, token + TW_SEQ_WIRE_HEAD_BYTES, bytes - TW_SEQ_WIRE_HEAD_BYTES);
}

/* Returns 0, TW_ENOSPC, or the error of the label. */
static int put_body(const struct tw_seq_parts *parts, struct tw_term own, struct range *out)
{
	size_t name_bytes;
	const char *name = tw_term_atom_name(parts->node, &name_bytes);
	struct tw_sink sink;
	size_t capacity;
	int error;

	put_number(out, zigzag(parts->previous));
	put_number(out, zigzag(parts->current));
	put_number(out, parts->number);
	put_number(out, parts->serial);
	put_number(out, parts->creation);
	put_number(out, name_bytes);
	if (!out->at || (size_t)(out->end - out->at) < name_bytes)
		return TW_ENOSPC;
	memcpy(out->at, name, name_bytes);
	out->at += name_bytes;
	capacity = (size_t)(out->end - out->at);
	sink = (struct tw_sink){.start = (char *)out->at, .at = (char *)out->at};
	sink.end = sink.at + (capacity < TW_SEQ_LABEL_BYTES_MAX ? capacity : TW_SEQ_LABEL_BYTES_MAX);
	error = tw_etf_encode(parts->label, own, &sink);
	out->at = (unsigned char *)sink.at;
	if (error == TW_ENOSPC && capacity >= TW_SEQ_LABEL_BYTES_MAX)
		return TW_ELIMIT;
	return error;
}

int tw_seq_parts_encode(const struct tw_seq_parts *parts, struct tw_term own, void *buffer, size_t bytes,
			size_t *used_bytes)
{
	bool is_empty = tw_term_is_none(parts->label);
	unsigned char token[TW_SEQ_ENCODED_BYTES_MAX] = {'T', 'w', TW_SEQ_WIRE_VERSION,
							 is_empty ? EMPTY : parts->flags};
	struct range out = {token + TW_SEQ_WIRE_HEAD_BYTES, token + sizeof token};
	size_t body_bytes, all_bytes;
	int error = is_empty ? 0 : put_body(parts, own, &out);
	uint32_t check;

	if (error)
		return error;
	all_bytes = (size_t)(out.at - token);
	body_bytes = all_bytes - TW_SEQ_WIRE_HEAD_BYTES;
	if (all_bytes > bytes)
		return TW_ENOSPC;
	token[4] = (unsigned char)body_bytes;
	token[5] = (unsigned char)(body_bytes >> 8);
	check = checksum(token, all_bytes);
	for (int i = 0; i < 4; i++)
		token[6 + i] = (unsigned char)(check >> 8 * i);
	memcpy(buffer, token, all_bytes);
	*used_bytes = all_bytes;
	return 0;
}

static int take_body(struct tw_arena *arena, const unsigned char *at, const unsigned char *end,
		     const struct tw_etf_options *options, struct tw_seq_parts *parts)
{
	bool is_bad = false;
	uint64_t name_bytes;
	int error;

	parts->previous = take_signed(&at, end, &is_bad);
	parts->current = take_signed(&at, end, &is_bad);
	parts->number = take_number32(&at, end, &is_bad);
	parts->serial = take_number32(&at, end, &is_bad);
	parts->creation = take_number32(&at, end, &is_bad);
	name_bytes = take_number(&at, end, &is_bad);
	is_bad |= !tw_small_fits(parts->previous) || !tw_small_fits(parts->current);
	if (is_bad || name_bytes == 0 || name_bytes > (size_t)(end - at))
		return TW_EFORMAT;
	if ((size_t)(end - at) - name_bytes > TW_SEQ_LABEL_BYTES_MAX)
		return TW_ELIMIT;
	/* The label first: an atom cannot be taken back when the label is refused. */
	error = tw_etf_decode(arena, at + name_bytes, (size_t)(end - at) - name_bytes, options, NULL, &parts->label);
	if (error)
		return error == TW_ENOTSUP ? TW_EFORMAT : error;
	parts->node = tw_term_atom_existing((const char *)at, name_bytes);
	if (!tw_term_is_none(parts->node))
		return 0;
	if (options && options->is_safe)
		return TW_ENOENT;
	parts->node = tw_term_atom((const char *)at, name_bytes);
	return tw_term_is_none(parts->node) ? TW_EFORMAT : 0;
}

int tw_seq_parts_decode(struct tw_arena *arena, const void *data, size_t bytes, const struct tw_etf_options *options,
			size_t *used_bytes, struct tw_seq_parts *out)
{
	const unsigned char *token = data;
	struct tw_seq_parts parts = {0};
	size_t body_bytes, all_bytes;
	uint32_t check = 0;
	int error;

	if (bytes < 3 || token[0] != 'T' || token[1] != 'w')
		return TW_EFORMAT;
	if (token[2] != TW_SEQ_WIRE_VERSION)
		return TW_EVERSION;
	if (bytes < TW_SEQ_WIRE_HEAD_BYTES)
		return TW_EFORMAT;
	body_bytes = (size_t)token[4] | (size_t)token[5] << 8;
	all_bytes = TW_SEQ_WIRE_HEAD_BYTES + body_bytes;
	if (all_bytes > bytes || (!used_bytes && all_bytes != bytes))
		return TW_EFORMAT;
	for (int i = 0; i < 4; i++)
		check |= (uint32_t)token[6 + i] << 8 * i;
	if (check != checksum(token, all_bytes))
		return TW_EFORMAT;
	if (token[3] & EMPTY) {
		if (token[3] != EMPTY || body_bytes)
			return TW_EFORMAT;
	} else {
		if (token[3] & ~TW_SEQ_FLAGS)
			return TW_EFORMAT;
		parts.flags = token[3];
		error = take_body(arena, token + TW_SEQ_WIRE_HEAD_BYTES, token + all_bytes, options, &parts);
		if (error)
			return error;
	}
	if (used_bytes)
		*used_bytes = all_bytes;
	*out = parts;
	return 0;
}
