/* SPDX-License-Identifier: Apache-2.0 */
/* encode.c - terms of the VM in the external term format: whole if they fit, else cut. */
#include "encode.h"

#include <string.h>

#define DEPTH_MAX  64
#define MARK_BYTES 5

enum {
	VERSION = 131,
	NEW_FLOAT = 'F',
	NEW_PID = 'X',
	NEW_PORT = 'Y',
	NEWER_REFERENCE = 'Z',
	SMALL_INTEGER = 'a',
	INTEGER = 'b',
	ATOM_LATIN1 = 'd',
	SMALL_TUPLE = 'h',
	LARGE_TUPLE = 'i',
	NIL = 'j',
	STRING = 'k',
	LIST = 'l',
	BINARY = 'm',
	SMALL_BIG = 'n',
	SMALL_ATOM_LATIN1 = 's',
	MAP = 't',
	ATOM = 'v',
	SMALL_ATOM = 'w',
	V4_PORT = 'x'
};

static const uint8_t mark[MARK_BYTES] = {SMALL_ATOM, 3, '.', '.', '.'};
static const uint8_t nonode[] = {SMALL_ATOM, 13, 'n', 'o', 'n', 'o', 'd', 'e', '@', 'n', 'o', 'h', 'o', 's', 't'};

struct writer {
	const struct encoder *e;
	uint8_t *at, *end;
};

static uint8_t *put16(uint8_t *at, unsigned value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
	return at + 2;
}

static uint8_t *put32(uint8_t *at, uint32_t value)
{
	value = __builtin_bswap32(value);
	memcpy(at, &value, 4);
	return at + 4;
}

static uint8_t *put64(uint8_t *at, uint64_t value)
{
	value = __builtin_bswap64(value);
	memcpy(at, &value, 8);
	return at + 8;
}

static uint32_t get32(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, 4);
	return __builtin_bswap32(value);
}

static size_t room(const struct writer *w)
{
	return (size_t)(w->end - w->at);
}

/* ---- atoms ---- */

/* The length of an atom's encoding at @at, and its text.  0: it is none. */
static size_t atom_at(const uint8_t *at, size_t bytes, const uint8_t **text, size_t *text_bytes)
{
	size_t head = bytes && (*at == SMALL_ATOM || *at == SMALL_ATOM_LATIN1) ? 2 : 3;

	if (bytes < head || (head == 3 && *at != ATOM && *at != ATOM_LATIN1))
		return 0;
	*text_bytes = head == 2 ? at[1] : (size_t)at[1] << 8 | at[2];
	*text = at + head;
	return bytes < head + *text_bytes ? 0 : head + *text_bytes;
}

struct atom_request {
	ErlNifEnv *env;
	ERL_NIF_TERM atom;
};

static size_t to_utf8(uint8_t *to, const uint8_t *from, size_t bytes)
{
	uint8_t *at = to;

	for (size_t i = 0; i < bytes; i++) {
		if (from[i] < 0x80) {
			*at++ = from[i];
		} else {
			*at++ = (uint8_t)(0xc0 | from[i] >> 6);
			*at++ = (uint8_t)(0x80 | (from[i] & 0x3f));
		}
	}
	return (size_t)(at - to);
}

static int fill_atom(struct entry *entry, void *arg)
{
	struct atom_entry *atom = (struct atom_entry *)entry;
	const struct atom_request *request = arg;
	uint8_t utf8[2 * 255 + 1020];
	const uint8_t *text;
	size_t bytes, whole;
	ErlNifBinary external;

	if (!enif_term_to_binary(request->env, request->atom, &external))
		return 0;
	whole = atom_at(external.data + 1, external.size - 1, &text, &bytes);
	if (!whole || bytes > 1020) {
		enif_release_binary(&external);
		return 0;
	}
	if (external.data[1] == ATOM_LATIN1 || external.data[1] == SMALL_ATOM_LATIN1) {
		bytes = to_utf8(utf8, text, bytes);
	} else {
		memcpy(utf8, text, bytes);
	}
	enif_release_binary(&external);
	if (bytes < 256) {
		atom->encoded[0] = SMALL_ATOM;
		atom->encoded[1] = (uint8_t)bytes;
		memcpy(atom->encoded + 2, utf8, bytes);
		atom->bytes = (uint32_t)bytes + 2;
	} else {
		atom->encoded[0] = ATOM;
		put16(atom->encoded + 1, (unsigned)bytes);
		memcpy(atom->encoded + 3, utf8, bytes);
		atom->bytes = (uint32_t)bytes + 3;
	}
	return 1;
}

const struct atom_entry *encode_find_atom(ErlNifEnv *env, struct table *atoms, ERL_NIF_TERM atom)
{
	const ERL_NIF_TERM key[3] = {atom, 0, 0};
	struct atom_request request = {env, atom};
	struct entry *entry = table_find(atoms, atom, 0, 0);

	if (!entry)
		entry = table_add(atoms, key, fill_atom, &request);
	return (const struct atom_entry *)entry;
}

static int put_atom(struct writer *w, ERL_NIF_TERM term)
{
	const struct atom_entry *atom = encode_find_atom(w->e->env, w->e->atoms, term);

	if (!atom || room(w) < atom->bytes)
		return 0;
	memcpy(w->at, atom->encoded, atom->bytes);
	w->at += atom->bytes;
	return 1;
}

/* ---- numbers ---- */

static int put_integer(struct writer *w, int64_t value)
{
	uint64_t magnitude = value < 0 ? -(uint64_t)value : (uint64_t)value;
	unsigned bytes = 8;

	if (room(w) < 11)
		return 0;
	if (value >= 0 && value <= 255) {
		*w->at++ = SMALL_INTEGER;
		*w->at++ = (uint8_t)value;
		return 1;
	}
	if (value >= INT32_MIN && value <= INT32_MAX) {
		*w->at = INTEGER;
		w->at = put32(w->at + 1, (uint32_t)value);
		return 1;
	}
	while (!(magnitude >> (8 * bytes - 8)))
		bytes--;
	w->at[0] = SMALL_BIG;
	w->at[1] = (uint8_t)bytes;
	w->at[2] = value < 0;
	for (unsigned i = 0; i < bytes; i++)
		w->at[3 + i] = (uint8_t)(magnitude >> (8 * i));
	w->at += 3 + bytes;
	return 1;
}

static int put_float(struct writer *w, double value)
{
	uint64_t bits;

	if (room(w) < 9)
		return 0;
	memcpy(&bits, &value, 8);
	*w->at = NEW_FLOAT;
	w->at = put64(w->at + 1, bits);
	return 1;
}

/* ---- what only the VM can encode ---- */

/* The numbers behind a pid's or port's node; false: it is none. */
static int identity_of(const uint8_t *at, size_t bytes, struct identity *out)
{
	const uint8_t *text;
	size_t text_bytes, node = bytes ? atom_at(at + 1, bytes - 1, &text, &text_bytes) : 0;

	if (!node)
		return 0;
	bytes -= 1 + node;
	switch (*at) {
	case NEW_PID: *out = (struct identity){get32(at + 1 + node), get32(at + 1 + node + 4)}; return bytes >= 12;
	case NEW_PORT: *out = (struct identity){get32(at + 1 + node), 0}; return bytes >= 8;
	case V4_PORT:
		*out = (struct identity){(uint64_t)get32(at + 1 + node) << 32 | get32(at + 1 + node + 4), 0};
		return bytes >= 12;
	default: return 0;
	}
}

int encode_identify(ErlNifEnv *env, ERL_NIF_TERM term, struct identity *out)
{
	ErlNifBinary external;
	int is_found;

	if (!enif_term_to_binary(env, term, &external))
		return 0;
	is_found = identity_of(external.data + 1, external.size - 1, out);
	enif_release_binary(&external);
	return is_found;
}

static int put_local(struct writer *w, ERL_NIF_TERM term, int is_port)
{
	unsigned slot = (unsigned)(term >> 4) % IDENTITIES;
	struct identity_cache *cache = w->e->identities;

	if (room(w) < 1 + sizeof nonode + 12)
		return 0;
	if (cache->key[slot] != term) {
		if (!encode_identify(w->e->env, term, &cache->value[slot]))
			return 0;
		cache->key[slot] = term;
	}
	*w->at = is_port ? cache->value[slot].number >> 32 ? V4_PORT : NEW_PORT : NEW_PID;
	memcpy(w->at + 1, nonode, sizeof nonode);
	w->at += 1 + sizeof nonode;
	if (is_port && cache->value[slot].number >> 32)
		w->at = put32(w->at, (uint32_t)(cache->value[slot].number >> 32));
	w->at = put32(w->at, (uint32_t)cache->value[slot].number);
	if (!is_port)
		w->at = put32(w->at, cache->value[slot].serial);
	w->at = put32(w->at, 0);
	return 1;
}

static int is_own_node(const struct writer *w, const uint8_t *text, size_t bytes)
{
	size_t own_bytes;
	const char *own;

	if (!w->e->node)
		return 0;
	own = atom_text(w->e->node, &own_bytes);
	return own_bytes == bytes && memcmp(own, text, bytes) == 0;
}

/* {Z, length, node, creation, words}: one of this node becomes one of nonode@nohost.  False: it is of another. */
static int put_reference(struct writer *w, const uint8_t *at, size_t bytes)
{
	const uint8_t *text;
	size_t text_bytes, node = bytes > 3 ? atom_at(at + 3, bytes - 3, &text, &text_bytes) : 0;

	if (!node || bytes < 3 + node + 4 || room(w) < bytes + sizeof nonode || !is_own_node(w, text, text_bytes))
		return 0;
	memcpy(w->at, at, 3);
	memcpy(w->at + 3, nonode, sizeof nonode);
	w->at = put32(w->at + 3 + sizeof nonode, 0);
	memcpy(w->at, at + 3 + node + 4, bytes - (3 + node + 4));
	w->at += bytes - (3 + node + 4);
	return 1;
}

static int put_external(struct writer *w, ERL_NIF_TERM term)
{
	ErlNifBinary external;
	int is_put = 0;

	if (!enif_term_to_binary(w->e->env, term, &external))
		return 0;
	if (external.data[1] == NEWER_REFERENCE)
		is_put = put_reference(w, external.data + 1, external.size - 1);
	if (!is_put && room(w) >= external.size - 1) {
		memcpy(w->at, external.data + 1, external.size - 1);
		w->at += external.size - 1;
		is_put = 1;
	}
	enif_release_binary(&external);
	return is_put;
}

static int put_pid(struct writer *w, ERL_NIF_TERM term)
{
	ErlNifPid pid;

	return enif_get_local_pid(w->e->env, term, &pid) ? put_local(w, term, 0) : put_external(w, term);
}

static int put_port(struct writer *w, ERL_NIF_TERM term)
{
	ErlNifPort port;

	return enif_get_local_port(w->e->env, term, &port) ? put_local(w, term, 1) : put_external(w, term);
}

static int put_number(struct writer *w, ERL_NIF_TERM term)
{
	ErlNifSInt64 value;

	return enif_get_int64(w->e->env, term, &value) ? put_integer(w, value) : put_external(w, term);
}

/* ---- whole terms: false, and the writer is anywhere, if the term does not fit ---- */

static int put(struct writer *w, ERL_NIF_TERM term, unsigned depth);

static int put_binary(struct writer *w, ERL_NIF_TERM term)
{
	ErlNifBinary binary;

	if (!enif_inspect_binary(w->e->env, term, &binary))
		return put_external(w, term);
	if (room(w) < 5 || room(w) - 5 < binary.size)
		return 0;
	*w->at = BINARY;
	w->at = put32(w->at + 1, (uint32_t)binary.size);
	memcpy(w->at, binary.data, binary.size);
	w->at += binary.size;
	return 1;
}

static int put_tuple_head(struct writer *w, int arity)
{
	if (room(w) < 5)
		return 0;
	if (arity < 256) {
		*w->at++ = SMALL_TUPLE;
		*w->at++ = (uint8_t)arity;
	} else {
		*w->at = LARGE_TUPLE;
		w->at = put32(w->at + 1, (uint32_t)arity);
	}
	return 1;
}

static int put_tuple(struct writer *w, ERL_NIF_TERM term, unsigned depth)
{
	const ERL_NIF_TERM *elements;
	int arity;

	if (!enif_get_tuple(w->e->env, term, &arity, &elements) || !put_tuple_head(w, arity))
		return 0;
	for (int i = 0; i < arity; i++)
		if (!put(w, elements[i], depth))
			return 0;
	return 1;
}

/* A proper list of bytes has an encoding of its own. */
static int put_string(struct writer *w, ERL_NIF_TERM list)
{
	ERL_NIF_TERM head, tail;
	uint8_t *start = w->at;
	unsigned count = 0, value;

	while (enif_get_list_cell(w->e->env, list, &head, &tail)) {
		if (!enif_get_uint(w->e->env, head, &value) || value > 255 || count == 65535 || room(w) < 4 + count)
			return 0;
		start[3 + count++] = (uint8_t)value;
		list = tail;
	}
	if (!enif_is_empty_list(w->e->env, list))
		return 0;
	*start = STRING;
	put16(start + 1, count);
	w->at = start + 3 + count;
	return 1;
}

static int put_list(struct writer *w, ERL_NIF_TERM list, unsigned depth)
{
	ERL_NIF_TERM head, tail;
	uint8_t *start = w->at;
	uint32_t count = 0;

	if (!enif_get_list_cell(w->e->env, list, &head, &tail)) {
		if (!room(w))
			return 0;
		*w->at++ = NIL;
		return 1;
	}
	if (put_string(w, list))
		return 1;
	if (room(w) < 6)
		return 0;
	w->at = start + 5;
	while (enif_get_list_cell(w->e->env, list, &head, &tail)) {
		if (!put(w, head, depth))
			return 0;
		count++;
		list = tail;
	}
	*start = LIST;
	put32(start + 1, count);
	return put(w, list, depth);
}

static int put_map(struct writer *w, ERL_NIF_TERM map, unsigned depth)
{
	ErlNifMapIterator iterator;
	ERL_NIF_TERM key, value;
	size_t count;
	int is_whole = 1;

	/* Each pair takes at least two bytes, of a map that may be large. */
	if (!enif_get_map_size(w->e->env, map, &count) || room(w) < 5 || (room(w) - 5) / 2 < count ||
	    !enif_map_iterator_create(w->e->env, map, &iterator, ERL_NIF_MAP_ITERATOR_FIRST))
		return 0;
	*w->at = MAP;
	w->at = put32(w->at + 1, (uint32_t)count);
	while (is_whole && enif_map_iterator_get_pair(w->e->env, &iterator, &key, &value)) {
		is_whole = put(w, key, depth) && put(w, value, depth);
		enif_map_iterator_next(w->e->env, &iterator);
	}
	enif_map_iterator_destroy(w->e->env, &iterator);
	return is_whole;
}

static int put(struct writer *w, ERL_NIF_TERM term, unsigned depth)
{
	double value;

	if (depth >= DEPTH_MAX)
		return 0;
	switch (enif_term_type(w->e->env, term)) {
	case ERL_NIF_TERM_TYPE_ATOM: return put_atom(w, term);
	case ERL_NIF_TERM_TYPE_INTEGER: return put_number(w, term);
	case ERL_NIF_TERM_TYPE_FLOAT: return enif_get_double(w->e->env, term, &value) && put_float(w, value);
	case ERL_NIF_TERM_TYPE_PID: return put_pid(w, term);
	case ERL_NIF_TERM_TYPE_PORT: return put_port(w, term);
	case ERL_NIF_TERM_TYPE_BITSTRING: return put_binary(w, term);
	case ERL_NIF_TERM_TYPE_TUPLE: return put_tuple(w, term, depth + 1);
	case ERL_NIF_TERM_TYPE_LIST: return put_list(w, term, depth + 1);
	case ERL_NIF_TERM_TYPE_MAP: return put_map(w, term, depth + 1);
	default: return put_external(w, term);
	}
}

/* ---- cut terms ---- */

static void put_mark(struct writer *w)
{
	memcpy(w->at, mark, MARK_BYTES);
	w->at += MARK_BYTES;
}

static void put_cut(struct writer *w, ERL_NIF_TERM term, unsigned depth);

/* One part of a cut term; `reserved` bytes stay free behind it. */
static void put_part(struct writer *w, ERL_NIF_TERM term, size_t reserved, unsigned depth)
{
	struct writer part = {w->e, w->at, w->end - reserved};

	if (!put(&part, term, depth)) {
		part.at = w->at;
		put_cut(&part, term, depth);
	}
	w->at = part.at;
}

static void put_cut_tuple(struct writer *w, ERL_NIF_TERM term, unsigned depth)
{
	const ERL_NIF_TERM *elements;
	int arity;

	if (!enif_get_tuple(w->e->env, term, &arity, &elements) || room(w) < 5 + (size_t)arity * MARK_BYTES) {
		put_mark(w);
		return;
	}
	put_tuple_head(w, arity);
	for (int i = 0; i < arity; i++)
		put_part(w, elements[i], (size_t)(arity - 1 - i) * MARK_BYTES, depth);
}

/* [First,Second|'...'] */
static void put_cut_list(struct writer *w, ERL_NIF_TERM list, unsigned depth)
{
	ERL_NIF_TERM head, tail;
	uint8_t *start = w->at;
	uint32_t count = 0;

	if (room(w) < 5 + 2 * MARK_BYTES) {
		put_mark(w);
		return;
	}
	w->at = start + 5;
	while (room(w) >= 2 * MARK_BYTES && enif_get_list_cell(w->e->env, list, &head, &tail)) {
		put_part(w, head, MARK_BYTES, depth);
		count++;
		list = tail;
	}
	*start = LIST;
	put32(start + 1, count);
	if (enif_is_empty_list(w->e->env, list))
		*w->at++ = NIL;
	else
		put_mark(w);
}

/* {'...',FirstBytes,Size} */
static void put_cut_binary(struct writer *w, ERL_NIF_TERM term)
{
	ErlNifBinary binary;
	size_t bytes;

	if (room(w) < 2 + MARK_BYTES + 5 + 11 || !enif_inspect_binary(w->e->env, term, &binary)) {
		put_mark(w);
		return;
	}
	bytes = room(w) - (2 + MARK_BYTES + 5 + 11);
	bytes = bytes < binary.size ? bytes : binary.size;
	put_tuple_head(w, 3);
	put_mark(w);
	*w->at = BINARY;
	w->at = put32(w->at + 1, (uint32_t)bytes);
	memcpy(w->at, binary.data, bytes);
	w->at += bytes;
	put_integer(w, (int64_t)binary.size);
}

/* The term did not fit whole. */
static void put_cut(struct writer *w, ERL_NIF_TERM term, unsigned depth)
{
	ErlNifTermType type = enif_term_type(w->e->env, term);

	if (depth < DEPTH_MAX && type == ERL_NIF_TERM_TYPE_TUPLE)
		put_cut_tuple(w, term, depth + 1);
	else if (depth < DEPTH_MAX && type == ERL_NIF_TERM_TYPE_LIST)
		put_cut_list(w, term, depth + 1);
	else if (type == ERL_NIF_TERM_TYPE_BITSTRING)
		put_cut_binary(w, term);
	else
		put_mark(w);
}

size_t encode_term(const struct encoder *encoder, ERL_NIF_TERM term, uint8_t *to, size_t max)
{
	struct writer w = {encoder, to + 1, to + max};

	*to = VERSION;
	put_part(&w, term, 0, 0);
	return (size_t)(w.at - to);
}
