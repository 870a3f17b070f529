/* SPDX-License-Identifier: Apache-2.0 */
/* leaf.c - terms without parts: atoms, numbers, identifiers, funs, bits. */
#include "leaf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t nonode[] = {SMALL_ATOM, 13, 'n', 'o', 'n', 'o', 'd', 'e', '@', 'n', 'o', 'h', 'o', 's', 't'};

static const uint8_t mark[MARK_BYTES] = {SMALL_ATOM, 3, '.', '.', '.'};

void leaf_put_mark(struct writer *w)
{
	memcpy(w->at, mark, MARK_BYTES);
	w->at += MARK_BYTES;
	w->is_cut = 1;
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

static struct atom_entry *new_atom(const uint8_t *utf8, size_t bytes)
{
	size_t head = bytes < 256 ? 2 : 3;
	struct atom_entry *atom = enif_alloc(sizeof *atom + head + bytes);

	if (!atom)
		return NULL;
	atom->bytes = (uint32_t)(head + bytes);
	atom->encoded[0] = head == 2 ? SMALL_ATOM : ATOM;
	if (head == 2)
		atom->encoded[1] = (uint8_t)bytes;
	else
		put16(atom->encoded + 1, (unsigned)bytes);
	memcpy(atom->encoded + head, utf8, bytes);
	return atom;
}

static struct entry *make_atom(const ERL_NIF_TERM key[3], void *env)
{
	uint8_t utf8[2 * 255 + ATOM_TEXT_MAX];
	const uint8_t *text;
	size_t bytes, whole;
	ErlNifBinary external;

	if (!enif_term_to_binary(env, key[0], &external))
		return NULL;
	whole = atom_at(external.data + 1, external.size - 1, &text, &bytes);
	if (whole && bytes <= ATOM_TEXT_MAX) {
		if (external.data[1] == ATOM_LATIN1 || external.data[1] == SMALL_ATOM_LATIN1)
			bytes = to_utf8(utf8, text, bytes);
		else
			memcpy(utf8, text, bytes);
	}
	enif_release_binary(&external);
	return whole && bytes <= ATOM_TEXT_MAX ? (struct entry *)new_atom(utf8, bytes) : NULL;
}

const struct atom_entry *encode_find_atom(ErlNifEnv *env, struct table *atoms, ERL_NIF_TERM atom)
{
	const ERL_NIF_TERM key[3] = {atom, 0, 0};
	struct entry *entry = table_find(atoms, atom, 0, 0);

	if (!entry)
		entry = table_add(atoms, key, make_atom, env);
	return (const struct atom_entry *)entry;
}

int leaf_put_atom(struct writer *w, ERL_NIF_TERM term)
{
	const struct atom_entry *atom = encode_find_atom(w->e->env, w->e->atoms, term);

	if (!atom || space(w) < atom->bytes)
		return 0;
	memcpy(w->at, atom->encoded, atom->bytes);
	w->at += atom->bytes;
	return 1;
}

/* ---- numbers ---- */

int leaf_put_integer(struct writer *w, int64_t value)
{
	uint64_t magnitude = value < 0 ? -(uint64_t)value : (uint64_t)value;
	unsigned bytes = 8;

	if (value >= 0 && value <= 255) {
		if (space(w) < 2)
			return 0;
		*w->at++ = SMALL_INTEGER;
		*w->at++ = (uint8_t)value;
		return 1;
	}
	if (value >= INT32_MIN && value <= INT32_MAX) {
		if (space(w) < 5)
			return 0;
		*w->at = INTEGER;
		w->at = put32(w->at + 1, (uint32_t)value);
		return 1;
	}
	while (!(magnitude >> (8 * bytes - 8)))
		bytes--;
	if (space(w) < 3 + bytes)
		return 0;
	w->at[0] = SMALL_BIG;
	w->at[1] = (uint8_t)bytes;
	w->at[2] = value < 0;
	for (unsigned i = 0; i < bytes; i++)
		w->at[3 + i] = (uint8_t)(magnitude >> (8 * i));
	w->at += 3 + bytes;
	return 1;
}

int leaf_put_float(struct writer *w, ERL_NIF_TERM term)
{
	uint64_t bits;
	double value;

	if (space(w) < 9 || !enif_get_double(w->e->env, term, &value))
		return 0;
	memcpy(&bits, &value, 8);
	*w->at = NEW_FLOAT;
	w->at = put64(w->at + 1, bits);
	return 1;
}

/* ---- identifiers, and what only the VM can encode ---- */

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

	/* A port of a small number has four bytes less. */
	if (space(w) < 1 + sizeof nonode + 8)
		return 0;
	if (cache->key[slot] != term) {
		if (!encode_identify(w->e->env, term, &cache->value[slot]))
			return 0;
		cache->key[slot] = term;
	}
	if ((!is_port || cache->value[slot].number >> 32) && space(w) < 1 + sizeof nonode + 12)
		return 0;
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

/* {Z, length, node, creation, words} of this node, of which @node bytes are the node, becomes one of nonode@nohost. */
static int put_reference(struct writer *w, const uint8_t *at, size_t bytes, size_t node)
{
	if (space(w) + node < bytes + sizeof nonode)
		return 0;
	memcpy(w->at, at, 3);
	memcpy(w->at + 3, nonode, sizeof nonode);
	w->at = put32(w->at + 3 + sizeof nonode, 0);
	memcpy(w->at, at + 3 + node + 4, bytes - (3 + node + 4));
	w->at += bytes - (3 + node + 4);
	return 1;
}

static int put_encoded(struct writer *w, const uint8_t *at, size_t bytes)
{
	const uint8_t *text;
	size_t text_bytes, node = *at == NEWER_REFERENCE ? atom_at(at + 3, bytes - 3, &text, &text_bytes) : 0;

	if (node && is_own_node(w, text, text_bytes))
		return put_reference(w, at, bytes, node);
	if (space(w) < bytes)
		return 0;
	memcpy(w->at, at, bytes);
	w->at += bytes;
	return 1;
}

int leaf_put_external(struct writer *w, ERL_NIF_TERM term)
{
	ErlNifBinary external;
	int is_put;

	w->elements -= EXTERNAL_ELEMENTS - 1;
	if (w->elements < 0 || space(w) < EXTERNAL_ELEMENTS || !enif_term_to_binary(w->e->env, term, &external))
		return 0;
	is_put = put_encoded(w, external.data + 1, external.size - 1);
	enif_release_binary(&external);
	return is_put;
}

int leaf_put_pid(struct writer *w, ERL_NIF_TERM term)
{
	ErlNifPid pid;

	return enif_get_local_pid(w->e->env, term, &pid) ? put_local(w, term, 0) : leaf_put_external(w, term);
}

int leaf_put_port(struct writer *w, ERL_NIF_TERM term)
{
	ErlNifPort port;

	return enif_get_local_port(w->e->env, term, &port) ? put_local(w, term, 1) : leaf_put_external(w, term);
}

int leaf_put_number(struct writer *w, ERL_NIF_TERM term)
{
	ErlNifSInt64 value;

	if (enif_get_int64(w->e->env, term, &value))
		return leaf_put_integer(w, value);
	/* The VM compares the lengths of long integers first: those that cannot fit are not encoded to find that out. */
	if (enif_compare(term, w->e->bounds->above) >= 0 || enif_compare(term, w->e->bounds->below) <= 0)
		return 0;
	return leaf_put_external(w, term);
}

static ERL_NIF_TERM power_of_256(ErlNifEnv *env, uint8_t *buffer, size_t bytes, int is_negative)
{
	ERL_NIF_TERM term = 0;

	buffer[0] = VERSION;
	buffer[1] = LARGE_BIG;
	put32(buffer + 2, (uint32_t)bytes + 1);
	buffer[6] = (uint8_t)is_negative;
	memset(buffer + 7, 0, bytes);
	buffer[7 + bytes] = 1;
	return enif_binary_to_term(env, buffer, 8 + bytes, &term, 0) ? term : 0;
}

int encode_bounds_init(struct encode_bounds *bounds, size_t bytes)
{
	uint8_t *buffer = enif_alloc(8 + bytes);

	bounds->env = enif_alloc_env();
	if (buffer && bounds->env) {
		bounds->above = power_of_256(bounds->env, buffer, bytes, 0);
		bounds->below = power_of_256(bounds->env, buffer, bytes, 1);
	}
	enif_free(buffer);
	return bounds->above && bounds->below;
}

void encode_bounds_fini(struct encode_bounds *bounds)
{
	if (bounds->env)
		enif_free_env(bounds->env);
	bounds->env = NULL;
}

/* ---- funs ---- */

/* The longest text: an atom of 255 characters, quoted, and two numbers. */
#define FUN_TEXT_BYTES 1400

/* "#Fun<Module.Index.Uniq>": the numbers, and the module's atom.  Names that need an escape are refused. */
static int read_fun(struct writer *w, char *text, const struct atom_entry **module, uint32_t number[2])
{
	char *at = strrchr(text, '>'), *name = text + strlen("#Fun<");
	ERL_NIF_TERM atom;

	for (int i = 1; at && i >= 0; i--) {
		*at = 0;
		at = strrchr(name, '.');
		if (!at)
			return 0;
		number[i] = (uint32_t)strtoul(at + 1, NULL, 10);
	}
	if (!at)
		return 0;
	*at = 0;
	if (*name == '\'' && at - name >= 2 && at[-1] == '\'') {
		name++;
		at[-1] = 0;
	}
	for (const char *c = name; *c; c++)
		if (*c == '\\' || *c == '\'' || *c < ' ')
			return 0;
	if (!enif_make_existing_atom(w->e->env, name, &atom, ERL_NIF_LATIN1))
		return 0;
	*module = encode_find_atom(w->e->env, w->e->atoms, atom);
	return *module != NULL;
}

/*
 * The VM encodes a fun with all that it holds, however much that is.  Its text has a bounded length, and names it: so it
 * is written as a fun that holds nothing.
 */
int leaf_put_fun(struct writer *w, ERL_NIF_TERM term)
{
	const struct atom_entry *module;
	char text[FUN_TEXT_BYTES];
	uint32_t number[2];
	uint8_t *start = w->at;

	if (enif_snprintf(text, sizeof text, "%T", term) >= (int)sizeof text)
		return 0;
	if (strncmp(text, "#Fun<", 5) != 0)
		return leaf_put_external(w, term);
	w->elements -= EXTERNAL_ELEMENTS - 1;
	if (w->elements < 0 || !read_fun(w, text, &module, number) || space(w) < 30 + module->bytes + 2 * 11 + 28)
		return 0;
	*w->at = NEW_FUN;
	memset(w->at + 5, 0, 1 + 16);
	put32(w->at + 22, number[0]);
	put32(w->at + 26, 0);
	memcpy(w->at + 30, module->encoded, module->bytes);
	w->at += 30 + module->bytes;
	leaf_put_integer(w, number[0]);
	leaf_put_integer(w, number[1]);
	*w->at = NEW_PID;
	memcpy(w->at + 1, nonode, sizeof nonode);
	memset(w->at + 1 + sizeof nonode, 0, 12);
	w->at += 1 + sizeof nonode + 12;
	put32(start + 1, (uint32_t)(w->at - start - 1));
	return 1;
}
