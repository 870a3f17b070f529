/* SPDX-License-Identifier: Apache-2.0 */
/* leaf.h - the writer of a term, and terms without parts: between encode.c, leaf.c and bits.c only. */
#ifndef TRACEWHEEL_ERLANG_LEAF_H
#define TRACEWHEEL_ERLANG_LEAF_H

#include "encode.h"

#include <string.h>

/* Tags of the external term format. */
enum {
	VERSION = 131,
	NEW_FLOAT = 'F',
	BIT_BINARY = 'M',
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
	LARGE_BIG = 'o',
	NEW_FUN = 'p',
	SMALL_ATOM_LATIN1 = 's',
	MAP = 't',
	ATOM = 'v',
	SMALL_ATOM = 'w',
	V4_PORT = 'x'
};

/* The atom '...' */
#define MARK_BYTES 5

/* The cost of a term that only the VM can encode, in elements; its encoding has at least as many bytes. */
#define EXTERNAL_ELEMENTS 7

/*
 * The whole pass writes a term that fits, and fails otherwise.  The cutting pass marks what does not fit: then MARK_BYTES are free
 * before each part.
 */
struct writer {
	const struct encoder *e;
	uint8_t *at, *end;
	long elements; /* that may still be visited */
	int may_cut, is_cut;
};

static inline size_t space(const struct writer *w)
{
	return (size_t)(w->end - w->at);
}

static inline uint8_t *put16(uint8_t *at, unsigned value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
	return at + 2;
}

static inline uint8_t *put32(uint8_t *at, uint32_t value)
{
	value = __builtin_bswap32(value);
	memcpy(at, &value, 4);
	return at + 4;
}

/* Each returns 0, and has written nothing, where the term does not fit. */
int leaf_put_atom(struct writer *w, ERL_NIF_TERM term);
int leaf_put_integer(struct writer *w, int64_t value);
int leaf_put_number(struct writer *w, ERL_NIF_TERM term);
int leaf_put_float(struct writer *w, ERL_NIF_TERM term);
int leaf_put_pid(struct writer *w, ERL_NIF_TERM term);
int leaf_put_port(struct writer *w, ERL_NIF_TERM term);
int leaf_put_fun(struct writer *w, ERL_NIF_TERM term);
/* A reference, or another term whose encoding is short. */
int leaf_put_external(struct writer *w, ERL_NIF_TERM term);

/* Needs MARK_BYTES of space. */
void leaf_put_mark(struct writer *w);

void bits_init(ErlNifEnv *env);
/* A binary or bit string, and {'...',First,Bytes} in its place. */
int bits_put(struct writer *w, ERL_NIF_TERM term);
int bits_put_cut(struct writer *w, ERL_NIF_TERM term);

#endif
