/* SPDX-License-Identifier: Apache-2.0 */
/*
 * encode.h - terms of the VM in the external term format, into a buffer, cut where they do not fit.
 *
 * Local pids, ports and references are written as those of nonode@nohost: a capture knows its own node, and its events name
 * processes without one.  Terms that do not fit are cut as tw_term_copy() does, and the atom '...' marks the cuts.
 */
#ifndef TRACEWHEEL_ERLANG_ENCODE_H
#define TRACEWHEEL_ERLANG_ENCODE_H

#include "table.h"

/* The least space for a term: a mark with its version. */
#define ENCODE_BYTES_MIN 8

struct atom_entry {
	struct entry entry;
	uint32_t bytes;	   /* of its encoding */
	uint8_t encoded[]; /* tag, length, UTF-8 */
};
/* The longest encoding of an atom: 255 characters of 4 bytes. */
#define ATOM_BYTES_MAX (3 + 1020)

/* A pid or port as the external format has it. */
struct identity {
	uint64_t number;
	uint32_t serial;
};

/* Encodings of pids and ports that a thread has met, by the low bits of their words. */
#define IDENTITIES 256
struct identity_cache {
	ERL_NIF_TERM key[IDENTITIES];
	struct identity value[IDENTITIES];
};

struct encoder {
	ErlNifEnv *env;
	struct table *atoms;
	struct identity_cache *identities;
	const struct atom_entry *node; /* of this VM; NULL: not known */
};

/* NULL: no memory. */
const struct atom_entry *encode_find_atom(ErlNifEnv *env, struct table *atoms, ERL_NIF_TERM atom);
/* The atom's text in UTF-8; lends as long as the table. */
static inline const char *atom_text(const struct atom_entry *atom, size_t *bytes)
{
	size_t head = atom->encoded[0] == 'w' ? 2 : 3;

	*bytes = atom->bytes - head;
	return (const char *)atom->encoded + head;
}

/* The numbers of a local pid or port.  False: it is none. */
int encode_identify(ErlNifEnv *env, ERL_NIF_TERM term, struct identity *out);

/*
 * encode_term - a term with its version byte.
 *
 * @max		at least ENCODE_BYTES_MIN.
 * Returns the bytes written.  Work is bounded by @max, but for bit strings, funs and integers beyond 64 bits, which the VM
 * encodes whole.
 */
size_t encode_term(const struct encoder *encoder, ERL_NIF_TERM term, uint8_t *to, size_t max);

#endif
