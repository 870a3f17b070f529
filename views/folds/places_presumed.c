/* SPDX-License-Identifier: Apache-2.0 */
/*
 * places_presumed.c - places for a pass that does not wait for a scan.
 *
 * A pass has the records of streams in the order of time, a scan in that of blocks, and is_repeated depends on it: a pass knows for certain
 * that a scan finds no repetition where no stream has called the place twice, and that it finds one where there are more calls than streams. Otherwise
 * a scan has to tell.
 */
#include "views/folds/places_inside.h"
#include "views/folds/pass.h"

#include "tracewheel/error.h"

#include <stdlib.h>
#include <string.h>

/* So many calls of a place that has not returned are taken as proof that it never does: the pass ends at once. */
#define CALLS_MAX 4096

/* Kinds of run-time systems are none of these: several kinds share a bit from there on. */
#define KINDS_PRESUMED 16

static bool note_open_call(struct tw_places_seen *seen, uint32_t stream)
{
	uint64_t bit = UINT64_C(1) << stream % 64;
	seen->may_repeat |= (seen->streams & bit) != 0;
	seen->streams |= bit;
	return seen->made > CALLS_MAX;
}

static int see(void *self, const struct tw_capture_batch *batch)
{
	struct tw_places *places = self;
	struct tw_places_scan *scan = places->scan;
	/* A loss without a ring is in no stream. */
	if (batch->image >= places->image_count || batch->stream >= scan->stream_count) {
		scan->kinds[TW_CAPTURE_LOSS]++;
		return TW_FOLD_DONE;
	}
	struct tw_places_stream *stream = &scan->streams[batch->stream];
	struct tw_places_seen *seen = scan->seen[batch->image];
	const struct tw_places_image *image = &places->images[batch->image];
	uint32_t count = image->count;
	uint64_t calls = 0, returns = 0, others = 0;
	bool is_wrong = false;
	if (stream->is_of_states)
		return 0;
	for (const struct tw_capture_record *record = batch->first; record < batch->end;
	     record = tw_capture_record_next(record)) {
		unsigned kind = tw_capture_record_kind(record);
		uint32_t id = tw_capture_record_id(record);
		if (id < count && kind == TW_CAPTURE_CALL) {
			calls++;
			seen[id].made++;
			if (!seen[id].ended)
				is_wrong |= note_open_call(&seen[id], batch->stream) && !image->is_moment[id];
		} else if (id < count && kind == TW_CAPTURE_RETURN_FROM) {
			returns++;
			seen[id].ended++;
		} else {
			scan->kinds[kind < 63 ? kind : 63]++;
			others += kind > TW_CAPTURE_SWITCH && kind != TW_CAPTURE_OWN_TIME;
			stream->calls += kind == TW_CAPTURE_CALL;
			scan->unknown[batch->image] += kind == TW_CAPTURE_CALL;
			if (id < count && kind == TW_CAPTURE_EXCEPTION_FROM)
				seen[id].ended++;
		}
	}
	scan->kinds[TW_CAPTURE_CALL] += calls;
	scan->kinds[TW_CAPTURE_RETURN_FROM] += returns;
	stream->calls += calls;
	stream->events += calls + returns + others;
	scan->is_wrong |= is_wrong;
	return is_wrong || scan->kinds[TW_CAPTURE_LOSS] ? TW_FOLD_DONE : 0;
}

/* Does the filter select the whole capture, and is nothing missing in it? */
static bool is_possible(const struct tw_capture *capture, const struct tw_capture_filter *filter, uint32_t kinds)
{
	struct tw_capture_info info;
	uint64_t lost = 0;
	tw_capture_info(capture, &info);
	for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++)
		lost += info.lost[cause];
	for (uint32_t i = 0; i < info.images; i++) {
		if (tw_capture_image(capture, i)->no_ring_lost || tw_names_is_erlang_vm(capture, i))
			return false;
	}
	return kinds && kinds < UINT32_C(1) << KINDS_PRESUMED && !(kinds >> TW_CAPTURE_LOSS & 1) && !lost &&
	       !info.damages && !info.damaged_records && !tw_capture_whole_kinds(capture) && !filter->from_ns &&
	       !filter->to_ns && !filter->wants_stream && !filter->wants_place && !filter->kinds;
}

static bool init_counts(struct tw_places_scan *scan, uint32_t images)
{
	const struct tw_capture_stream *stream;
	scan->is_presumed = true;
	scan->streams = calloc(scan->stream_count + (size_t)1, sizeof *scan->streams);
	scan->unknown = calloc(images + (size_t)1, sizeof *scan->unknown);
	for (uint32_t i = 0; scan->streams && (stream = tw_capture_stream(scan->capture, i)); i++)
		scan->streams[i].is_of_states = stream->is_of_states;
	return scan->streams && scan->unknown;
}

int tw_places_presume(struct tw_places *places, struct tw_capture *capture, const struct tw_capture_filter *filter,
		      struct tw_count *count)
{
	uint32_t kinds = tw_capture_kinds(capture);
	*places = (struct tw_places){0};
	if (!is_possible(capture, filter, kinds))
		return 0;
	int error = tw_places_begin(places, capture, count);
	if (error)
		return error;
	if (!init_counts(places->scan, places->image_count))
		return TW_ENOMEM;
	count->see = see;
	for (unsigned kind = 0; kind < KINDS_PRESUMED; kind++)
		places->kinds[kind] = kinds >> kind & 1;
	for (uint32_t i = 0; i < places->image_count && !tw_places_have_returns(places); i++)
		memset(places->images[i].is_moment, true, places->images[i].count);
	return 1;
}

/* Do these places have the moments that a scan finds? */
static bool have_moments(const struct tw_places *places)
{
	const struct tw_places_scan *scan = places->scan;
	for (uint32_t i = 0; i < places->image_count; i++) {
		for (uint32_t id = 0; id < places->images[i].count; id++) {
			const struct tw_places_seen *seen = &scan->seen[i][id];
			if (!seen->ended && !places->images[i].is_moment[id] &&
			    (seen->may_repeat || seen->made > scan->stream_count))
				return false;
		}
	}
	return true;
}

bool tw_places_hold(const struct tw_places *places, bool by_kinds)
{
	struct tw_places found = {.has_returns = places->has_returns};
	memcpy(found.kinds, places->scan->kinds, sizeof found.kinds);
	bool hold = !places->scan->is_wrong && !found.kinds[TW_CAPTURE_LOSS] &&
		    !found.kinds[TW_CAPTURE_STACK] == !places->kinds[TW_CAPTURE_STACK] &&
		    tw_places_have_returns(&found) == tw_places_have_returns(places) &&
		    tw_places_have_durations(&found) == tw_places_have_durations(places);
	return hold && (by_kinds || have_moments(places));
}
