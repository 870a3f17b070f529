/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print_speedscope.c - the calls of each track as a profile of speedscope (www.speedscope.app), with their order and times.
 *
 * A profile's events stand together in the file, and a capture has those of all threads by time: they are kept, 16 bytes each,
 * until the end.  Only calls and runs on schedulers are shown; a call without a recorded end has no length.
 *
 * Source: "Speedscope's file format", and its schema, file-format-schema.json: evented profiles.
 */
#include "tools/print/timeline.h"
#include "base/grow.h"

#include "tracewheel/error.h"

#include <stdio.h>
#include <stdlib.h>

/* A call's begin or end. */
struct edge {
	uint64_t ns;
	uint32_t frame;
	bool is_end;
};

struct profile {
	uint32_t image, number;
	char *name;
	struct edge *edges;
	size_t count, capacity;
};

/* Frames behind those of functions: names of processes that ran on schedulers. */
struct runs {
	struct tw_map by_process; /* the number of its stack */
	char **names;
	size_t count, capacity;
};

struct speedscope {
	struct tw_map by_track; /* image and number: the index of the profile */
	struct profile *profiles;
	size_t count, capacity;
	struct runs runs;
};

/* The profile of a track.  NULL: no memory. */
static struct profile *profile_of(struct tw_timeline *timeline, uint32_t image, uint32_t number)
{
	struct speedscope *speedscope = timeline->user;
	uint64_t key = (uint64_t)(image + 1) << 32 | number;
	uint32_t index = tw_map_get(&speedscope->by_track, key);
	if (index != TW_MAP_NONE)
		return &speedscope->profiles[index];
	if (!tw_grow(speedscope->profiles, speedscope->count, speedscope->capacity) ||
	    !tw_map_add(&speedscope->by_track, key, (uint32_t)speedscope->count)) {
		timeline->has_no_memory = true;
		return NULL;
	}
	struct profile *profile = &speedscope->profiles[speedscope->count++];
	*profile = (struct profile){.image = image, .number = number};
	return profile;
}

/* Times never go back within a profile: readers refuse such a file. */
static void add_edge(struct tw_timeline *timeline, struct profile *profile, uint64_t ns, uint32_t frame, bool is_end)
{
	if (!profile)
		return;
	if (!tw_grow(profile->edges, profile->count, profile->capacity)) {
		timeline->has_no_memory = true;
		return;
	}
	uint64_t last_ns = profile->count ? profile->edges[profile->count - 1].ns : 0;
	profile->edges[profile->count++] = (struct edge){ns > last_ns ? ns : last_ns, frame, is_end};
}

static void name_track(struct tw_timeline *timeline, uint32_t image, uint32_t number, const char *name, size_t bytes)
{
	/* Nothing is shown of states. */
	bool is_of_states = number >= TW_TIMELINE_STATES && number < TW_TIMELINE_SCHEDULERS;
	struct profile *profile = is_of_states ? NULL : profile_of(timeline, image, number);
	if (!profile)
		return;
	free(profile->name);
	profile->name = strndup(name, bytes);
	timeline->has_no_memory |= !profile->name;
}

static bool open_profiles(struct tw_timeline *timeline)
{
	(void)timeline;
	return true;
}

static void begin_call(struct tw_timeline *timeline, struct tw_timeline_track *track, struct tw_stack *stack,
		       uint32_t depth, const struct tw_capture_event *event)
{
	const struct tw_stack_frame *frame = &stack->frames[depth];
	(void)event;
	if (timeline->has_begun)
		add_edge(timeline, profile_of(timeline, track->image, track->number), frame->start_ns, frame->function,
			 false);
}

static void end_call(struct tw_timeline *timeline, const struct tw_timeline_end *end)
{
	const struct tw_stack_frame *frame = &end->stack->frames[end->stack->depth - 1];
	add_edge(timeline, profile_of(timeline, end->track->image, end->track->number), end->ns, frame->function, true);
}

/* The frame of a process that ran. */
static uint32_t run_frame(struct tw_timeline *timeline, const struct tw_timeline_span *span)
{
	struct runs *runs = &((struct speedscope *)timeline->user)->runs;
	uint32_t known = tw_map_get(&runs->by_process, span->process);
	if (known != TW_MAP_NONE)
		return timeline->places.function_count + known;
	if (!tw_grow(runs->names, runs->count, runs->capacity) ||
	    !tw_map_add(&runs->by_process, span->process, (uint32_t)runs->count) ||
	    !(runs->names[runs->count] = strdup(span->name))) {
		timeline->has_no_memory = true;
		return 0;
	}
	return timeline->places.function_count + (uint32_t)runs->count++;
}

static void put_span(struct tw_timeline *timeline, const struct tw_timeline_span *span)
{
	/* The tracer's own time stays within the calls. */
	if (span->number < TW_TIMELINE_SCHEDULERS)
		return;
	struct profile *profile = profile_of(timeline, span->image, span->number);
	uint32_t frame = run_frame(timeline, span);
	add_edge(timeline, profile, span->from_ns, frame, false);
	add_edge(timeline, profile, span->to_ns, frame, true);
}

static void put_moment(struct tw_timeline *timeline, const struct tw_timeline_moment *moment)
{
	if (moment->word || timeline->event->kind != TW_CAPTURE_CALL)
		return;
	struct profile *profile = profile_of(timeline, moment->track->image, moment->track->number);
	add_edge(timeline, profile, moment->ns, moment->function, false);
	add_edge(timeline, profile, moment->ns, moment->function, true);
}

/* ---- the file ---- */

static void put_frame(struct tw_out *out, const char *between, const char *name, size_t bytes)
{
	tw_out_text(out, between);
	tw_out_text(out, "{\"name\":");
	tw_json_quote(out, name, bytes);
	tw_out_text(out, "}");
}

static void put_frames(struct tw_timeline *timeline)
{
	const struct runs *runs = &((struct speedscope *)timeline->user)->runs;
	const struct tw_places *places = &timeline->places;
	const char *between = "";
	for (uint32_t i = 0; i < places->function_count; i++, between = ",\n")
		put_frame(timeline->out, between, places->names[i].text, places->names[i].bytes);
	for (size_t i = 0; i < runs->count; i++, between = ",\n")
		put_frame(timeline->out, between, runs->names[i], strlen(runs->names[i]));
}

static void put_profile(struct tw_timeline *timeline, const struct profile *profile, const char *between)
{
	struct tw_out *out = timeline->out;
	uint64_t start_ns = timeline->printer->start_ns, last_ns = profile->edges[profile->count - 1].ns;
	char program[TW_TIMELINE_PROGRAM_BYTES], number[32];
	tw_timeline_program(timeline, profile->image, program);
	size_t bytes = profile->number < TW_TIMELINE_OTHERS
			       ? (size_t)snprintf(number, sizeof number, "%u ", profile->number)
			       : 0;
	const char *last = strrchr(program, '/');
	char name[300];
	int named = snprintf(name, sizeof name, "%.*s%s (%s)", (int)bytes, number, profile->name ? profile->name : "?",
			     last ? last + 1 : program);
	tw_out_text(out, between);
	tw_out_text(out, "{\"type\":\"evented\",\"unit\":\"nanoseconds\",\"name\":");
	tw_json_quote(out, name, named < (int)sizeof name ? (size_t)named : sizeof name - 1);
	tw_out_format(out, ",\"startValue\":%llu,\"endValue\":%llu,\"events\":[",
		      (unsigned long long)(profile->edges[0].ns > start_ns ? profile->edges[0].ns - start_ns : 0),
		      (unsigned long long)(last_ns > start_ns ? last_ns - start_ns : 0));
	for (size_t i = 0; i < profile->count; i++) {
		const struct edge *edge = &profile->edges[i];
		tw_out_reserve(out);
		tw_put(out, i ? ",\n{\"type\":\"" : "\n{\"type\":\"", i ? 11 : 10);
		tw_put_char(out, edge->is_end ? 'C' : 'O');
		tw_put(out, "\",\"frame\":", 10);
		tw_put_u64(out, edge->frame);
		tw_put(out, ",\"at\":", 6);
		tw_put_u64(out, edge->ns > start_ns ? edge->ns - start_ns : 0);
		tw_put_char(out, '}');
	}
	tw_out_text(out, "]}");
}

static void close_profiles(struct tw_timeline *timeline)
{
	const struct speedscope *speedscope = timeline->user;
	struct tw_out *out = timeline->out;
	const char *between = "\n";
	tw_out_text(
		out,
		"{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":\"tracewheel " TW_VERSION
		"\",\"shared\":{\"frames\":[");
	put_frames(timeline);
	tw_out_text(out, "]},\"profiles\":[");
	for (size_t i = 0; i < speedscope->count; i++) {
		if (!speedscope->profiles[i].count)
			continue;
		put_profile(timeline, &speedscope->profiles[i], between);
		between = ",\n";
	}
	tw_out_text(out, "]}\n");
}

int tw_print_speedscope(struct tw_printer *printer, const struct tw_capture_filter *filter, uint64_t limit)
{
	static const struct tw_timeline_format format = {
		.open = open_profiles,
		.name_track = name_track,
		.begin = begin_call,
		.end = end_call,
		.span = put_span,
		.moment = put_moment,
		.close = close_profiles,
	};
	struct speedscope speedscope = {0};
	int error = tw_timeline_write(printer, &format, &speedscope, filter, limit);
	for (size_t i = 0; i < speedscope.count; i++) {
		free(speedscope.profiles[i].name);
		free(speedscope.profiles[i].edges);
	}
	for (size_t i = 0; i < speedscope.runs.count; i++)
		free(speedscope.runs.names[i]);
	free(speedscope.runs.names);
	tw_map_fini(&speedscope.runs.by_process);
	free(speedscope.profiles);
	tw_map_fini(&speedscope.by_track);
	return error;
}
