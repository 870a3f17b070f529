/* SPDX-License-Identifier: Apache-2.0 */
/*
 * space.h - space for the next record of a ring whose fast path has none.
 *
 * Knows rings only, neither sessions nor hits.  Threads: the producer's.
 */
#ifndef TW_PIPELINE_SPACE_H
#define TW_PIPELINE_SPACE_H

#include "pipeline/format/event.h"
#include "ringbuf/ringset.h"

/*
 * A wait is in vain: the set is closed, its owner makes no progress, the thread may not call the system, or this is a child
 * that continues a wait of its parent, whose rings nothing drains.
 */
bool tw_space_is_given_up(struct tw_rs *rs);
/* Populates the next part of a ring in its first round.  False: no memory, which is counted as a loss. */
bool tw_space_populate(struct tw_rb_producer *producer, struct tw_rs *rs, uint64_t ticks);
/* Takes a larger ring, unless an attempt failed a moment ago. */
bool tw_space_grow(struct tw_rb_producer *producer, struct tw_rs *rs, uint64_t ticks);
/* Sleeps until there are @bytes.  False: given up, or the set's time limit has passed.  Outside of read sections. */
bool tw_space_wait(struct tw_rb_producer *producer, struct tw_rs *rs, uint32_t bytes);
/*
 * One step of such a wait, for a thread that sleeps elsewhere: after TW_SPACE_SLEEPS as tw_rb_begin_wait() says, for
 * wait->sleep_ns at most.  @wait: zeros before the first step.
 */
struct tw_space_wait {
	uint64_t sleep_ns, spent_ns, until_ns;
};
enum tw_space_step { TW_SPACE_THERE, TW_SPACE_GIVEN_UP, TW_SPACE_SLEEPS };
enum tw_space_step tw_space_wait_step(struct tw_rb_producer *producer, struct tw_rs *rs, uint32_t bytes,
				      struct tw_space_wait *wait);
/*
 * tw_space_tell - write a record of the tracer's own time on this thread.
 *
 * @start_ticks	when it began: not before the previous record.  A delayed event follows, with the same ticks.
 *
 * @ticks	how long it was.
 *
 * Nothing is written, or counted, if there is no ring or no space.
 */
void tw_space_tell(struct tw_rb_producer *producer, enum tw_own_time why, uint64_t start_ticks, uint64_t ticks);

#endif
