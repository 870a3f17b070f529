/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clockmap.h - ticks to time, piecewise between the clock snapshots of a capture.
 *
 * Between two snapshots time is a straight line, so that drift and suspension appear where they happened; before the
 * first and after the last one the nearest line is extended. Larger ticks never give an earlier time. Snapshots are
 * thinned: points closer together would only measure the noise of taking them.
 *
 * Threads  one while points are added; any number of readers after tw_clockmap_finish().
 */
#ifndef TW_PIPELINE_CLOCKMAP_H
#define TW_PIPELINE_CLOCKMAP_H

#include "pipeline/format/format.h"
#include "tracewheel/spans.h"

#include <stdbool.h>
#include <stddef.h>

#define TW_CLOCKMAP_RATE_BITS 32

struct tw_clockmap_point {
	struct tw_format_clock clock;
	uint64_t rate; /* nanoseconds per tick, in 2^-32, from here to the next point */
};

/* Zeroed: empty. */
struct tw_clockmap {
	struct tw_clockmap_point *points;
	size_t count;
	size_t capacity;
	uint64_t default_rate;
};

void tw_clockmap_fini(struct tw_clockmap *map);
/* In any order, but fastest in order of time; false: no memory. */
bool tw_clockmap_add(struct tw_clockmap *map, const struct tw_format_clock *clock);
/* Adds all points of another map. */
bool tw_clockmap_add_all(struct tw_clockmap *map, const struct tw_clockmap *from);
void tw_clockmap_finish(struct tw_clockmap *map, uint64_t ticks_per_second);

/*
 * @hint: the position of the last search, 0 at first; makes the next one fast.
 */
uint64_t tw_clockmap_ns(const struct tw_clockmap *map, uint64_t ticks, size_t *hint);
/* The same, fast between the two points of the last search. */
static inline uint64_t tw_clockmap_near_ns(const struct tw_clockmap *map, uint64_t ticks, size_t *hint)
{
	const struct tw_clockmap_point *point = map->points + *hint;
	uint64_t ns;

	if (*hint + 1 >= map->count || ticks < point->clock.ticks || ticks >= point[1].clock.ticks)
		return tw_clockmap_ns(map, ticks, hint);
	ns = point->clock.monotonic_ns +
	     (uint64_t)((unsigned __int128)(ticks - point->clock.ticks) * point->rate >> TW_CLOCKMAP_RATE_BITS);
	return ns < point[1].clock.monotonic_ns ? ns : point[1].clock.monotonic_ns;
}
/* The straight line that these ticks lie on. */
void tw_clockmap_line(const struct tw_clockmap *map, uint64_t ticks, struct tw_capture_clock *line);
/* The nanoseconds of that many ticks, at the clock rate of the beginning of the recording. */
uint64_t tw_clockmap_length_ns(const struct tw_clockmap *map, uint64_t ticks);
/* CLOCK_REALTIME and CLOCK_BOOTTIME, in nanoseconds, at a time of CLOCK_MONOTONIC. */
uint64_t tw_clockmap_wall_ns(const struct tw_clockmap *map, uint64_t ns);
/* The first time at which CLOCK_REALTIME had this value; if it never had, computed from its first offset. */
uint64_t tw_clockmap_of_wall(const struct tw_clockmap *map, uint64_t wall_ns);
uint64_t tw_clockmap_boot_ns(const struct tw_clockmap *map, uint64_t ns);

#endif
