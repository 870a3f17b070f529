/* SPDX-License-Identifier: Apache-2.0 */
/*
 * range.h - ranges of numbers: those of histograms.
 *
 * Threads  any; in hits, without vector registers.
 */
#ifndef TW_BASE_RANGE_H
#define TW_BASE_RANGE_H

#include <stdint.h>

/* Parts of a power of two: a number and the middle of its part differ by 0.8 % at most. */
#define TW_RANGE_PARTS 64

/* The lowest number of a power of two; 0 and each negative number, which is an error mostly, are alone. */
static inline int64_t tw_range_power(int64_t number)
{
	return number > 0 ? (int64_t)(UINT64_C(1) << (63 - __builtin_clzll((uint64_t)number))) : number;
}

/* The lowest number of equal ranges; @step: 1 .. INT64_MAX. */
static inline int64_t tw_range_step(int64_t number, uint64_t step)
{
	uint64_t size = number < 0 ? -(uint64_t)number : (uint64_t)number, beyond = size % step;

	if (number < 0 && beyond)
		beyond = step - beyond;
	return (int64_t)((uint64_t)number - beyond);
}

/* How many numbers a part of a power of two has that begins at this one, or contains it. */
static inline uint64_t tw_range_part_width(int64_t number)
{
	return number < 2 * TW_RANGE_PARTS ? 1 : UINT64_C(1) << (57 - __builtin_clzll((uint64_t)number));
}

/* The lowest number of a part; negative numbers and those below 128 are alone. */
static inline int64_t tw_range_part(int64_t number)
{
	return (int64_t)((uint64_t)number & -tw_range_part_width(number));
}

#endif
