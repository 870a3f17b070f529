/* SPDX-License-Identifier: Apache-2.0 */
/*
 * encode.h - terms of the VM in the external term format, into a buffer, cut where they do not fit.
 *
 * Local pids, ports and references are written as those of nonode@nohost: a capture knows its own node, and its events name
 * processes without one.  A fun is written as one that holds no values.
 *
 * The atom '...' marks cuts: it stands for an element of a tuple or a value of a map, ends a list, [1,2|'...'], and a map, #{a => 1,
 * '...' => '...'}.  {'...',First,Bytes} stands for a binary or bit string of so many whole bytes.
 */
#ifndef TRACEWHEEL_ERLANG_ENCODE_H
#define TRACEWHEEL_ERLANG_ENCODE_H

#include "table.h"

/* The least space for a term: a mark with its version. */
#define ENCODE_BYTES_MIN 8
/* The most levels. */
#define ENCODE_DEPTH_MAX 64

/* Once, when the library is loaded. */
void encode_init(ErlNifEnv *env);

struct atom_entry {
	struct entry entry;
	uint32_t bytes;	   /* of its encoding */
	uint8_t encoded[]; /* tag, length, UTF-8 */
};
/* 255 characters of 4 bytes. */
#define ATOM_TEXT_MAX 1020

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

/* Integers that no term of a capture can hold; in an environment of their own. */
struct encode_bounds {
	ErlNifEnv *env;
	ERL_NIF_TERM above, below;
};

/* Integers of more than @bytes are out of bounds.  False: no memory; encode_bounds_fini() then too. */
int encode_bounds_init(struct encode_bounds *bounds, size_t bytes);
void encode_bounds_fini(struct encode_bounds *bounds);

struct encoder {
	ErlNifEnv *env;
	struct table *atoms;
	struct identity_cache *identities;
	const struct atom_entry *node; /* of this VM; NULL: not known */
	const struct encode_bounds *bounds;
	unsigned depth;	   /* the most levels of a term: 1 .. ENCODE_DEPTH_MAX */
	unsigned elements; /* the most elements of a term, in all levels */
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
 * @arguments	0, or the length of the term, a list, whose elements are then cut one by one.
 * @max		at least ENCODE_BYTES_MIN.
 * @is_cut	set if a part was cut.
 *
 * Returns the bytes written.  A term within @max bytes and the encoder's depth and elements is written whole, in one pass; else a
 * second pass cuts it.  Both end after that many bytes or elements: work does not depend on the term's size.
 */
size_t encode_term(const struct encoder *encoder, ERL_NIF_TERM term, unsigned arguments, uint8_t *to, size_t max,
		   int *is_cut);

#endif
