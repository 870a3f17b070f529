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

/* The first word of TERMS and EXTRA: a count, and the bytes of the terms (of EXTRA: of the last one). */
static void take_terms(struct tw_print_payload *p, bool has_extra)
{
	uint64_t head = p->words[0];
	uint32_t left = p->count - 1;
	p->terms = p->words + 1;
	p->term_bytes = head >> 32;
	p->term_count = (uint32_t)head;
	p->count = 0;
	/* A term has at least two bytes. */
	p->is_damaged =
		p->term_bytes > (size_t)left * 8 || p->term_count > p->term_bytes / 2 || (has_extra && !p->term_count);
	if (p->is_damaged) {
		p->term_count = 0;
		return;
	}
	p->has_extra = has_extra;
	p->term_count -= has_extra;
}

static void take_extra(struct tw_print_payload *p)
{
	uint32_t count = (uint32_t)p->words[0], left = p->count - 1;
	size_t bytes = p->words[0] >> 32;
	p->words++;
	p->is_damaged = count > left || bytes > (size_t)(left - count) * 8;
	p->count = count < left ? count : left;
	if (p->is_damaged)
		return;
	p->terms = p->words + p->count;
	p->term_bytes = bytes;
	p->has_extra = true;
}

void tw_print_payload_take(const struct tw_capture_event *event, struct tw_print_payload *p)
{
	*p = (struct tw_print_payload){.words = event->payload, .count = event->payload_words};
	if (tw_print_stamp(event) == TW_PRINT_STAMP_STRICT) {
		p->is_damaged = p->count == 0;
		if (p->count) {
			p->words++;
			p->count--;
		}
	}
	if (event->flags & TW_CAPTURE_FLAG_TERMS) {
		p->has_terms = true;
		if (p->count)
			take_terms(p, (event->flags & TW_CAPTURE_FLAG_EXTRA) != 0);
		else
			p->is_damaged = true;
	} else if (event->flags & TW_CAPTURE_FLAG_EXTRA) {
		if (p->count)
			take_extra(p);
		else
			p->is_damaged = true;
	}
	if (p->count > TW_PRINT_WORDS_MAX)
		p->count = TW_PRINT_WORDS_MAX;
	if (p->has_terms || p->has_extra)
		p->arena = tw_print_arena();
}

bool tw_print_next_term(struct tw_print_payload *p, struct tw_term *out)
{
	size_t used = 0;
	if (p->is_damaged || tw_etf_decode(&arena, p->terms, p->term_bytes, NULL, &used, out)) {
		p->is_damaged = true;
		return false;
	}
	p->terms = (const char *)p->terms + used;
	p->term_bytes -= used;
	return true;
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
	struct tw_print_payload payload;
	tw_print_payload_take(event, &payload);
	if (payload.is_damaged || !payload.has_terms || payload.term_count < 2)
		return false;
	const unsigned char *end = (const unsigned char *)payload.terms + payload.term_bytes;
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
