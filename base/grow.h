/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grow.h - arrays from malloc() that grow by doubling, one item at a time.
 *
 * Threads  none of its own: the caller's array, the caller's lock.
 * Units    counts and capacities in items.
 */
#ifndef TW_BASE_GROW_H
#define TW_BASE_GROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/* The array, moved to twice the capacity; NULL: no memory, and nothing has changed. */
static inline void *tw_grown(void *array, size_t *capacity, size_t item_bytes)
{
	size_t more = *capacity ? *capacity * 2 : 16, bytes;
	void *moved = __builtin_mul_overflow(more, item_bytes, &bytes) ? NULL : realloc(array, bytes);

	if (moved)
		*capacity = more;
	return moved;
}

/*
 * tw_grow - make sure that the array can hold one more item than `count`.
 *
 * @array	a pointer to items, or NULL; may move.
 * @capacity	0 at first.
 *
 * Arguments are evaluated several times.  Returns false without memory; then nothing has changed.
 */
#define tw_grow(array, count, capacity)                                                       \
	((count) < (capacity) || __extension__({                                              \
		 size_t tw_grow_capacity = (capacity);                                        \
		 void *tw_grow_moved = tw_grown((array), &tw_grow_capacity, sizeof *(array)); \
                                                                                              \
		 if (tw_grow_moved) {                                                         \
			 (array) = tw_grow_moved;                                             \
			 (capacity) = (__typeof__(capacity))tw_grow_capacity;                 \
		 }                                                                            \
		 tw_grow_moved != NULL;                                                       \
	 }))

#endif
