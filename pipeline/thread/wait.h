/* SPDX-License-Identifier: Apache-2.0 */
/* wait.h - waiting for a ring, and for room in it.  Threads: inside a hit, which is left meanwhile (read section). */
#ifndef TW_PIPELINE_WAIT_H
#define TW_PIPELINE_WAIT_H

#include "pipeline/hit/hit.h"

enum tw_ring_wait { TW_RING_MAY_BE_THERE, TW_RING_IN_VAIN, TW_RING_UNWANTED };

/* The owner's own time after which a thread that waits for a ring takes a small one in spite of the cap. */
#define TW_RING_WAIT_NS UINT64_C(200000000)

/*
 * tw_wait_for_ring - where `block` was asked for, wait until a ring is given back.
 *
 * @still	of the hit: who wants it is asked again afterwards.
 * @seen	tw_rs_recycled() before the claim that failed.
 * @spent_ns	in and out: 0 at first; how much of the owner's own time has gone by.
 * @todo	in and out: sessions that still want the hit.
 */
enum tw_ring_wait tw_wait_for_ring(struct tw_hit_tls *t, const struct tw_recheck *recheck, unsigned session,
				   uint32_t seen, uint64_t *spent_ns, uint64_t *todo);

/*
 * Room in the ring it has, or in a larger one that takes its place: for the record, and for one that tells the wait
 * (tw_wait_tell()).  NONE: there is none, which is counted; or it is unwanted, which is not.
 */
enum tw_room { TW_ROOM_NONE, TW_ROOM_GROWN, TW_ROOM_WAITED };
enum tw_room tw_wait_for_room(struct tw_hit_tls *t, const struct tw_recheck *recheck, unsigned session, uint32_t bytes,
			      uint64_t ticks, uint64_t *todo);

/*
 * tw_wait_tell - a record of time that was the tracer's own, of this thread in one session.
 *
 * @start_ticks	when it began: not before the record before.  An event that was held up carries the same ticks and follows.
 *
 * It ends now.  Inside the read section.  Left out where the ring has no room, and where there is none; nothing is counted.
 */
void tw_wait_tell(struct tw_thread_ring *ring, enum tw_own_time why, uint64_t start_ticks);

#endif
