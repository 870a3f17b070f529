/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_times.h - the tracer's own time by stream, which is by the thread that spent it.
 *
 * An event that one process makes for another, as the receive that the sender's thread records, may be delayed by the tracer: the
 * process that runs on that thread has lost this time, not the one that the event belongs to.
 */
#ifndef TW_VIEWS_OWN_TIMES_H
#define TW_VIEWS_OWN_TIMES_H

#include "tracewheel/capture.h"

#include <stdbool.h>
#include <stdint.h>

/* A sum of stretches in order of time, with the last of them. */
struct tw_own_sum {
	uint64_t before_ns; /* of all stretches but the last */
	uint64_t from_ns, to_ns;
};

struct tw_own_times {
	const struct tw_capture *capture;
	struct tw_own_sum *streams;
	uint32_t count;
};

/* Adds a TW_CAPTURE_OWN_TIME event; what overlaps an earlier one counts once. */
void tw_own_sum_add(struct tw_own_sum *sum, const struct tw_capture *capture, const struct tw_capture_event *event);

/* The sum up to a time that is not before the last stretch began. */
static inline uint64_t tw_own_sum_until(const struct tw_own_sum *sum, uint64_t ns)
{
	if (ns <= sum->from_ns)
		return sum->before_ns;
	return sum->before_ns + (ns < sum->to_ns ? ns : sum->to_ns) - sum->from_ns;
}

/* Returns false without memory. */
bool tw_own_times_init(struct tw_own_times *own, const struct tw_capture *capture);
void tw_own_times_free(struct tw_own_times *own);

/* Adds a TW_CAPTURE_OWN_TIME event to its stream, in the order of the capture. */
void tw_own_times_add(struct tw_own_times *own, const struct tw_capture_event *event);

/* The sum on a stream up to a time that is not before its last stretch began. */
uint64_t tw_own_times_until(const struct tw_own_times *own, uint32_t stream, uint64_t ns);

#endif
