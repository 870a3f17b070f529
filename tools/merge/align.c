/* SPDX-License-Identifier: Apache-2.0 */
/* align.c - hulls of the messages between machines, and all machines in one time. */
#include "tools/merge/align_line.h"
#include "base/grow.h"
#include "base/search.h"

#include "tracewheel/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A message takes at least so long: rounding never puts a receive before its send. */
#define LEAST_NS 5.0
/* Points that are collected before a hull is made of them. */
#define FRESH_MAX 4096
/* Rounds in which machines adapt to each other. */
#define ROUNDS_MAX 60

/* A message: the clocks of both machines, relative to their starts. */
struct point {
	double received, sent;
};

/*
 * The messages of one direction, within a window of each clock: the first `hull` points are the hull, in order of
 * received; the others are fresh.
 */
struct cell {
	struct cell *next; /* of the same window of the receive */
	unsigned sent_window;
	struct point *points;
	uint32_t hull, count, capacity;
};

struct way {
	uint64_t messages;
	struct cell *cells[TW_ALIGN_WINDOWS]; /* by window of the receive; in each one for a window of the send */
};

struct tw_align {
	struct tw_align_machine *machines;
	uint32_t count;
	uint32_t reference;
	struct way **ways; /* from * count + to; NULL: no message */
	bool *is_known;
};

/* ---- collecting ---- */

struct tw_align *tw_align_create(struct tw_align_machine *machines, uint32_t count)
{
	struct tw_align *align = calloc(1, sizeof *align);
	if (!align)
		return NULL;
	align->machines = machines;
	align->count = count;
	align->ways = calloc((size_t)count * count + 1, sizeof *align->ways);
	align->is_known = calloc(count + (size_t)1, sizeof *align->is_known);
	if (!align->ways || !align->is_known) {
		tw_align_destroy(align);
		return NULL;
	}
	return align;
}

void tw_align_destroy(struct tw_align *align)
{
	if (!align)
		return;
	for (size_t i = 0; align->ways && i < (size_t)align->count * align->count; i++) {
		struct way *way = align->ways[i];
		for (size_t window = 0; way && window < TW_ALIGN_WINDOWS; window++) {
			for (struct cell *cell = way->cells[window], *next; cell; cell = next) {
				next = cell->next;
				free(cell->points);
				free(cell);
			}
		}
		free(way);
	}
	free(align->ways);
	free(align->is_known);
	free(align);
}

static double relative(const struct tw_align_machine *machine, uint64_t ns)
{
	return ns >= machine->start_ns ? (double)(ns - machine->start_ns) : -(double)(machine->start_ns - ns);
}

static unsigned window_of(const struct tw_align_machine *machine, double at)
{
	double window = at / tw_align_length(machine) * TW_ALIGN_WINDOWS;
	return window < 0 ? 0 : window >= TW_ALIGN_WINDOWS ? TW_ALIGN_WINDOWS - 1 : (unsigned)window;
}

static int by_received(const void *a, const void *b)
{
	const struct point *left = a, *right = b;
	return TW_ORDER(left->received, right->received) ?: TW_ORDER(right->sent, left->sent);
}

/* Does b lie on or below the line from a to c? */
static bool is_below(const struct point *a, const struct point *b, const struct point *c)
{
	return (long double)(b->sent - a->sent) * (c->received - a->received) <=
	       (long double)(c->sent - a->sent) * (b->received - a->received);
}

/* Keeps the upper hull of sent over received: the latest sends for the earliest receives. */
static void make_hull(struct cell *cell)
{
	uint32_t kept = 0;
	qsort(cell->points, cell->count, sizeof *cell->points, by_received);
	for (uint32_t i = 0; i < cell->count; i++) {
		/* Later, and sent no later: the points before it say as much. */
		if (kept && cell->points[i].sent <= cell->points[kept - 1].sent)
			continue;
		while (kept >= 2 && is_below(&cell->points[kept - 2], &cell->points[kept - 1], &cell->points[i]))
			kept--;
		cell->points[kept++] = cell->points[i];
	}
	cell->hull = cell->count = kept;
}

bool tw_align_add(struct tw_align *align, uint32_t from, uint64_t sent_ns, uint32_t to, uint64_t received_ns)
{
	struct way **way = &align->ways[(size_t)from * align->count + to];
	struct point point = {relative(&align->machines[to], received_ns), relative(&align->machines[from], sent_ns)};
	unsigned window = window_of(&align->machines[to], point.received);
	unsigned sent_window = window_of(&align->machines[from], point.sent);
	if (from == to)
		return true;
	if (!*way)
		*way = calloc(1, sizeof **way);
	if (!*way)
		return false;
	struct cell *cell = (*way)->cells[window];
	while (cell && cell->sent_window != sent_window)
		cell = cell->next;
	if (!cell) {
		cell = calloc(1, sizeof *cell);
		if (!cell)
			return false;
		cell->sent_window = sent_window;
		cell->next = (*way)->cells[window];
		(*way)->cells[window] = cell;
	}
	if (cell->count == cell->capacity) {
		if (cell->count - cell->hull >= FRESH_MAX)
			make_hull(cell);
		if (cell->count * 2 >= cell->capacity && !tw_grow(cell->points, cell->capacity, cell->capacity))
			return false;
	}
	cell->points[cell->count++] = point;
	(*way)->messages++;
	align->machines[from].sent++;
	align->machines[to].received++;
	return true;
}

/* ---- time ---- */

double tw_align_common(const struct tw_align_machine *machine, uint64_t ns)
{
	return tw_align_common_at(machine, relative(machine, ns));
}

/* ---- the bounds of one machine, the others being known ---- */

/* A receive is later than its send by the other machine. */
static bool take_lower(const struct tw_align_machine *other, const struct cell *cell, uint32_t number,
		       struct tw_align_bounds *bounds)
{
	for (uint32_t i = 0; i < cell->hull; i++) {
		const struct point *point = &cell->points[i];
		struct tw_align_bound bound = {point->received, tw_align_common_at(other, point->sent) + LEAST_NS,
					       number};
		if (!tw_align_put_bound(&bounds->lower, &bounds->lower_count, bound))
			return false;
	}
	return true;
}

/* A send is earlier than its receive by the other machine. */
static bool take_upper(const struct tw_align_machine *other, const struct cell *cell, uint32_t number,
		       struct tw_align_bounds *bounds)
{
	for (uint32_t i = 0; i < cell->hull; i++) {
		const struct point *point = &cell->points[i];
		struct tw_align_bound bound = {point->sent, tw_align_common_at(other, point->received) - LEAST_NS,
					       number};
		if (!tw_align_put_bound(&bounds->upper, &bounds->upper_count, bound))
			return false;
	}
	return true;
}

static bool take_way(struct tw_align *align, uint32_t from, uint32_t to, uint32_t machine,
		     struct tw_align_bounds *bounds)
{
	struct way *way = align->ways[(size_t)from * align->count + to];
	for (size_t window = 0; way && window < TW_ALIGN_WINDOWS; window++) {
		for (const struct cell *cell = way->cells[window]; cell; cell = cell->next) {
			if (!(machine == to ? take_lower : take_upper)(&align->machines[machine == to ? from : to],
								       cell, machine == to ? from : to, bounds))
				return false;
		}
	}
	return true;
}

/* Collects the bounds, in order of time, by all machines that are known, or by one of them. */
static bool take_bounds(struct tw_align *align, uint32_t machine, uint32_t only, struct tw_align_bounds *bounds)
{
	*bounds = (struct tw_align_bounds){0};
	for (uint32_t other = 0; other < align->count; other++) {
		if (other == machine || !align->is_known[other] || (only != UINT32_MAX && other != only))
			continue;
		if (!take_way(align, other, machine, machine, bounds) ||
		    !take_way(align, machine, other, machine, bounds))
			return false;
	}
	tw_align_sort_bounds(bounds);
	return true;
}

/* ---- uncertainty ---- */

/*
 * The bounds of one machine are exact but for the error of its own time, so that both add up; those of others only
 * narrow the estimate.
 */
static int find_uncertainty(struct tw_align *align, uint32_t number)
{
	struct tw_align_machine *machine = &align->machines[number];
	const struct tw_align_machine *through = &align->machines[machine->through];
	struct tw_align_bounds bounds;
	bool has_memory = take_bounds(align, number, machine->through, &bounds);
	if (has_memory) {
		tw_align_set_uncertainty(machine, &bounds);
		machine->uncertainty_ns += through->uncertainty_max_ns;
		machine->uncertainty_max_ns += through->uncertainty_max_ns;
		machine->drift_uncertainty += through->drift_uncertainty;
	}
	tw_align_free_bounds(&bounds);
	return has_memory ? 0 : TW_ENOMEM;
}

/* ---- all machines ---- */

static uint64_t messages_of(const struct tw_align *align, uint32_t from, uint32_t to)
{
	const struct way *way = align->ways[(size_t)from * align->count + to];
	return way ? way->messages : 0;
}

/* By wall clocks: the common time of the machine's start. */
static double wall_start(const struct tw_align *align, const struct tw_align_machine *machine)
{
	const struct tw_align_machine *reference = &align->machines[align->reference];
	return machine->start_wall_ns >= reference->start_wall_ns
		       ? (double)(machine->start_wall_ns - reference->start_wall_ns)
		       : -(double)(reference->start_wall_ns - machine->start_wall_ns);
}

/* The machine, unknown so far, with most messages both ways (or any) with one that is known. UINT32_MAX: none. */
static uint32_t next_machine(const struct tw_align *align, bool both_ways, uint32_t *through)
{
	uint32_t best = UINT32_MAX;
	uint64_t most = 0;
	for (uint32_t machine = 0; machine < align->count; machine++) {
		for (uint32_t other = 0; other < align->count && !align->is_known[machine]; other++) {
			uint64_t there = messages_of(align, other, machine), back = messages_of(align, machine, other);
			uint64_t count = both_ways ? (there < back ? there : back) : there + back;
			if (!align->is_known[other] || count <= most)
				continue;
			most = count;
			best = machine;
			*through = other;
		}
	}
	return best;
}

static int place_both_ways(struct tw_align *align, uint32_t number, uint32_t through, bool *has_conflict)
{
	struct tw_align_bounds bounds;
	bool has_memory = take_bounds(align, number, UINT32_MAX, &bounds);
	align->machines[number].by = TW_ALIGN_MESSAGES;
	align->machines[number].through = through;
	if (has_memory && !tw_align_set_middle(&align->machines[number], &bounds))
		*has_conflict = true;
	tw_align_free_bounds(&bounds);
	align->is_known[number] = true;
	return has_memory ? 0 : TW_ENOMEM;
}

/* Wall clocks, moved as far as the messages demand. */
static int place_one_way(struct tw_align *align, uint32_t number, uint32_t through)
{
	struct tw_align_machine *machine = &align->machines[number];
	struct tw_align_bounds bounds;
	bool has_memory = take_bounds(align, number, UINT32_MAX, &bounds);
	tw_align_set_line(machine, wall_start(align, machine), 0);
	if (has_memory)
		tw_align_set_any(machine, &bounds);
	machine->by = TW_ALIGN_ONE_WAY;
	machine->through = through;
	align->is_known[number] = true;
	tw_align_free_bounds(&bounds);
	return has_memory ? 0 : TW_ENOMEM;
}

static int place_all(struct tw_align *align, bool *has_conflict)
{
	uint32_t number, through = 0;
	int error = 0;
	while (error == 0) {
		if ((number = next_machine(align, true, &through)) != UINT32_MAX) {
			error = place_both_ways(align, number, through, has_conflict);
		} else if ((number = next_machine(align, false, &through)) != UINT32_MAX) {
			error = place_one_way(align, number, through);
		} else {
			/* No message leads to the others. */
			for (number = 0; number < align->count && align->is_known[number]; number++)
				;
			if (number == align->count)
				break;
			align->is_known[number] = true;
			align->machines[number].by = TW_ALIGN_WALL;
			align->machines[number].through = align->reference;
			tw_align_set_line(&align->machines[number], wall_start(align, &align->machines[number]), 0);
		}
	}
	return error;
}

/* The worst message of all: by how much it is received before it was sent. */
static double worst_of(struct tw_align *align, struct tw_align_conflict *conflict, bool *has_memory)
{
	double worst = 0;
	for (uint32_t number = 0; number < align->count; number++) {
		struct tw_align_bounds bounds;
		if (number == align->reference)
			continue;
		if (!take_bounds(align, number, UINT32_MAX, &bounds)) {
			tw_align_free_bounds(&bounds);
			*has_memory = false;
			return 0;
		}
		for (unsigned side = 0; side < 2; side++) {
			const struct tw_align_bound *from = side ? bounds.upper : bounds.lower;
			uint32_t count = side ? bounds.upper_count : bounds.lower_count;
			for (uint32_t i = 0; i < count; i++) {
				double common = tw_align_common_at(&align->machines[number], from[i].at);
				double by = side ? common - from[i].common : from[i].common - common;
				/* Within what doubles can tell of times of days. */
				if (by <= worst || by < LEAST_NS / 2)
					continue;
				worst = by;
				conflict->machine = number;
				conflict->other = from[i].other;
				conflict->at_ns = align->machines[number].start_ns + (uint64_t)fmax(from[i].at, 0);
				conflict->by_ns = by;
			}
		}
		tw_align_free_bounds(&bounds);
	}
	return worst;
}

/* Each machine in turn adapts to all others. Returns 1: no message contradicts another any more, 0, or TW_ENOMEM. */
static int adapt(struct tw_align *align, uint32_t pieces, struct tw_align_conflict *conflict)
{
	bool has_memory = true;
	bool is_changed = true;
	for (unsigned round = 0; round < ROUNDS_MAX && is_changed; round++) {
		is_changed = false;
		if (worst_of(align, conflict, &has_memory) == 0)
			return has_memory ? 1 : TW_ENOMEM;
		for (uint32_t number = 0; number < align->count; number++) {
			struct tw_align_machine *machine = &align->machines[number];
			struct tw_align_bounds bounds;
			int result = 1;
			if (number == align->reference || machine->by == TW_ALIGN_WALL)
				continue;
			double before = machine->common[0], end = machine->common[machine->pieces];
			has_memory = take_bounds(align, number, UINT32_MAX, &bounds);
			if (has_memory && pieces == 1)
				tw_align_set_any(machine, &bounds);
			else if (has_memory)
				result = tw_align_set_joined(machine, &bounds, pieces);
			tw_align_free_bounds(&bounds);
			if (!has_memory || result < 0)
				return TW_ENOMEM;
			is_changed |= machine->common[0] != before || machine->common[machine->pieces] != end;
		}
	}
	return 0;
}

static void make_hulls(struct tw_align *align)
{
	for (size_t i = 0; i < (size_t)align->count * align->count; i++) {
		struct way *way = align->ways[i];
		for (size_t window = 0; way && window < TW_ALIGN_WINDOWS; window++) {
			for (struct cell *cell = way->cells[window]; cell; cell = cell->next)
				make_hull(cell);
		}
	}
}

int tw_align_solve(struct tw_align *align, uint32_t reference, struct tw_align_conflict *conflict)
{
	static const uint32_t pieces[] = {1, 8, 64, TW_ALIGN_WINDOWS};
	bool has_conflict = false;
	int result = 0;
	make_hulls(align);
	align->reference = reference;
	align->machines[reference].by = TW_ALIGN_REFERENCE;
	tw_align_set_line(&align->machines[reference], 0, 0);
	align->is_known[reference] = true;
	int error = place_all(align, &has_conflict);
	if (error)
		return error;
	/* If clocks were slewed, no single line is possible. */
	for (unsigned i = 0; i < sizeof pieces / sizeof *pieces && result == 0; i++)
		result = adapt(align, pieces[i], conflict);
	if (result <= 0)
		return result < 0 ? result : TW_EFORMAT;
	/* In the order in which they became known: each after the one that it was compared with. */
	for (uint32_t left = align->count, before = left + 1; left && left < before;) {
		before = left;
		left = 0;
		for (uint32_t number = 0; number < align->count; number++) {
			struct tw_align_machine *machine = &align->machines[number];
			bool is_due = machine->by == TW_ALIGN_MESSAGES && machine->uncertainty_ns == 0;
			const struct tw_align_machine *through = &align->machines[machine->through];
			if (!is_due)
				continue;
			if (through->by == TW_ALIGN_MESSAGES && through->uncertainty_ns == 0) {
				left++;
				continue;
			}
			error = find_uncertainty(align, number);
			if (error)
				return error;
		}
	}
	return 0;
}
