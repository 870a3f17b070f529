/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bits.c - the first bytes of binaries and bit strings, in a time that does not depend on their length.
 *
 * enif_inspect_binary() copies bits that do not begin at a whole byte of memory, all of them, and refuses those that do not end
 * at one.  enif_make_sub_binary() copies nothing, and takes both, but the caller must know the length, which no call returns.  The
 * length is therefore read where the VM keeps it: when the library is loaded, it makes bit strings of three known lengths and looks for
 * a word that holds them (up to OTP 26), or two words with that difference (later).  A VM in which neither is found copies.
 */
#include "leaf.h"

/* Words of a bit string that are examined. */
#define WORDS 4
/* Shorter binaries are not worth a look. */
#define LOOK_BYTES 64

/* How long ones lie in memory. */
static struct {
	ERL_NIF_TERM head; /* their first word; 0: not known */
	unsigned word;
	int is_range; /* words `word` and the next are the first bit and the one after the last; else the whole bytes */
} layout;

static const ERL_NIF_TERM *words_of(ERL_NIF_TERM term)
{
	return (term & 3) == 2 ? (const ERL_NIF_TERM *)(term & ~(ERL_NIF_TERM)7) : NULL;
}

/* A bit string of so many bytes and three bits. */
static const ERL_NIF_TERM *make(ErlNifEnv *env, uint8_t *buffer, size_t bytes)
{
	ERL_NIF_TERM term;

	memset(buffer, 0, 7 + bytes + 1);
	buffer[0] = VERSION;
	buffer[1] = BIT_BINARY;
	put32(buffer + 2, (uint32_t)bytes + 1);
	buffer[6] = 3;
	return enif_binary_to_term(env, buffer, 7 + bytes + 1, &term, 0) ? words_of(term) : NULL;
}

#define SAMPLES 3

static void find_layout(const ERL_NIF_TERM *samples[SAMPLES], const size_t bytes[SAMPLES])
{
	for (unsigned word = 1; word < WORDS; word++) {
		unsigned lengths = 0, ranges = 0;

		for (unsigned i = 0; i < SAMPLES; i++) {
			lengths += samples[i][word] == bytes[i];
			ranges += word + 1 < WORDS && samples[i][word + 1] - samples[i][word] == 8 * bytes[i] + 3;
		}
		if (lengths == SAMPLES || ranges == SAMPLES) {
			layout.word = word;
			layout.is_range = ranges == SAMPLES;
			layout.head = samples[0][0];
			return;
		}
	}
}

void bits_init(ErlNifEnv *env)
{
	static const size_t bytes[SAMPLES] = {300, 1021, 90};
	const ERL_NIF_TERM *samples[SAMPLES];
	uint8_t buffer[1100];

	layout.head = 0;
	for (unsigned i = 0; i < SAMPLES; i++) {
		samples[i] = make(env, buffer, bytes[i]);
		if (!samples[i] || samples[i][0] != samples[0][0])
			return;
	}
	find_layout(samples, bytes);
}

/* False: not of the kind whose length is known.  Those are short, or begin and end at whole bytes. */
static int length_of(ERL_NIF_TERM term, size_t *bytes)
{
	const ERL_NIF_TERM *words = layout.head ? words_of(term) : NULL;

	if (!words || words[0] != layout.head)
		return 0;
	*bytes = layout.is_range ? (words[layout.word + 1] - words[layout.word]) / 8 : words[layout.word];
	return 1;
}

/* The first @bytes.  The binary itself is not inspected: that would end its growth in place, and each append would copy it. */
static int inspect_first(ErlNifEnv *env, ERL_NIF_TERM term, size_t bytes, ErlNifBinary *out)
{
	return enif_inspect_binary(env, enif_make_sub_binary(env, term, 0, bytes), out);
}

static void put_bytes(struct writer *w, const ErlNifBinary *binary, size_t bytes)
{
	*w->at = BINARY;
	w->at = put32(w->at + 1, (uint32_t)bytes);
	memcpy(w->at, binary->data, bytes);
	w->at += bytes;
}

int bits_put(struct writer *w, ERL_NIF_TERM term)
{
	ErlNifEnv *env = w->e->env;
	ErlNifBinary binary;
	size_t bytes;
	int is_known = length_of(term, &bytes);

	if (is_known && space(w) < 5 + bytes)
		return 0;
	if (!enif_is_binary(env, term))
		return leaf_put_external(w, term);
	if (!(is_known ? inspect_first(env, term, bytes, &binary) : enif_inspect_binary(env, term, &binary)) ||
	    space(w) < 5 + binary.size)
		return 0;
	put_bytes(w, &binary, binary.size);
	return 1;
}

#define SIZE_BYTES 11

int bits_put_cut(struct writer *w, ERL_NIF_TERM term)
{
	ErlNifEnv *env = w->e->env;
	ErlNifBinary binary;
	size_t whole, bytes;
	int is_known = length_of(term, &whole);

	if (space(w) < 2 + MARK_BYTES + 5 + SIZE_BYTES)
		return 0;
	bytes = space(w) - (2 + MARK_BYTES + 5 + SIZE_BYTES);
	if (is_known) {
		bytes = bytes < whole ? bytes : whole;
		if (!inspect_first(env, term, bytes, &binary))
			return 0;
	} else {
		if (!enif_inspect_binary(env, term, &binary))
			return 0;
		whole = binary.size;
		bytes = bytes < whole ? bytes : whole;
	}
	*w->at++ = SMALL_TUPLE;
	*w->at++ = 3;
	leaf_put_mark(w);
	put_bytes(w, &binary, bytes);
	leaf_put_integer(w, (int64_t)whole);
	return 1;
}
