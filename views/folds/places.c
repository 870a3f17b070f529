/* SPDX-License-Identifier: Apache-2.0 */
/* places.c - one scan to find the functions that return, and one number for all places of a name. */
#include "views/folds/places_inside.h"
#include "views/folds/marks.h"
#include "base/grow.h"
#include "base/map.h"

#include "tracewheel/error.h"

#include <stdlib.h>
#include <string.h>

static int see(void *self, const struct tw_capture_batch *batch)
{
	struct tw_places *places = self;
	if (batch->image >= places->image_count)
		return 0;
	const struct tw_places_scan *scan = places->scan;
	struct tw_places_seen *seen = scan->seen[batch->image];
	uint32_t count = places->images[batch->image].count, stream = batch->stream + 1;
	uint64_t *kinds = places->kinds;
	for (const struct tw_capture_record *record = batch->first; record < batch->end;
	     record = tw_capture_record_next(record)) {
		unsigned kind = tw_capture_record_kind(record);
		uint32_t id = tw_capture_record_id(record);
		kinds[kind < 63 ? kind : 63]++;
		if (kind < TW_CAPTURE_CALL || kind > TW_CAPTURE_EXCEPTION_FROM || id >= count)
			continue;
		if (kind == TW_CAPTURE_CALL) {
			seen[id].made++;
			seen[id].is_repeated |= seen[id].last_stream == stream || ++seen[id].calls > scan->stream_count;
			seen[id].last_stream = stream;
		} else {
			seen[id].ended++;
		}
	}
	return 0;
}

/* ---- names ---- */

uint32_t tw_places_add(struct tw_places *places, const char *text, size_t bytes, bool lacks_arity)
{
	if (!tw_grow_one(places->names, places->function_count) ||
	    !tw_grow_one(places->functions, places->function_count))
		return TW_PLACES_NONE;
	places->functions[places->function_count] = NULL;
	struct tw_name *name = &places->names[places->function_count];
	*name = (struct tw_name){strndup(text, bytes), (uint32_t)bytes, lacks_arity};
	return name->text ? places->function_count++ : TW_PLACES_NONE;
}

uint32_t tw_places_find(struct tw_places *places, struct tw_map *by_name, const char *text, size_t bytes,
			bool lacks_arity)
{
	uint64_t key = tw_hash_bytes(text, bytes, 0);
	uint32_t known =
		tw_map_find(by_name, key, i,
			    places->names[i].bytes == bytes && memcmp(places->names[i].text, text, bytes) == 0);
	if (known != TW_MAP_NONE)
		return known;
	uint32_t number = tw_places_add(places, text, bytes, lacks_arity);
	return number != TW_PLACES_NONE && tw_map_add(by_name, key, number) ? number : TW_PLACES_NONE;
}

static bool name_image(struct tw_places *places, struct tw_map *by_name, const struct tw_capture *capture,
		       uint32_t image)
{
	struct tw_places_image *to = &places->images[image];
	const struct tw_capture_place *place;
	char text[TW_NAME_TEXT_BYTES];
	uint32_t at = 0;
	while ((place = tw_capture_place_next(capture, image, &at))) {
		if (place->place_id >= to->count)
			continue;
		to->is_moment[place->place_id] = place->has_no_end;
		size_t bytes = tw_name_function(place->function, text, sizeof text);
		/* A name that contains a zero byte ends there. */
		to->function[place->place_id] = tw_places_find(places, by_name, text, strnlen(text, bytes),
							       tw_name_lacks_arity(place->function));
		if (to->function[place->place_id] == TW_PLACES_NONE)
			return false;
		places->functions[to->function[place->place_id]] = place->function;
	}
	return true;
}

static bool name_all(struct tw_places *places, const struct tw_capture *capture, uint32_t place_count)
{
	static const char *const others[TW_PLACES_FIRST] = {"(not defined in the capture)",
							    "(minor garbage collection)", "(major garbage collection)"};
	struct tw_map by_name = {0};
	bool is_made = true;
	for (size_t i = 0; i < TW_PLACES_FIRST && is_made; i++)
		is_made = tw_places_find(places, &by_name, others[i], strlen(others[i]), false) == i;
	for (uint32_t i = 0; i < places->image_count && is_made; i++)
		is_made = name_image(places, &by_name, capture, i);
	tw_map_fini(&by_name);
	return is_made;
}

static bool init_image(struct tw_places_image *to, const struct tw_capture *capture, uint32_t image,
		       struct tw_places_seen **seen)
{
	to->count = tw_marks_rows(capture, image);
	to->function = calloc(to->count, sizeof *to->function);
	to->is_moment = calloc(to->count, sizeof *to->is_moment);
	*seen = calloc(to->count, sizeof **seen);
	return to->function && to->is_moment && *seen;
}

int tw_places_begin(struct tw_places *places, struct tw_capture *capture, struct tw_count *count)
{
	struct tw_capture_info info;
	tw_capture_info(capture, &info);
	*places = (struct tw_places){.image_count = info.images, .scan = calloc(1, sizeof *places->scan)};
	*count = (struct tw_count){places, see};
	places->images = calloc(info.images + 1, sizeof *places->images);
	if (!places->images || !places->scan)
		return TW_ENOMEM;
	*places->scan = (struct tw_places_scan){.capture = capture, .stream_count = info.streams};
	places->scan->seen = calloc(info.images + 1, sizeof *places->scan->seen);
	if (!places->scan->seen)
		return TW_ENOMEM;
	for (uint32_t i = 0; i < info.images; i++) {
		const struct tw_capture_session *session;
		if (!init_image(&places->images[i], capture, i, &places->scan->seen[i]))
			return TW_ENOMEM;
		for (uint32_t at = 0; (session = tw_capture_session_next(capture, i, &at));)
			places->has_returns |= session->has_returns;
	}
	return name_all(places, capture, info.places) ? 0 : TW_ENOMEM;
}

static void free_scan(struct tw_places *places)
{
	for (uint32_t i = 0; places->scan && places->scan->seen && i < places->image_count; i++)
		free(places->scan->seen[i]);
	if (places->scan) {
		free(places->scan->seen);
		free(places->scan->streams);
		free(places->scan->unknown);
	}
	free(places->scan);
	places->scan = NULL;
}

/* Of a part counts what the whole has: a place's returns may lie outside the part. */
static void take_whole(struct tw_places *places)
{
	const struct tw_capture *capture = places->scan->capture;
	const uint64_t *kinds = tw_capture_whole_kinds(capture);
	const struct tw_capture_whole_place *place;
	if (!kinds)
		return;
	memcpy(places->kinds, kinds, sizeof places->kinds);
	memset(places->whole_calls, 0, places->calls_count * sizeof *places->whole_calls);
	for (uint32_t i = 0; i < places->image_count; i++) {
		struct tw_places_image *image = &places->images[i];
		for (uint32_t at = 0; (place = tw_capture_whole_place_next(capture, i, &at));) {
			if (place->place_id >= image->count)
				continue;
			image->is_moment[place->place_id] = place->is_moment;
			places->whole_calls[image->function[place->place_id]] += place->calls;
		}
	}
}

int tw_places_end(struct tw_places *places)
{
	if (places->scan->is_presumed)
		memcpy(places->kinds, places->scan->kinds, sizeof places->kinds);
	bool returns = tw_places_have_returns(places);
	places->calls = calloc(places->function_count + (size_t)1, 3 * sizeof *places->calls);
	if (!places->calls)
		return TW_ENOMEM;
	places->ends = places->calls + places->function_count;
	places->whole_calls = places->ends + places->function_count;
	places->calls_count = places->function_count;
	for (uint32_t i = 0; i < places->image_count; i++) {
		/* Returns are asked for function by function there: a single call without one need not last to the end. */
		bool is_erlang_vm = tw_names_is_erlang_vm(places->scan->capture, i);
		for (uint32_t id = 0; id < places->images[i].count; id++) {
			const struct tw_places_seen *seen = &places->scan->seen[i][id];
			places->calls[places->images[i].function[id]] += seen->made;
			places->ends[places->images[i].function[id]] += seen->ended;
			places->images[i].is_moment[id] |=
				!returns || (!seen->ended && (seen->is_repeated || is_erlang_vm));
		}
	}
	memcpy(places->whole_calls, places->calls, places->calls_count * sizeof *places->calls);
	places->collections[0] = places->kinds[TW_CAPTURE_GC_MINOR_START];
	places->collections[1] = places->kinds[TW_CAPTURE_GC_MAJOR_START];
	take_whole(places);
	if (!places->scan->is_presumed)
		free_scan(places);
	return 0;
}

int tw_places_make(struct tw_places *places, struct tw_capture *capture, const struct tw_capture_filter *filter)
{
	struct tw_capture_filter all = *filter;
	struct tw_count count;
	all.from_ns = all.to_ns = 0;
	int error = tw_places_begin(places, capture, &count);
	if (!error)
		error = tw_scan(capture, &all, &count, 1, "looking");
	return error ? error : tw_places_end(places);
}

int tw_places_find_durations(struct tw_capture *capture, const struct tw_capture_filter *filter, uint64_t *out)
{
	struct tw_capture_info info;
	tw_capture_info(capture, &info);
	if (info.has_moments_only)
		return 0;
	struct tw_places places;
	int error = tw_places_make(&places, capture, filter);
	*out = error == 0 && tw_places_have_durations(&places);
	tw_places_free(&places);
	return error;
}

void tw_places_free(struct tw_places *places)
{
	free_scan(places);
	for (uint32_t i = 0; places->images && i < places->image_count; i++) {
		free(places->images[i].function);
		free(places->images[i].is_moment);
	}
	for (uint32_t i = 0; i < places->function_count; i++)
		free(places->names[i].text);
	free(places->images);
	free(places->calls);
	free(places->names);
	free(places->functions);
	*places = (struct tw_places){0};
}

bool *tw_places_wanted(const struct tw_places *places, const struct tw_capture *capture,
		       const struct tw_capture_filter *filter)
{
	bool *wanted = calloc(places->function_count + (size_t)1, sizeof *wanted);
	const struct tw_capture_place *place;
	for (uint32_t image = 0; wanted && image < places->image_count; image++) {
		uint32_t at = 0;
		while ((place = tw_capture_place_next(capture, image, &at)))
			wanted[tw_places_function(places, image, place->place_id)] |=
				filter->wants_place(filter->context, image, place);
	}
	return wanted;
}
