/* SPDX-License-Identifier: Apache-2.0 */
/* own_times.c - sums the tracer's own time by stream. */
#include "views/folds/own_times.h"

#include <stdlib.h>

bool tw_own_times_init(struct tw_own_times *own, const struct tw_capture *capture)
{
	struct tw_capture_info info;
	tw_capture_info(capture, &info);
	*own = (struct tw_own_times){.capture = capture, .count = info.streams};
	own->streams = calloc(info.streams + (size_t)1, sizeof *own->streams);
	return own->streams != NULL;
}

void tw_own_times_free(struct tw_own_times *own)
{
	free(own->streams);
	*own = (struct tw_own_times){0};
}

void tw_own_sum_add(struct tw_own_sum *sum, const struct tw_capture *capture, const struct tw_capture_event *event)
{
	uint64_t from_ns = event->time_ns, to_ns = from_ns + tw_capture_own_ns(capture, event);
	if (from_ns < sum->to_ns)
		from_ns = sum->to_ns;
	if (to_ns <= from_ns)
		return;
	sum->before_ns += sum->to_ns - sum->from_ns;
	sum->from_ns = from_ns;
	sum->to_ns = to_ns;
}

void tw_own_times_add(struct tw_own_times *own, const struct tw_capture_event *event)
{
	if (event->stream < own->count)
		tw_own_sum_add(&own->streams[event->stream], own->capture, event);
}

uint64_t tw_own_times_until(const struct tw_own_times *own, uint32_t stream, uint64_t ns)
{
	return stream < own->count ? tw_own_sum_until(&own->streams[stream], ns) : 0;
}
