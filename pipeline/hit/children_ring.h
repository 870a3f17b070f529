/* SPDX-License-Identifier: Apache-2.0 */
/*
 * children_ring.h - what a thread keeps of the calls in a call that may be recorded, for children.c.
 *
 * A ring of words with positions that never wrap, written and read by the thread alone, in hits.  Never on the stack.
 */
#ifndef TW_PIPELINE_CHILDREN_RING_H
#define TW_PIPELINE_CHILDREN_RING_H

#include "pipeline/hit/longer_frame.h"

/* A record: its time, a head, of the end of a call when that began, and the words that the head counts. */
#define HEAD_COUNT_SHIFT 32
#define HEAD_FLAGS_SHIFT 44
#define HEAD_OF_ALL	 (UINT64_C(1) << 52)
#define HEAD_KIND_SHIFT	 56
_Static_assert(TW_ARG_WORDS_MAX < 1 << (HEAD_FLAGS_SHIFT - HEAD_COUNT_SHIFT), "counts fit");
_Static_assert(TW_ARG_WORDS_MAX + 3 <= TW_CHILDREN_BYTES_MIN / 8, "each record fits an empty ring");
_Static_assert(sizeof((struct tw_thread *)0)->terms >= TW_ARG_WORDS_MAX * sizeof(uint64_t), "is copied there");

static INLINE uint64_t *at(const struct tw_children *c, uint64_t pos)
{
	return &c->words[pos & (c->capacity - 1)];
}

static INLINE bool is_call(uint64_t head)
{
	return head >> HEAD_KIND_SHIFT == TW_EVENT_CALL;
}

static INLINE unsigned count_in(uint64_t head)
{
	return head >> HEAD_COUNT_SHIFT & ((1 << (HEAD_FLAGS_SHIFT - HEAD_COUNT_SHIFT)) - 1);
}

static INLINE uint64_t words_in(uint64_t head)
{
	return (is_call(head) ? 2 : 3) + count_in(head);
}

/* The time of the oldest record. */
static INLINE uint64_t first_ticks(const struct tw_children *c)
{
	return c->tail == c->head ? UINT64_MAX : *at(c, c->tail);
}

static INLINE void empty(struct tw_children *c)
{
	c->head = c->tail = c->left_out = 0;
}

static __attribute__((noinline)) void drop_oldest(struct tw_children *c)
{
	uint64_t head = *at(c, c->tail + 1);

	c->left_out += is_call(head);
	c->tail += words_in(head);
}

/* Keeps a record of a call, or of its end. */
static INLINE void keep_words(struct tw_children *c, const struct tw_longer_frame *frame, enum tw_event_kind kind,
			      uint64_t ticks, const uint64_t *words, unsigned count, uint8_t flags)
{
	uint64_t head = frame->place->place_id | (uint64_t)count << HEAD_COUNT_SHIFT |
			(uint64_t)flags << HEAD_FLAGS_SHIFT | (uint64_t)kind << HEAD_KIND_SHIFT |
			(frame->more & TW_LONGER_OF_ALL ? HEAD_OF_ALL : 0);
	uint64_t pos = c->head, end = pos + (kind == TW_EVENT_CALL ? 2 : 3) + count;

	if (tw_unlikely(!c->words)) {
		c->left_out += kind == TW_EVENT_CALL;
		return;
	}
	while (tw_unlikely(end - c->tail > c->capacity))
		drop_oldest(c);
	*at(c, pos++) = ticks;
	*at(c, pos++) = head;
	if (kind != TW_EVENT_CALL)
		*at(c, pos++) = frame->ticks;
	for (unsigned i = 0; i < count; i++)
		*at(c, pos++) = words[i];
	/* A handler that leaves the hit by a jump finds a whole record, or none. */
	tw_compiler_barrier();
	c->head = pos;
}

/* The record that thread->one describes. */
static INLINE void keep(struct tw_hit_tls *t, const struct tw_longer_frame *frame, enum tw_event_kind kind,
			uint64_t ticks)
{
	const struct tw_one_hit *one = &t->thread->one;

	keep_words(&t->thread->children, frame, kind, ticks, one->words, one->count, one->flags);
}

#endif
