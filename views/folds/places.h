/* SPDX-License-Identifier: Apache-2.0 */
/*
 * places.h - the function of each place in a capture, and the functions that return in it.
 *
 * Places of one name (several processes, several slots) are one function. Whether the returns of a place were
 * recorded is derived from the capture, by one fast scan: if a place was called more than once on a thread and
 * nothing ever returned, its returns were not recorded, and its calls are moments without a duration. If no place returned
 * and no session asked for returns, the same holds for all. A part of a capture (tracewheel/cut.h) says what the whole knew.
 *
 * If nothing is lost, a pass need not wait for that scan: it presumes what the definitions promise, and counts while it goes on
 * (tw_places_presume()).
 */
#ifndef TW_VIEWS_PLACES_H
#define TW_VIEWS_PLACES_H

#include "views/folds/scan.h"
#include "base/map.h"
#include "views/names/names.h"

#define TW_PLACES_NONE UINT32_MAX

/* The places of one image, indexed by place id. */
struct tw_places_image {
	uint32_t *function;
	bool *is_moment;
	uint32_t count;
};

struct tw_places {
	struct tw_places_image *images;
	uint32_t image_count;
	/* Indexed by function number: for people. The first three are no functions. */
	struct tw_name *names;
	const struct tw_capture_function **functions; /* by number: any function of that name; NULL: none */
	uint32_t function_count;
	uint64_t *calls;       /* by function number; names that were added later have none */
	uint64_t *ends;	       /* the same: returns and exceptions */
	uint64_t *whole_calls; /* calls in the whole that the capture is a part of; the same as calls if it is none */
	uint32_t calls_count;
	bool has_returns;	     /* a session asked for returns, whether or not any call returned */
	uint64_t kinds[64];	     /* events by kind, of the whole; all kinds above 62 in the last element */
	uint64_t collections[2];     /* minor and major garbage collections in the capture itself */
	struct tw_places_scan *scan; /* between begin and end; of presumed places until they are freed */
};

/* Numbers of entries that are no functions. */
enum {
	TW_PLACES_UNKNOWN, /* a place that the capture does not define */
	TW_PLACES_GC_MINOR,
	TW_PLACES_GC_MAJOR,
	TW_PLACES_FIRST
};

/*
 * tw_places_begin - the count that finds the functions of a capture, and those that return; tw_places_end() after its scan.
 *
 * The scan selects no time: whether a function returns is derived from the whole capture.
 *
 * @count	is written; it refers to the places.
 *
 * Returns 0 or an error; tw_places_free() in both cases.
 */
int tw_places_begin(struct tw_places *places, struct tw_capture *capture, struct tw_count *count);
int tw_places_end(struct tw_places *places);
/* The two around a scan of their own, of the streams that a filter selects. Returns 0 or an error; tw_places_free() in both cases. */
int tw_places_make(struct tw_places *places, struct tw_capture *capture, const struct tw_capture_filter *filter);
/*
 * tw_places_presume - the same for a count that sees the records of the pass which needs the places (tw_pass_counted()).
 *
 * Until its end, calls are presumed to return if a session asked for returns and the place can have any, and the kinds of events
 * are those of the index.
 *
 * @filter	of the pass.
 *
 * Returns 1; 0 if only a scan can tell, as with losses, in a part of a capture or in an Erlang VM, where returns are asked for function by function: no places are made; or
 * an error.  tw_places_free() in all cases.
 */
int tw_places_presume(struct tw_places *places, struct tw_capture *capture, const struct tw_capture_filter *filter,
		      struct tw_count *count);
/*
 * Behind that pass and before tw_places_end(): would a scan have told the same? Otherwise the results of the pass are worth nothing.
 * @by_kinds: the kinds of events alone.
 */
bool tw_places_hold(const struct tw_places *places, bool by_kinds);
/* Sets *out if anything in the selection has a duration. Returns 0 or an error. */
int tw_places_find_durations(struct tw_capture *capture, const struct tw_capture_filter *filter, uint64_t *out);
void tw_places_free(struct tw_places *places);
/* By function, to be freed: does the filter want a place of it? NULL: no memory. */
bool *tw_places_wanted(const struct tw_places *places, const struct tw_capture *capture,
		       const struct tw_capture_filter *filter);
/* Adds a name after the others and returns its number; TW_PLACES_NONE: no memory. */
uint32_t tw_places_add(struct tw_places *places, const char *text, size_t bytes, bool lacks_arity);
/* The same, but the number of that name if it is there already. @by_name: of the names, zeroed at first. */
uint32_t tw_places_find(struct tw_places *places, struct tw_map *by_name, const char *text, size_t bytes,
			bool lacks_arity);

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

/* Does the capture have any returns, or calls of which returns were asked for? */
static inline bool tw_places_have_returns(const struct tw_places *places)
{
	return places->kinds[TW_CAPTURE_RETURN_FROM] || places->kinds[TW_CAPTURE_EXCEPTION_FROM] ||
	       (places->has_returns && places->kinds[TW_CAPTURE_CALL]);
}

/* Does the capture have anything with a duration: calls, or garbage collections? */
static inline bool tw_places_have_durations(const struct tw_places *places)
{
	for (unsigned kind = TW_CAPTURE_GC_MINOR_START; kind <= TW_CAPTURE_GC_MAJOR_END; kind++) {
		if (places->kinds[kind])
			return true;
	}
	return tw_places_have_returns(places);
}

/* Does the capture have call stacks, and nothing with a duration? */
static inline bool tw_places_have_stacks_only(const struct tw_places *places)
{
	return places->kinds[TW_CAPTURE_STACK] && !tw_places_have_durations(places);
}

#endif
