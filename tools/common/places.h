/* SPDX-License-Identifier: Apache-2.0 */
/*
 * places.h - which function each place of a capture is, and which functions return in it.
 *
 * Places of one name (several processes, several slots) are one function.  Whether the calls of a place have
 * returns is seen in the capture alone, by one fast scan: a place of which nothing ever returned, though it
 * was called more than once on a thread, was recorded without returns, and its calls are moments, not
 * stretches.
 */
#ifndef TW_TOOLS_PLACES_H
#define TW_TOOLS_PLACES_H

#include "tools/common/names.h"

#define TW_PLACES_NONE UINT32_MAX

/* Of one image, by place id. */
struct tw_places_image {
	uint32_t *function;
	bool *is_moment;
	uint32_t count;
};

struct tw_places {
	struct tw_places_image *images;
	uint32_t image_count;
	/* By function number: MODULE:FUNCTION/ARITY for people.  The first three are no functions. */
	struct tw_name *names;
	const struct tw_capture_function **functions; /* by number: one of that name; NULL: none */
	uint32_t function_count;
	uint64_t *calls; /* by function number; of names that were added later there are none */
	uint32_t calls_count;
	uint64_t kinds[64]; /* events by kind; above 62 all in the last */
};

/* Numbers of what is shown beside functions. */
enum {
	TW_PLACES_UNKNOWN, /* a place that the capture does not define */
	TW_PLACES_GC_MINOR,
	TW_PLACES_GC_MAJOR,
	TW_PLACES_FIRST
};

/*
 * Scans what a filter wants, at whatever time: what returns is learnt from the whole capture.  Answers 0 or an error;
 * tw_places_free() in both cases.
 */
int tw_places_make(struct tw_places *places, struct tw_capture *capture, const struct tw_capture_filter *filter);
void tw_places_free(struct tw_places *places);
/* One more name behind the others: its number; TW_PLACES_NONE without memory. */
uint32_t tw_places_add(struct tw_places *places, const char *text, size_t bytes);

static inline uint32_t tw_places_function(const struct tw_places *places, uint32_t image, uint32_t place)
{
	if (image >= places->image_count || place >= places->images[image].count)
		return TW_PLACES_UNKNOWN;
	return places->images[image].function[place];
}

static inline bool tw_places_is_moment(const struct tw_places *places, uint32_t image, uint32_t place)
{
	return image >= places->image_count || place >= places->images[image].count ||
	       places->images[image].is_moment[place];
}

/* Does anything return in the capture? */
static inline bool tw_places_have_returns(const struct tw_places *places)
{
	return places->kinds[TW_CAPTURE_RETURN_FROM] || places->kinds[TW_CAPTURE_EXCEPTION_FROM];
}

/* Is there anything that has a duration: calls, or garbage collections? */
static inline bool tw_places_have_durations(const struct tw_places *places)
{
	for (unsigned kind = TW_CAPTURE_GC_MINOR_START; kind <= TW_CAPTURE_GC_MAJOR_END; kind++) {
		if (places->kinds[kind])
			return true;
	}
	return tw_places_have_returns(places);
}

/* Were call stacks recorded, and nothing that has a duration? */
static inline bool tw_places_have_stacks_only(const struct tw_places *places)
{
	return places->kinds[TW_CAPTURE_STACK] && !tw_places_have_durations(places);
}

#endif
