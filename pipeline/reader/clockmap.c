/* SPDX-License-Identifier: Apache-2.0 */
/* clockmap.c - thins clock snapshots and connects them by straight lines. */
#include "pipeline/reader/clockmap.h"
#include "base/grow.h"
#include "base/search.h"

#include <stdlib.h>

#define NEAR_NS UINT64_C(50000000)
/* The least step of one clock against the other that is kept at any distance from the last point. */
#define STEP_NS	      INT64_C(1000000)
#define NS_PER_SECOND UINT64_C(1000000000)

void tw_clockmap_fini(struct tw_clockmap *map)
{
	free(map->points);
	*map = (struct tw_clockmap){0};
}

static bool is_step(uint64_t offset, uint64_t other)
{
	int64_t difference = (int64_t)(offset - other);

	return difference > STEP_NS || difference < -STEP_NS;
}

/* Does `next` add anything to `before` and a straight line? */
static bool is_needed(const struct tw_format_clock *before, const struct tw_format_clock *next)
{
	return next->monotonic_ns - before->monotonic_ns >= NEAR_NS ||
	       is_step(next->realtime_ns - next->monotonic_ns, before->realtime_ns - before->monotonic_ns) ||
	       is_step(next->boottime_ns - next->monotonic_ns, before->boottime_ns - before->monotonic_ns);
}

bool tw_clockmap_add(struct tw_clockmap *map, const struct tw_format_clock *clock)
{
	if (map->count) {
		const struct tw_format_clock *last = &map->points[map->count - 1].clock;

		if (clock->ticks >= last->ticks && clock->monotonic_ns >= last->monotonic_ns && !is_needed(last, clock))
			return true;
	}
	if (!tw_grow(map->points, map->count, map->capacity))
		return false;
	map->points[map->count++].clock = *clock;
	return true;
}

bool tw_clockmap_add_all(struct tw_clockmap *map, const struct tw_clockmap *from)
{
	for (size_t i = 0; i < from->count; i++) {
		if (!tw_grow(map->points, map->count, map->capacity))
			return false;
		map->points[map->count++].clock = from->points[i].clock;
	}
	return true;
}

static int compare_points(const void *a, const void *b)
{
	const struct tw_format_clock *left = &((const struct tw_clockmap_point *)a)->clock;
	const struct tw_format_clock *right = &((const struct tw_clockmap_point *)b)->clock;

	return TW_ORDER(left->ticks, right->ticks);
}

void tw_clockmap_finish(struct tw_clockmap *map, uint64_t ticks_per_second)
{
	struct tw_clockmap_point *points = map->points;
	size_t kept = 0;

	map->default_rate =
		ticks_per_second
			? (uint64_t)(((unsigned __int128)NS_PER_SECOND << TW_CLOCKMAP_RATE_BITS) / ticks_per_second)
			: UINT64_C(1) << TW_CLOCKMAP_RATE_BITS;
	if (!map->count)
		return;
	qsort(points, map->count, sizeof *points, compare_points);
	for (size_t i = 1; i < map->count; i++) {
		const struct tw_format_clock *last = &points[kept].clock, *next = &points[i].clock;

		/* Both clocks must have advanced. */
		if (next->ticks > last->ticks && next->monotonic_ns >= last->monotonic_ns && is_needed(last, next))
			points[++kept] = points[i];
	}
	map->count = kept + 1;
	points[kept].rate = map->default_rate;
	for (size_t i = 0; i < kept; i++) {
		uint64_t ticks = points[i + 1].clock.ticks - points[i].clock.ticks;
		uint64_t ns = points[i + 1].clock.monotonic_ns - points[i].clock.monotonic_ns;
		unsigned __int128 rate = ((unsigned __int128)ns << TW_CLOCKMAP_RATE_BITS) / ticks;

		/* A clock below 1 Hz is invalid; the product below must not overflow. */
		points[i].rate = rate >> 62 ? map->default_rate : (uint64_t)rate;
		points[kept].rate = points[i].rate;
	}
}

static uint64_t along(uint64_t distance, uint64_t rate)
{
	return (uint64_t)((unsigned __int128)distance * rate >> TW_CLOCKMAP_RATE_BITS);
}

uint64_t tw_clockmap_length_ns(const struct tw_clockmap *map, uint64_t ticks)
{
	return along(ticks, map->default_rate);
}

/* The last point at or before these ticks; the first if there is none. */
static size_t find_ticks(const struct tw_clockmap *map, uint64_t ticks)
{
	size_t after = tw_search(i, map->count, map->points[i].clock.ticks <= ticks);

	return after ? after - 1 : 0;
}

uint64_t tw_clockmap_ns(const struct tw_clockmap *map, uint64_t ticks, size_t *hint)
{
	const struct tw_clockmap_point *point;
	size_t at = *hint;
	uint64_t ns;

	if (!map->count)
		return along(ticks, map->default_rate);
	if (at >= map->count || ticks < map->points[at].clock.ticks ||
	    (at + 1 < map->count && ticks >= map->points[at + 1].clock.ticks))
		*hint = at = find_ticks(map, ticks);
	point = &map->points[at];
	if (ticks < point->clock.ticks) {
		ns = along(point->clock.ticks - ticks, point->rate);
		return ns < point->clock.monotonic_ns ? point->clock.monotonic_ns - ns : 0;
	}
	ns = point->clock.monotonic_ns + along(ticks - point->clock.ticks, point->rate);
	if (at + 1 < map->count && ns > map->points[at + 1].clock.monotonic_ns)
		return map->points[at + 1].clock.monotonic_ns;
	return ns;
}

void tw_clockmap_line(const struct tw_clockmap *map, uint64_t ticks, struct tw_capture_clock *line)
{
	size_t at = map->count ? find_ticks(map, ticks) : 0;
	const struct tw_clockmap_point *point = map->points + at;

	if (!map->count) {
		*line = (struct tw_capture_clock){0, UINT64_MAX, 0, UINT64_MAX, map->default_rate};
		return;
	}
	*line = (struct tw_capture_clock){point->clock.ticks, UINT64_MAX, point->clock.monotonic_ns, UINT64_MAX,
					  point->rate};
	if (at + 1 < map->count) {
		line->end_ticks = point[1].clock.ticks;
		line->end_ns = point[1].clock.monotonic_ns;
	}
	/* Before the first point the line goes the other way: it is one of this moment only. */
	if (ticks < point->clock.ticks) {
		size_t hint = 0;
		uint64_t ns = tw_clockmap_ns(map, ticks, &hint);

		*line = (struct tw_capture_clock){ticks, ticks + 1, ns, ns, 0};
	}
}

static const struct tw_format_clock *find_ns(const struct tw_clockmap *map, uint64_t ns)
{
	size_t after = tw_search(i, map->count, map->points[i].clock.monotonic_ns <= ns);

	return &map->points[after ? after - 1 : 0].clock;
}

uint64_t tw_clockmap_wall_ns(const struct tw_clockmap *map, uint64_t ns)
{
	const struct tw_format_clock *clock = map->count ? find_ns(map, ns) : NULL;

	return clock ? ns - clock->monotonic_ns + clock->realtime_ns : ns;
}

uint64_t tw_clockmap_of_wall(const struct tw_clockmap *map, uint64_t wall_ns)
{
	const struct tw_format_clock *first = map->count ? &map->points[0].clock : NULL;
	uint64_t ns;

	for (size_t i = 0; i < map->count; i++) {
		const struct tw_format_clock *clock = &map->points[i].clock;

		if (wall_ns < clock->realtime_ns)
			continue;
		ns = clock->monotonic_ns + (wall_ns - clock->realtime_ns);
		if (i + 1 == map->count || ns < map->points[i + 1].clock.monotonic_ns)
			return ns;
	}
	if (!first)
		return wall_ns;
	ns = first->monotonic_ns + (wall_ns - first->realtime_ns);
	return wall_ns < first->realtime_ns && first->realtime_ns - wall_ns > first->monotonic_ns ? 0 : ns;
}

uint64_t tw_clockmap_boot_ns(const struct tw_clockmap *map, uint64_t ns)
{
	const struct tw_format_clock *clock = map->count ? find_ns(map, ns) : NULL;

	return clock ? ns - clock->monotonic_ns + clock->boottime_ns : ns;
}
