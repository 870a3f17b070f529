/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event.h - the records in a ring.
 *
 * Every record starts with struct tw_rb_record: {ticks; kind:8 flags:8 bytes:16 id:32}. The bytes are those of the
 * whole record, rounded up to 16; TW_EVENT_FLAG_HALF says that the last 8 of them are padding. The id is a place
 * (calls), a tracee (switch) or an atom.
 *
 * One ring holds the events of one thread for one session, in order. They belong to the tracee of the last switch
 * record before them; before the first switch record, to tracee_id in the ring's header.
 */
#ifndef TW_PIPELINE_EVENT_H
#define TW_PIPELINE_EVENT_H

#include "ringbuf/ringbuf.h"
#include "tracewheel/kinds.h"

/* The kinds, all less than TW_EVENT_CPU_TIME; payloads: tracewheel/kinds.h, docs/format.md. */
enum tw_event_kind {
	TW_EVENT_PAD = TW_RB_KIND_PAD,
#define KIND(NAME, number, word, group, first, second) TW_EVENT_##NAME = number,
#define SEQ_KIND(NAME, number, word)		       TW_EVENT_SEQ_##NAME = number,
	TW_RECORD_KINDS(KIND) TW_TRACE_KINDS(KIND) TW_SEQ_KINDS(SEQ_KIND) TW_SYSTEM_KINDS(KIND)
#undef KIND
#undef SEQ_KIND
		TW_EVENT_TERM_FIRST = TW_CAPTURE_TERM_FIRST
};
_Static_assert((int)TW_EVENT_LOSS == (int)TW_RB_KIND_LOSS, "the ring writes losses itself");

/*
 * A bit added to kinds from CALL on: the stamp is the CPU time of the OS process, and the first word of the payload
 * is that time in ns.
 */
enum { TW_EVENT_CPU_TIME = 128 };

/*
 * The id of a TW_EVENT_OWN_TIME record, whose payload is one word, the ticks spent. An event that was delayed follows it, with
 * the same ticks.
 */
enum tw_own_time {
	TW_OWN_TIME_WAIT = 1, /* a wait for space in a ring, or for a ring: `block` was asked for */
	TW_OWN_TIME_SETUP = 2 /* setting up the thread, or a ring for it */
};

/* The size of a TW_EVENT_OWN_TIME record. */
#define TW_OWN_TIME_BYTES ((uint32_t)sizeof(struct tw_rb_record) + 16)

/* The flags of a record. */
enum {
	/* The session's kind of time stamp for this event (enum tw_stamp): bits 0 and 1. */
	TW_EVENT_FLAG_STAMP_MASK = 3,
	/* The last 8 bytes of the record are padding. */
	TW_EVENT_FLAG_HALF = 4,
	/* The session wants the scheduler's id in the message. */
	TW_EVENT_FLAG_SCHEDULER_ID = 8,
	/* The session wants the arity and not the arguments. */
	TW_EVENT_FLAG_ARITY = 16,
	/*
	 * A match specification gave the event an extra element ({message,X}). The payload (after the unique integer
	 * of a strict stamp) is then: one word with the number of argument words in its low half and the bytes of X
	 * in its high half; the argument words; X in the external term format, padded with zeros to a whole word.
	 */
	TW_EVENT_FLAG_EXTRA = 32,
	/*
	 * The payload (after the unique integer of a strict stamp) is terms: one word with the number of terms n in
	 * its low half and the bytes of the rest in its high half; n terms in the external format, each with its
	 * version byte, one behind the other; zeros up to a whole word. With EXTRA the last of the n is X. A call has
	 * one term (and X): the list of arguments. A term that did not fit is cut: tw_term_copy().
	 */
	TW_EVENT_FLAG_TERMS = 64,
	/* Words and strings, laid out by the argument plan of the place. */
	TW_EVENT_FLAG_ARGS = 128
};

/*
 * How an event's time is shown; OTP: timestamp > strict_monotonic_timestamp > monotonic_timestamp.
 * TW_STAMP_STRICT_MONOTONIC: the payload's first word is the unique integer, before all others.
 */
enum tw_stamp { TW_STAMP_NONE = 0, TW_STAMP_MONOTONIC = 1, TW_STAMP_STRICT_MONOTONIC = 2, TW_STAMP_TIMESTAMP = 3 };

/* The payload words of a record, without the head and the padding. */
static inline uint32_t tw_event_payload_words(uint64_t head)
{
	return (TW_RB_HEAD_BYTES(head) - (uint32_t)sizeof(struct tw_rb_record)) / 8 -
	       ((TW_RB_HEAD_FLAGS(head) & TW_EVENT_FLAG_HALF) != 0);
}

/* Is this an event with its CPU time in the payload? */
static inline bool tw_event_has_cpu_time(uint64_t head)
{
	return TW_RB_HEAD_KIND(head) >= (TW_EVENT_CPU_TIME | TW_EVENT_CALL) && tw_event_payload_words(head);
}

/* Is the id of this record a place? */
static inline bool tw_event_names_place(uint64_t head)
{
	unsigned kind = TW_RB_HEAD_KIND(head) & ~(unsigned)TW_EVENT_CPU_TIME;

	return kind == TW_EVENT_CALL || kind == TW_EVENT_RETURN_FROM || kind == TW_EVENT_EXCEPTION_FROM ||
	       kind == TW_EVENT_STACK;
}

static inline const uint64_t *tw_event_payload(const struct tw_rb_record *record)
{
	return (const uint64_t *)(record + 1);
}

#endif
