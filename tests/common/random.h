/* SPDX-License-Identifier: Apache-2.0 */
/* random.h - numbers that look random and are the same for the same seed, which may be any number. */
#ifndef TW_TESTS_RANDOM_H
#define TW_TESTS_RANDOM_H

#include <stdint.h>

/* All 64 bits. */
static inline uint64_t random_word(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *state ^ *state >> 29;
}

/* 0 .. below - 1; @below: 2^31 at most. */
static inline uint64_t random_below(uint64_t *state, uint64_t below)
{
	random_word(state);
	return (*state >> 33) % below;
}

#endif
