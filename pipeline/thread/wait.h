/* SPDX-License-Identifier: Apache-2.0 */
/* wait.h - waiting for a ring, and for space in it. Threads: inside a hit, whose read section is left meanwhile. */
#ifndef TW_PIPELINE_WAIT_H
#define TW_PIPELINE_WAIT_H

#include "pipeline/hit/hit.h"
#include "pipeline/thread/thread.h"

enum tw_ring_wait { TW_RING_MAY_BE_THERE, TW_RING_IN_VAIN, TW_RING_UNWANTED };

/* The owner's own time after which a thread that waits for a ring takes a small one in spite of the cap. */
#define TW_RING_WAIT_NS UINT64_C(200000000)

/*
 * tw_wait_for_ring - where `block` was asked for, wait until a ring is given back.
 *
 * @recheck	of the hit: checked again after the wait.
 * @seen	tw_rs_recycled() before the claim that failed.
 * @spent_ns	in and out: 0 at first; the owner's own time that has passed.
 * @todo	in and out: sessions that still want the hit.
 */
enum tw_ring_wait tw_wait_for_ring(struct tw_hit_tls *t, const struct tw_recheck *recheck, unsigned session,
				   uint32_t seen, uint64_t *spent_ns, uint64_t *todo);

/*
 * Space in the thread's ring, or in a larger one that replaces it: for the record, and for one that reports the wait
 * (tw_space_tell()). NONE: there is no space, which is counted; or the record is unwanted, which is not.
 */
enum tw_space { TW_SPACE_NONE, TW_SPACE_GROWN, TW_SPACE_WAITED };
enum tw_space tw_wait_for_space(struct tw_hit_tls *t, const struct tw_recheck *recheck, unsigned session,
				uint32_t bytes, uint64_t ticks, uint64_t *todo);

#endif
