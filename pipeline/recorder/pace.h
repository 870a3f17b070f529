/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pace.h - how long a recorder sleeps between two rounds.
 *
 *	much was taken		a short sleep, without being woken
 *	little, or nothing	twice as long as before, up to a limit; ended by a wake: a ring is a quarter full, a
 *				thread has no ring, a question, a signal
 *
 * Threads  one: the recorder's.
 */
#ifndef TW_PIPELINE_PACE_H
#define TW_PIPELINE_PACE_H

#include "pipeline/recorder/writer.h"

/* A ring is taken when its oldest record has waited this long. */
#define TW_PACE_TAKE_NS UINT64_C(20000000)
/* The time until a failed write is tried again. */
#define TW_PACE_RETRY_NS UINT64_C(20000000)

struct tw_pace {
	uint64_t sleep_ns; /* of the last sleep */
};

void tw_pace_init(struct tw_pace *pace);

/* The time for which no work is due unless the recorder is woken. @has_failed: the last write failed. */
uint64_t tw_pace_longest_ns(const struct tw_writer *writer, bool has_failed, uint64_t now_ns);

/* Sleeps, at most @timeout_ns. */
void tw_pace_rest(struct tw_pace *pace, struct tw_rs *rs, bool is_busy, uint64_t longest_ns, uint64_t timeout_ns);

#endif
