/* SPDX-License-Identifier: Apache-2.0 */
/* limbs.h - building integer results in place, for the files about integers. */
#ifndef TW_TERM_LIMBS_H
#define TW_TERM_LIMBS_H

#include "term/integer.h"

struct tw_limbs_shape {
	size_t opened_count;
	bool is_negative;
};

/* Allocates @count limbs after a header; NULL when the arena is full. */
uint64_t *tw_limbs_open(struct tw_arena *arena, size_t count);

/*
 * Makes the integer from the limbs of tw_limbs_open(), drops leading zeros and frees unused memory; the block must be
 * the last one taken.  TW_ELIMIT beyond TW_INTEGER_LIMBS_MAX.
 */
int tw_limbs_close(struct tw_arena *arena, uint64_t *limbs, size_t count, struct tw_limbs_shape shape,
		   struct tw_term *out);

#endif
