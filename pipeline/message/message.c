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

/* Terms of one event beside X: more are no message of OTP's. */
#define OWN_MAX	     4
#define ELEMENTS_MAX 32
/* More than a record can hold. */
#define WORDS_MAX 1024
/* Of a view: real payloads have six words, or those of six strings. */
#define WORDS_SHOWN_MAX 256

struct building {
	const struct tw_message_event *from;
	const struct tw_capture_event *event;
	struct tw_message_form *form;
	struct tw_arena *arena;
	struct tw_message_payload payload;
	bool is_view;
	/* Of all open tuples, the inner ones last. */
	struct tw_term elements[ELEMENTS_MAX];
	size_t count;
	int error;
};

/* ---- decoding the payload ---- */

static void take_terms(struct tw_message_payload *p, bool has_extra)
{
	uint64_t head = p->words[0];

	p->terms = (const uint8_t *)(p->words + 1);
	p->term_count = (uint32_t)head;
	p->term_bytes = head >> 32;
	/* A term has at least two bytes. */
	p->is_damaged = p->term_bytes > (size_t)(p->count - 1) * 8 || p->term_count > p->term_bytes / 2 ||
			p->term_count < has_extra;
	p->has_extra = has_extra && !p->is_damaged;
	p->term_count = p->is_damaged ? 0 : p->term_count - has_extra;
	p->count = 0;
}

static void take_extra(struct tw_message_payload *p)
{
	uint32_t count = (uint32_t)p->words[0], left = p->count - 1;

	p->term_bytes = p->words[0] >> 32;
	p->is_damaged = count > left || p->term_bytes > (size_t)(left - count) * 8;
	p->has_extra = !p->is_damaged;
	p->words++;
	p->count = count < left ? count : left;
	p->terms = (const uint8_t *)(p->words + p->count);
}

TW_API void tw_message_payload(const struct tw_capture_event *event, struct tw_arena *arena,
			       struct tw_message_payload *p)
{
	bool has_extra = event->flags & TW_EVENT_FLAG_EXTRA;

	*p = (struct tw_message_payload){.words = event->payload,
					 .count = event->payload_words,
					 .arena = arena,
					 .has_terms = event->flags & TW_EVENT_FLAG_TERMS};
	p->is_damaged = p->count > WORDS_MAX || (p->count && !p->words);
	if ((event->flags & TW_EVENT_FLAG_STAMP_MASK) == TW_STAMP_STRICT_MONOTONIC) {
		p->is_damaged |= !p->count;
		if (p->count) {
			p->unique_integer = *p->words++;
			p->count--;
		}
	}
	if (!p->count)
		p->is_damaged |= p->has_terms || has_extra;
	else if (p->has_terms)
		take_terms(p, has_extra);
	else if (has_extra)
		take_extra(p);
}

TW_API int tw_message_next_term(struct tw_message_payload *p, struct tw_term *out)
{
	size_t used = 0;
	int error = TW_EFORMAT;

	if (p->term_bytes && !p->is_damaged)
		error = tw_etf_decode(p->arena, p->terms, p->term_bytes, NULL, &used, out);
	p->is_damaged |= error != 0;
	/* A payload without terms has a null pointer, to which not even 0 may be added. */
	if (used) {
		p->terms += used;
		p->term_bytes -= used;
	}
	return error == TW_ENOTSUP ? TW_EFORMAT : error;
}

static struct tw_term next_term(struct building *b)
{
	struct tw_term term = {0};
	int error = tw_message_next_term(&b->payload, &term);

	if (error && b->is_view)
		return tw_term_atom_z("?");
	b->error = error ? error : b->error;
	return error ? (struct tw_term){0} : term;
}

/* ---- elements ---- */

static bool is_taken(const struct building *b)
{
	return b->form && b->form->element;
}

static void put(struct building *b, struct tw_term term)
{
	if (tw_term_is_none(term) && b->is_view)
		term = tw_term_atom_z("?");
	else if (tw_term_is_none(term) && !b->error)
		b->error = TW_ENOMEM;
	if (is_taken(b))
		b->form->element(b->form, term);
	else if (b->count < ELEMENTS_MAX)
		b->elements[b->count++] = term;
}

/* A tuple begins; the result is for end(). */
static size_t begin(struct building *b)
{
	if (is_taken(b))
		b->form->open(b->form);
	return b->count;
}

static struct tw_term end_whole(struct building *b, size_t start)
{
	size_t count = b->count - start;

	b->count = start;
	if (!is_taken(b))
		return tw_term_tuple(b->arena, b->elements + start, count);
	b->form->close(b->form);
	return (struct tw_term){0};
}

static void end(struct building *b, size_t start)
{
	struct tw_term tuple = end_whole(b, start);

	if (!is_taken(b))
		put(b, tuple);
}

static void put_number(struct building *b, uint64_t number)
{
	put(b, tw_term_unsigned(b->arena, number));
}

/* Shows a part as the form does. False: it does not. */
static bool put_part(struct building *b, enum tw_message_what what, struct tw_term term)
{
	struct tw_message_part part = {what, b->from, b->payload.words, b->payload.count, b->arena, {term}};

	if (!b->form || !b->form->part || !b->form->part(b->form, &part))
		return false;
	for (unsigned i = 0; i < TW_COUNT_OF(part.elements); i++)
		if (!tw_term_is_none(part.elements[i]))
			put(b, part.elements[i]);
	return true;
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

static void put_words(struct building *b)
{
	struct tw_term list = tw_term_nil();

	for (uint32_t i = b->payload.count; i-- > 0;)
		list = tw_term_cons(b->arena, tw_term_unsigned(b->arena, b->payload.words[i]), list);
	put(b, list);
}

static void put_arity(struct building *b, const struct tw_capture_function *function)
{
	if (!function || function->arity == TW_CAPTURE_ARITY_UNKNOWN)
		put(b, tw_atom(TW_ATOM_ANY));
	else
		put_number(b, function->arity);
}

/* The arguments, or the arity. */
static void put_last_of_mfa(struct building *b, const struct tw_capture_function *function)
{
	bool is_call = b->event->kind == TW_EVENT_CALL, has_arity = !is_call || b->event->flags & TW_EVENT_FLAG_ARITY;
	struct tw_message_payload *p = &b->payload;
	struct tw_term list = {0};

	if (is_call && p->has_terms && (p->term_count || (b->is_view && !has_arity)))
		list = next_term(b);
	if (!has_arity && !tw_term_is_none(list))
		put(b, list);
	else if (has_arity || (!p->count && (b->is_view || !function || function->arity)))
		put_arity(b, function);
	else if (!put_part(b, TW_MESSAGE_ARGUMENTS, list))
		put_words(b);
}

static void put_mfa(struct building *b)
{
	const struct tw_capture_place *place = b->from->place;
	const struct tw_capture_function *function = place ? place->function : NULL;
	size_t start = begin(b);

	if (!put_part(b, TW_MESSAGE_FUNCTION, (struct tw_term){0})) {
		put(b, name_of(function && function->module ? function->module->name : "?"));
		put(b, function ? name_of(function->name) : tw_term_unsigned(b->arena, b->event->id));
	}
	put_last_of_mfa(b, function);
	end(b, start);
}

static void put_word_value(struct building *b)
{
	if (!b->payload.count)
		put(b, tw_atom(TW_ATOM_ANY));
	else if (!put_part(b, TW_MESSAGE_VALUE, (struct tw_term){0}))
		put_number(b, b->payload.words[0]);
}

static void put_value(struct building *b)
{
	size_t start;

	if (b->payload.has_terms) {
		put(b, next_term(b));
	} else if (b->event->kind != TW_EVENT_EXCEPTION_FROM) {
		put_word_value(b);
	} else {
		start = begin(b);
		put(b, tw_atom(TW_ATOM_ERROR));
		put_word_value(b);
		end(b, start);
	}
}

/* For native code the module and the offset in it: symbols are not recorded. */
static void put_address(struct building *b)
{
	const struct tw_capture_module *module = b->from->module;
	char offset[32];
	struct tw_term mfa[3];

	if (put_part(b, TW_MESSAGE_ADDRESS, (struct tw_term){0}))
		return;
	if (!module) {
		put(b, tw_atom(TW_ATOM_UNDEFINED));
		return;
	}
	snprintf(offset, sizeof offset, "+0x%llx", (unsigned long long)(b->payload.words[0] - module->base_address));
	mfa[0] = name_of(module->name);
	mfa[1] = tw_term_atom_z(offset);
	mfa[2] = tw_atom(TW_ATOM_ANY);
	put(b, tw_term_tuple(b->arena, mfa, 3));
}

static void put_return_to(struct building *b)
{
	struct tw_message_payload *p = &b->payload;

	if (p->has_terms && (p->term_count || b->is_view))
		put(b, next_term(b));
	else if (p->count)
		put_address(b);
	else if (b->from->place || b->is_view)
		put_mfa(b);
	else
		put(b, tw_atom(TW_ATOM_UNDEFINED));
}

static void put_stack(struct building *b)
{
	put_mfa(b);
	if (!put_part(b, TW_MESSAGE_STACK, (struct tw_term){0}))
		b->error = TW_EFORMAT;
}

static void put_gc(struct building *b)
{
	static const enum tw_atom_index keys[] = {
#define KEY(NAME, field) TW_ATOM_##NAME,
		TW_GC_SIZES(KEY)
#undef KEY
	};
	unsigned count = tw_gc_sizes_shown(b->event->kind);
	struct tw_term list = tw_term_nil();

	if (b->payload.count < TW_GC_SIZES_COUNT && !b->is_view)
		b->error = TW_EFORMAT;
	if (count > b->payload.count)
		count = b->payload.count;
	while (count--)
		list = tw_term_cons(b->arena,
				    pair(b, tw_atom(keys[count]), tw_term_unsigned(b->arena, b->payload.words[count])),
				    list);
	put(b, list);
}

/* ---- the message ---- */

static const struct {
	enum tw_atom_index tag;
	const char *terms[2]; /* names: of those that every such message has */
} kinds[] = {
#define KIND(NAME, number, word, group, first, second) [number] = {TW_ATOM_##NAME, {first, second}},
#define SEQ_KIND(NAME, number, word)		       [number] = {TW_ATOM_##NAME, {NULL}},
	TW_TRACE_KINDS(KIND) TW_SEQ_KINDS(SEQ_KIND) TW_SYSTEM_KINDS(KIND)
#undef KIND
#undef SEQ_KIND
};

static bool is_known(unsigned kind)
{
	return kind < TW_COUNT_OF(kinds) && kinds[kind].tag;
}

static void put_terms(struct building *b)
{
	bool is_kind = is_known(b->event->kind);
	uint32_t least =
		is_kind ? (kinds[b->event->kind].terms[0] != NULL) + (kinds[b->event->kind].terms[1] != NULL) : 0;
	uint32_t count = b->payload.term_count;

	if (!b->payload.has_terms && (b->payload.count || !is_kind)) {
		put_words(b);
		return;
	}
	if (count > OWN_MAX && !b->is_view)
		b->error = TW_EFORMAT;
	for (uint32_t i = 0; i < count && !b->error; i++)
		put(b, next_term(b));
	for (; b->is_view && count < least; count++)
		put(b, tw_term_atom_z("?"));
}

static void put_stamp(struct building *b)
{
	bool is_cpu_time = b->event->has_cpu_time && (!b->form || b->form->stamp < 0);
	uint64_t us = (is_cpu_time ? b->event->cpu_ns : b->from->wall_ns) / 1000;
	unsigned stamp = tw_message_stamp(b->event, b->form);
	size_t start;

	if (stamp == TW_STAMP_NONE)
		return;
	/* A view shows a strict stamp without its integer as the time alone. */
	if (stamp == TW_STAMP_MONOTONIC || (stamp == TW_STAMP_STRICT_MONOTONIC && !b->event->payload_words)) {
		put_number(b, b->event->time_ns);
		return;
	}
	start = begin(b);
	if (stamp == TW_STAMP_STRICT_MONOTONIC) {
		put_number(b, b->event->time_ns);
		put_number(b, b->payload.unique_integer);
	} else {
		put_number(b, us / 1000000000000);
		put_number(b, us / 1000000 % 1000000);
		put_number(b, us % 1000000);
	}
	end(b, start);
}

static void put_own(struct building *b)
{
	unsigned kind = b->event->kind;

	if (put_part(b, TW_MESSAGE_OWN, (struct tw_term){0}))
		return;
	if (kind == TW_EVENT_RETURN_TO) {
		put_return_to(b);
	} else if (kind == TW_EVENT_CALL) {
		put_mfa(b);
	} else if (kind == TW_EVENT_STACK) {
		put_stack(b);
	} else if (kind == TW_EVENT_RETURN_FROM || kind == TW_EVENT_EXCEPTION_FROM) {
		put_mfa(b);
		put_value(b);
	} else if (tw_kind_is(kind, TW_GROUP_GARBAGE_COLLECTION) && !(b->is_view && b->payload.has_terms)) {
		put_gc(b);
	} else {
		put_terms(b);
	}
}

static int finish(struct building *b, size_t start, struct tw_term *out)
{
	struct tw_term tuple = b->error ? (struct tw_term){0} : end_whole(b, start);

	if (b->error || is_taken(b))
		return b->error;
	if (tw_term_is_none(tuple))
		return TW_ENOMEM;
	*out = tuple;
	return 0;
}

static void put_tracee(struct building *b)
{
	const struct tw_message_event *from = b->from;

	if (!put_part(b, TW_MESSAGE_TRACEE, (struct tw_term){0}))
		put(b, from->is_port ? tw_term_port(b->arena, from->pid_number)
				     : tw_term_pid(b->arena, from->pid_number, from->pid_serial));
}

static int build_loss(struct building *b, struct tw_term *out)
{
	static const char *const causes[] = {"full", "too_big", "nested", "no_ring"};
	const uint64_t *words = b->event->payload;
	struct tw_term list = tw_term_nil();
	size_t start;

	if (b->event->payload_words < 1 + TW_LOST_CAUSES)
		return TW_EFORMAT;
	for (unsigned cause = TW_LOST_CAUSES; cause--;)
		if (words[1 + cause])
			list = tw_term_cons(b->arena,
					    pair(b, tw_term_atom_z(causes[cause]),
						 tw_term_unsigned(b->arena, words[1 + cause])),
					    list);
	start = begin(b);
	put(b, tw_atom(TW_ATOM_TRACE_TS));
	put_tracee(b);
	put(b, tw_term_atom_z("lost"));
	put(b, list);
	put_number(b, b->event->time_ns);
	return finish(b, start, out);
}

/* {seq_trace,Label,{send,Serial,From,To,Message}}: no tracee, and the label comes first. */
static int build_seq(struct building *b, struct tw_term *out)
{
	size_t start = begin(b), inner;

	put(b, tw_atom(TW_ATOM_SEQ_TRACE));
	if (!put_part(b, TW_MESSAGE_OWN, (struct tw_term){0})) {
		put(b, next_term(b));
		inner = begin(b);
		put(b, tw_atom(kinds[b->event->kind].tag));
		for (unsigned i = 1; i < 5; i++)
			put(b, next_term(b));
		end(b, inner);
	}
	put_stamp(b);
	return finish(b, start, out);
}

static void put_tag(struct building *b)
{
	unsigned kind = b->event->kind;

	if (is_known(kind)) {
		put(b, tw_atom(kinds[kind].tag));
	} else {
		put(b, tw_term_atom_z(kind == TW_EVENT_STACK ? "stack" : "event"));
		if (kind != TW_EVENT_STACK)
			put_number(b, kind);
	}
}

static int build_trace(struct building *b, struct tw_term *out)
{
	bool is_monitor = b->event->kind == TW_EVENT_MONITOR;
	size_t start = begin(b);

	put(b, tw_atom(is_monitor					      ? TW_ATOM_MONITOR
		       : tw_message_stamp(b->event, b->form) == TW_STAMP_NONE ? TW_ATOM_TRACE
									      : TW_ATOM_TRACE_TS));
	put_tracee(b);
	if (!is_monitor)
		put_tag(b);
	put_own(b);
	if (b->payload.has_extra && !b->error) {
		struct tw_term extra = next_term(b);

		if (b->payload.is_damaged || !put_part(b, TW_MESSAGE_EXTRA, extra))
			put(b, extra);
	}
	if (b->event->flags & TW_EVENT_FLAG_SCHEDULER_ID)
		put_number(b, b->from->scheduler_id);
	put_stamp(b);
	return finish(b, start, out);
}

TW_API int tw_message_build_as(const struct tw_message_event *from, struct tw_message_form *form,
			       struct tw_arena *arena, struct tw_term *out)
{
	/* The elements are not cleared. */
	struct building b;

	b.from = from;
	b.event = from->event;
	b.form = form;
	b.arena = arena;
	b.is_view = form && form->is_view;
	b.count = 0;
	b.error = 0;
	if (from->event->kind == TW_EVENT_LOSS)
		return build_loss(&b, out);
	tw_message_payload(from->event, arena, &b.payload);
	if (!b.is_view && (b.payload.is_damaged || !is_known(from->event->kind)))
		return TW_EFORMAT;
	if (b.is_view && b.payload.count > WORDS_SHOWN_MAX)
		b.payload.count = WORDS_SHOWN_MAX;
	return tw_kind_is(from->event->kind, TW_GROUP_SEQ) ? build_seq(&b, out) : build_trace(&b, out);
}

TW_API int tw_message_build(const struct tw_message_event *from, struct tw_arena *arena, struct tw_term *out)
{
	return tw_message_build_as(from, NULL, arena, out);
}
