/* SPDX-License-Identifier: Apache-2.0 */
/* print_numbers.h - a set of numbers that are in use: of tracks. */
#ifndef TW_TOOLS_PRINT_NUMBERS_H
#define TW_TOOLS_PRINT_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed: empty. */
struct tw_numbers {
	uint64_t *slots;
	size_t count, capacity;
};

/* Adds a number, not 0. Returns false if it is in the set, or without memory. */
bool tw_numbers_take(struct tw_numbers *numbers, uint64_t number);
void tw_numbers_free(struct tw_numbers *numbers);

#endif
