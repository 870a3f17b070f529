/* SPDX-License-Identifier: Apache-2.0 */
/*
 * value.h - the values of actors: one word that is the value, or points to it on a heap.
 *
 *	...iiii001  integer, 61 bits		...nnnn011  pid: number << 24 | slot
 *	...nnnn010  atom			...nnnn100  reference	...nnnn110  port
 *	...pppp101  on a heap: a header word, then
 *		    tuple: elements   cons: head, tail   binary: bytes   fun: code, environment
 *
 * The word 0 is no value; the atom number 0 is the empty list.  Values never change once they are made, so an old one
 * never points to a younger one, which makes collections simple (heap.h).
 *
 * Threads  A value on a heap belongs to the actor of that heap.  Atoms: any thread.
 */
#ifndef ACTORS_VALUE_H
#define ACTORS_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct actor;
struct heap;

struct value {
	uint64_t word;
};

enum tag { TAG_INTEGER = 1, TAG_ATOM, TAG_PID, TAG_REFERENCE, TAG_BOXED, TAG_PORT, TAG_MASK = 7 };
enum box { BOX_TUPLE = 1, BOX_CONS, BOX_BINARY, BOX_FUN };

/* The first word of an object on a heap: never even, so that a collector can replace it by an address. */
#define HEADER(box, words) ((uint64_t)(words) << 8 | (uint64_t)(box) << 1 | 1)

/* Code that can be sent: runs in the actor that receives it. */
typedef struct value fun_code(struct actor *self, struct value environment);

static inline struct value immediate(uint64_t number, enum tag tag)
{
	return (struct value){number << 3 | tag};
}

static inline struct value integer(int64_t number)
{
	return immediate((uint64_t)number, TAG_INTEGER);
}

#define NONE ((struct value){0})
#define NIL  ((struct value){TAG_ATOM})

static inline enum tag tag_of(struct value v)
{
	return (enum tag)(v.word & TAG_MASK);
}

static inline bool is_none(struct value v)
{
	return v.word == 0;
}

static inline bool is_same(struct value a, struct value b)
{
	return a.word == b.word;
}

static inline bool is_integer(struct value v)
{
	return tag_of(v) == TAG_INTEGER;
}

static inline bool is_pid(struct value v)
{
	return tag_of(v) == TAG_PID;
}

/* The value of an integer; for other immediates their number. */
static inline int64_t number_of(struct value v)
{
	return (int64_t)v.word >> 3;
}

static inline uint64_t *box_of(struct value v)
{
	return (uint64_t *)(uintptr_t)(v.word & ~(uint64_t)TAG_MASK);
}

static inline bool is_box(struct value v, enum box box)
{
	return tag_of(v) == TAG_BOXED && (*box_of(v) & 0xff) == ((uint64_t)box << 1 | 1);
}

static inline size_t words_of_header(uint64_t header)
{
	return (size_t)(header >> 8);
}

/* ---- atoms: names that are numbers ---- */

/* Atoms that the run-time itself uses. */
/* clang-format off */
#define KNOWN_ATOMS(X) \
	X(NORMAL, "normal") \
	X(KILL, "kill") \
	X(KILLED, "killed") \
	X(NOPROC, "noproc") \
	X(EXIT, "EXIT") \
	X(DOWN, "DOWN") \
	X(PROCESS, "process") \
	X(BADARG, "badarg") \
	X(NOCATCH, "nocatch") \
	X(RUN, "run") \
	X(RAN, "ran") \
	X(STOP, "stop") \
	X(DATA, "data") \
	X(CLOSED, "closed") \
	X(ACCEPTED, "accepted") \
	X(OK, "ok") \
	X(TRUE, "true") \
	X(FALSE, "false")
/* clang-format on */
#define KNOWN_ATOM_NUMBER(name, text) NUMBER_##name,
enum { NUMBER_NIL, KNOWN_ATOMS(KNOWN_ATOM_NUMBER) KNOWN_ATOMS_COUNT };
#define ATOM(name) ((struct value){(uint64_t)NUMBER_##name << 3 | TAG_ATOM})

/* The atom of a name, created if new; NONE if the table (65,536 atoms) is full. */
struct value atom(const char *name);
const char *atom_name(struct value atom);

/* ---- making values on a heap (that of an actor: &self->heap, heap_of(self)) ---- */

struct value tuple(struct heap *heap, const struct value *elements, size_t count);
struct value cons(struct heap *heap, struct value head, struct value tail);
struct value binary(struct heap *heap, const void *bytes, size_t count);
struct value fun(struct heap *heap, fun_code *code, struct value environment);

/* TUPLE(heap, a, b, c) */
#define TUPLE(heap, ...) \
	tuple((heap), (struct value[]){__VA_ARGS__}, sizeof(struct value[]){__VA_ARGS__} / sizeof(struct value))

/* ---- accessing them ---- */

/* 0 if it is not a tuple. */
static inline size_t tuple_count(struct value v)
{
	return is_box(v, BOX_TUPLE) ? words_of_header(*box_of(v)) : 0;
}

/* Element index, from 0; NONE beyond the end or if it is not a tuple. */
static inline struct value element(struct value v, size_t index)
{
	return index < tuple_count(v) ? (struct value){box_of(v)[1 + index]} : NONE;
}

/* Is it a tuple of that many elements that begins with this atom? */
static inline bool is_tagged(struct value v, struct value first, size_t count)
{
	return tuple_count(v) == count && is_same(element(v, 0), first);
}

static inline struct value head(struct value list)
{
	return is_box(list, BOX_CONS) ? (struct value){box_of(list)[1]} : NONE;
}

static inline struct value tail(struct value list)
{
	return is_box(list, BOX_CONS) ? (struct value){box_of(list)[2]} : NONE;
}

/* Lends the bytes of a binary; NULL if it is none. */
const char *binary_bytes(struct value v, size_t *count);

/* Calls a fun in this actor; NONE if it is not a fun. */
struct value fun_call(struct actor *self, struct value fun);

/* Equal in all parts. */
bool is_equal(struct value a, struct value b);

/* ---- copying: flat, from one heap to another ---- */

/* The words that a copy takes; 0 for an immediate. */
size_t value_words(struct value v);
/* Copies to *at, which is moved to the end of the copy. */
struct value value_copy(struct value v, uint64_t **at);

/* Text, as Erlang writes it; cut to fit.  Returns buffer. */
const char *value_text(struct value v, char *buffer, size_t bytes);

#endif
