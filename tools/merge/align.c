/* SPDX-License-Identifier: Apache-2.0 */
/* align.c - hulls of the messages between two machines, and the lines between them. */
#include "tools/merge/align.h"

#include "tracewheel/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A message takes at least so long: rounding never puts a receive before its send. */
#define LEAST_NS 5.0
/* Points that are collected before a hull is made of them. */
#define FRESH_MAX 4096
/* Steps of a search for the best slope, and rounds in which machines adapt to each other. */
#define STEPS	   80
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

static double length_of(const struct tw_align_machine *machine)
{
	return machine->end_ns > machine->start_ns ? (double)(machine->end_ns - machine->start_ns) : 1;
}

static double relative(const struct tw_align_machine *machine, uint64_t ns)
{
	return ns >= machine->start_ns ? (double)(ns - machine->start_ns) : -(double)(machine->start_ns - ns);
}

static unsigned window_of(const struct tw_align_machine *machine, double at)
{
	double window = at / length_of(machine) * TW_ALIGN_WINDOWS;
	return window < 0 ? 0 : window >= TW_ALIGN_WINDOWS ? TW_ALIGN_WINDOWS - 1 : (unsigned)window;
}

static int by_received(const void *a, const void *b)
{
	const struct point *left = a, *right = b;
	if (left->received != right->received)
		return left->received < right->received ? -1 : 1;
	return left->sent < right->sent ? 1 : left->sent > right->sent ? -1 : 0;
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
		uint32_t capacity = cell->capacity ? cell->capacity * 2 : 16;
		if (cell->count * 2 >= cell->capacity) {
			struct point *grown = realloc(cell->points, capacity * sizeof *grown);
			if (!grown)
				return false;
			cell->points = grown;
			cell->capacity = capacity;
		}
	}
	cell->points[cell->count++] = point;
	(*way)->messages++;
	align->machines[from].sent++;
	align->machines[to].received++;
	return true;
}

/* ---- time ---- */

static double common_at(const struct tw_align_machine *machine, double at)
{
	double step = length_of(machine) / machine->pieces;
	unsigned piece = at <= 0 ? 0 : (unsigned)fmin(at / step, machine->pieces - 1);
	double rate = (machine->common[piece + 1] - machine->common[piece]) / step;
	return machine->common[piece] + (at - step * piece) * rate;
}

double tw_align_common(const struct tw_align_machine *machine, uint64_t ns)
{
	return common_at(machine, relative(machine, ns));
}

/* ---- the bounds of one machine, the others being known ---- */

/* At this time of its own clock the common time is at least, or at most, that. */
struct bound {
	double at, common;
	uint32_t other;
};

struct bounds {
	struct bound *lower, *upper;
	uint32_t lower_count, upper_count;
};

static bool put_bound(struct bound **bounds, uint32_t *count, struct bound bound)
{
	if (!(*count & (*count - 1))) {
		struct bound *grown = realloc(*bounds, (*count ? (size_t)*count * 2 : 1) * sizeof *grown);
		if (!grown)
			return false;
		*bounds = grown;
	}
	(*bounds)[(*count)++] = bound;
	return true;
}

/* A receive is later than its send by the other machine. */
static bool take_lower(const struct tw_align_machine *other, const struct cell *cell, uint32_t number,
		       struct bounds *bounds)
{
	for (uint32_t i = 0; i < cell->hull; i++) {
		const struct point *point = &cell->points[i];
		struct bound bound = {point->received, common_at(other, point->sent) + LEAST_NS, number};
		if (!put_bound(&bounds->lower, &bounds->lower_count, bound))
			return false;
	}
	return true;
}

/* A send is earlier than its receive by the other machine. */
static bool take_upper(const struct tw_align_machine *other, const struct cell *cell, uint32_t number,
		       struct bounds *bounds)
{
	for (uint32_t i = 0; i < cell->hull; i++) {
		const struct point *point = &cell->points[i];
		struct bound bound = {point->sent, common_at(other, point->received) - LEAST_NS, number};
		if (!put_bound(&bounds->upper, &bounds->upper_count, bound))
			return false;
	}
	return true;
}

static bool take_way(struct tw_align *align, uint32_t from, uint32_t to, uint32_t machine, struct bounds *bounds)
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

static int by_at(const void *a, const void *b)
{
	const struct bound *left = a, *right = b;
	return left->at < right->at ? -1 : left->at > right->at;
}

/* Collects the bounds, in order of time, by all machines that are known, or by one of them. */
static bool take_bounds(struct tw_align *align, uint32_t machine, uint32_t only, struct bounds *bounds)
{
	*bounds = (struct bounds){0};
	for (uint32_t other = 0; other < align->count; other++) {
		if (other == machine || !align->is_known[other] || (only != UINT32_MAX && other != only))
			continue;
		if (!take_way(align, other, machine, machine, bounds) ||
		    !take_way(align, machine, other, machine, bounds))
			return false;
	}
	if (bounds->lower_count)
		qsort(bounds->lower, bounds->lower_count, sizeof *bounds->lower, by_at);
	if (bounds->upper_count)
		qsort(bounds->upper, bounds->upper_count, sizeof *bounds->upper, by_at);
	return true;
}

static void free_bounds(struct bounds *bounds)
{
	free(bounds->lower);
	free(bounds->upper);
}

/* The bounds that lie in one piece of a machine's time. */
struct piece {
	const struct bound *lower, *upper;
	uint32_t lower_count, upper_count;
	double from, to;
	/* The common time at `from` must lie between these. */
	double least, most;
};

/* Bounds of a time, sorted. */
static const struct bound *part_of(const struct bound *bounds, uint32_t count, double from, double to, uint32_t *out)
{
	uint32_t ends[2] = {0, 0};
	for (unsigned end = 0; end < 2; end++) {
		uint32_t low = 0, high = count;
		while (low < high) {
			uint32_t middle = low + (high - low) / 2;
			if (bounds[middle].at < (end ? to : from))
				low = middle + 1;
			else
				high = middle;
		}
		ends[end] = low;
	}
	*out = ends[1] - ends[0];
	return bounds + ends[0];
}

/* Piece number i of a machine's time: the first and the last reach beyond it. */
static struct piece make_piece(const struct tw_align_machine *machine, const struct bounds *bounds, uint32_t pieces,
			       uint32_t i)
{
	double step = length_of(machine) / pieces;
	double from = i ? step * i : -INFINITY, to = i + 1 < pieces ? step * (i + 1) : INFINITY;
	struct piece piece = {.from = step * i, .to = step * (i + 1), .least = -INFINITY, .most = INFINITY};
	piece.lower = part_of(bounds->lower, bounds->lower_count, from, to, &piece.lower_count);
	piece.upper = part_of(bounds->upper, bounds->upper_count, from, to, &piece.upper_count);
	return piece;
}

/* With this drift, the common time at the piece's beginning is at least .. */
static double lowest(const struct piece *piece, double drift)
{
	double least = piece->least;
	for (uint32_t i = 0; i < piece->lower_count; i++) {
		const struct bound *bound = &piece->lower[i];
		least = fmax(least, bound->common - (bound->at - piece->from) * (1 + drift));
	}
	return least;
}

/* .. and at most. */
static double highest(const struct piece *piece, double drift)
{
	double most = piece->most;
	for (uint32_t i = 0; i < piece->upper_count; i++) {
		const struct bound *bound = &piece->upper[i];
		most = fmin(most, bound->common - (bound->at - piece->from) * (1 + drift));
	}
	return most;
}

/* The space between both; below 0 no such line is possible. Concave in the drift. */
static double space_at(const struct piece *piece, double drift)
{
	return highest(piece, drift) - lowest(piece, drift);
}

/* The common time at `at`, as high as possible; concave in the drift. The same downwards, with its sign changed. */
static double top_at(const struct piece *piece, double drift, double at)
{
	return highest(piece, drift) + (at - piece->from) * (1 + drift);
}

static double bottom_at(const struct piece *piece, double drift, double at)
{
	return -(lowest(piece, drift) + (at - piece->from) * (1 + drift));
}

static double space_of(const struct piece *piece, double drift, double at)
{
	return space_at(piece, drift);
}

typedef double concave_fn(const struct piece *piece, double drift, double at);

/* A drift between two where a concave function is greatest: of those that were tried, since it may be flat there. */
static double greatest(const struct piece *piece, concave_fn *function, double at, double low, double high)
{
	const double golden = 0.61803398874989485;
	double a = high - (high - low) * golden, b = low + (high - low) * golden;
	double at_a = function(piece, a, at), at_b = function(piece, b, at), best = a, at_best = at_a;
	for (unsigned step = 0; step < STEPS; step++) {
		if (at_b > at_best) {
			best = b;
			at_best = at_b;
		}
		if (at_a > at_best) {
			best = a;
			at_best = at_a;
		}
		if (at_a >= at_b) {
			high = b;
			b = a;
			at_b = at_a;
			a = high - (high - low) * golden;
			at_a = function(piece, a, at);
		} else {
			low = a;
			a = b;
			at_a = at_b;
			b = low + (high - low) * golden;
			at_b = function(piece, b, at);
		}
	}
	return best;
}

/* The drifts with which a line is possible; false: there are none, and *low is the nearest to one. */
static bool possible_drifts(const struct piece *piece, double *low, double *high)
{
	double best = greatest(piece, space_of, 0, -TW_ALIGN_DRIFT_MAX, TW_ALIGN_DRIFT_MAX);
	*low = *high = best;
	if (space_at(piece, best) < 0)
		return false;
	for (unsigned side = 0; side < 2; side++) {
		double inside = best, outside = side ? TW_ALIGN_DRIFT_MAX : -TW_ALIGN_DRIFT_MAX;
		if (space_at(piece, outside) >= 0)
			inside = outside;
		for (unsigned step = 0; step < STEPS && inside != outside; step++) {
			double middle = (inside + outside) / 2;
			if (space_at(piece, middle) >= 0)
				inside = middle;
			else
				outside = middle;
		}
		*(side ? high : low) = inside;
	}
	return true;
}

/* ---- one line ---- */

static void set_line(struct tw_align_machine *machine, double start, double drift)
{
	machine->pieces = 1;
	machine->common[0] = start;
	machine->common[1] = start + length_of(machine) * (1 + drift);
	machine->drift = drift;
}

/* Sets the line in the middle of all that are possible; false: there is none, and the one that fails by least is set. */
static bool set_middle(struct tw_align_machine *machine, const struct bounds *bounds)
{
	struct piece piece = make_piece(machine, bounds, 1, 0);
	double low, high;
	bool is_possible = possible_drifts(&piece, &low, &high);
	double drift = (low + high) / 2;
	set_line(machine, (lowest(&piece, drift) + highest(&piece, drift)) / 2, drift);
	return is_possible;
}

/* ---- joined lines ---- */

/* The common times that are possible at the end of a piece; false: none. */
static bool reach(const struct piece *piece, double *least, double *most)
{
	double low, high;
	if (!possible_drifts(piece, &low, &high))
		return false;
	*most = top_at(piece, greatest(piece, top_at, piece->to, low, high), piece->to);
	*least = -bottom_at(piece, greatest(piece, bottom_at, piece->to, low, high), piece->to);
	return *least <= *most;
}

/* The same points with time reversed: the signs of time and common time change, and with them lower and upper. */
static bool reverse(const struct piece *piece, struct bounds *out)
{
	*out = (struct bounds){0};
	for (uint32_t i = 0; i < piece->lower_count; i++) {
		struct bound bound = {-piece->lower[i].at, -piece->lower[i].common, 0};
		if (!put_bound(&out->upper, &out->upper_count, bound))
			return false;
	}
	for (uint32_t i = 0; i < piece->upper_count; i++) {
		struct bound bound = {-piece->upper[i].at, -piece->upper[i].common, 0};
		if (!put_bound(&out->lower, &out->lower_count, bound))
			return false;
	}
	/* What is possible at the beginning is a bound too. */
	return put_bound(&out->lower, &out->lower_count, (struct bound){-piece->from, -piece->most, 0}) &&
	       put_bound(&out->upper, &out->upper_count, (struct bound){-piece->from, -piece->least, 0});
}

/* From the common time at the end of a piece, the middle of those possible at its beginning. 1, 0 or TW_ENOMEM. */
static int step_back(const struct piece *piece, double end, double *beginning)
{
	struct bounds bounds;
	double least = 0, most = 0;
	bool has_memory = reverse(piece, &bounds), is_possible;
	struct piece back =
		{bounds.lower, bounds.upper, bounds.lower_count, bounds.upper_count, -piece->to, -piece->from,
		 -end,	       -end};
	is_possible = has_memory && reach(&back, &least, &most);
	free_bounds(&bounds);
	*beginning = -(least + most) / 2;
	return has_memory ? is_possible : TW_ENOMEM;
}

/*
 * Finds joined lines: forwards, which common times are possible at each joint; then backwards, one of them at each.
 * Returns 1, 0: impossible, or TW_ENOMEM.
 */
static int set_joined(struct tw_align_machine *machine, const struct bounds *bounds, uint32_t pieces)
{
	double least = -INFINITY, most = INFINITY, common[TW_ALIGN_WINDOWS + 1];
	struct piece all[TW_ALIGN_WINDOWS];
	for (uint32_t i = 0; i < pieces; i++) {
		all[i] = make_piece(machine, bounds, pieces, i);
		all[i].least = least;
		all[i].most = most;
		if (!reach(&all[i], &least, &most))
			return 0;
	}
	if (isinf(least) || isinf(most))
		return 0;
	common[pieces] = (least + most) / 2;
	for (uint32_t i = pieces; i-- > 0;) {
		int result = step_back(&all[i], common[i + 1], &common[i]);
		if (result <= 0 || !isfinite(common[i]))
			return result < 0 ? result : 0;
	}
	memcpy(machine->common, common, sizeof common);
	machine->pieces = pieces;
	machine->drift = (common[pieces] - common[0]) / length_of(machine) - 1;
	return 1;
}

/* ---- uncertainty ---- */

/* How far the true time may be from the estimate at `at`, by bounds of one other machine. */
static double distance_at(const struct tw_align_machine *machine, const struct piece *piece, double low, double high,
			  double at)
{
	double top = top_at(piece, greatest(piece, top_at, at, low, high), at);
	double bottom = -bottom_at(piece, greatest(piece, bottom_at, at, low, high), at);
	double common = common_at(machine, at);
	return fmax(fmax(top - common, common - bottom), 0);
}

/*
 * The bounds of one machine are exact but for the error of its own time, so that both add up; those of others only
 * narrow the estimate.
 */
static int find_uncertainty(struct tw_align *align, uint32_t number)
{
	struct tw_align_machine *machine = &align->machines[number];
	const struct tw_align_machine *through = &align->machines[machine->through];
	struct bounds bounds;
	double low, high, length = length_of(machine);
	if (!take_bounds(align, number, machine->through, &bounds)) {
		free_bounds(&bounds);
		return TW_ENOMEM;
	}
	struct piece piece = make_piece(machine, &bounds, 1, 0);
	if (machine->pieces == 1 && possible_drifts(&piece, &low, &high)) {
		machine->uncertainty_ns =
			distance_at(machine, &piece, low, high, length / 2) + through->uncertainty_max_ns;
		machine->uncertainty_max_ns = fmax(distance_at(machine, &piece, low, high, 0),
						   distance_at(machine, &piece, low, high, length)) +
					      through->uncertainty_max_ns;
		machine->drift_uncertainty =
			fmax(high - machine->drift, machine->drift - low) + through->drift_uncertainty;
	} else {
		/* Joined lines: the widest of all pieces, each by itself. */
		double worst = 0;
		for (uint32_t i = 0; i < machine->pieces; i++) {
			struct piece part = make_piece(machine, &bounds, machine->pieces, i);
			double at_ends = INFINITY;
			if (possible_drifts(&part, &low, &high))
				at_ends = fmax(distance_at(machine, &part, low, high, part.from),
					       distance_at(machine, &part, low, high, part.to));
			worst = isfinite(at_ends) ? fmax(worst, at_ends) : worst;
		}
		machine->uncertainty_ns = machine->uncertainty_max_ns = worst + through->uncertainty_max_ns;
		machine->drift_uncertainty = 2 * worst / length + through->drift_uncertainty;
	}
	free_bounds(&bounds);
	return 0;
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
	struct bounds bounds;
	bool has_memory = take_bounds(align, number, UINT32_MAX, &bounds);
	align->machines[number].by = TW_ALIGN_MESSAGES;
	align->machines[number].through = through;
	if (has_memory && !set_middle(&align->machines[number], &bounds))
		*has_conflict = true;
	free_bounds(&bounds);
	align->is_known[number] = true;
	return has_memory ? 0 : TW_ENOMEM;
}

/* Sets the line that is nearest to one that is known, if there are bounds on one side only; else that in the middle. */
static void set_any(struct tw_align_machine *machine, const struct bounds *bounds)
{
	struct piece piece = make_piece(machine, bounds, 1, 0);
	if (bounds->lower_count && bounds->upper_count)
		set_middle(machine, bounds);
	else
		set_line(machine, fmin(fmax(machine->common[0], lowest(&piece, 0)), highest(&piece, 0)), 0);
}

/* Wall clocks, moved as far as the messages demand. */
static int place_one_way(struct tw_align *align, uint32_t number, uint32_t through)
{
	struct tw_align_machine *machine = &align->machines[number];
	struct bounds bounds;
	bool has_memory = take_bounds(align, number, UINT32_MAX, &bounds);
	set_line(machine, wall_start(align, machine), 0);
	if (has_memory)
		set_any(machine, &bounds);
	machine->by = TW_ALIGN_ONE_WAY;
	machine->through = through;
	align->is_known[number] = true;
	free_bounds(&bounds);
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
			set_line(&align->machines[number], wall_start(align, &align->machines[number]), 0);
		}
	}
	return error;
}

/* The worst message of all: by how much it is received before it was sent. */
static double worst_of(struct tw_align *align, struct tw_align_conflict *conflict, bool *has_memory)
{
	double worst = 0;
	for (uint32_t number = 0; number < align->count; number++) {
		struct bounds bounds;
		if (number == align->reference)
			continue;
		if (!take_bounds(align, number, UINT32_MAX, &bounds)) {
			free_bounds(&bounds);
			*has_memory = false;
			return 0;
		}
		for (unsigned side = 0; side < 2; side++) {
			const struct bound *from = side ? bounds.upper : bounds.lower;
			uint32_t count = side ? bounds.upper_count : bounds.lower_count;
			for (uint32_t i = 0; i < count; i++) {
				double common = common_at(&align->machines[number], from[i].at);
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
		free_bounds(&bounds);
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
			struct bounds bounds;
			int result = 1;
			if (number == align->reference || machine->by == TW_ALIGN_WALL)
				continue;
			double before = machine->common[0], end = machine->common[machine->pieces];
			has_memory = take_bounds(align, number, UINT32_MAX, &bounds);
			if (has_memory && pieces == 1)
				set_any(machine, &bounds);
			else if (has_memory)
				result = set_joined(machine, &bounds, pieces);
			free_bounds(&bounds);
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
	set_line(&align->machines[reference], 0, 0);
	align->is_known[reference] = true;
	int error = place_all(align, &has_conflict);
	if (error)
		return error;
	/* Where clocks were slewed no single line is possible. */
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
