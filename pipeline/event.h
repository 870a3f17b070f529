/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event.h - what the records in a ring mean.
 *
 * Every record starts with struct tw_rb_record: {ticks; kind:8 flags:8 bytes:16 id:32}.  The bytes
 * are the whole record's, rounded up to 16; TW_EVENT_FLAG_HALF says that the last 8 of them are
 * filling.  The id is a place (calls), a tracee (switch) or an atom.
 *
 * One ring holds the events of one thread for one session, in order.  Which tracee they belong to
 * is said by the last switch record before them; before the first, by tracee_id in the ring's header.
 */
#ifndef TW_PIPELINE_EVENT_H
#define TW_PIPELINE_EVENT_H

#include "ringbuf/ringbuf.h"

/* Numbers are part of the capture format: never reuse one. */
enum tw_event_kind {
	TW_EVENT_PAD = TW_RB_KIND_PAD,
	TW_EVENT_LOSS = TW_RB_KIND_LOSS,
	/* This thread now runs tracee `id`; payload u64 run_seq.  Id 0: none. */
	TW_EVENT_SWITCH = 2,
	/* A call of place `id`; payload: the argument words, if any are recorded. */
	TW_EVENT_CALL = 3,
	/* A return from place `id`; payload: the returned word, if it is recorded. */
	TW_EVENT_RETURN_FROM = 4,
	TW_EVENT_EXCEPTION_FROM = 5,
	TW_EVENT_RETURN_TO = 6,
	/* Kinds from 16 on carry terms as payload; a reader shows the ones it does not know as such. */
	TW_EVENT_TERM_FIRST = 16
};

/* The flags of a record. */
enum {
	/* The session's kind of time stamp for this event (enum tw_stamp): bits 0 and 1. */
	TW_EVENT_FLAG_STAMP_MASK = 3,
	/* The last 8 bytes of the record are filling. */
	TW_EVENT_FLAG_HALF = 4,
	/* The session wants the arity and not the arguments. */
	TW_EVENT_FLAG_ARITY = 16,
	/*
	 * A match specification gave the event an extra element ({message,X}).  The payload (behind the unique
	 * integer of a strict stamp) is then: one word with the number of argument words in its low half and
	 * the bytes of X in its high half; the argument words; X in the external term format, filled with
	 * zeros up to a word.
	 */
	TW_EVENT_FLAG_EXTRA = 32
};

/*
 * How an event's time is shown; OTP: timestamp > strict_monotonic_timestamp > monotonic_timestamp.
 * TW_STAMP_STRICT_MONOTONIC: the payload's first word is the unique integer, before all others.
 */
enum tw_stamp { TW_STAMP_NONE = 0, TW_STAMP_MONOTONIC = 1, TW_STAMP_STRICT_MONOTONIC = 2, TW_STAMP_TIMESTAMP = 3 };

/* The payload words of a record: what follows the head, without the filling. */
static inline uint32_t tw_event_payload_words(uint64_t head)
{
	return (TW_RB_HEAD_BYTES(head) - (uint32_t)sizeof(struct tw_rb_record)) / 8 -
	       ((TW_RB_HEAD_FLAGS(head) & TW_EVENT_FLAG_HALF) != 0);
}

static inline const uint64_t *tw_event_payload(const struct tw_rb_record *record)
{
	return (const uint64_t *)(record + 1);
}

#endif
