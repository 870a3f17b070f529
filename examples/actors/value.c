/* SPDX-License-Identifier: Apache-2.0 */
/* value.c - making values, copying them, and showing them. */
#include "value.h"

#include "sync.h"
#include "heap.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- atoms ---- */

#define ATOMS_MAX 65536

/*
 * Written under the lock, each entry once; a thread that has an atom's number got it from the thread that wrote the
 * entry.
 */
static struct {
	pthread_mutex_t lock;
	uint32_t count;
	char *names[ATOMS_MAX];
	uint32_t buckets[ATOMS_MAX * 2];
} atoms = {.lock = PTHREAD_MUTEX_INITIALIZER, .count = 1, .names = {"[]"}};

#define MAKE_KNOWN(name, text) atom(text);
__attribute__((constructor(101))) static void make_known_atoms(void)
{
	KNOWN_ATOMS(MAKE_KNOWN)
}

static uint32_t hash(const char *name)
{
	uint32_t h = 2166136261u;
	while (*name)
		h = (h ^ (unsigned char)*name++) * 16777619u;
	return h;
}

struct value atom(const char *name)
{
	struct value found = NONE;
	pthread_mutex_lock(&atoms.lock);
	uint32_t at = hash(name) % (ATOMS_MAX * 2);
	while (atoms.buckets[at] && strcmp(atoms.names[atoms.buckets[at]], name) != 0)
		at = (at + 1) % (ATOMS_MAX * 2);
	if (!atoms.buckets[at] && atoms.count < ATOMS_MAX) {
		atoms.names[atoms.count] = strdup(name);
		if (atoms.names[atoms.count])
			atoms.buckets[at] = atoms.count++;
	}
	if (atoms.buckets[at])
		found = immediate(atoms.buckets[at], TAG_ATOM);
	pthread_mutex_unlock(&atoms.lock);
	return found;
}

const char *atom_name(struct value v)
{
	if (tag_of(v) != TAG_ATOM)
		return NULL;
	pthread_mutex_lock(&atoms.lock);
	const char *name = atoms.names[number_of(v)];
	pthread_mutex_unlock(&atoms.lock);
	return name;
}

__attribute__((destructor)) static void free_atoms(void)
{
	for (uint32_t i = 1; i < atoms.count; i++)
		free(atoms.names[i]);
}

/* ---- making ---- */

static struct value boxed(uint64_t *at)
{
	return (struct value){(uintptr_t)at | TAG_BOXED};
}

struct value tuple(struct heap *heap, const struct value *elements, size_t count)
{
	uint64_t *at = heap_take(heap, 1 + count);
	at[0] = HEADER(BOX_TUPLE, count);
	for (size_t i = 0; i < count; i++)
		at[1 + i] = elements[i].word;
	return boxed(at);
}

struct value cons(struct heap *heap, struct value head, struct value tail)
{
	uint64_t *at = heap_take(heap, 3);
	at[0] = HEADER(BOX_CONS, 2);
	at[1] = head.word;
	at[2] = tail.word;
	return boxed(at);
}

/* header, count of bytes, bytes */
struct value binary(struct heap *heap, const void *bytes, size_t count)
{
	size_t words = 1 + (count + 7) / 8;
	uint64_t *at = heap_take(heap, 1 + words);
	at[0] = HEADER(BOX_BINARY, words);
	at[words] = 0;
	at[1] = count;
	if (count)
		memcpy(at + 2, bytes, count);
	return boxed(at);
}

struct value fun(struct heap *heap, fun_code *code, struct value environment)
{
	uint64_t *at = heap_take(heap, 3);
	at[0] = HEADER(BOX_FUN, 2);
	at[1] = (uintptr_t)code;
	at[2] = environment.word;
	return boxed(at);
}

const char *binary_bytes(struct value v, size_t *count)
{
	if (!is_box(v, BOX_BINARY))
		return NULL;
	*count = box_of(v)[1];
	return (const char *)(box_of(v) + 2);
}

struct value fun_call(struct actor *self, struct value v)
{
	if (!is_box(v, BOX_FUN))
		return NONE;
	fun_code *code = (fun_code *)(uintptr_t)box_of(v)[1];
	return code(self, (struct value){box_of(v)[2]});
}

/* ---- comparing, copying ---- */

/* All three walk along the last word of a box in a loop: long lists cost no stack. */
bool is_equal(struct value a, struct value b)
{
	while (!is_same(a, b)) {
		if (tag_of(a) != TAG_BOXED || tag_of(b) != TAG_BOXED || *box_of(a) != *box_of(b))
			return false;
		const uint64_t *left = box_of(a), *right = box_of(b);
		size_t words = words_of_header(*left);
		if (is_box(a, BOX_BINARY))
			return memcmp(left + 1, right + 1, words * 8) == 0;
		for (size_t i = 1; i < words; i++) {
			if (!is_equal((struct value){left[i]}, (struct value){right[i]}))
				return false;
		}
		if (words == 0)
			return true;
		a.word = left[words];
		b.word = right[words];
	}
	return true;
}

/* The first word that holds a value: none in a binary, the second in a fun. */
static size_t first_value(uint64_t header)
{
	switch ((header & 0xff) >> 1) {
	case BOX_BINARY: return words_of_header(header) + 1;
	case BOX_FUN: return 2;
	default: return 1;
	}
}

size_t value_words(struct value v)
{
	size_t sum = 0;
	while (tag_of(v) == TAG_BOXED) {
		const uint64_t *from = box_of(v);
		size_t words = words_of_header(*from), i = first_value(*from);
		sum += 1 + words;
		if (i > words)
			break;
		for (; i < words; i++)
			sum += value_words((struct value){from[i]});
		v.word = from[words];
	}
	return sum;
}

struct value value_copy(struct value v, uint64_t **at)
{
	struct value result = v;
	uint64_t *link = &result.word;
	while (tag_of(v) == TAG_BOXED) {
		const uint64_t *from = box_of(v);
		size_t words = words_of_header(*from), first = first_value(*from);
		uint64_t *to = *at;
		*at += 1 + words;
		*link = boxed(to).word;
		memcpy(to, from, (1 + words) * 8);
		if (first > words)
			return result;
		for (size_t i = first; i < words; i++)
			to[i] = value_copy((struct value){from[i]}, at).word;
		link = &to[words];
		v.word = from[words];
	}
	*link = v.word;
	return result;
}

/* ---- showing ---- */

struct text {
	char *at, *end;
};

static void put(struct text *text, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	int count = vsnprintf(text->at, (size_t)(text->end - text->at), format, arguments);
	va_end(arguments);
	text->at += count < text->end - text->at ? count : text->end - text->at - 1;
}

static void put_value(struct text *text, struct value v);

static void put_box(struct text *text, struct value v)
{
	size_t count;
	if (is_box(v, BOX_TUPLE)) {
		for (size_t i = 0; i < tuple_count(v); i++) {
			put(text, i ? "," : "{");
			put_value(text, element(v, i));
		}
		put(text, tuple_count(v) ? "}" : "{}");
	} else if (is_box(v, BOX_CONS)) {
		for (const char *before = "["; is_box(v, BOX_CONS); v = tail(v), before = ",") {
			put(text, "%s", before);
			put_value(text, head(v));
		}
		if (!is_same(v, NIL)) {
			put(text, "|");
			put_value(text, v);
		}
		put(text, "]");
	} else if (is_box(v, BOX_BINARY)) {
		const char *bytes = binary_bytes(v, &count);
		put(text, "<<\"%.*s\">>", (int)count, bytes);
	} else {
		put(text, "#Fun");
	}
}

static void put_value(struct text *text, struct value v)
{
	switch (v.word & TAG_MASK) {
	case TAG_INTEGER: put(text, "%" PRId64, number_of(v)); break;
	case TAG_ATOM: put(text, "%s", atom_name(v)); break;
	case TAG_PID: put(text, "<0.%" PRIu64 ".0>", v.word >> 27); break;
	case TAG_REFERENCE: put(text, "#Ref<0.0.0.%" PRIu64 ">", v.word >> 3); break;
	case TAG_PORT: put(text, "#Port<0.%" PRIu64 ">", v.word >> 3); break;
	case TAG_BOXED: put_box(text, v); break;
	default: put(text, "none");
	}
}

const char *value_text(struct value v, char *buffer, size_t bytes)
{
	struct text text = {buffer, buffer + bytes};
	*buffer = 0;
	put_value(&text, v);
	return buffer;
}
