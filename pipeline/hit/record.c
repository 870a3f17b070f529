/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.c - records that are more than a head and a few words: terms, strict and CPU stamps, extra elements.
 *
 * Compiled without vector registers, as hit.c; encoding a term may need them and is wrapped where the hit came
 * through a trampoline.
 */
#include "pipeline/hit/record.h"
#include "pipeline/thread/thread.h"
#include "breakpoints/patch.h"
#include "term/etf.h"

/* The last bytes are copied one by one: memory behind the last byte need not be readable. */
static void copy_encoded(uint64_t *to, const uint8_t *from, size_t bytes)
{
	uint8_t *last = (uint8_t *)&to[bytes / 8];

	for (size_t i = 0; i < bytes / 8; i++)
		__builtin_memcpy(&to[i], from + i * 8, 8);
	if (bytes % 8)
		to[bytes / 8] = 0;
	for (size_t i = 0; i < bytes % 8; i++)
		last[i] = from[bytes / 8 * 8 + i];
}

size_t tw_record_encode(struct tw_term term, uint8_t *at, size_t capacity)
{
	size_t bytes = tw_etf_try_encode(term, at, capacity);

	return tw_likely(bytes) ? bytes : tw_etf_encode_cut(term, at, capacity);
}

uint64_t tw_record_stamped(struct tw_hit_tls *t, const struct tw_place *place, uint64_t todo, const uint64_t *words,
			   unsigned count)
{
	return tw_record_words(t, TW_EVENT_CALL, place, place, todo, (struct tw_words){.count = count, .more = words},
			       true);
}

bool tw_record_put(struct tw_hit_tls *t, const struct tw_recheck *recheck, unsigned session,
		   const struct tw_record_content *content, uint64_t *todo)
{
	struct tw_thread_ring *ring = &t->thread->rings[session];
	/* RELAXED hit.record_flags: one byte; a change is seen by this call or by the next. */
	unsigned flags = content->is_meta ? TW_STAMP_TIMESTAMP : tw_load_relaxed(&t->tracee->record_flags[session]);
	enum tw_record_stamp stamp = tw_record_stamp_of(flags, session);
	bool has_counts = content->flags & (TW_EVENT_FLAG_TERMS | TW_EVENT_FLAG_EXTRA);
	size_t encoded_words = (content->encoded_bytes + 7) / 8;
	size_t count = (size_t)(stamp != TW_RECORD_NO_STAMP) + has_counts + content->word_count + encoded_words;
	uint32_t bytes = (uint32_t)(sizeof(struct tw_rb_record) + (count + 1) / 2 * 16);
	uint64_t ticks = content->ticks ? content->ticks : tw_clock_ticks();
	struct tw_rb_record *r;
	uint64_t *payload;

	if (!tw_thread_ring_reserve(t, recheck, session, bytes, ticks, todo, &r))
		return false;
	payload = (uint64_t *)(r + 1);
	r->ticks = ticks;
	flags |= (count % 2 ? TW_EVENT_FLAG_HALF : 0) | content->flags;
	r->head = TW_RB_HEAD(tw_record_kind(content->kind, stamp), flags, bytes, content->id);
	if (stamp)
		*payload++ = tw_record_stamp_word(stamp);
	if (has_counts)
		*payload++ = (content->flags & TW_EVENT_FLAG_TERMS ? content->term_count : content->word_count) |
			     (uint64_t)content->encoded_bytes << 32;
	tw_record_copy(payload, content->words, content->word_count);
	copy_encoded(payload + content->word_count, content->encoded, content->encoded_bytes);
	tw_rb_commit(&ring->producer, bytes);
	return true;
}

/* ---- terms ---- */

enum { TUPLE = 104, NIL = 106, LIST = 108, SMALL_INTEGER = 97, SMALL_ATOM = 119, VERSION = 131 };

/* The largest size of a cut term. */
#define CUT_BYTES 6
/* The tail of a list. */
#define TAIL_BYTES 1

struct encoding {
	struct tw_term term;
	uint8_t *buffer;
	size_t capacity, bytes;
};

static void encode_there(void *arg)
{
	struct encoding *e = arg;

	e->bytes = tw_record_encode(e->term, e->buffer, e->capacity);
}

static void put(struct tw_record_terms *terms, uint8_t byte)
{
	terms->thread->terms[terms->bytes++] = byte;
}

static void put_atom(struct tw_record_terms *terms, const char *name)
{
	uint32_t bytes = 0, at = terms->bytes + 1;

	terms->bytes += 2;
	while (bytes < 255 && name[bytes])
		put(terms, (uint8_t)name[bytes++]);
	/* A cut name ends with a whole character. */
	while (name[bytes] && bytes && ((uint8_t)name[bytes] & 0xc0) == 0x80)
		bytes--;
	terms->thread->terms[at - 1] = SMALL_ATOM;
	terms->thread->terms[at] = (uint8_t)bytes;
	terms->bytes = at + 1 + bytes;
}

/* Appends a term without its version byte, in at most `capacity` bytes. */
static void put_term(struct tw_record_terms *terms, struct tw_term term, size_t capacity)
{
	uint8_t *before = &terms->thread->terms[terms->bytes - 1], kept = *before;
	struct encoding e = {term, before, capacity + 1, 0};

	/* The version byte temporarily overwrites the preceding byte. */
	if (terms->keeps_vectors)
		tw_patch_call_keeping_vectors(encode_there, &e);
	else
		encode_there(&e);
	*before = kept;
	if (e.bytes)
		terms->bytes += (uint32_t)e.bytes - 1;
	else
		put_atom(terms, "...");
}

/* The space for a term, such that `after` more, cut ones, still fit. */
static size_t space_for(const struct tw_record_terms *terms, size_t after)
{
	size_t kept = terms->bytes + after * CUT_BYTES + TAIL_BYTES;
	size_t all = sizeof terms->thread->terms;

	return kept < all ? all - kept : 0;
}

/* Begins a term if one of `bytes` bytes fits; otherwise returns false and appends nothing. */
static bool begin(struct tw_record_terms *terms, size_t bytes)
{
	if (space_for(terms, 1) < bytes)
		return false;
	put(terms, VERSION);
	terms->count++;
	return true;
}

void tw_record_term(struct tw_record_terms *terms, struct tw_term term)
{
	if (begin(terms, 1 + CUT_BYTES))
		put_term(terms, term, space_for(terms, 1));
}

void tw_record_list(struct tw_record_terms *terms, const struct tw_term *elements, unsigned count)
{
	if (!begin(terms, 8 + (size_t)count * CUT_BYTES))
		return;
	if (count) {
		put(terms, LIST);
		for (int shift = 24; shift >= 0; shift -= 8)
			put(terms, (uint8_t)(count >> shift));
	}
	for (unsigned i = 0; i < count; i++)
		put_term(terms, elements[i], space_for(terms, count - i));
	put(terms, NIL);
}

void tw_record_atoms(struct tw_record_terms *terms, const char *first, const char *second)
{
	if (!begin(terms, 520))
		return;
	put(terms, TUPLE);
	put(terms, 2);
	put_atom(terms, first);
	put_atom(terms, second);
}

void tw_record_pair(struct tw_record_terms *terms, const char *first, struct tw_term second)
{
	if (!begin(terms, 264 + CUT_BYTES))
		return;
	put(terms, TUPLE);
	put(terms, 2);
	put_atom(terms, first);
	put_term(terms, second, space_for(terms, 1));
}

void tw_record_mfa(struct tw_record_terms *terms, const char *module, const char *function, uint32_t arity)
{
	if (!begin(terms, 528))
		return;
	if (!module) {
		put_atom(terms, "undefined");
		return;
	}
	put(terms, TUPLE);
	put(terms, 3);
	put_atom(terms, module);
	put_atom(terms, function);
	if (arity > TW_ARITY_MAX) {
		put_atom(terms, "_");
		return;
	}
	put(terms, SMALL_INTEGER);
	put(terms, (uint8_t)arity);
}
