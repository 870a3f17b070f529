/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message.c - one event as OTP's trace message: message.h.
 *
 *	payload = [unique integer, if strict] then one of
 *		words				plain
 *		head words X			EXTRA: head = count of words | bytes of X << 32
 *		head term term ... [X]		TERMS: head = count of terms | bytes of them << 32
 */
#include "tracewheel/message.h"
#include "base/error.h"
#include "base/export.h"
#include "pipeline/format/event.h"
#include "term/term.h"

#include <stdio.h>
#include <string.h>

/* trace, pid, tag, at most this many elements of the tag, X, scheduler, time. */
#define OWN_MAX	     4
#define ELEMENTS_MAX (OWN_MAX + 6)
/* More than a record can hold. */
#define WORDS_MAX 1024

struct payload {
	const uint64_t *words;
	uint32_t word_count;
	const uint8_t *terms;
	size_t term_bytes;
	uint32_t term_count; /* without X */
	bool has_terms, has_extra, is_strict;
	uint64_t unique_integer;
};

struct building {
	const struct tw_message_event *from;
	const struct tw_capture_event *event;
	struct tw_arena *arena;
	struct payload payload;
	struct tw_term elements[ELEMENTS_MAX];
	size_t count;
	int error;
};

/* ---- decoding the payload ---- */

static int take_terms(struct payload *p, bool has_extra)
{
	uint64_t head = p->words[0];

	p->terms = (const uint8_t *)(p->words + 1);
	p->term_count = (uint32_t)head;
	p->term_bytes = head >> 32;
	/* A term has at least two bytes. */
	if (p->term_bytes > (size_t)(p->word_count - 1) * 8 || p->term_count > p->term_bytes / 2 ||
	    p->term_count < has_extra)
		return TW_EFORMAT;
	p->term_count -= has_extra;
	p->word_count = 0;
	return 0;
}

static int take_extra(struct payload *p)
{
	uint32_t count = (uint32_t)p->words[0], left = p->word_count - 1;

	p->term_bytes = p->words[0] >> 32;
	if (count > left || p->term_bytes > (size_t)(left - count) * 8)
		return TW_EFORMAT;
	p->words++;
	p->word_count = count;
	p->terms = (const uint8_t *)(p->words + count);
	return 0;
}

static int take_payload(const struct tw_capture_event *event, struct payload *p)
{
	*p = (struct payload){.words = event->payload,
			      .word_count = event->payload_words,
			      .has_terms = event->flags & TW_EVENT_FLAG_TERMS,
			      .has_extra = event->flags & TW_EVENT_FLAG_EXTRA,
			      .is_strict = (event->flags & TW_EVENT_FLAG_STAMP_MASK) == TW_STAMP_STRICT_MONOTONIC};
	if (p->word_count > WORDS_MAX || (p->word_count && !p->words))
		return TW_EFORMAT;
	if (p->is_strict) {
		if (!p->word_count)
			return TW_EFORMAT;
		p->unique_integer = *p->words++;
		p->word_count--;
	}
	if ((p->has_terms || p->has_extra) && !p->word_count)
		return TW_EFORMAT;
	if (p->has_terms)
		return take_terms(p, p->has_extra);
	return p->has_extra ? take_extra(p) : 0;
}

static struct tw_term next_term(struct building *b)
{
	struct payload *p = &b->payload;
	struct tw_term term = {0};
	size_t used = 0;
	int error = p->term_bytes ? tw_etf_decode(b->arena, p->terms, p->term_bytes, NULL, &used, &term) : TW_EFORMAT;

	if (error) {
		b->error = error == TW_ENOTSUP ? TW_EFORMAT : error;
		return (struct tw_term){0};
	}
	p->terms += used;
	p->term_bytes -= used;
	return term;
}

/* ---- elements ---- */

static void put(struct building *b, struct tw_term term)
{
	if (tw_term_is_none(term) && !b->error)
		b->error = TW_ENOMEM;
	if (b->count < ELEMENTS_MAX)
		b->elements[b->count++] = term;
}

static struct tw_term pair(struct building *b, struct tw_term first, struct tw_term second)
{
	return tw_term_tuple(b->arena, (struct tw_term[]){first, second}, 2);
}

/* A name of the program as an atom, cut if it is too long for one. */
static struct tw_term name_of(const char *name)
{
	size_t bytes = strlen(name);
	struct tw_term atom = tw_term_atom(name, bytes);

	if (tw_term_is_none(atom) && bytes > 255) {
		bytes = 255;
		while (bytes && ((unsigned char)name[bytes] & 0xc0) == 0x80)
			bytes--;
		atom = tw_term_atom(name, bytes);
	}
	return tw_term_is_none(atom) ? tw_term_atom_z("?") : atom;
}

static struct tw_term word_list(struct building *b, const uint64_t *words, uint32_t count)
{
	struct tw_term list = tw_term_nil();

	while (count--)
		list = tw_term_cons(b->arena, tw_term_unsigned(b->arena, words[count]), list);
	return list;
}

static struct tw_term arity_of(struct building *b, const struct tw_capture_function *function)
{
	if (!function || function->arity == TW_CAPTURE_ARITY_UNKNOWN)
		return tw_atom(TW_ATOM_ANY);
	return tw_term_unsigned(b->arena, function->arity);
}

/* The arguments, or the arity. */
static struct tw_term last_of_mfa(struct building *b, const struct tw_capture_function *function)
{
	bool is_call = b->event->kind == TW_EVENT_CALL;
	struct payload *p = &b->payload;

	if (is_call && p->has_terms && p->term_count) {
		struct tw_term list = next_term(b);

		return b->event->flags & TW_EVENT_FLAG_ARITY && !b->error ? arity_of(b, function) : list;
	}
	if (!is_call || (b->event->flags & TW_EVENT_FLAG_ARITY))
		return arity_of(b, function);
	if (p->word_count || (function && function->arity == 0))
		return word_list(b, p->words, p->word_count);
	return arity_of(b, function);
}

static void put_mfa(struct building *b)
{
	const struct tw_capture_place *place = b->from->place;
	const struct tw_capture_function *function = place ? place->function : NULL;
	struct tw_term mfa[3];

	mfa[0] = name_of(function && function->module ? function->module->name : "?");
	mfa[1] = function ? name_of(function->name) : tw_term_unsigned(b->arena, b->event->id);
	mfa[2] = last_of_mfa(b, function);
	put(b, tw_term_tuple(b->arena, mfa, 3));
}

static void put_value(struct building *b)
{
	struct payload *p = &b->payload;
	bool is_exception = b->event->kind == TW_EVENT_EXCEPTION_FROM;
	struct tw_term value;

	if (p->has_terms) {
		put(b, next_term(b));
		return;
	}
	value = p->word_count ? tw_term_unsigned(b->arena, p->words[0]) : tw_atom(TW_ATOM_ANY);
	put(b, is_exception ? pair(b, tw_atom(TW_ATOM_ERROR), value) : value);
}

/* For native code the module and the offset in it: symbols are not recorded. */
static void put_return_to(struct building *b)
{
	const struct tw_capture_module *module = b->from->module;
	struct payload *p = &b->payload;
	char offset[32];
	struct tw_term mfa[3];

	if (p->has_terms && p->term_count) {
		put(b, next_term(b));
		return;
	}
	if (!p->word_count && b->from->place) {
		put_mfa(b);
		return;
	}
	if (!module || !p->word_count) {
		put(b, tw_atom(TW_ATOM_UNDEFINED));
		return;
	}
	snprintf(offset, sizeof offset, "+0x%llx", (unsigned long long)(p->words[0] - module->base_address));
	mfa[0] = name_of(module->name);
	mfa[1] = tw_term_atom_z(offset);
	mfa[2] = tw_atom(TW_ATOM_ANY);
	put(b, tw_term_tuple(b->arena, mfa, 3));
}

static void put_gc(struct building *b)
{
	static const enum tw_atom_index keys[] = {
#define KEY(NAME, field) TW_ATOM_##NAME,
		TW_GC_SIZES(KEY)
#undef KEY
	};
	struct tw_term list = tw_term_nil();

	if (b->payload.word_count < TW_GC_SIZES_COUNT) {
		b->error = TW_EFORMAT;
		return;
	}
	for (unsigned i = tw_gc_sizes_shown(b->event->kind); i--;)
		list = tw_term_cons(b->arena,
				    pair(b, tw_atom(keys[i]), tw_term_unsigned(b->arena, b->payload.words[i])), list);
	put(b, list);
}

static void put_terms(struct building *b)
{
	if (!b->payload.has_terms && b->payload.word_count)
		put(b, word_list(b, b->payload.words, b->payload.word_count));
	if (b->payload.term_count > OWN_MAX)
		b->error = TW_EFORMAT;
	for (uint32_t i = 0; i < b->payload.term_count && !b->error; i++)
		put(b, next_term(b));
}

static void put_stamp(struct building *b, unsigned stamp)
{
	uint64_t ns = b->event->time_ns;
	uint64_t us = (b->event->has_cpu_time ? b->event->cpu_ns : b->from->wall_ns) / 1000;
	struct tw_term parts[3];

	if (stamp == TW_STAMP_NONE)
		return;
	if (stamp == TW_STAMP_MONOTONIC) {
		put(b, tw_term_unsigned(b->arena, ns));
	} else if (stamp == TW_STAMP_STRICT_MONOTONIC) {
		put(b, pair(b, tw_term_unsigned(b->arena, ns), tw_term_unsigned(b->arena, b->payload.unique_integer)));
	} else {
		parts[0] = tw_term_unsigned(b->arena, us / 1000000000000);
		parts[1] = tw_term_unsigned(b->arena, us / 1000000 % 1000000);
		parts[2] = tw_term_unsigned(b->arena, us % 1000000);
		put(b, tw_term_tuple(b->arena, parts, 3));
	}
}

/* ---- the message ---- */

static const enum tw_atom_index tags[] = {
#define TAG(NAME, number, ...) [number] = TW_ATOM_##NAME,
	TW_TRACE_KINDS(TAG) TW_SEQ_KINDS(TAG) TW_SYSTEM_KINDS(TAG)
#undef TAG
};

static struct tw_term tag_of(unsigned kind)
{
	return kind < sizeof tags / sizeof *tags && tags[kind] ? tw_atom(tags[kind]) : (struct tw_term){0};
}

static void put_own(struct building *b)
{
	unsigned kind = b->event->kind;

	if (kind == TW_EVENT_RETURN_TO) {
		put_return_to(b);
	} else if (kind == TW_EVENT_CALL) {
		put_mfa(b);
	} else if (kind == TW_EVENT_RETURN_FROM || kind == TW_EVENT_EXCEPTION_FROM) {
		put_mfa(b);
		put_value(b);
	} else if (tw_kind_is(kind, TW_GROUP_GARBAGE_COLLECTION)) {
		put_gc(b);
	} else {
		put_terms(b);
	}
}

static int finish(struct building *b, struct tw_term *out)
{
	struct tw_term tuple = b->error ? (struct tw_term){0} : tw_term_tuple(b->arena, b->elements, b->count);

	if (b->error)
		return b->error;
	if (tw_term_is_none(tuple))
		return TW_ENOMEM;
	*out = tuple;
	return 0;
}

static struct tw_term tracee_of(const struct building *b)
{
	const struct tw_message_event *from = b->from;

	return from->is_port ? tw_term_port(b->arena, from->pid_number)
			     : tw_term_pid(b->arena, from->pid_number, from->pid_serial);
}

static int build_loss(struct building *b, struct tw_term *out)
{
	static const char *const causes[] = {"full", "too_big", "nested", "no_ring"};
	const uint64_t *words = b->event->payload;
	struct tw_term list = tw_term_nil();

	if (b->event->payload_words < 1 + TW_LOST_CAUSES)
		return TW_EFORMAT;
	for (unsigned cause = TW_LOST_CAUSES; cause--;)
		if (words[1 + cause])
			list = tw_term_cons(b->arena,
					    pair(b, tw_term_atom_z(causes[cause]),
						 tw_term_unsigned(b->arena, words[1 + cause])),
					    list);
	put(b, tw_atom(TW_ATOM_TRACE_TS));
	put(b, tracee_of(b));
	put(b, tw_term_atom_z("lost"));
	put(b, list);
	put(b, tw_term_unsigned(b->arena, b->event->time_ns));
	return finish(b, out);
}

/* {seq_trace,Label,{send,Serial,From,To,Message}}: no tracee, and the label comes first. */
static void put_seq(struct building *b, struct tw_term tag)
{
	struct tw_term parts[5] = {tag};

	put(b, tw_atom(TW_ATOM_SEQ_TRACE));
	put(b, next_term(b));
	for (unsigned i = 1; i < 5; i++)
		parts[i] = next_term(b);
	put(b, tw_term_tuple(b->arena, parts, 5));
}

TW_API int tw_message_build(const struct tw_message_event *from, struct tw_arena *arena, struct tw_term *out)
{
	struct building b = {.from = from, .event = from->event, .arena = arena};
	unsigned stamp = from->event->flags & TW_EVENT_FLAG_STAMP_MASK;
	struct tw_term tag = tag_of(from->event->kind);

	if (from->event->kind == TW_EVENT_LOSS)
		return build_loss(&b, out);
	if (tw_term_is_none(tag))
		return TW_EFORMAT;
	b.error = take_payload(from->event, &b.payload);
	if (b.error)
		return b.error;
	if (tw_kind_is(from->event->kind, TW_GROUP_SEQ)) {
		put_seq(&b, tag);
		put_stamp(&b, stamp);
		return finish(&b, out);
	}
	if (from->event->kind == TW_EVENT_MONITOR) {
		put(&b, tag);
		put(&b, tracee_of(&b));
	} else {
		put(&b, tw_atom(stamp == TW_STAMP_NONE ? TW_ATOM_TRACE : TW_ATOM_TRACE_TS));
		put(&b, tracee_of(&b));
		put(&b, tag);
	}
	put_own(&b);
	if (b.payload.has_extra && !b.error)
		put(&b, next_term(&b));
	if (from->event->flags & TW_EVENT_FLAG_SCHEDULER_ID)
		put(&b, tw_term_unsigned(arena, from->scheduler_id));
	put_stamp(&b, stamp);
	return finish(&b, out);
}
