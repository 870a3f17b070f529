/* SPDX-License-Identifier: Apache-2.0 */
/* gaps.c - reads the losses of a capture in advance. */
#include "views/folds/gaps.h"
#include "base/grow.h"
#include "base/search.h"
#include "views/folds/pass.h"

#include "tracewheel/error.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
	const struct tw_gap *x = a, *y = b;
	return TW_ORDER(x->first_ns, y->first_ns);
}

static int see(void *self, const struct tw_capture_event *event)
{
	struct tw_gaps *gaps = self;
	if (event->kind != TW_CAPTURE_LOSS)
		return 0;
	const struct tw_capture_stream *stream = tw_capture_stream(gaps->capture, event->stream);
	if (!tw_grow(gaps->list, gaps->count, gaps->capacity))
		return TW_ENOMEM;
	gaps->list[gaps->count++] =
		(struct tw_gap){.first_ns = tw_capture_ns(gaps->capture, tw_capture_event_loss(event)->first_ticks),
				.last_ns = event->time_ns,
				.thread = stream ? stream->thread : TW_GAP_NO_THREAD,
				.image = event->image};
	return 0;
}

int tw_gaps_find(struct tw_gaps *gaps, struct tw_capture *capture, const struct tw_capture_filter *selected)
{
	struct tw_fold fold = {.self = gaps, .filter = *selected, .see = see};
	*gaps = (struct tw_gaps){.capture = capture};
	/* A loss that began within the selection may stand behind it. */
	fold.filter.to_ns = 0;
	fold.filter.kinds = UINT64_C(1) << TW_CAPTURE_LOSS;
	fold.filter.wants_own_time = false;
	int error = tw_pass_one(capture, &fold, NULL);
	if (gaps->count)
		qsort(gaps->list, gaps->count, sizeof *gaps->list, compare);
	return error;
}

void tw_gaps_free(struct tw_gaps *gaps)
{
	free(gaps->list);
	*gaps = (struct tw_gaps){0};
}

const struct tw_gap *tw_gaps_begun(struct tw_gaps *gaps, uint64_t until_ns)
{
	return gaps->next < gaps->count && gaps->list[gaps->next].first_ns <= until_ns ? &gaps->list[gaps->next++]
										       : NULL;
}
