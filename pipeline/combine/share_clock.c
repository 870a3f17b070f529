/* SPDX-License-Identifier: Apache-2.0 */
/*
 * share_clock.c - merge.h: captures of one boot on one clock.
 *
 * Their ticks are those of one machine. Their CLOCK_MONOTONIC is the same as well, unless a recorder ran in a time namespace of
 * its own, as in a container: there it differs by a constant. If two recordings overlap in ticks, both clocks are
 * compared directly; else the earlier one is extended to the later one. That is wrong by the drift in between, and by the time that the
 * machine was suspended, which CLOCK_MONOTONIC leaves out and CLOCK_BOOTTIME does not.
 */
#include "base/error.h"
#include "base/export.h"
#include "pipeline/combine/copy.h"

#include <stdlib.h>
#include <string.h>

/* Two readings of one clock differ by far less, and namespaces of use by far more. */
#define NOISE_NS INT64_C(1000000)
/* A reading is wrong by less. */
#define READING_NS INT64_C(10000)
/* The most that one clock drifts against the other: NTP slews by 500 ppm. */
#define DRIFT_PPM 600
#define SECOND_NS INT64_C(1000000000)

/* Readings of both clocks near one moment. */
struct meeting {
	const struct tw_format_clock *own;   /* of the capture that is looked at */
	const struct tw_format_clock *known; /* of one on the common clock */
	int64_t gap_ns;	       /* between both; negative: the capture is the earlier one; 0: the recordings overlap */
	int64_t difference_ns; /* of the capture's clock, less the common one at the same ticks */
};

/* Captures may have any readings: sums of some of these do not overflow. */
#define FAR_NS (INT64_C(1) << 60)

static int64_t less(uint64_t a, uint64_t b)
{
	int64_t difference = (int64_t)(a - b);

	return difference > FAR_NS ? FAR_NS : difference < -FAR_NS ? -FAR_NS : difference;
}

static int64_t size_of(int64_t ns)
{
	return ns < 0 ? -ns : ns;
}

static const struct tw_format_clock *first_of(const struct tw_clockmap *map)
{
	return &map->points[0].clock;
}

static const struct tw_format_clock *last_of(const struct tw_clockmap *map)
{
	return &map->points[map->count - 1].clock;
}

static int64_t difference_at(const struct tw_clockmap *known, const struct tw_format_clock *own)
{
	size_t hint = 0;

	return less(own->monotonic_ns, tw_clockmap_ns(known, own->ticks, &hint));
}

/* The last reading at or before these ticks; the first if there is none. */
static const struct tw_format_clock *before(const struct tw_clockmap *map, uint64_t ticks)
{
	const struct tw_format_clock *found = first_of(map);

	for (size_t i = 1; i < map->count && map->points[i].clock.ticks <= ticks; i++)
		found = &map->points[i].clock;
	return found;
}

/* At least 1: 0 is no gap. */
static int64_t length_of(const struct tw_clockmap *map, uint64_t ticks)
{
	uint64_t ns = tw_clockmap_length_ns(map, ticks);

	return ns >= (uint64_t)FAR_NS ? FAR_NS : (int64_t)ns + 1;
}

/* Both have points. */
static struct meeting meet(const struct tw_clockmap *own, const struct tw_clockmap *known)
{
	struct meeting met = {.own = first_of(own), .known = last_of(known)};

	if (first_of(own)->ticks > last_of(known)->ticks) {
		met.gap_ns = length_of(known, met.own->ticks - met.known->ticks);
	} else if (last_of(own)->ticks < first_of(known)->ticks) {
		met.own = last_of(own);
		met.known = first_of(known);
		met.gap_ns = -length_of(known, met.known->ticks - met.own->ticks);
	} else if (first_of(own)->ticks < first_of(known)->ticks) {
		/* At the other's first reading: the sign is that of a reading of its own. */
		size_t hint = 0;

		met.own = before(own, first_of(known)->ticks);
		met.known = first_of(known);
		met.difference_ns = less(tw_clockmap_ns(own, met.known->ticks, &hint), met.known->monotonic_ns);
		return met;
	} else {
		met.known = before(known, met.own->ticks);
	}
	met.difference_ns = difference_at(known, met.own);
	return met;
}

/* CLOCK_BOOTTIME less CLOCK_MONOTONIC. */
static int64_t suspended(const struct tw_format_clock *clock)
{
	return less(clock->boottime_ns, clock->monotonic_ns);
}

/* The distance by which the capture's clock must be moved. */
static int64_t shift_of(const struct meeting *met)
{
	int64_t allowed = NOISE_NS + size_of(met->gap_ns) / 1000000 * DRIFT_PPM;
	/* A suspension in between: CLOCK_BOOTTIME went on with the ticks. */
	int64_t slept = suspended(met->own) - suspended(met->known);
	bool has_slept = size_of(met->difference_ns + slept) <= allowed && size_of(slept) <= size_of(met->gap_ns) &&
			 (met->gap_ns > 0) == (slept > 0);
	int64_t whole =
		(met->difference_ns + (met->difference_ns < 0 ? -SECOND_NS : SECOND_NS) / 2) / SECOND_NS * SECOND_NS;

	if (size_of(met->difference_ns) <= allowed || has_slept)
		return 0;
	/* Namespaces are moved by whole seconds as a rule; noise and drift hide that. */
	if (!met->gap_ns)
		allowed = READING_NS;
	else if (allowed > SECOND_NS / 4)
		allowed = SECOND_NS / 4;
	return size_of(met->difference_ns - whole) <= allowed ? -whole : -met->difference_ns;
}

/* All times that were computed when it was opened, and the readings by which others will be. */
static void move(struct tw_capture *capture, int64_t shift_ns, int64_t boot_shift_ns)
{
	uint64_t shift = (uint64_t)shift_ns;

	capture->clock_shift_ns += shift_ns;
	capture->info.start_ns += shift;
	capture->info.zero_ns += shift;
	capture->info.end_ns += shift;
	for (uint32_t i = 0; i < capture->stream_count; i++) {
		capture->streams[i].info.start_ns += shift;
		capture->streams[i].info.end_ns += shift;
	}
	for (uint32_t i = 0; i < capture->image_count; i++)
		capture->images[i]->info.start_ns += shift;
	for (size_t i = 0; i < capture->clocks.count; i++) {
		capture->clocks.points[i].clock.monotonic_ns += shift;
		capture->clocks.points[i].clock.boottime_ns += (uint64_t)boot_shift_ns;
	}
}

/* Moves a capture to the clock of those before it, by the one that is nearest in time. */
static void join(struct tw_capture *const *captures, uint32_t number)
{
	struct meeting nearest = {0};

	for (uint32_t i = 0; i < number && captures[number]->clocks.count; i++) {
		struct meeting met;

		if (!captures[i]->clocks.count)
			continue;
		met = meet(&captures[number]->clocks, &captures[i]->clocks);
		if (!nearest.own || size_of(met.gap_ns) < size_of(nearest.gap_ns))
			nearest = met;
	}
	int64_t shift = nearest.own ? shift_of(&nearest) : 0;
	if (shift)
		move(captures[number], shift, shift + suspended(nearest.known) - suspended(nearest.own));
}

TW_API int tw_captures_share_clock(struct tw_capture *const *captures, uint32_t count)
{
	struct tw_clockmap all = {0};
	int error = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (!captures[i]->image_count ||
		    captures[i]->images[0]->header.clock_source != captures[0]->images[0]->header.clock_source)
			return TW_ENOTSUP;
	}
	for (uint32_t i = 1; i < count; i++)
		join(captures, i);
	for (uint32_t i = 0; i < count && !error; i++)
		error = tw_clockmap_add_all(&all, &captures[i]->clocks) ? 0 : TW_ENOMEM;
	if (!error && count)
		tw_clockmap_finish(&all, captures[0]->images[0]->header.ticks_per_second);
	for (uint32_t i = 0; i < count && !error; i++) {
		struct tw_clockmap_point *points = malloc((all.count + 1) * sizeof *points);

		if (!points) {
			error = TW_ENOMEM;
			break;
		}
		memcpy(points, all.points, all.count * sizeof *points);
		tw_clockmap_fini(&captures[i]->clocks);
		captures[i]->clocks = (struct tw_clockmap){points, all.count, all.count + 1, all.default_rate};
	}
	tw_clockmap_fini(&all);
	return error;
}

TW_API int64_t tw_capture_clock_shift_ns(const struct tw_capture *capture)
{
	return capture->clock_shift_ns;
}
