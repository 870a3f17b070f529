/* SPDX-License-Identifier: Apache-2.0 */
/* differential.h - shared by the parts of the differential test. */
#ifndef TW_TESTS_MATCH_DIFFERENTIAL_H
#define TW_TESTS_MATCH_DIFFERENTIAL_H

#include <tracewheel/match.h>
#include <tracewheel/term.h>

#include <stdint.h>

/* ---- generate.c ---- */

struct random {
	uint64_t state;
	struct tw_arena *arena;
	uint32_t bound; /* a bit for each variable of the present head */
};

/* A number below @bound. */
uint32_t random_below(struct random *r, uint32_t bound);

/* {Args, Spec} or {table, Object, Spec}. */
struct tw_term random_case(struct random *r);

/* ---- shrink.c ---- */

/*
 * Gives cases that are smaller than @c in one position: a part replaced by one of its own parts or by an atom, or left
 * out of its list.
 *
 * Returns the number stored, at most @capacity.
 */
uint32_t smaller_cases(struct tw_arena *arena, struct tw_term c, struct tw_term *out, uint32_t capacity);

#endif
