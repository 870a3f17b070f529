/* SPDX-License-Identifier: Apache-2.0 */
/* own_times.c - sums the tracer's own time by stream. */
#include "tools/common/own_times.h"

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

void tw_own_times_add(struct tw_own_times *own, const struct tw_capture_event *event)
{
	uint64_t from_ns = event->time_ns, to_ns = from_ns + tw_capture_own_ns(own->capture, event);
	if (event->stream >= own->count)
		return;
	struct tw_own_sum *time = &own->streams[event->stream];
	if (from_ns < time->to_ns)
		from_ns = time->to_ns;
	if (to_ns <= from_ns)
		return;
	time->before_ns += time->to_ns - time->from_ns;
	time->from_ns = from_ns;
	time->to_ns = to_ns;
}

uint64_t tw_own_times_until(const struct tw_own_times *own, uint32_t stream, uint64_t ns)
{
	const struct tw_own_sum *time = stream < own->count ? &own->streams[stream] : NULL;
	if (!time)
		return 0;
	if (ns <= time->from_ns)
		return time->before_ns;
	return time->before_ns + (ns < time->to_ns ? ns : time->to_ns) - time->from_ns;
}
