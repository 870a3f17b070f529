/* SPDX-License-Identifier: Apache-2.0 */
/* limbs.h - how the files about integers build a result in place. */
#ifndef TW_TERM_LIMBS_H
#define TW_TERM_LIMBS_H

#include "term/integer.h"

struct tw_limbs_shape {
	size_t opened_count;
	bool is_negative;
};

/* Room for @count limbs, with a header before them; NULL when the arena is full. */
uint64_t *tw_limbs_open(struct tw_arena *arena, size_t count);

/*
 * Makes the integer of what tw_limbs_open() gave, drops leading zeros and gives back what is too much;
 * the block was the last one taken.  TW_ELIMIT beyond TW_INTEGER_LIMBS_MAX.
 */
int tw_limbs_close(struct tw_arena *arena, uint64_t *limbs, size_t count, struct tw_limbs_shape shape,
		   struct tw_term *out);

#endif
