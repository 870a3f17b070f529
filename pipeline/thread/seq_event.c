/* SPDX-License-Identifier: Apache-2.0 */
/* seq_event.c - the terms of an event of sequential tracing. */
#include "pipeline/thread/seq_event.h"
#include "pipeline/hit/module.h"
#include "pipeline/hit/record.h"
#include "pipeline/thread/seq_label.h"
#include "term/etf.h"
#include "tracewheel/seq.h"

/* The space for each of From and To: a name and a node at most. */
#define PROCESS_BYTES 560

unsigned tw_seq_event_stamp(const struct tw_seq_words *token)
{
	if (token->flags & TW_SEQ_TIMESTAMP)
		return TW_STAMP_TIMESTAMP;
	if (token->flags & TW_SEQ_STRICT_MONOTONIC_TIMESTAMP)
		return TW_STAMP_STRICT_MONOTONIC;
	return token->flags & TW_SEQ_MONOTONIC_TIMESTAMP ? TW_STAMP_MONOTONIC : TW_STAMP_NONE;
}

/* ---- a record ---- */

static uint8_t *put_integer(uint8_t *at, int64_t value)
{
	uint64_t magnitude = value < 0 ? -(uint64_t)value : (uint64_t)value;
	uint32_t big_endian = __builtin_bswap32((uint32_t)value);

	if (value >= 0 && value <= 255) {
		at[0] = TW_ETF_SMALL_INTEGER;
		at[1] = (uint8_t)value;
		return at + 2;
	}
	if (value == (int32_t)value) {
		at[0] = TW_ETF_INTEGER;
		memcpy(at + 1, &big_endian, 4);
		return at + 5;
	}
	at[0] = TW_ETF_SMALL_BIG;
	at[2] = value < 0;
	for (at[1] = 0; magnitude; magnitude >>= 8)
		at[3 + at[1]++] = (uint8_t)magnitude;
	return at + 3 + at[1];
}

/* A process of here: most are. */
static inline uint8_t *put_local(uint8_t *at, uint32_t number, uint32_t serial)
{
	*at = TW_ETF_VERSION;
	return tw_etf_put_local_pid(at + 1, number, serial, 0);
}

static struct tw_term remote_of(struct tw_arena *arena, const struct tw_seq_words *token)
{
	struct tw_identifier parts = {.node = tw_word(token->node),
				      .creation = token->creation,
				      .word_count = 2,
				      .words = {token->from, token->from_serial}};

	return tw_term_identifier(arena, TW_TYPE_PID, &parts);
}

static uint8_t *put_process(uint8_t *at, struct tw_term term)
{
	const struct tw_block_identifier *pid = (const struct tw_block_identifier *)tw_block(term);

	if (tw_is_kind(term, TW_BLOCK_PID) && tw_term_is_none(pid->node))
		return put_local(at, pid->words[0], pid->words[1]);
	return at + tw_record_encode(term, at, PROCESS_BYTES);
}

static __attribute__((noinline)) uint8_t *put_remote(uint8_t *at, const struct tw_seq_words *token)
{
	char buffer[128];
	struct tw_arena arena;

	tw_arena_init_fixed(&arena, buffer, sizeof buffer);
	return at + tw_record_encode(remote_of(&arena, token), at, PROCESS_BYTES);
}

static uint8_t *put_label(uint8_t *at, uint64_t label)
{
	size_t bytes;

	if ((label & 15) == TW_TAG_SMALL && tw_small_value(tw_word(label)) == (int32_t)tw_small_value(tw_word(label))) {
		*at = TW_ETF_VERSION;
		return put_integer(at + 1, tw_small_value(tw_word(label)));
	}
	bytes = tw_seq_label_encode(label, at, TW_SEQ_LABEL_BYTES_MAX);
	/* None: forgotten since the token was looked at. */
	return at + (bytes ? bytes : tw_record_encode(tw_atom(TW_ATOM_CUT), at, PROCESS_BYTES));
}

size_t tw_seq_event_encode(const struct tw_runtime_event *event, uint8_t *at, size_t capacity)
{
	const struct tw_seq_words *token = event->seq;
	uint8_t *start = at, *end = at + capacity;

	at = put_label(at, token->label);
	*at++ = TW_ETF_VERSION;
	*at++ = TW_ETF_SMALL_TUPLE;
	*at++ = 2;
	at = put_integer(at, token->previous);
	at = put_integer(at, token->current);
	at = tw_likely(!token->node) ? put_local(at, token->from, token->from_serial) : put_remote(at, token);
	at = tw_term_is_none(event->terms[1]) ? put_local(at, event->to, 0) : put_process(at, event->terms[1]);
	at += tw_record_encode(event->terms[0], at, (size_t)(end - at));
	return (size_t)(at - start);
}

/* ---- a tracer module ---- */

static enum tw_atom_index tag_of(unsigned kind)
{
	if (kind == TW_EVENT_SEQ_SEND)
		return TW_ATOM_SEND;
	return kind == TW_EVENT_SEQ_RECEIVE ? TW_ATOM_RECEIVE : TW_ATOM_PRINT;
}

void tw_seq_event_tell(struct tw_hit_tls *t, unsigned session, const struct tw_runtime_event *event, unsigned flags)
{
	const struct tw_seq_words *token = event->seq;
	struct tw_term label, parts[5];
	struct tw_arena arena;

	tw_arena_init_fixed(&arena, t->thread->terms, sizeof t->thread->terms);
	label = tw_seq_label_term(&arena, token->label);
	parts[0] = tw_small(token->previous);
	parts[1] = tw_small(token->current);
	parts[1] = tw_term_tuple(&arena, parts, 2);
	parts[0] = tw_atom(tag_of(event->kind));
	parts[2] = token->node ? remote_of(&arena, token) : tw_term_pid(&arena, token->from, token->from_serial);
	parts[3] = tw_term_is_none(event->terms[1]) ? tw_term_pid(&arena, event->to, 0) : event->terms[1];
	parts[4] = event->terms[0];
	if (tw_term_is_none(label))
		label = tw_atom(TW_ATOM_CUT);
	tw_module_tell_seq(session, label, tw_term_tuple(&arena, parts, 5), flags, false);
}
