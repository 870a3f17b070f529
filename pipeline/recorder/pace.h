/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pace.h - how long a recorder sleeps between two rounds.
 *
 *	a ring held much	a quarter of the time since a ring held much before; at least the time in which a fast
 *				thread fills a quarter of that ring: this shortest sleep is not ended by a wake
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
	uint64_t sleep_ns;     /* of the last sleep */
	uint64_t busy_ns;      /* the shortest next sleep, if a ring held much in this round; 0: none did */
	uint64_t last_busy_ns; /* CLOCK_MONOTONIC of the last round in which a ring held much */
};

void tw_pace_init(struct tw_pace *pace);

/* The time for which no work is due unless the recorder is woken. @has_failed: the last write failed. */
uint64_t tw_pace_longest_ns(const struct tw_writer *writer, bool has_failed, uint64_t now_ns);

/* In this round a ring of @ring_bytes (its data area) held enough to be taken. */
void tw_pace_note_busy(struct tw_pace *pace, uint64_t ring_bytes);

struct tw_pace_sleep {
	uint64_t ns;
	bool is_deaf; /* a wake does not end it, so that no producer makes a system call for one */
};

/* The end of a round at @now_ns. Returns the next sleep, at most @longest_ns. */
struct tw_pace_sleep tw_pace_next(struct tw_pace *pace, uint64_t longest_ns, uint64_t now_ns);

/* The end of a round. Sleeps, at most @timeout_ns. */
void tw_pace_rest(struct tw_pace *pace, struct tw_rs *rs, uint64_t longest_ns, uint64_t timeout_ns);

#endif
