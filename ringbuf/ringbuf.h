/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ringbuf.h - records of any length from one producer thread to one consumer.
 *
 * A ring is a header page and data_bytes (a power of two) of shared memory.  Positions run freely
 * in 64 bits and never wrap; position & (data_bytes - 1) is the place.
 *
 *	tail_pos                    committed_pos
 *	   |     committed records     | reserved |      free       |
 *	   +---------------------------+----------+-----------------+--> tail_pos + data_bytes
 *	        the consumer's               the producer's
 *
 * A record never crosses the end of the data: the producer fills the rest with a pad record and
 * starts at the beginning.  Every record is a multiple of TW_RB_ALIGN_BYTES and starts with
 *
 *	u64 ticks; u64 head = kind:8 flags:8 bytes:16 id:32
 *
 * of which this room reads the length and two kinds only (pad, loss).
 *
 * Guarantees
 *  (a) What was committed is seen whole or not at all, in order: PAIR rb.commit.
 *  (b) One release store publishes each record; nothing committed is ever unpublished, so whatever
 *      kills the producer loses at most the record it was writing.
 *  (c) A byte is not written again before the consumer has passed it: PAIR rb.consume.
 *  (d) Every record that was refused is counted by cause; the count and its span of time become a
 *      loss record in the stream as soon as there is room, before any later record.
 *
 *		reserve	commit	peek	consume
 *	reserve	no	no	yes	yes	producer: one thread; a nested hit of the same thread
 *	commit		no	yes	yes	calls tw_rb_count_nested() only
 *	peek			no	no	consumer: one thread at a time
 *
 * Progress  Everything is wait-free but tw_rb_wait_room(), which sleeps.
 * Units     *_bytes are bytes; *_pos are positions; *_ticks are those of base/clock.h.
 */
#ifndef TW_RINGBUF_RINGBUF_H
#define TW_RINGBUF_RINGBUF_H

#include "base/assert.h"
#include "base/atomic.h"
#include "base/cacheline.h"
#include "base/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The head of every record.  The id is the place, the tracee or whatever the kind says. */
struct tw_rb_record {
	uint64_t ticks;
	uint64_t head;
};

#define TW_RB_HEAD(kind, flags, bytes, id) \
	((uint64_t)(kind) | (uint64_t)(flags) << 8 | (uint64_t)(bytes) << 16 | (uint64_t)(id) << 32)
#define TW_RB_HEAD_KIND(head)  ((unsigned)((head)&0xff))
#define TW_RB_HEAD_FLAGS(head) ((unsigned)((head) >> 8 & 0xff))
#define TW_RB_HEAD_BYTES(head) ((uint32_t)((head) >> 16 & 0xffff))
#define TW_RB_HEAD_ID(head)    ((uint32_t)((head) >> 32))

/* The two kinds that the ring itself writes; all others belong to the rooms above. */
enum { TW_RB_KIND_PAD = 0, TW_RB_KIND_LOSS = 1, TW_RB_KIND_FIRST_FREE = 2 };

/* Why a record was refused.  In this order in files, reports and JSON. */
enum tw_rb_cause { TW_RB_LOST_FULL, TW_RB_LOST_TOO_BIG, TW_RB_LOST_NESTED, TW_RB_LOST_NO_RING, TW_RB_CAUSES };

/*
 * A loss record: so many records are missing here, after the record before and before the next.
 * Its ticks are those of the last loss, and not later than the next record's.
 */
struct tw_rb_loss_record {
	struct tw_rb_record record;
	uint64_t first_ticks;
	uint64_t lost[TW_RB_CAUSES];
	uint64_t reserved;
};
_Static_assert(sizeof(struct tw_rb_loss_record) % TW_RB_ALIGN_BYTES == 0, "a loss record is a record");

/* What the producer does when the ring is full. */
enum tw_rb_policy { TW_RB_DROP, TW_RB_BLOCK, TW_RB_OVERWRITE };

/* Of a ring's life; ringset.h tells who moves it. */
enum tw_rb_state {
	TW_RB_ABSENT,  /* no memory behind it yet */
	TW_RB_READY,   /* touched, empty, waiting in the pool */
	TW_RB_CLAIMED, /* a thread is setting it up */
	TW_RB_LIVE,    /* a thread writes it */
	TW_RB_ENDED    /* its thread ended or gave it back; the consumer drains the rest */
};

#define TW_RB_MAGIC UINT64_C(0x31424c4545485754) /* "TWHEELB1" */

/*
 * The header page of a ring, shared by producer, consumer and recovery.  Grouped by who writes.
 * Recovery reads it from the file of a dead process and trusts nothing in it.
 */
struct tw_rb_shared {
	/* Written once, when the memory is made. */
	uint64_t magic;
	uint64_t data_bytes;
	uint32_t ring_index;
	uint32_t reserved;

	/* Written by the claimant between CLAIMED and LIVE; constant while LIVE and ENDED. */
	TW_CACHELINE_ALIGNED uint64_t lease; /* one ownership of one ring: never the same twice in a set */
	uint64_t first_ticks;
	uint64_t first_pos;	     /* positions run on from one lease to the next */
	uint64_t thread_start_ticks; /* with its number it names the thread */
	int32_t thread_id;	     /* the kernel's */
	uint32_t session_index;	     /* of the session in that image */
	uint32_t scheduler_id;	     /* of the thread in that image, from 1 */
	uint32_t tracee_id;	     /* that the thread was at that time */
	uint32_t policy;	     /* enum tw_rb_policy */
	uint32_t grown_from;	     /* 1 + the ring of the same image and lease whose stream goes on here; 0: none */
	char thread_name[16];

	/* Written by the producer. */
	TW_CACHELINE_ALIGNED _Atomic uint64_t committed_pos;
	_Atomic uint64_t oldest_pos; /* TW_RB_OVERWRITE: what lies before may be overwritten */
	/* Also the producer's, on its slow path; lost[TW_RB_LOST_NESTED] by its signal handlers. */
	TW_CACHELINE_ALIGNED _Atomic uint64_t lost[TW_RB_CAUSES]; /* in this lease, in all */
	_Atomic uint64_t lost_first_ticks;			  /* of those that no loss record tells yet; 0: none */
	_Atomic uint64_t lost_last_ticks;
	/* TW_RB_OVERWRITE: what lost[TW_RB_LOST_FULL] is once oldest_pos has come to giving_up_pos; 0: nothing. */
	_Atomic uint64_t giving_up_pos;
	_Atomic uint64_t giving_up_lost;
	/* 1 + the ring in which the stream goes on, once this one has ENDED; 0: it does not. */
	_Atomic uint32_t grown_to;

	/* Written by the consumer. */
	TW_CACHELINE_ALIGNED _Atomic uint64_t tail_pos;

	/* Written by both: the futex of a producer that waits for room, 1 while it sleeps. */
	TW_CACHELINE_ALIGNED _Atomic uint32_t waiting;
};
_Static_assert(sizeof(struct tw_rb_shared) <= TW_PAGE_BYTES, "the header is one page");

/*
 * The producer's private half.  Between two commits the next record goes to data[pos & mask];
 * limit_pos is as far as it may go without another look at anything.
 */
struct tw_rb_producer {
	uint64_t pos;
	/* Min(cached tail + data_bytes, next end of the data, of the chunk, or of what has memory). */
	uint64_t limit_pos;
	uint64_t mask;
	uint8_t *data;
	struct tw_rb_shared *shared; /* NULL: no ring */
	/* Of the owner; NULL: it looks often.  The second is set where a filter forbids us to wake by the first. */
	_Atomic uint32_t *owner_wake, *owner_unwakeable;
	uint64_t cached_tail_pos;
	/* Of the data, from its beginning, that have memory; less than all in the first round only. */
	uint64_t present_bytes;
	uint32_t policy;
	uint32_t ring_index;
	uint32_t live_word; /* ringset.h: what the ring's entry in the table is during this lease */
	uint32_t reserved;
	uint64_t growth_bytes;	     /* the size of a larger ring that it may have when this one is full; 0: none */
	uint64_t growth_after_ticks; /* not before: there was none the last time */
	uint64_t records;	     /* in this lease; pads and loss records not counted */
	uint64_t told[TW_RB_CAUSES]; /* refusals that loss records in the stream tell */
	uint64_t chunk_first[TW_RB_CHUNKS]; /* TW_RB_OVERWRITE: `records` when the chunk was entered */
	uint64_t chunk_end_pos;
};

/* Not errors: outcomes that the producer counts and lives with. */
enum tw_rb_outcome {
	TW_RB_OK = 0,
	TW_RB_FULL,    /* counted */
	TW_RB_TOO_BIG, /* counted */
	/* Not counted: the ring needs memory, or gives way to a larger one, or TW_RB_BLOCK: wait outside the read section. */
	TW_RB_WAIT
};

/*
 * tw_rb_shared_init - make a header page over zeroed, touched memory.
 *
 * @shared	borrows; data_bytes of data follow the header page directly.
 * @data_bytes	a power of two, TW_RB_BYTES_MIN .. TW_RB_BYTES_MAX.
 */
void tw_rb_shared_init(struct tw_rb_shared *shared, uint32_t ring_index, uint64_t data_bytes);

static inline uint8_t *tw_rb_data(const struct tw_rb_shared *shared)
{
	return (uint8_t *)(uintptr_t)shared + TW_PAGE_BYTES;
}

/*
 * tw_rb_producer_init - begin to write an empty ring that this thread has claimed.
 *
 * @shared	shares until tw_rb_producer_fini(); the counts are zeroed.
 * Returns false, and does nothing, where committed_pos != tail_pos: somebody wrote over the ring.
 * Threads: the claimant.
 */
bool tw_rb_producer_init(struct tw_rb_producer *producer, struct tw_rb_shared *shared, enum tw_rb_policy policy);

/*
 * tw_rb_producer_move - go on in another ring, empty and claimed: the same lease, losses and positions.
 *
 * Threads: the producer, with signals blocked.  The ring that it leaves stays as it is: the consumer drains it.
 */
void tw_rb_producer_move(struct tw_rb_producer *producer, struct tw_rb_shared *to);

/* So much of the data has memory.  Of a ring that the producer has begun: all, unless it is told. */
void tw_rb_producer_set_present(struct tw_rb_producer *producer, uint64_t present_bytes);

/* Would a record of this size, and what may have to stand before it, lie where there is no memory yet? */
bool tw_rb_lacks_memory(const struct tw_rb_producer *producer, uint32_t bytes);

/* Forgets the ring, which stays as it is: the consumer drains it. */
void tw_rb_producer_fini(struct tw_rb_producer *producer);

/* The slow half of tw_rb_reserve(): wraps, looks at the tail, tells losses, refuses. */
enum tw_rb_outcome tw_rb_reserve_slow(struct tw_rb_producer *producer, uint32_t bytes, uint64_t ticks, void **out);

/*
 * tw_rb_reserve - claim room for one record.
 *
 * @bytes	a multiple of TW_RB_ALIGN_BYTES; above TW_RB_RECORD_BYTES_MAX is refused and counted.
 * @ticks	when: what a refusal is stamped with.
 * @out		lends: until tw_rb_commit(); a reservation that is never committed costs nothing.
 *
 * Returns an outcome; *out is set for TW_RB_OK only.
 * Threads: producer only.  Progress: wait-free.  Signal handlers: only if no hit is under way.
 * Order: PAIR rb.consume.  Cost: O(1); one shared load when the cached room is used up.
 */
static inline enum tw_rb_outcome tw_rb_reserve(struct tw_rb_producer *producer, uint32_t bytes, uint64_t ticks,
					       void **out)
{
	if (tw_unlikely(bytes > TW_RB_RECORD_BYTES_MAX || producer->pos + bytes > producer->limit_pos))
		return tw_rb_reserve_slow(producer, bytes, ticks, out);
	*out = producer->data + (producer->pos & producer->mask);
	return TW_RB_OK;
}

/* The same, of a record that is none of those that can be lost: nobody would miss it.  Wait-free. */
static inline void tw_rb_commit_uncounted(struct tw_rb_producer *producer, uint32_t bytes)
{
	tw_compiler_barrier();
	producer->pos += bytes;
	/*
	 * PAIR rb.commit: release; acquire in tw_rb_committed().
	 * Publishes the record's bytes.  Without it the consumer can see the new position over old bytes.
	 */
	tw_store_release(&producer->shared->committed_pos, producer->pos);
}

/* Publishes the record of the last tw_rb_reserve() of this ring, of the same size.  Wait-free. */
static inline void tw_rb_commit(struct tw_rb_producer *producer, uint32_t bytes)
{
	/*
	 * A handler that jumps out between the stores leaves a record that the next commit publishes only if
	 * the record is written and counted.
	 */
	producer->records++;
	tw_rb_commit_uncounted(producer, bytes);
}

/*
 * tw_rb_refuse - count a record that was not written, for another reason than tw_rb_reserve() found.
 *
 * TW_RB_LOST_NESTED may be counted by a signal handler inside a hit of the same thread; the others
 * by the producer only.
 */
void tw_rb_refuse(struct tw_rb_producer *producer, enum tw_rb_cause cause, uint64_t ticks);
/* The same for as many records. */
void tw_rb_refuse_several(struct tw_rb_producer *producer, enum tw_rb_cause cause, uint64_t count, uint64_t ticks);

/*
 * tw_rb_wait_room - sleep until the consumer has made room for `bytes`, or the time is over.
 *
 * Outside read sections only.  Returns whether there is room.  Order: PAIR rb.waiting.
 */
bool tw_rb_wait_room(struct tw_rb_producer *producer, uint32_t bytes, uint64_t timeout_ns);

/* ---- the consumer ---- */

/* How far the stream is whole. */
static inline uint64_t tw_rb_committed(const struct tw_rb_shared *shared)
{
	/* PAIR rb.commit: acquire; the bytes before the position are whole. */
	return tw_load_acquire(&shared->committed_pos);
}

/*
 * tw_rb_peek - the next stretch of committed records, without moving the tail.
 *
 * @from_pos	tail_pos, or *end_pos of an earlier peek: several stretches may be under way.
 * @max_bytes	at least TW_RB_RECORD_BYTES_MAX.
 * @out		lends: records one after another, until tw_rb_consume() passes them.
 * @end_pos	gives: behind the stretch, and behind the pad record where one follows it.
 *
 * Returns the bytes of whole records at *out; 0: none (*end_pos may have passed a pad).
 * TW_EFORMAT when the memory holds what no producer writes; *end_pos is then committed_pos.
 * Threads: the consumer.  Every length is checked before it is used.
 */
int64_t tw_rb_peek(const struct tw_rb_shared *shared, uint64_t from_pos, size_t max_bytes, const uint8_t **out,
		   uint64_t *end_pos);

/*
 * tw_rb_take - the same for a ring that somebody may be writing over: a copy, which is what is checked.
 *
 * @data_bytes	of the ring, as its owner knows it.
 * @out		room for max_bytes.
 */
int64_t tw_rb_take(const struct tw_rb_shared *shared, uint64_t data_bytes, uint64_t from_pos, size_t max_bytes,
		   uint8_t *out, uint64_t *end_pos);

/* Gives everything before pos back to the producer, and wakes it if it waits.  Order: PAIR rb.consume. */
void tw_rb_consume(struct tw_rb_shared *shared, uint64_t pos);

/*
 * tw_rb_snapshot - copy the newest records out of an overwriting ring while it may be written.
 *
 * @data_bytes	of the ring, as its owner knows it.
 * @out		room for data_bytes.
 * @first_pos, @end_pos	give: which stretch was copied.
 *
 * Returns the bytes copied: records one after another, pads left out; or TW_EFORMAT.
 */
int64_t tw_rb_snapshot(const struct tw_rb_shared *shared, uint64_t data_bytes, uint8_t *out, uint64_t *first_pos,
		       uint64_t *end_pos);

/*
 * tw_rb_untold_loss - what was refused in this lease and stands in no loss record.
 *
 * @told	the sums of the loss records that the consumer has seen in this lease: the stream is the
 *		truth, so that a crash between a count and its record counts nothing twice.
 * @out		gives: a loss record, as if it stood at the end of the stream.
 *
 * Returns whether there is anything.  Exact once the producer is gone; a lower bound before.
 */
bool tw_rb_untold_loss(const struct tw_rb_shared *shared, const uint64_t told[TW_RB_CAUSES],
		       struct tw_rb_loss_record *out);

/* Is a count so large (TW_RB_LOST_MAX) that no producer can have written it?  It is left out above. */
bool tw_rb_is_loss_forged(const struct tw_rb_shared *shared, const uint64_t told[TW_RB_CAUSES]);

#endif
