/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ck.h - ConcurrencyKit's ring for handing pointers from one thread to one other.
 *
 * With ck_table.h the only place that knows ConcurrencyKit.  Event rings are our own: ck_ring reads the other side's
 * index at every step (41 M/s against 538 M/s), which does not matter for whole blocks.
 *
 * Threads   put: one producer.  take: one consumer.
 * Progress  wait-free.
 * Order     writes before the put are seen after the take.  ConcurrencyKit orders them in assembly that thread
 *           sanitizers do not see, so annotations inform them.
 */
#ifndef TW_BASE_CK_H
#define TW_BASE_CK_H

#include <ck_ring.h>

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined __SANITIZE_THREAD__ || __has_feature(thread_sanitizer)
void AnnotateHappensBefore(const char *file, int line, const volatile void *address);
void AnnotateHappensAfter(const char *file, int line, const volatile void *address);
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);
#define TW_CK_TELL_BEFORE(address) AnnotateHappensBefore(__FILE__, __LINE__, address)
#define TW_CK_TELL_AFTER(address)  AnnotateHappensAfter(__FILE__, __LINE__, address)
/* The ring's own words are ordered by that assembly too. */
#define TW_CK_TELL_BEGIN() (AnnotateIgnoreReadsBegin(__FILE__, __LINE__), AnnotateIgnoreWritesBegin(__FILE__, __LINE__))
#define TW_CK_TELL_END()   (AnnotateIgnoreWritesEnd(__FILE__, __LINE__), AnnotateIgnoreReadsEnd(__FILE__, __LINE__))
#else
#define TW_CK_TELL_BEFORE(address) ((void)(address))
#define TW_CK_TELL_AFTER(address)  ((void)(address))
#define TW_CK_TELL_BEGIN()	   ((void)0)
#define TW_CK_TELL_END()	   ((void)0)
#endif

/* A ring of `slots` pointers, a power of two of at least 4; it holds one less. */
struct tw_ck_ring {
	ck_ring_t ring;
	ck_ring_buffer_t *slots;
};

/* @slots: borrows `count` slots until the last use of the ring. */
static inline void tw_ck_ring_init(struct tw_ck_ring *ring, ck_ring_buffer_t *slots, unsigned count)
{
	memset(slots, 0, count * sizeof *slots);
	ring->slots = slots;
	ck_ring_init(&ring->ring, count);
}

/* False when the ring is full. */
static inline bool tw_ck_ring_put(struct tw_ck_ring *ring, void *pointer)
{
	bool is_put;

	TW_CK_TELL_BEFORE(pointer);
	TW_CK_TELL_BEGIN();
	is_put = ck_ring_enqueue_spsc(&ring->ring, ring->slots, pointer);
	TW_CK_TELL_END();
	return is_put;
}

/* NULL when the ring is empty. */
static inline void *tw_ck_ring_take(struct tw_ck_ring *ring)
{
	void *pointer = NULL;
	bool is_taken;

	TW_CK_TELL_BEGIN();
	is_taken = ck_ring_dequeue_spsc(&ring->ring, ring->slots, &pointer);
	TW_CK_TELL_END();
	if (!is_taken)
		return NULL;
	TW_CK_TELL_AFTER(pointer);
	return pointer;
}

#endif
