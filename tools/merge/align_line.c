/* SPDX-License-Identifier: Apache-2.0 */
/* align_line.c - lines between bounds: the possible drifts, and the middle of them. */
#include "tools/merge/align_line.h"

#include "base/grow.h"
#include "base/search.h"
#include "tracewheel/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Steps of a search for the best slope. */
#define STEPS 80

double tw_align_length(const struct tw_align_machine *machine)
{
	return machine->end_ns > machine->start_ns ? (double)(machine->end_ns - machine->start_ns) : 1;
}

double tw_align_common_at(const struct tw_align_machine *machine, double at)
{
	double step = tw_align_length(machine) / machine->pieces;
	unsigned piece = at <= 0 ? 0 : (unsigned)fmin(at / step, machine->pieces - 1);
	double rate = (machine->common[piece + 1] - machine->common[piece]) / step;
	return machine->common[piece] + (at - step * piece) * rate;
}

bool tw_align_put_bound(struct tw_align_bound **bounds, uint32_t *count, struct tw_align_bound bound)
{
	if (!tw_grow_one(*bounds, *count))
		return false;
	(*bounds)[(*count)++] = bound;
	return true;
}

static int by_at(const void *a, const void *b)
{
	const struct tw_align_bound *left = a, *right = b;
	return TW_ORDER(left->at, right->at);
}

void tw_align_sort_bounds(struct tw_align_bounds *bounds)
{
	if (bounds->lower_count)
		qsort(bounds->lower, bounds->lower_count, sizeof *bounds->lower, by_at);
	if (bounds->upper_count)
		qsort(bounds->upper, bounds->upper_count, sizeof *bounds->upper, by_at);
}

void tw_align_free_bounds(struct tw_align_bounds *bounds)
{
	free(bounds->lower);
	free(bounds->upper);
}

/* The bounds that lie in one piece of a machine's time. */
struct piece {
	const struct tw_align_bound *lower, *upper;
	uint32_t lower_count, upper_count;
	double from, to;
	/* The common time at `from` must lie between these. */
	double least, most;
};

/* Bounds of a time, sorted. */
static const struct tw_align_bound *part_of(const struct tw_align_bound *bounds, uint32_t count, double from, double to,
					    uint32_t *out)
{
	size_t first = tw_search(i, count, bounds[i].at < from), end = tw_search(i, count, bounds[i].at < to);
	*out = (uint32_t)(end - first);
	return bounds ? bounds + first : NULL;
}

/* Piece number i of a machine's time: the first and the last reach beyond it. */
static struct piece make_piece(const struct tw_align_machine *machine, const struct tw_align_bounds *bounds,
			       uint32_t pieces, uint32_t i)
{
	double step = tw_align_length(machine) / pieces;
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
		const struct tw_align_bound *bound = &piece->lower[i];
		least = fmax(least, bound->common - (bound->at - piece->from) * (1 + drift));
	}
	return least;
}

/* .. and at most. */
static double highest(const struct piece *piece, double drift)
{
	double most = piece->most;
	for (uint32_t i = 0; i < piece->upper_count; i++) {
		const struct tw_align_bound *bound = &piece->upper[i];
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

void tw_align_set_line(struct tw_align_machine *machine, double start, double drift)
{
	machine->pieces = 1;
	machine->common[0] = start;
	machine->common[1] = start + tw_align_length(machine) * (1 + drift);
	machine->drift = drift;
}

/* Sets the line in the middle of all that are possible; false: there is none, and the one that fails by least is set. */
bool tw_align_set_middle(struct tw_align_machine *machine, const struct tw_align_bounds *bounds)
{
	struct piece piece = make_piece(machine, bounds, 1, 0);
	double low, high;
	bool is_possible = possible_drifts(&piece, &low, &high);
	double drift = (low + high) / 2;
	tw_align_set_line(machine, (lowest(&piece, drift) + highest(&piece, drift)) / 2, drift);
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
static bool reverse(const struct piece *piece, struct tw_align_bounds *out)
{
	*out = (struct tw_align_bounds){0};
	for (uint32_t i = 0; i < piece->lower_count; i++) {
		struct tw_align_bound bound = {-piece->lower[i].at, -piece->lower[i].common, 0};
		if (!tw_align_put_bound(&out->upper, &out->upper_count, bound))
			return false;
	}
	for (uint32_t i = 0; i < piece->upper_count; i++) {
		struct tw_align_bound bound = {-piece->upper[i].at, -piece->upper[i].common, 0};
		if (!tw_align_put_bound(&out->lower, &out->lower_count, bound))
			return false;
	}
	/* The range at the beginning is a bound, too. */
	return tw_align_put_bound(&out->lower, &out->lower_count,
				  (struct tw_align_bound){-piece->from, -piece->most, 0}) &&
	       tw_align_put_bound(&out->upper, &out->upper_count,
				  (struct tw_align_bound){-piece->from, -piece->least, 0});
}

/* From the common time at the end of a piece, the middle of those possible at its beginning. 1, 0 or TW_ENOMEM. */
static int step_back(const struct piece *piece, double end, double *beginning)
{
	struct tw_align_bounds bounds;
	double least = 0, most = 0;
	bool has_memory = reverse(piece, &bounds), is_possible;
	struct piece back =
		{bounds.lower, bounds.upper, bounds.lower_count, bounds.upper_count, -piece->to, -piece->from,
		 -end,	       -end};
	is_possible = has_memory && reach(&back, &least, &most);
	tw_align_free_bounds(&bounds);
	*beginning = -(least + most) / 2;
	return has_memory ? is_possible : TW_ENOMEM;
}

/*
 * Finds joined lines: forwards, which common times are possible at each joint; then backwards, one of them at each.
 * Returns 1, 0: impossible, or TW_ENOMEM.
 */
int tw_align_set_joined(struct tw_align_machine *machine, const struct tw_align_bounds *bounds, uint32_t pieces)
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
	machine->drift = (common[pieces] - common[0]) / tw_align_length(machine) - 1;
	return 1;
}

/* Sets the line that is nearest to one that is known, if there are bounds on one side only; else that in the middle. */
void tw_align_set_any(struct tw_align_machine *machine, const struct tw_align_bounds *bounds)
{
	struct piece piece = make_piece(machine, bounds, 1, 0);
	if (bounds->lower_count && bounds->upper_count)
		tw_align_set_middle(machine, bounds);
	else
		tw_align_set_line(machine, fmin(fmax(machine->common[0], lowest(&piece, 0)), highest(&piece, 0)), 0);
}

/* ---- uncertainty ---- */

/* How far the true time may be from the estimate at `at`, by bounds of one other machine. */
static double distance_at(const struct tw_align_machine *machine, const struct piece *piece, double low, double high,
			  double at)
{
	double top = top_at(piece, greatest(piece, top_at, at, low, high), at);
	double bottom = -bottom_at(piece, greatest(piece, bottom_at, at, low, high), at);
	double common = tw_align_common_at(machine, at);
	return fmax(fmax(top - common, common - bottom), 0);
}

void tw_align_set_uncertainty(struct tw_align_machine *machine, const struct tw_align_bounds *bounds)
{
	struct piece piece = make_piece(machine, bounds, 1, 0);
	double low, high, length = tw_align_length(machine), worst = 0;
	if (machine->pieces == 1 && possible_drifts(&piece, &low, &high)) {
		machine->uncertainty_ns = distance_at(machine, &piece, low, high, length / 2);
		machine->uncertainty_max_ns = fmax(distance_at(machine, &piece, low, high, 0),
						   distance_at(machine, &piece, low, high, length));
		machine->drift_uncertainty = fmax(high - machine->drift, machine->drift - low);
		return;
	}
	/* Joined lines: the widest of all pieces, each by itself. */
	for (uint32_t i = 0; i < machine->pieces; i++) {
		struct piece part = make_piece(machine, bounds, machine->pieces, i);
		double at_ends = INFINITY;
		if (possible_drifts(&part, &low, &high))
			at_ends = fmax(distance_at(machine, &part, low, high, part.from),
				       distance_at(machine, &part, low, high, part.to));
		worst = isfinite(at_ends) ? fmax(worst, at_ends) : worst;
	}
	machine->uncertainty_ns = machine->uncertainty_max_ns = worst;
	machine->drift_uncertainty = 2 * worst / length;
}
