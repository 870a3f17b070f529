/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pace.h - how long a recorder sleeps between two rounds.
 *
 *	much was taken		a short sleep, that no wake needs to end
 *	little, or nothing	twice as long as before, up to the longest; a wake ends it: a ring that a quarter of waits,
 *				a thread without a ring, a question, a signal
 *
 * Threads  one: the recorder's.
 */
#ifndef TW_PIPELINE_PACE_H
#define TW_PIPELINE_PACE_H

#include "pipeline/recorder/writer.h"

/* A ring that something waits in so long is taken. */
#define TW_PACE_TAKE_NS UINT64_C(20000000)
/* A disk that failed is tried again. */
#define TW_PACE_RETRY_NS UINT64_C(20000000)

struct tw_pace {
	uint64_t sleep_ns; /* the last one */
};

void tw_pace_init(struct tw_pace *pace);

/* How long nobody needs to look, if nobody wakes us.  @has_failed: the last write did. */
uint64_t tw_pace_longest_ns(const struct tw_writer *writer, bool has_failed, uint64_t now_ns);

/* Sleeps, @timeout_ns at most. */
void tw_pace_rest(struct tw_pace *pace, struct tw_rs *rs, bool is_busy, uint64_t longest_ns, uint64_t timeout_ns);

#endif
