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
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

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

/* The array, moved to more items than `index`, the new ones zero; NULL: no memory, and nothing has changed. */
static inline void *tw_grown_to(void *array, size_t *count, size_t index, size_t item_bytes)
{
	size_t more, bytes;
	bool is_too_large = __builtin_add_overflow(index, index / 2 + 16, &more) ||
			    __builtin_mul_overflow(more, item_bytes, &bytes);
	char *moved = is_too_large ? NULL : realloc(array, bytes);

	if (moved) {
		memset(moved + *count * item_bytes, 0, (more - *count) * item_bytes);
		*count = more;
	}
	return moved;
}

/*
 * tw_grow_to - make sure that the array has an item with an index, zeroed if it is new.
 *
 * @count	the items that there are, all of them set; 0 at first.
 *
 * Otherwise as tw_grow().
 */
#define tw_grow_to(array, count, index)                                                                \
	((index) < (count) || __extension__({                                                          \
		 size_t tw_grow_count = (count);                                                       \
		 void *tw_grow_moved = tw_grown_to((array), &tw_grow_count, (index), sizeof *(array)); \
                                                                                                       \
		 if (tw_grow_moved) {                                                                  \
			 (array) = tw_grow_moved;                                                      \
			 (count) = (__typeof__(count))tw_grow_count;                                   \
		 }                                                                                     \
		 tw_grow_moved != NULL;                                                                \
	 }))

#endif
