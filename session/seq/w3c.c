/* SPDX-License-Identifier: Apache-2.0 */
/*
 * w3c.c - a token's parts as W3C trace context (level 2) and back.
 *
 *	traceparent	00-<trace-id>-<parent-id>-<flags>
 *			trace-id: the label if it is a binary of 16 bytes that are not all 0, otherwise its hash
 *			parent-id: hash of From and current
 *			flags: 1 sampled: the token makes events; 2 random: copied from the header received
 *	tracestate	tw=<the token as of wire.c, in base64url>,<other members received>
 *
 * The token itself is in tracestate, so our own processes lose nothing; trace-id and parent-id are for all others.
 */
#include "session/seq/seq.h"
#include "session/seq/parts.h"

#include "tracewheel/seq.h"
#include "pipeline/thread/seq_label.h"
#include "term/term.h"

#include <string.h>

#define SAMPLED	     1
#define RANDOM	     2
#define KEY	     "tw"
#define OURS	     "VHc" /* 'T', 'w' and the first bits of a version below 64, in base64url */
#define VALUE_MAX    256
#define KEY_MAX	     256
#define MEMBERS_MAX  32
#define LONG_MEMBER  128
#define MAKES_EVENTS (TW_SEQ_SEND | TW_SEQ_RECEIVE | TW_SEQ_PRINT)

struct traceparent {
	unsigned char trace_id[TW_SEQ_TRACE_ID_BYTES];
	uint64_t parent_id;
	unsigned char flags;
};

struct member {
	const char *text;
	size_t key_bytes, bytes;
};

struct members {
	struct member list[MEMBERS_MAX];
	size_t count;
};

/* ---- traceparent ---- */

/* Hexadecimal in lower case only, as the specification demands. */
static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* False: other characters. */
static bool take_hex(const char **at, unsigned char *out, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++, *at += 2) {
		int high = hex_value((*at)[0]), low = high < 0 ? -1 : hex_value((*at)[1]);

		if (low < 0)
			return false;
		out[i] = (unsigned char)(high << 4 | low);
	}
	return true;
}

/* A field and what follows it. */
static char *put_field(char *at, const void *data, size_t bytes, char end)
{
	const unsigned char *from = data;

	for (size_t i = 0; i < bytes; i++) {
		*at++ = "0123456789abcdef"[from[i] >> 4];
		*at++ = "0123456789abcdef"[from[i] & 15];
	}
	*at++ = end;
	return at;
}

static bool is_zero(const unsigned char *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (bytes[i])
			return false;
	return true;
}

static uint64_t big_endian(const unsigned char *bytes)
{
	uint64_t value = 0;

	for (int i = 0; i < 8; i++)
		value = value << 8 | bytes[i];
	return value;
}

/* Versions above 00 may append fields after another dash; version ff does not exist. */
static bool parse_traceparent(const char *text, struct traceparent *out)
{
	unsigned char version, parent_id[8];

	if (!text || !take_hex(&text, &version, 1) || version == 0xff || *text++ != '-' ||
	    !take_hex(&text, out->trace_id, TW_SEQ_TRACE_ID_BYTES) || *text++ != '-' ||
	    !take_hex(&text, parent_id, 8) || *text++ != '-' || !take_hex(&text, &out->flags, 1))
		return false;
	if (*text && (version == 0 || *text != '-'))
		return false;
	out->parent_id = big_endian(parent_id);
	/* Later versions keep the meaning of the first bit only. */
	out->flags &= version ? SAMPLED : SAMPLED | RANDOM;
	return !is_zero(out->trace_id, TW_SEQ_TRACE_ID_BYTES) && out->parent_id;
}

/* ---- tracestate ---- */

static bool is_lower(char c)
{
	return c >= 'a' && c <= 'z';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Returns the bytes of a valid key that ends in '=', 0 otherwise. */
static size_t key_bytes(const char *text, size_t bytes)
{
	size_t count = 0;

	for (; count < bytes && text[count] != '='; count++)
		if (!is_lower(text[count]) && !is_digit(text[count]) && (!count || !strchr("_-*/@", text[count])))
			return 0;
	return count < bytes && count <= KEY_MAX ? count : 0;
}

static bool is_value(const char *text, size_t bytes)
{
	if (bytes == 0 || bytes > VALUE_MAX || text[bytes - 1] == ' ')
		return false;
	for (size_t i = 0; i < bytes; i++)
		if (text[i] < 0x20 || text[i] > 0x7e || text[i] == '=')
			return false;
	return true;
}

static const struct member *find(const struct members *members, const char *key, size_t bytes)
{
	for (size_t i = 0; i < members->count; i++)
		if (members->list[i].key_bytes == bytes && !memcmp(members->list[i].text, key, bytes))
			return &members->list[i];
	return NULL;
}

static bool add_member(struct members *out, const char *text, size_t bytes)
{
	struct member member = {text, key_bytes(text, bytes), bytes};

	if (!member.key_bytes || !is_value(text + member.key_bytes + 1, bytes - member.key_bytes - 1))
		return false;
	/* The first of two members with one key is the newer one. */
	if (find(out, text, member.key_bytes))
		return true;
	if (out->count == MEMBERS_MAX)
		return false;
	out->list[out->count++] = member;
	return true;
}

/* A list with one wrong member is discarded as a whole; empty members and blanks around members are allowed. */
static void parse_tracestate(const char *text, struct members *out)
{
	out->count = 0;
	while (text && *text) {
		size_t bytes = strcspn(text, ",");
		const char *next = text[bytes] ? text + bytes + 1 : text + bytes;

		for (; bytes && (*text == ' ' || *text == '\t'); bytes--)
			text++;
		while (bytes && (text[bytes - 1] == ' ' || text[bytes - 1] == '\t'))
			bytes--;
		if (bytes && !add_member(out, text, bytes)) {
			out->count = 0;
			return;
		}
		text = next;
	}
}

/* ---- base64url without padding, RFC 4648 ---- */

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* @out		(bytes * 4 + 2) / 3 characters. */
static size_t base64_encode(const unsigned char *data, size_t bytes, char *out)
{
	size_t count = 0;
	uint32_t bits = 0;
	unsigned held = 0;

	for (size_t i = 0; i < bytes; i++) {
		bits = bits << 8 | data[i];
		for (held += 8; held >= 6; held -= 6)
			out[count++] = digits[bits >> (held - 6) & 63];
	}
	if (held)
		out[count++] = digits[bits << (6 - held) & 63];
	return count;
}

/* Returns the bytes written, 0 for text that the encoder does not write. */
static size_t base64_decode(const char *text, size_t count, unsigned char *out)
{
	size_t bytes = 0;
	uint32_t bits = 0;
	unsigned held = 0;

	for (size_t i = 0; i < count; i++) {
		const char *digit = memchr(digits, text[i], 64);

		if (!digit)
			return 0;
		bits = bits << 6 | (uint32_t)(digit - digits);
		held += 6;
		if (held >= 8) {
			held -= 8;
			out[bytes++] = (unsigned char)(bits >> held);
		}
	}
	return held < 6 && !(bits & ((1u << held) - 1)) ? bytes : 0;
}

/* ---- both headers ---- */

static uint64_t parent_id_of(const struct tw_seq_parts *parts)
{
	struct tw_seq_sender sender = {.number = parts->number,
				       .serial = parts->serial,
				       .creation = parts->creation,
				       .current = parts->current};

	sender.node = tw_term_atom_name(parts->node, &sender.node_bytes);
	return tw_seq_parent_id(&sender);
}

static int our_member(const struct tw_seq_parts *parts, struct tw_term own, char member[sizeof KEY + VALUE_MAX],
		      size_t *bytes)
{
	unsigned char token[VALUE_MAX * 3 / 4];
	size_t token_bytes;
	int error = tw_seq_parts_encode(parts, own, token, sizeof token, &token_bytes);

	if (error)
		return error == TW_ENOSPC ? TW_ELIMIT : error;
	memcpy(member, KEY "=", sizeof KEY);
	*bytes = sizeof KEY + base64_encode(token, token_bytes, member + sizeof KEY);
	return 0;
}

static size_t bytes_of(const struct members *members)
{
	size_t bytes = 0;

	for (size_t i = 0; i < members->count; i++)
		bytes += 1 + members->list[i].bytes;
	return bytes;
}

static void drop_member(struct members *members, size_t index)
{
	members->count--;
	memmove(&members->list[index], &members->list[index + 1], (members->count - index) * sizeof members->list[0]);
}

/* Makes room in the order of the specification: long members first, then from the end. */
static void shorten(struct members *members, size_t capacity)
{
	for (size_t i = members->count; i-- > 0 && bytes_of(members) > capacity;)
		if (members->list[i].bytes > LONG_MEMBER)
			drop_member(members, i);
	while (members->count == MEMBERS_MAX || bytes_of(members) > capacity)
		members->count--;
}

/* Ours is the first member: the last that changed the list. */
static void put_tracestate(const char *ours, size_t bytes, struct members *others, char *out)
{
	const struct member *old = find(others, KEY, sizeof KEY - 1);

	if (old)
		drop_member(others, (size_t)(old - others->list));
	shorten(others, TW_SEQ_TRACESTATE_BYTES - 1 - bytes);
	memcpy(out, ours, bytes);
	out += bytes;
	for (size_t i = 0; i < others->count; i++) {
		*out++ = ',';
		memcpy(out, others->list[i].text, others->list[i].bytes);
		out += others->list[i].bytes;
	}
	*out = 0;
}

int tw_seq_parts_to_w3c(const struct tw_seq_parts *parts, struct tw_term own, const char *received_traceparent,
			const char *received_tracestate, struct tw_seq_headers *out)
{
	struct traceparent received = {0};
	struct members others = {.count = 0};
	unsigned char trace_id[TW_SEQ_TRACE_ID_BYTES];
	unsigned char flags = parts->flags & MAKES_EVENTS ? SAMPLED : 0;
	uint64_t parent_id;
	char member[sizeof KEY + VALUE_MAX], *at = out->traceparent;
	size_t bytes;
	int error;

	if (tw_term_is_none(parts->label))
		return TW_EBADARG;
	error = tw_seq_trace_id(parts->label, own, trace_id);
	if (!error)
		error = our_member(parts, own, member, &bytes);
	if (error)
		return error;
	if (parse_traceparent(received_traceparent, &received) &&
	    !memcmp(received.trace_id, trace_id, sizeof trace_id)) {
		flags |= received.flags & RANDOM;
		parse_tracestate(received_tracestate, &others);
	}
	at = put_field(at, &(unsigned char){0}, 1, '-');
	at = put_field(at, trace_id, sizeof trace_id, '-');
	parent_id = __builtin_bswap64(parent_id_of(parts));
	at = put_field(at, &parent_id, sizeof parent_id, '-');
	put_field(at, &flags, 1, 0);
	put_tracestate(member, bytes, &others, out->tracestate);
	return 0;
}

/* A trace that began elsewhere: its trace-id is the label, its sampled flag asks for all events. */
static int from_foreign(struct tw_arena *arena, const struct traceparent *header, struct tw_seq_parts *out)
{
	struct tw_seq_parts parts = {
		.label = tw_term_binary(arena, header->trace_id, TW_SEQ_TRACE_ID_BYTES),
		.node = tw_term_atom_z(TW_SEQ_FOREIGN_NODE),
		.number = (uint32_t)(header->parent_id >> 32),
		.serial = (uint32_t)header->parent_id,
		.flags = header->flags & SAMPLED ? MAKES_EVENTS : 0,
	};

	if (tw_term_is_none(parts.label))
		return TW_ENOMEM;
	if (tw_term_is_none(parts.node))
		return TW_ELIMIT;
	*out = parts;
	return 0;
}

/*
 * The token in the member `tw`.  The key is short and registered nowhere, so the member may be another tracer's: then false.  False
 * and counted is one of ours that cannot be read, as of a later version.
 */
static bool take_our_member(struct tw_arena *arena, const struct member *member, const struct tw_etf_options *options,
			    unsigned char trace_id[TW_SEQ_TRACE_ID_BYTES], struct tw_seq_parts *out)
{
	unsigned char token[VALUE_MAX];
	size_t bytes = base64_decode(member->text + sizeof KEY, member->bytes - sizeof KEY, token);
	int error = tw_seq_parts_decode(arena, token, bytes, options, NULL, out);

	if (!error && tw_term_is_none(out->label))
		error = TW_EFORMAT;
	if (!error)
		error = tw_seq_trace_id(out->label, options ? options->node : (struct tw_term){0}, trace_id);
	if (error && strncmp(member->text + sizeof KEY, OURS, sizeof OURS - 1) == 0)
		tw_seq_count_refused(error);
	return !error;
}

int tw_seq_parts_from_w3c(struct tw_arena *arena, const char *traceparent, const char *tracestate,
			  const struct tw_etf_options *options, struct tw_seq_parts *out)
{
	unsigned char trace_id[TW_SEQ_TRACE_ID_BYTES];
	struct tw_seq_parts parts;
	struct traceparent header;
	struct members members;
	const struct member *ours;

	if (!parse_traceparent(traceparent, &header))
		return TW_EFORMAT;
	parse_tracestate(tracestate, &members);
	ours = find(&members, KEY, sizeof KEY - 1);
	/* Another trace-id: this trace was begun anew on the way, and the member was left over. */
	if (!ours || !take_our_member(arena, ours, options, trace_id, &parts) ||
	    memcmp(trace_id, header.trace_id, sizeof trace_id))
		return from_foreign(arena, &header, out);
	*out = parts;
	return 0;
}
