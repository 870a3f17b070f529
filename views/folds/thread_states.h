/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread_states.h - how long a thread ran, was preempted, and was off, up to a moment.
 *
 *	events	     RUNNING     OFF        RUNNING  PREEMPTED RUNNING
 *	sums up to	 |  ran   |  off     |  ran    |preempted|  ran
 *
 * Time without the tracer's own, as in durations of calls.  Time that is not in these sums is unknown: before the first event, where
 * events are missing, behind the last one.
 */
#ifndef TW_VIEWS_THREAD_STATES_H
#define TW_VIEWS_THREAD_STATES_H

#include "views/folds/own_times.h"

/* By state, from TW_CAPTURE_STATE_RUNNING on. */
enum { TW_STATE_RAN, TW_STATE_PREEMPTED, TW_STATE_OFF, TW_STATE_SUMS };

struct tw_state_sums {
	uint64_t ns[TW_STATE_SUMS];
};

/* Of one thread; zeroed at first. */
struct tw_state_clock {
	struct tw_state_sums before; /* up to since_ns */
	uint64_t since_ns;
	uint64_t own_before_ns; /* the tracer's own time up to since_ns */
	uint64_t limit_ns;	/* the state is known up to here */
	uint64_t next_sequence; /* of its stream */
	uint32_t stream;
	uint8_t state; /* enum tw_capture_thread_state */
};

static inline void tw_state_sums_add(struct tw_state_sums *sums, const struct tw_state_sums *more)
{
	for (unsigned i = 0; i < TW_STATE_SUMS; i++)
		sums->ns[i] += more->ns[i];
}

/* Less what is taken away, but not below 0. */
static inline void tw_state_sums_take(struct tw_state_sums *sums, const struct tw_state_sums *less)
{
	for (unsigned i = 0; i < TW_STATE_SUMS; i++)
		sums->ns[i] = sums->ns[i] > less->ns[i] ? sums->ns[i] - less->ns[i] : 0;
}

static inline uint64_t tw_state_sums_all(const struct tw_state_sums *sums)
{
	return sums->ns[TW_STATE_RAN] + sums->ns[TW_STATE_PREEMPTED] + sums->ns[TW_STATE_OFF];
}

/* The sums at a time that is not before the last event. @own: the tracer's own time on the thread. */
static inline struct tw_state_sums tw_state_clock_until(const struct tw_state_clock *clock,
							const struct tw_own_sum *own, uint64_t ns)
{
	struct tw_state_sums sums = clock->before;

	if (ns > clock->limit_ns)
		ns = clock->limit_ns;
	if (clock->state == TW_CAPTURE_STATE_UNKNOWN || ns <= clock->since_ns)
		return sums;
	uint64_t spent_ns = ns - clock->since_ns, own_ns = tw_own_sum_until(own, ns) - clock->own_before_ns;
	sums.ns[clock->state - TW_CAPTURE_STATE_RUNNING] += spent_ns > own_ns ? spent_ns - own_ns : 0;
	return sums;
}

/* Are events of the thread missing before this one?  Then its state is not known since the last one. */
static inline bool tw_state_clock_misses(const struct tw_state_clock *clock, const struct tw_capture_event *event)
{
	return !clock->limit_ns || clock->stream != event->stream || clock->next_sequence != event->sequence;
}

/* Takes in a TW_CAPTURE_THREAD_STATE event of the thread, in the order of the capture. */
void tw_state_clock_event(struct tw_state_clock *clock, const struct tw_capture *capture,
			  const struct tw_capture_event *event, const struct tw_own_sum *own);

#endif
