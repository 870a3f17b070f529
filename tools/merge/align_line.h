/* SPDX-License-Identifier: Apache-2.0 */
/*
 * align_line.h - the common time of one machine as a line, or as joined lines, between bounds that are known.
 *
 * Threads  one.
 */
#ifndef TW_TOOLS_ALIGN_LINE_H
#define TW_TOOLS_ALIGN_LINE_H

#include "tools/merge/align.h"

/* At this time of its own clock the common time is at least, or at most, that. */
struct tw_align_bound {
	double at, common;
	uint32_t other;
};

struct tw_align_bounds {
	struct tw_align_bound *lower, *upper;
	uint32_t lower_count, upper_count;
};

/* Adds to bounds->lower, or ->upper. False: no memory. */
bool tw_align_put_bound(struct tw_align_bound **bounds, uint32_t *count, struct tw_align_bound bound);
/* Sorts them by time: all below need that. */
void tw_align_sort_bounds(struct tw_align_bounds *bounds);
void tw_align_free_bounds(struct tw_align_bounds *bounds);

/* The length of a machine's time, at least 1 ns; and the common time at a time since its start. */
double tw_align_length(const struct tw_align_machine *machine);
double tw_align_common_at(const struct tw_align_machine *machine, double at);

/* A line that begins at this common time. */
void tw_align_set_line(struct tw_align_machine *machine, double start, double drift);
/* The line in the middle of all that are possible; false: there is none, and the one that fails by least is set. */
bool tw_align_set_middle(struct tw_align_machine *machine, const struct tw_align_bounds *bounds);
/* The same where there are bounds on both sides; else the line without drift that is nearest to the present one. */
void tw_align_set_any(struct tw_align_machine *machine, const struct tw_align_bounds *bounds);
/* Joined lines of equal lengths. Returns 1, 0: they are impossible, or TW_ENOMEM. */
int tw_align_set_joined(struct tw_align_machine *machine, const struct tw_align_bounds *bounds, uint32_t pieces);

/* How far the true time, and drift, may be from those that are set, if these bounds are right. Sets the machine's. */
void tw_align_set_uncertainty(struct tw_align_machine *machine, const struct tw_align_bounds *bounds);

#endif
