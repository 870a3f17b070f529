/* SPDX-License-Identifier: Apache-2.0 */
/* print_numbers.c - a hash table of numbers. */
#include "tools/print/print_numbers.h"

#include <stdlib.h>

static size_t slot_of(const struct tw_numbers *numbers, uint64_t number)
{
	size_t at = (size_t)(number * 0x9e3779b97f4a7c15 >> 32) & (numbers->capacity - 1);
	while (numbers->slots[at] && numbers->slots[at] != number)
		at = (at + 1) & (numbers->capacity - 1);
	return at;
}

static bool grow(struct tw_numbers *numbers)
{
	const struct tw_numbers old = *numbers;
	numbers->capacity = old.capacity ? old.capacity * 2 : 64;
	numbers->slots = calloc(numbers->capacity, sizeof *numbers->slots);
	if (!numbers->slots) {
		*numbers = old;
		return false;
	}
	for (size_t i = 0; i < old.capacity; i++)
		if (old.slots[i])
			numbers->slots[slot_of(numbers, old.slots[i])] = old.slots[i];
	free(old.slots);
	return true;
}

bool tw_numbers_take(struct tw_numbers *numbers, uint64_t number)
{
	if (numbers->count * 2 >= numbers->capacity && !grow(numbers))
		return false;
	size_t at = slot_of(numbers, number);
	if (numbers->slots[at])
		return false;
	numbers->slots[at] = number;
	numbers->count++;
	return true;
}

void tw_numbers_free(struct tw_numbers *numbers)
{
	free(numbers->slots);
	*numbers = (struct tw_numbers){0};
}
