/* SPDX-License-Identifier: Apache-2.0 */
/* gaps.c - reads the losses of a capture in advance. */
#include "tools/common/gaps.h"
#include "base/grow.h"

#include "tracewheel/error.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
	const struct tw_gap *x = a, *y = b;
	return x->first_ns < y->first_ns ? -1 : x->first_ns > y->first_ns;
}

static bool add(struct tw_gaps *gaps, const struct tw_capture *capture, const struct tw_capture_event *event)
{
	const struct tw_capture_stream *stream = tw_capture_stream(capture, event->stream);
	if (!tw_grow(gaps->list, gaps->count, gaps->capacity))
		return false;
	gaps->list[gaps->count++] =
		(struct tw_gap){.first_ns = tw_capture_ns(capture, tw_capture_event_loss(event)->first_ticks),
				.last_ns = event->time_ns,
				.thread = stream ? stream->thread : TW_GAP_NO_THREAD,
				.image = event->image};
	return true;
}

int tw_gaps_find(struct tw_gaps *gaps, struct tw_capture *capture, const struct tw_capture_filter *selected)
{
	struct tw_capture_filter filter = *selected;
	struct tw_capture_events *events;
	const struct tw_capture_event *batch;
	bool has_memory = true;
	int64_t count;
	*gaps = (struct tw_gaps){0};
	/* A loss that began within the selection may stand behind it. */
	filter.to_ns = 0;
	filter.kinds = UINT64_C(1) << TW_CAPTURE_LOSS;
	filter.wants_own_time = false;
	int error = tw_capture_events_create(capture, &filter, &events);
	if (error)
		return error;
	while (has_memory && (count = tw_capture_events_next(events, &batch)) > 0) {
		for (int64_t i = 0; has_memory && i < count; i++)
			has_memory = batch[i].kind != TW_CAPTURE_LOSS || add(gaps, capture, &batch[i]);
	}
	tw_capture_events_destroy(events);
	if (gaps->count)
		qsort(gaps->list, gaps->count, sizeof *gaps->list, compare);
	return has_memory ? (int)count : TW_ENOMEM;
}

void tw_gaps_free(struct tw_gaps *gaps)
{
	free(gaps->list);
	*gaps = (struct tw_gaps){0};
}

const struct tw_gap *tw_gaps_begun(struct tw_gaps *gaps, uint64_t now_ns)
{
	return gaps->next < gaps->count && gaps->list[gaps->next].first_ns <= now_ns ? &gaps->list[gaps->next++] : NULL;
}
