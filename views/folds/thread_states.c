/* SPDX-License-Identifier: Apache-2.0 */
/* thread_states.c - sums the time of a thread by its state: thread_states.h. */
#include "views/folds/thread_states.h"

/* Until when its states are known; of a live stream all that has arrived is. */
static uint64_t limit_of(const struct tw_capture *capture, uint32_t number)
{
	const struct tw_capture_stream *stream = tw_capture_stream(capture, number);
	return stream && stream->end_ns ? stream->end_ns : UINT64_MAX;
}

void tw_state_clock_event(struct tw_state_clock *clock, const struct tw_capture *capture,
			  const struct tw_capture_event *event, const struct tw_own_sum *own)
{
	if (!tw_state_clock_misses(clock, event))
		clock->before = tw_state_clock_until(clock, own, event->time_ns);
	if (!clock->limit_ns || clock->stream != event->stream)
		clock->limit_ns = limit_of(capture, event->stream);
	clock->stream = event->stream;
	clock->next_sequence = event->sequence + 1;
	clock->since_ns = event->time_ns;
	clock->own_before_ns = tw_own_sum_until(own, event->time_ns);
	clock->state = event->id < TW_CAPTURE_STATES ? (uint8_t)event->id : TW_CAPTURE_STATE_UNKNOWN;
}
