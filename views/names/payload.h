/* SPDX-License-Identifier: Apache-2.0 */
/*
 * payload.h - decodes the payload of an event: its words, and its terms one by one.
 *
 * Nothing in it is trusted: a count or a length beyond the payload, and bytes that are no term, are damage, which
 * every view shows in its own way. One thread at a time: terms are borrowed until the next event is decoded.
 */
#ifndef TW_VIEWS_PAYLOAD_H
#define TW_VIEWS_PAYLOAD_H

#include "views/output/output.h"

#include "tracewheel/message.h"

/* The kinds of time stamp of a session, in the low bits of an event's flags. */
enum { TW_PRINT_STAMP_NONE, TW_PRINT_STAMP_MONOTONIC, TW_PRINT_STAMP_STRICT, TW_PRINT_STAMP_WALL };

static inline unsigned tw_print_stamp(const struct tw_capture_event *event)
{
	return event->flags & TW_CAPTURE_STAMP_MASK;
}

/* The most words of a payload that are shown: real ones have six, or those of six strings. */
#define TW_PRINT_WORDS_MAX 256

/* The arena of payloads' terms, emptied. */
struct tw_arena *tw_print_arena(void);

/* The payload, with a bounded number of words. */
void tw_print_payload_take(const struct tw_capture_event *event, struct tw_message_payload *payload);

/*
 * tw_print_next_term - the next of term_count terms, and then the extra one: borrowed until the next event.
 *
 * Returns false if the bytes are no term: from there on the payload is damaged.
 */
static inline bool tw_print_next_term(struct tw_message_payload *payload, struct tw_term *out)
{
	return tw_message_next_term(payload, out) == 0;
}

/* The numbers of the pid or port (TW_SERIAL_OF_PORT) that a message was sent to. False: it was a name, or cannot be decoded. */
bool tw_print_receiver(const struct tw_capture_event *event, uint32_t *number, uint32_t *serial);

/* ---- kinds of events: kinds.c ---- */

#define TW_PRINT_TERMS_MAX 5

struct tw_print_kind {
	const char *word;
	const char *atom;		       /* the tag as Erlang writes it: quoted if it is a reserved word */
	const char *terms[TW_PRINT_TERMS_MAX]; /* names of the terms, as in JSON; NULL after the last */
};

/* NULL for a kind that this version does not know. */
const struct tw_print_kind *tw_print_kind(unsigned kind);
/* The least number of terms of the kind's events. */
uint32_t tw_print_term_count(const struct tw_print_kind *kind);

static inline bool tw_print_is_gc(unsigned kind)
{
	return tw_kind_is(kind, TW_GROUP_GARBAGE_COLLECTION);
}

/* The names of TW_GC_SIZES(). */
extern const char *const tw_print_gc_keys[TW_GC_SIZES_COUNT];

#endif
