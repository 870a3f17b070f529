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
 * A record never crosses the end of the data: the producer fills the rest with a pad record and continues at the
 * beginning.  Every record is a multiple of TW_RB_ALIGN_BYTES and starts with
 *
 *	u64 ticks; u64 head = kind:8 flags:8 bytes:16 id:32
 *
 * This room interprets the length and two kinds only (pad, loss).
 *
 * Guarantees
 *  (a) The consumer sees a committed record whole or not at all, and in order: PAIR rb.commit.
 *  (b) One release store publishes each record, and no committed record is ever withdrawn.  However the producer ends,
 *      at most the record it was writing is lost.
 *  (c) A byte is not overwritten before the consumer has passed it: PAIR rb.consume.
 *  (d) Every refused record is counted by cause.  The counts and their span of time become a loss record in the stream
 *      as soon as space allows, before any later record.
 *
 *		reserve	commit	peek	consume
 *	reserve	no	no	yes	yes	producer: one thread; a nested hit of the same thread
 *	commit		no	yes	yes	is counted and records nothing
 *	peek			no	no	consumer: one thread at a time
 *
 * Progress  Everything is wait-free except tw_rb_wait_space(), which sleeps.
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

/* The head of every record.  The kind decides what the id means: a place, a tracee, ... */
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

/* The two kinds that the ring itself writes; the rooms above define all others. */
enum { TW_RB_KIND_PAD = 0, TW_RB_KIND_LOSS = 1, TW_RB_KIND_FIRST_FREE = 2 };

/* Why a record was refused.  Files, reports and JSON use this order. */
enum tw_rb_cause { TW_RB_LOST_FULL, TW_RB_LOST_TOO_BIG, TW_RB_LOST_NESTED, TW_RB_LOST_NO_RING, TW_RB_CAUSES };

/*
 * A loss record: the number of records missing between its neighbours.  Its ticks are those of the last loss, or of the next record
 * where the last loss was counted without its time (tw_rb_refuse_again()).
 */
struct tw_rb_loss_record {
	struct tw_rb_record record;
	uint64_t first_ticks;
	uint64_t lost[TW_RB_CAUSES];
	uint64_t reserved;
};
_Static_assert(sizeof(struct tw_rb_loss_record) % TW_RB_ALIGN_BYTES == 0, "a loss record is a record");

/* The producer's policy for a full ring. */
enum tw_rb_policy { TW_RB_DROP, TW_RB_BLOCK, TW_RB_OVERWRITE };

/* States of a ring; ringset.h says which side changes them. */
enum tw_rb_state {
	TW_RB_ABSENT,  /* no memory behind it yet */
	TW_RB_READY,   /* touched, empty, waiting to be claimed */
	TW_RB_CLAIMED, /* a thread is setting it up */
	TW_RB_LIVE,    /* a thread writes it */
	TW_RB_ENDED    /* its thread ended or gave it back; the consumer drains the rest */
};

#define TW_RB_MAGIC UINT64_C(0x31424c4545485754) /* "TWHEELB1" */

/*
 * The header page of a ring, shared by producer, consumer and recovery, grouped by writer.  Recovery reads it from the
 * file of a dead process and trusts nothing in it.
 */
struct tw_rb_shared {
	/* Written once, when the ring is created. */
	uint64_t magic;
	uint64_t data_bytes;
	uint32_t ring_index;
	uint32_t reserved;

	/* Written by the claimant between CLAIMED and LIVE; constant while LIVE and ENDED. */
	TW_CACHELINE_ALIGNED uint64_t lease; /* one ownership of one ring; never reused within a set */
	uint64_t first_ticks;
	uint64_t first_pos;	     /* positions continue from one lease to the next */
	uint64_t thread_start_ticks; /* identifies the thread together with thread_id */
	int32_t thread_id;	     /* the kernel's number */
	uint32_t session_index;	     /* the session's index in that image */
	uint32_t scheduler_id;	     /* the thread's number in that image, from 1 */
	uint32_t tracee_id;	     /* the thread's tracee at that time */
	uint32_t policy;	     /* enum tw_rb_policy */
	uint32_t grown_from;	     /* 1 + the ring of the same image and lease that this one continues; 0: none */
	uint32_t is_own_tracee;	     /* tracee_id is the thread itself, which this header defines; 0: not so */
	char thread_name[16];

	/* Written by the producer. */
	TW_CACHELINE_ALIGNED _Atomic uint64_t committed_pos;
	_Atomic uint64_t oldest_pos; /* TW_RB_OVERWRITE: records before this position may be overwritten */
	/* Written by the producer on its slow path; lost[TW_RB_LOST_NESTED] also by its signal handlers. */
	TW_CACHELINE_ALIGNED _Atomic uint64_t lost[TW_RB_CAUSES]; /* totals of this lease */
	_Atomic uint64_t lost_first_ticks;			  /* of unreported losses; 0: none */
	_Atomic uint64_t lost_last_ticks;
	/* TW_RB_OVERWRITE: the value of lost[TW_RB_LOST_FULL] once oldest_pos reaches giving_up_pos; 0: none. */
	_Atomic uint64_t giving_up_pos;
	_Atomic uint64_t giving_up_lost;
	/* 1 + the ring in which the stream continues once this one has ENDED; 0: none. */
	_Atomic uint32_t grown_to;
	/* When the thread ended, before the ring did; 0: it did not, or is not known to have. */
	_Atomic uint64_t thread_end_ticks;

	/* Written by the consumer. */
	TW_CACHELINE_ALIGNED _Atomic uint64_t tail_pos;

	/* Written by both: a futex, 1 while the producer sleeps until there is space. */
	TW_CACHELINE_ALIGNED _Atomic uint32_t waiting;
	/* Written by the producer: the time of a record that waits for space, 0: none; it is there once more is committed. */
	_Atomic uint64_t waiting_ticks;
	_Atomic uint64_t waiting_pos;
};
_Static_assert(sizeof(struct tw_rb_shared) <= TW_PAGE_BYTES, "the header is one page");

/*
 * The producer's private half.  Between two commits the next record goes to data[pos & mask]; limit_pos is how far the
 * fast path may go before it has to take the slow path.
 */
struct tw_rb_producer {
	uint64_t pos;
	/* min(cached tail + data_bytes, next end of the data, of the chunk, or of the data that has memory). */
	uint64_t limit_pos;
	uint64_t mask;
	uint8_t *data;
	struct tw_rb_shared *shared; /* NULL: no ring */
	uint64_t records;	     /* in this lease, without pads and loss records */
	/*
	 * The owner's words. owner_wake is NULL if the owner polls; owner_unwakeable is set where a seccomp filter
	 * forbids the wake.
	 */
	_Atomic uint32_t *owner_wake, *owner_unwakeable;
	uint64_t cached_tail_pos;
	/* The first bytes of the data that have memory; less than all of it in the first round only. */
	uint64_t present_bytes;
	uint16_t policy;
	bool has_untimed_refusals; /* since a refusal whose time is noted, tw_rb_refuse_again() has refused more */
	bool is_refusing; /* the last record found no space, and was dropped; the next may be without looking for any */
	uint32_t ring_index;
	uint32_t live_word; /* ringset.h: the ring's state word during this lease */
	/* How many tw_rb_refuse_again() may still refuse. */
	uint32_t refusals_left;
	uint64_t growth_bytes;	     /* the size of the larger ring to take when this one is full; 0: none */
	uint64_t growth_after_ticks; /* do not try to grow before this time; the last attempt failed */
	uint64_t wait_after_ticks; /* TW_RB_BLOCK: do not wait before this time; the owner stands still, or has gone */
	uint64_t told[TW_RB_CAUSES];	    /* refusals that loss records in the stream report */
	uint64_t chunk_first[TW_RB_CHUNKS]; /* TW_RB_OVERWRITE: `records` when the chunk was entered */
	uint64_t chunk_end_pos;
};

/* Not errors: outcomes that the producer counts. */
enum tw_rb_outcome {
	TW_RB_OK = 0,
	TW_RB_FULL,    /* counted */
	TW_RB_TOO_BIG, /* counted */
	/*
	 * Not counted: the caller leaves the read section, then gets memory, takes a larger ring, or (TW_RB_BLOCK)
	 * waits.
	 */
	TW_RB_WAIT
};

/*
 * tw_rb_shared_init - write a header page over zeroed memory that is present.
 *
 * @shared	borrows; data_bytes of data follow the header page.
 * @data_bytes	a power of two, TW_RB_BYTES_MIN .. TW_RB_BYTES_MAX.
 */
void tw_rb_shared_init(struct tw_rb_shared *shared, uint32_t ring_index, uint64_t data_bytes);

static inline uint8_t *tw_rb_data(const struct tw_rb_shared *shared)
{
	return (uint8_t *)(uintptr_t)shared + TW_PAGE_BYTES;
}

/*
 * tw_rb_producer_init - start writing an empty ring that this thread has claimed.
 *
 * @shared	shares until tw_rb_producer_fini(); the counts are zeroed.
 * Returns false, and does nothing, if committed_pos != tail_pos: the ring was overwritten by a stray write.
 * Threads: the claimant.
 */
bool tw_rb_producer_init(struct tw_rb_producer *producer, struct tw_rb_shared *shared, enum tw_rb_policy policy);

/*
 * tw_rb_producer_move - continue in another ring that is empty and claimed, with the same lease, losses and positions.
 *
 * Threads: the producer, with signals blocked.  The old ring is unchanged: the consumer drains it.
 */
void tw_rb_producer_move(struct tw_rb_producer *producer, struct tw_rb_shared *to);

/* Sets how much of the data has memory; tw_rb_producer_init() assumes all of it. */
void tw_rb_producer_set_present(struct tw_rb_producer *producer, uint64_t present_bytes);

/* True if a record of this size, with the pad and loss record that may precede it, would reach data without memory. */
bool tw_rb_lacks_memory(const struct tw_rb_producer *producer, uint32_t bytes);

/* Forgets the ring and leaves its records to the consumer. */
void tw_rb_producer_fini(struct tw_rb_producer *producer);

/* The slow path of tw_rb_reserve(): wraps, reloads the tail, reports losses, refuses. */
enum tw_rb_outcome tw_rb_reserve_slow(struct tw_rb_producer *producer, uint32_t bytes, uint64_t ticks, void **out);

/*
 * tw_rb_reserve - claim space for one record.
 *
 * @bytes	a multiple of TW_RB_ALIGN_BYTES; more than TW_RB_RECORD_BYTES_MAX is refused and counted.
 * @ticks	the time of the event, also recorded for a refusal.
 * @out		lends until tw_rb_commit(); a reservation that is never committed costs nothing.
 *
 * Returns an outcome; *out is set for TW_RB_OK only.
 * Threads: producer only.  Progress: wait-free.  Signal handlers: only if no hit is under way.
 * Order: PAIR rb.consume.  Cost: O(1); one shared load when the cached space is used up.
 */
static inline enum tw_rb_outcome tw_rb_reserve(struct tw_rb_producer *producer, uint32_t bytes, uint64_t ticks,
					       void **out)
{
	if (tw_unlikely(bytes > TW_RB_RECORD_BYTES_MAX || producer->pos + bytes > producer->limit_pos))
		return tw_rb_reserve_slow(producer, bytes, ticks, out);
	*out = producer->data + (producer->pos & producer->mask);
	return TW_RB_OK;
}

/* As tw_rb_commit(), for a record that is not an event and so not counted.  Wait-free. */
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

/* Publishes the record of the last tw_rb_reserve() on this ring, which had the same size.  Wait-free. */
static inline void tw_rb_commit(struct tw_rb_producer *producer, uint32_t bytes)
{
	/*
	 * A signal handler may jump out between these stores.  The record is then written and counted, so the next
	 * commit may publish it.
	 */
	producer->records++;
	tw_rb_commit_uncounted(producer, bytes);
}

/*
 * tw_rb_refuse - count a record that was not written for a reason other than those of tw_rb_reserve().
 *
 * A signal handler inside a hit of the same thread may count TW_RB_LOST_NESTED; only the producer counts the other
 * causes.
 */
void tw_rb_refuse(struct tw_rb_producer *producer, enum tw_rb_cause cause, uint64_t ticks);
/* The same for `count` records. */
void tw_rb_refuse_several(struct tw_rb_producer *producer, enum tw_rb_cause cause, uint64_t count, uint64_t ticks);

/* After a record for which there was no space, so many more are refused before the clock is read again. */
#define TW_RB_REFUSALS_UNTIMED 255

/*
 * tw_rb_refuse_again - refuse a record of an event, as the one before it was refused, and count it, without its time.
 *
 * False: nothing was done, because the consumer has moved its tail since, or TW_RB_REFUSALS_UNTIMED were refused so.  The loss that is told is
 * exact in its counts; it ends with the next record then, not before.  Of a process that is killed, so many of the last losses may be
 * later than the loss says.
 *
 * Threads, signal handlers: as tw_rb_reserve().  Wait-free.  Cost: one load of a word that only the consumer writes.  The same in
 * assembly: pipeline/hit/bare_x86_64.S.
 */
static inline bool tw_rb_refuse_again(struct tw_rb_producer *producer)
{
	if (!producer->refusals_left)
		return false;
	/* RELAXED rb.tail: nothing is written; find_space() loads it again before anything is. */
	if (tw_load_relaxed(&producer->shared->tail_pos) != producer->cached_tail_pos)
		return false;
	producer->refusals_left--;
	producer->has_untimed_refusals = true;
	/* Only this thread, and not in a handler, counts this cause. */
	tw_add_own(&producer->shared->lost[TW_RB_LOST_FULL], 1);
	return true;
}

/* tw_rb_refuse_again() has refused as many as it may: the same with the time of the event. */
static inline bool tw_rb_refuse_timed(struct tw_rb_producer *producer, uint64_t ticks)
{
	/* RELAXED rb.tail: as above. */
	if (!producer->is_refusing || tw_load_relaxed(&producer->shared->tail_pos) != producer->cached_tail_pos)
		return false;
	producer->refusals_left = TW_RB_REFUSALS_UNTIMED;
	producer->has_untimed_refusals = false;
	/* RELAXED rb.lost: as in note_loss_ticks(); the first of these losses has its time. */
	if (ticks > tw_load_relaxed(&producer->shared->lost_last_ticks)) {
		/* RELAXED rb.lost: as above. */
		tw_store_relaxed(&producer->shared->lost_last_ticks, ticks);
	}
	tw_add_own(&producer->shared->lost[TW_RB_LOST_FULL], 1);
	return true;
}

/*
 * tw_rb_wait_space - sleep until the consumer has freed `bytes`, or until the timeout.
 *
 * Outside read sections only.  Returns whether there is space.  Order: PAIR rb.waiting.
 */
bool tw_rb_wait_space(struct tw_rb_producer *producer, uint32_t bytes, uint64_t timeout_ns);
/*
 * The same in pieces, for a thread that sleeps elsewhere: while tw_rb_begin_wait() returns false, on shared->waiting as long as
 * that is TW_RB_IS_WAITING.  tw_rb_end_wait() ends the wait with or without space.
 */
#define TW_RB_IS_WAITING 1u
bool tw_rb_begin_wait(struct tw_rb_producer *producer, uint32_t bytes);
void tw_rb_end_wait(struct tw_rb_producer *producer);
/*
 * An event of this time waits for space: the consumer must not say that it has all before.  It is over with the next commit,
 * or by 0, where nothing will be written.  tw_rb_keep_waiting(): commits until tw_rb_tell_waiting() do not end it.
 */
void tw_rb_tell_waiting(struct tw_rb_producer *producer, uint64_t ticks);
void tw_rb_keep_waiting(struct tw_rb_producer *producer);

/* ---- the consumer ---- */

/* The time of a record that waits for space; UINT64_MAX: none does. */
uint64_t tw_rb_waiting_ticks(const struct tw_rb_shared *shared);

/* The end of the committed records. */
static inline uint64_t tw_rb_committed(const struct tw_rb_shared *shared)
{
	/* PAIR rb.commit: acquire; release in tw_rb_commit_uncounted().  The bytes before the position are whole. */
	return tw_load_acquire(&shared->committed_pos);
}

/*
 * tw_rb_peek - the next stretch of committed records, without moving the tail.
 *
 * @from_pos	tail_pos, or *end_pos of an earlier peek: several stretches may be in use at once.
 * @max_bytes	at least TW_RB_RECORD_BYTES_MAX.
 * @out		lends consecutive records until tw_rb_consume() passes them.
 * @end_pos	gives the end of the stretch, including a pad record that follows it.
 *
 * Returns the bytes of whole records at *out; 0: none (*end_pos may have passed a pad).  TW_EFORMAT if the memory holds
 * something that no producer writes; *end_pos is then committed_pos.
 * Threads: the consumer.  Every length is checked before use.
 */
int64_t tw_rb_peek(const struct tw_rb_shared *shared, uint64_t from_pos, size_t max_bytes, const uint8_t **out,
		   uint64_t *end_pos);

/*
 * tw_rb_take - as tw_rb_peek(), for a ring that the program may overwrite at any time: copies first and checks the
 * copy.
 *
 * @data_bytes	the ring's size, from the owner's own table.
 * @out		a buffer of max_bytes.
 */
int64_t tw_rb_take(const struct tw_rb_shared *shared, uint64_t data_bytes, uint64_t from_pos, size_t max_bytes,
		   uint8_t *out, uint64_t *end_pos);

/* Frees everything before pos for the producer, and wakes it if it waits.  Order: PAIR rb.consume. */
void tw_rb_consume(struct tw_rb_shared *shared, uint64_t pos);

/* A copied stretch of an overwriting ring. */
struct tw_rb_stretch {
	uint64_t first_pos, end_pos;
	uint64_t overwritten; /* the records of this lease before first_pos */
	uint64_t kinds;	      /* a bit for each kind below 64 of the records in it */
};

/*
 * tw_rb_snapshot - copy the newest records of an overwriting ring while it is being written.
 *
 * @data_bytes	the ring's size, from the owner's own table.
 * @out		a buffer of data_bytes.
 * @copied	gives the stretch that was copied.
 *
 * Returns the bytes copied: consecutive records without pads, up to what was committed when it was called, or none if all of
 * that was overwritten; or TW_EFORMAT.
 */
int64_t tw_rb_snapshot(const struct tw_rb_shared *shared, uint64_t data_bytes, uint8_t *out,
		       struct tw_rb_stretch *copied);

/*
 * tw_rb_overwritten - the number of records that this lease of an overwriting ring had before *oldest_pos, which it gives.
 *
 * Exact at any time, also while the producer gives up more.
 */
uint64_t tw_rb_overwritten(const struct tw_rb_shared *shared, uint64_t *oldest_pos);

/*
 * tw_rb_unreported_loss - the refusals of this lease that no loss record reports.
 *
 * @reported	the sums of the loss records that the consumer has read in this lease.  Only the stream counts, so a
 *		crash between a count and its record counts nothing twice.
 * @out		gives a loss record for the end of the stream.
 *
 * Returns whether there are any.  Exact once the producer is gone; a lower bound before.
 */
bool tw_rb_unreported_loss(const struct tw_rb_shared *shared, const uint64_t reported[TW_RB_CAUSES],
			   struct tw_rb_loss_record *out);

/*
 * True if a count is so large (TW_RB_LOST_MAX) that no producer can have written it; tw_rb_unreported_loss() ignores such a
 * count.
 */
bool tw_rb_is_loss_forged(const struct tw_rb_shared *shared, const uint64_t told[TW_RB_CAUSES]);

#endif
