/* SPDX-License-Identifier: Apache-2.0 */
/* wait.h - waiting for a ring, and for room in it.  Threads: inside a hit, which is left meanwhile (read section). */
#ifndef TW_PIPELINE_WAIT_H
#define TW_PIPELINE_WAIT_H

#include "pipeline/hit.h"

enum tw_ring_wait { TW_RING_MAY_BE_THERE, TW_RING_IN_VAIN, TW_RING_UNWANTED };

/*
 * tw_wait_for_ring - wait for the first ring of this thread in a session.
 *
 * @still	of the hit: who wants it is asked again afterwards.
 * @spent_ns	in and out: 0 at first; another thread may take the ring that was there, and then it goes on.
 * @todo	in and out: sessions that still want the hit.
 */
enum tw_ring_wait tw_wait_for_ring(struct tw_hit_tls *t, const struct tw_still *still, unsigned session, uint64_t *spent_ns,
				   uint64_t *todo);

/* The same for room in the ring it has.  False: none, which is counted; or it is unwanted, which is not. */
bool tw_wait_for_room(struct tw_hit_tls *t, const struct tw_still *still, unsigned session, uint32_t bytes, uint64_t ticks,
		      uint64_t *todo);

#endif
