/* SPDX-License-Identifier: Apache-2.0 */
/* events.c - capture.h: turns ordered records into events, as far as the filter selects them. */
#include "base/atomic.h"
#include "base/cacheline.h"
#include "base/error.h"
#include "base/export.h"
#include "pipeline/format/event.h"
#include "pipeline/reader/ahead.h"
#include "pipeline/reader/merge.h"
#include "pipeline/reader/stream_read.h"

#include "tracewheel/spans.h"

#include <stdlib.h>

#define BATCH_EVENTS 512
#define BATCH_SPANS  512
/* A batch of spans ends with the span in which it has so many records. */
#define BATCH_RECORDS 8192
/* A batch ends early if its records hold this much decoded memory; so all that are made ahead hold 16 MB. */
#define HELD_BYTES_MAX (UINT64_C(2) << 20)
#define LAST_KIND_BIT  63
#define SWITCH_BIT     (UINT64_C(1) << TW_CAPTURE_SWITCH)
#define LOSS_BIT       (UINT64_C(1) << TW_CAPTURE_LOSS)
#define OWN_TIME_BIT   (UINT64_C(1) << TW_CAPTURE_OWN_TIME)
#define STATE_BIT      (UINT64_C(1) << TW_CAPTURE_THREAD_STATE)

/* Events, each in a cache line of its own, or spans; and what is lent with them. */
struct batch {
	union {
		struct tw_capture_event events[BATCH_EVENTS];
		struct tw_capture_span spans[BATCH_SPANS];
	};
	int64_t count; /* 0: the end, or an error */
	struct tw_merge_lent lent;
} __attribute__((aligned(TW_CACHELINE_BYTES)));

/*
 * Written by the thread that makes batches: the caller's at first, one ahead of it from the second batch on. The capture
 * itself is changed by the caller's thread only.
 */
struct tw_capture_events {
	struct tw_capture *capture;
	struct tw_merge merge;
	struct tw_capture_filter filter;
	struct tw_map *places; /* by image: the selected places; NULL: all */
	struct tw_map asked;   /* streams: answers of wants_place(), by image and place */
	uint64_t kinds;
	bool gives_spans; /* not events: before the first batch is made */
	size_t clock_hint;
	uint64_t newest_ticks, newest_ns; /* streams: of the latest event so far */
	struct batch *batches;
	/* Of the caller's thread. */
	struct tw_ahead *ahead; /* NULL: batches are made when they are asked for */
	bool has_begun, has_ahead_failed;
	size_t span_hint;	/* of the clock, for events of spans */
	_Atomic bool is_ending; /* the batch that is being made is not wanted */
};

static int ask_for_places(struct tw_capture_events *events)
{
	const struct tw_capture *capture = events->capture;

	events->places = calloc(capture->image_count + 1, sizeof *events->places);
	if (!events->places)
		return TW_ENOMEM;
	for (uint32_t image = 0; image < capture->image_count; image++) {
		const struct tw_capture_place *place;
		uint32_t at = 0;

		while ((place = tw_catalog_next(&capture->images[image]->catalog.places, &at)) != NULL) {
			if (events->filter.wants_place(events->filter.context, image, place) &&
			    !tw_map_put(&events->places[image], place->place_id, 0))
				return TW_ENOMEM;
		}
	}
	return 0;
}

TW_API int tw_capture_events_create(struct tw_capture *capture, const struct tw_capture_filter *filter,
				    struct tw_capture_events **out)
{
	struct tw_capture_events *events = calloc(1, sizeof *events);
	int error;

	if (!events)
		return TW_ENOMEM;
	events->batches = aligned_alloc(TW_CACHELINE_BYTES, TW_AHEAD_BATCHES * sizeof *events->batches);
	if (!events->batches) {
		free(events);
		return TW_ENOMEM;
	}
	for (unsigned i = 0; i < TW_AHEAD_BATCHES; i++)
		events->batches[i].lent = (struct tw_merge_lent){NULL, NULL};
	events->capture = capture;
	if (filter)
		events->filter = *filter;
	events->kinds = ((events->filter.kinds ? events->filter.kinds : ~(SWITCH_BIT | OWN_TIME_BIT)) & ~STATE_BIT) |
			LOSS_BIT | (events->filter.wants_own_time ? OWN_TIME_BIT : 0) |
			(events->filter.wants_thread_states ? STATE_BIT : 0);
	if (capture->stream_in) {
		/* The time of the first event becomes more exact while the stream is read. */
		if (events->filter.from_ns <= capture->info.zero_ns)
			events->filter.from_ns = 0;
		tw_stream_in_from(capture->stream_in, events->filter.from_ns);
		*out = events;
		return 0;
	}
	error = tw_merge_init(&events->merge, capture, &events->filter);
	if (error) {
		free(events->batches);
		free(events);
		return error;
	}
	if (events->filter.wants_place)
		error = ask_for_places(events);
	if (error) {
		tw_capture_events_destroy(events);
		return error;
	}
	*out = events;
	return 0;
}

TW_API void tw_capture_events_destroy(struct tw_capture_events *events)
{
	if (!events)
		return;
	/* RELAXED events.ending: only ends a search that may be long; tw_ahead_destroy() waits for the thread. */
	tw_store_relaxed(&events->is_ending, true);
	tw_ahead_destroy(events->ahead);
	tw_map_fini(&events->asked);
	for (unsigned i = 0; !events->capture->stream_in && i < TW_AHEAD_BATCHES; i++)
		tw_merge_take_back(&events->merge, &events->batches[i].lent);
	if (!events->capture->stream_in)
		tw_merge_fini(&events->merge);
	free(events->batches);
	for (uint32_t i = 0; events->places && i < events->capture->image_count; i++)
		tw_map_fini(&events->places[i]);
	free(events->places);
	free(events);
}

/* The places of a stream appear one after another: the filter is asked at the first event of each. */
static bool is_place_wanted(struct tw_capture_events *events, uint32_t image, uint32_t id)
{
	uint64_t key = (uint64_t)image << 32 | id;
	uint32_t answer = tw_map_get(&events->asked, key);
	const struct tw_capture_place *place;

	if (answer != TW_MAP_NONE)
		return answer;
	place = tw_capture_place(events->capture, image, id);
	answer = place && events->filter.wants_place(events->filter.context, image, place);
	tw_map_put(&events->asked, key, answer);
	return answer;
}

static bool is_wanted(struct tw_capture_events *events, unsigned kind, uint32_t image, uint32_t id)
{
	if (!(events->kinds >> (kind < LAST_KIND_BIT ? kind : LAST_KIND_BIT) & 1))
		return false;
	if (!events->filter.wants_place || kind < TW_CAPTURE_CALL || kind > TW_CAPTURE_STACK)
		return true;
	if (events->capture->stream_in)
		return is_place_wanted(events, image, id);
	return tw_map_get(&events->places[image], id) != TW_MAP_NONE;
}

/* Removes the CPU time before the payload; a valid record has it. */
static __attribute__((noinline)) void take_cpu_time(struct tw_capture_event *event)
{
	event->kind &= TW_EVENT_CPU_TIME - 1;
	event->has_cpu_time = true;
	event->cpu_ns = *event->payload++;
	event->payload_words--;
}

/* A loss is selected if any part of its time is. */
static uint64_t loss_start(struct tw_capture_events *events, const struct tw_stream_record *record, size_t *hint)
{
	return tw_clockmap_ns(&events->capture->clocks, tw_get64(record->at + TW_CODEC_HEAD_BYTES), hint);
}

/* The rate of the clock becomes more exact while a stream is read: by that no time is earlier than one that was handed out. */
static uint64_t time_of(struct tw_capture_events *events, uint64_t ticks, size_t *hint)
{
	uint64_t ns = tw_clockmap_near_ns(&events->capture->clocks, ticks, hint);

	if (!events->capture->stream_in || ticks < events->newest_ticks)
		return ns;
	events->newest_ticks = ticks;
	if (ns > events->newest_ns)
		events->newest_ns = ns;
	return events->newest_ns;
}

/*
 * Makes an event of a record; false if the filter does not select it. Inline: it is the loop's body.
 *
 * @hint	of the clock: the calling thread's own.
 */
static inline __attribute__((always_inline)) bool fill(struct tw_capture_events *events,
						       const struct tw_stream_record *record, size_t *hint,
						       struct tw_capture_event *event)
{
	uint64_t ticks = tw_get64(record->at), head = tw_record_head(record->at);
	unsigned kind = TW_RB_HEAD_KIND(head);

	if (!is_wanted(events, kind & (TW_EVENT_CPU_TIME - 1), record->image, TW_RB_HEAD_ID(head)))
		return false;
	if (events->capture->stream_in && events->filter.wants_stream &&
	    !events->filter.wants_stream(events->filter.context, tw_capture_stream(events->capture, record->stream)))
		return false;
	event->time_ns = time_of(events, ticks, hint);
	if (event->time_ns < events->filter.from_ns ||
	    (events->filter.to_ns && event->time_ns >= events->filter.to_ns &&
	     (kind != TW_EVENT_LOSS || loss_start(events, record, hint) >= events->filter.to_ns)))
		return false;
	event->ticks = ticks;
	event->sequence = record->sequence;
	event->payload = (const uint64_t *)(const void *)(record->at + TW_CODEC_HEAD_BYTES);
	event->payload_words = tw_shape_words((uint32_t)head);
	event->id = TW_RB_HEAD_ID(head);
	event->stream = record->stream;
	event->image = record->image;
	event->tracee_id = record->tracee_id;
	event->kind = (uint8_t)kind;
	event->flags = (uint8_t)TW_RB_HEAD_FLAGS(head);
	event->has_cpu_time = false;
	event->reserved = 0;
	event->cpu_ns = 0;
	if (tw_unlikely(kind >= TW_EVENT_CPU_TIME))
		take_cpu_time(event);
	return true;
}

/* As many events as have arrived: waits for the first only. */
static int64_t next_of_stream(struct tw_capture_events *events, const struct tw_capture_event **batch)
{
	struct tw_stream_in *in = events->capture->stream_in;
	struct tw_stream_record record;
	uint32_t count = 0;
	int found;

	tw_stream_in_let_go(in);
	while (count < BATCH_EVENTS && (found = tw_stream_in_next(in, !count, &record)) != 0) {
		if (found < 0)
			return found;
		count += fill(events, &record, &events->clock_hint, &events->batches->events[count]);
		if (!count)
			tw_stream_in_let_go(in);
	}
	*batch = events->batches->events;
	return count;
}

/*
 * The cursor with the first record of all, for a batch that has @p count of its own; NULL: the batch ends here.  An error behind what the
 * batch has is that of the next batch.
 */
static int next_cursor(struct tw_capture_events *events, uint32_t count, struct tw_merge_cursor **cursor)
{
	int error;

	*cursor = NULL;
	/* RELAXED events.ending: a late look makes some more that nobody wants. */
	if ((count && events->merge.retired_bytes >= HELD_BYTES_MAX) || tw_load_relaxed(&events->is_ending))
		return 0;
	error = tw_merge_next(&events->merge, cursor);
	if (error)
		*cursor = NULL;
	return count ? 0 : error;
}

static int64_t merge_batch(struct tw_capture_events *events, struct batch *batch)
{
	struct tw_merge_cursor *cursor;
	uint32_t count = 0;
	bool has_more;

	while (count < BATCH_EVENTS) {
		int error = next_cursor(events, count, &cursor);

		if (error)
			return error;
		if (!cursor)
			break;
		do {
			const struct tw_stream_record record = {cursor->at, cursor->sequence, cursor->stream,
								cursor->image, cursor->tracee_id};

			if (fill(events, &record, &events->clock_hint, &batch->events[count])) {
				count++;
				if (cursor->job)
					cursor->job->is_lent = true;
			}
			has_more = tw_merge_step(&events->merge, cursor);
		} while (has_more && count < BATCH_EVENTS);
	}
	return count;
}

static int64_t merge_spans(struct tw_capture_events *events, struct batch *batch)
{
	struct tw_merge_cursor *cursor;
	uint64_t records = 0;
	uint32_t count = 0;

	while (count < BATCH_SPANS && records < BATCH_RECORDS) {
		struct tw_capture_span *span = &batch->spans[count];
		int error = next_cursor(events, count, &cursor);

		if (error)
			return error;
		if (!cursor)
			break;
		*span = (struct tw_capture_span){(const void *)cursor->at, NULL,	  cursor->sequence,
						 cursor->stream,	   cursor->image, cursor->tracee_id};
		if (cursor->job)
			cursor->job->is_lent = true;
		span->end = (const void *)tw_merge_skip(&events->merge, cursor, BATCH_RECORDS, &records);
		count++;
	}
	return count;
}

/* Makes the next batch in the place of an earlier one. False: it is the last. */
static bool make_batch(void *context, unsigned number)
{
	struct tw_capture_events *events = context;
	struct batch *batch = &events->batches[number];

	tw_merge_take_back(&events->merge, &batch->lent);
	batch->count = events->gives_spans ? merge_spans(events, batch) : merge_batch(events, batch);
	tw_merge_lend(&events->merge, &batch->lent);
	return batch->count > 0;
}

/* Damage becomes known with the events around it, whichever thread found it, and however far that is ahead. */
static void note_damage(struct tw_capture_events *events, struct tw_merge_lent *lent)
{
	struct tw_decode_job *in_order = NULL, *next;

	for (struct tw_decode_job *job = lent->damaged; job; job = next) {
		next = job->next_free;
		job->next_free = in_order;
		in_order = job;
	}
	lent->damaged = in_order;
	for (const struct tw_decode_job *job = in_order; job; job = job->next_free)
		tw_source_note_block(events->capture, job->block, job->error);
}

/* A capture of one batch needs no thread, nor does a view of its first events. */
static bool is_made_ahead(struct tw_capture_events *events)
{
	if (events->has_begun && !events->ahead && events->capture->workers && !events->has_ahead_failed)
		events->has_ahead_failed = tw_ahead_create(make_batch, events, &events->ahead) != 0;
	events->has_begun = true;
	return events->ahead != NULL;
}

static struct batch *next_batch(struct tw_capture_events *events)
{
	unsigned number = 0;

	if (is_made_ahead(events))
		number = tw_ahead_next(events->ahead);
	else
		make_batch(events, number);
	note_damage(events, &events->batches[number].lent);
	return &events->batches[number];
}

TW_API int64_t tw_capture_events_next(struct tw_capture_events *events, const struct tw_capture_event **batch)
{
	const struct batch *next;

	if (events->capture->stream_in)
		return next_of_stream(events, batch);
	if (events->gives_spans)
		return TW_EBADARG;
	next = next_batch(events);
	*batch = next->events;
	return next->count;
}

TW_API int64_t tw_capture_spans_next(struct tw_capture_events *events, const struct tw_capture_span **spans)
{
	const struct batch *next;

	if (events->capture->stream_in)
		return TW_ENOTSUP;
	/* Once: the thread that makes batches reads it. */
	if (!events->has_begun)
		events->gives_spans = true;
	if (!events->gives_spans)
		return TW_EBADARG;
	next = next_batch(events);
	*spans = next->spans;
	return next->count;
}

TW_API bool tw_capture_span_event(struct tw_capture_events *events, const struct tw_capture_span *span,
				  const struct tw_capture_record *record, uint64_t sequence,
				  struct tw_capture_event *event)
{
	const struct tw_stream_record at = {(const void *)record, sequence, span->stream, span->image, span->tracee_id};

	return fill(events, &at, &events->span_hint, event);
}
