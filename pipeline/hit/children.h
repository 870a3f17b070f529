/* SPDX-License-Identifier: Apache-2.0 */
/*
 * children.h - calls that are recorded by how they end, with the calls in them.
 *
 * Beside functions whose calls decide (longer.h) there may be some that are children only.  Outside of calls that decide, these are
 * only counted.  The outermost open call that decides is the *root* of its thread:
 *
 *	a call in it		is kept, with its time and arguments, in a ring of the thread, and so is its end
 *	a call is to be recorded	all that is kept is recorded, in its order, and the open calls; calls that begin in that one from
 *				then on are recorded as they begin.  Calls around it are not decided by that: in them, and beside
 *				that call, calls are kept as before, and recorded when the next one fulfils its condition or when a
 *				recorded call in the root ends
 *	the root ends		what is kept is dropped
 *
 * Each call is counted as it begins, and once more when it is recorded.  If the ring is full the oldest records go, and their number is
 * a loss in the stream, behind the calls around that are still open: those are known by their frames.  A length is noticed by the next
 * call in the one that has lasted so long, so that the ring holds no more than what happened in that time.
 *
 *	left by a jump	as in longer.h; without --exceptions its record, once made, has no end
 *	fork		what is kept is the parent's
 *
 * Threads: in hits, and where calls end; as native.h.
 */
#ifndef TW_PIPELINE_CHILDREN_H
#define TW_PIPELINE_CHILDREN_H

#include "pipeline/hit/longer.h"

#include <stdbool.h>
#include <stdint.h>

struct tw_return_entry;

/*
 * A call begins, which is counted, in a hit, in a read section, and its end can be seen.  Leaves both.  Parameters and result as of
 * tw_longer_enter().
 */
const char *tw_children_enter(struct tw_place *place, const uint64_t *words, uint64_t *slot);
/* The same in a hit of its own.  @resume_at: of what other sessions did. */
const char *tw_children_enter_beside(struct tw_place *place, const uint64_t *words, uint64_t *slot,
				     const char *resume_at);

/* As tw_longer_return_all() and tw_longer_end(). */
uintptr_t tw_children_return(struct tw_return_entry *entry, uint64_t *slot, uint64_t value);
void tw_children_end(struct tw_longer_frame *frame, uint64_t *slot, uint64_t value);
/* An exception has left the call.  True: the caller records that.  tw_children_close() follows. */
bool tw_children_throw(struct tw_longer_frame *frame, uint64_t *slot, const char *exception_class, const char *name);
void tw_children_close(struct tw_longer_frame *frame);

/* In a hit: drops calls that were left by jumps, and records open calls that are long by now. */
void tw_children_settle(void);

#endif
