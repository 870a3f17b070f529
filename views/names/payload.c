/* SPDX-License-Identifier: Apache-2.0 */
/* payload.c - see payload.h. */
#include "views/names/payload.h"
#include "views/names/names.h"

/* The terms of one event; overwritten by the next. */
static struct tw_arena arena;
static bool has_arena;

#define ARENA_BYTES_MAX ((size_t)64 << 20)

struct tw_arena *tw_print_arena(void)
{
	if (has_arena)
		tw_arena_reset(&arena);
	else
		tw_arena_init(&arena, ARENA_BYTES_MAX);
	has_arena = true;
	return &arena;
}

void tw_print_payload_take(const struct tw_capture_event *event, struct tw_message_payload *p)
{
	bool has_terms = event->flags & (TW_CAPTURE_FLAG_TERMS | TW_CAPTURE_FLAG_EXTRA);
	tw_message_payload(event, has_terms ? tw_print_arena() : NULL, p);
	if (p->count > TW_PRINT_WORDS_MAX)
		p->count = TW_PRINT_WORDS_MAX;
}

static uint32_t big32(const unsigned char *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/*
 * A pid of the program itself always has the same bytes before its numbers, so the message, of any size, need not be
 * decoded.
 */
bool tw_print_receiver(const struct tw_capture_event *event, uint32_t *number, uint32_t *serial)
{
	static const char own[] = "\203Xw\015nonode@nohost";
	enum { OWN = sizeof own - 1 };
	struct tw_message_payload payload;
	tw_print_payload_take(event, &payload);
	if (payload.is_damaged || !payload.has_terms || payload.term_count < 2)
		return false;
	const unsigned char *end = payload.terms + payload.term_bytes;
	if (!payload.has_extra && payload.term_bytes > OWN + 12 && memcmp(end - OWN - 12, own, OWN) == 0) {
		*number = big32(end - 12);
		*serial = big32(end - 8);
		return true;
	}
	struct tw_identifier parts;
	struct tw_term term;
	if (!tw_print_next_term(&payload, &term) || !tw_print_next_term(&payload, &term) ||
	    (tw_term_type(term) != TW_TYPE_PID && tw_term_type(term) != TW_TYPE_PORT) ||
	    tw_term_get_identifier(term, &parts))
		return false;
	*number = parts.words[0];
	*serial = tw_term_type(term) == TW_TYPE_PORT ? TW_SERIAL_OF_PORT : parts.words[1];
	return true;
}
