/* SPDX-License-Identifier: Apache-2.0 */
/* holes.c - where segments of a capture are absent, in words and as JSON. */
#include "views/names/holes.h"

#include "views/names/missing.h"

#include "tracewheel/segment.h"

#include <stdio.h>

/* Seconds as views show them. */
static uint64_t shown(const struct tw_capture *capture, uint64_t ns)
{
	struct tw_capture_info info;
	tw_capture_info(capture, &info);
	return ns > info.zero_ns ? ns - info.zero_ns : 0;
}

/* "between 1.5 and 1.6", "before 1.5", "after 1.5"; "" if nothing is known. */
static void put_time(const struct tw_capture *capture, const struct tw_capture_hole *hole, char *text, size_t capacity)
{
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES];
	tw_figure_moment(a, shown(capture, hole->from_ns));
	tw_figure_moment(b, shown(capture, hole->to_ns));
	*text = 0;
	if (hole->from_ns && hole->to_ns > hole->from_ns)
		snprintf(text, capacity, ", between %s and %s s", a, b);
	else if (hole->from_ns)
		snprintf(text, capacity, ", after %s s", a);
	else if (hole->to_ns)
		snprintf(text, capacity, ", before %s s", b);
}

const char *tw_missing_hole(const struct tw_capture *capture, uint32_t number, char *text)
{
	struct tw_capture_hole hole;
	char time[2 * TW_FIGURE_BYTES + 24], which[40], figure[TW_FIGURE_BYTES];
	if (!tw_capture_hole(capture, number, &hole))
		return NULL;
	const struct tw_capture_image *image = tw_capture_image(capture, hole.image);
	put_time(capture, &hole, time, sizeof time);
	if (!hole.last)
		snprintf(which, sizeof which, "segments from %u on", hole.first);
	else if (hole.first == hole.last)
		snprintf(which, sizeof which, "segment %u", hole.first);
	else
		snprintf(which, sizeof which, "segments %u to %u", hole.first, hole.last);
	snprintf(text, TW_MISSING_TEXT_BYTES, "%s of process %d%s, with %s", which, image->process_id, time,
		 hole.last ? tw_figure_of(figure, hole.events, "event", "events") : "an unknown number of events");
	return text;
}

void tw_missing_each_hole(const struct tw_capture *capture, uint32_t most, void (*put)(void *context, const char *line),
			  void *context)
{
	char text[TW_MISSING_TEXT_BYTES], figure[TW_FIGURE_BYTES], line[TW_MISSING_TEXT_BYTES + 20];
	struct tw_capture_hole hole;
	uint32_t count = 0;
	for (; count < most && tw_missing_hole(capture, count, text); count++) {
		snprintf(line, sizeof line, "missing: %s", text);
		put(context, line);
	}
	uint32_t others = 0;
	while (tw_capture_hole(capture, count + others, &hole))
		others++;
	if (others) {
		snprintf(line, sizeof line, "missing at %s more: `tracewheel info` lists them",
			 tw_figure_of(figure, others, "place", "places"));
		put(context, line);
	}
}

void tw_missing_holes_json(struct tw_json *json, const struct tw_capture *capture)
{
	struct tw_capture_hole hole;
	tw_json_open(json, "holes", '[');
	for (uint32_t i = 0; tw_capture_hole(capture, i, &hole); i++) {
		tw_json_open(json, NULL, '{');
		tw_json_u64(json, "process_id", (uint32_t)tw_capture_image(capture, hole.image)->process_id);
		tw_json_u64(json, "first", hole.first);
		if (hole.last) {
			tw_json_u64(json, "last", hole.last);
			tw_json_u64(json, "events", hole.events);
		}
		if (hole.from_ns)
			tw_json_seconds(json, "from", shown(capture, hole.from_ns));
		if (hole.to_ns)
			tw_json_seconds(json, "to", shown(capture, hole.to_ns));
		tw_json_close(json, '}');
	}
	tw_json_close(json, ']');
}
