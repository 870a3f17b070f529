/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grow.h - arrays from malloc() that grow by doubling: tw_grow() by an item, tw_grow_one() without a capacity, tw_grow_by() by several
 *	    items, tw_grow_to() up to an index.
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

/* The array, moved to the power of two above its count; NULL: no memory, and nothing has changed. */
static inline void *tw_grown_one(void *array, size_t count, size_t item_bytes)
{
	size_t bytes;

	return __builtin_mul_overflow(count ? count * 2 : 1, item_bytes, &bytes) ? NULL : realloc(array, bytes);
}

/*
 * tw_grow_one - make sure that an array without a capacity can hold one more item than `count`: it has room up to the next power of two.
 *
 * Otherwise as tw_grow(); an array is grown by one of the two.
 */
#define tw_grow_one(array, count)                                                       \
	(((count) & ((count)-1)) || __extension__({                                     \
		 void *tw_grow_moved = tw_grown_one((array), (count), sizeof *(array)); \
                                                                                        \
		 if (tw_grow_moved)                                                     \
			 (array) = tw_grow_moved;                                       \
		 tw_grow_moved != NULL;                                                 \
	 }))

/* The array, moved to at least so many items; NULL: no memory, and nothing has changed. */
static inline void *tw_grown_by(void *array, size_t *capacity, size_t count, size_t more, size_t item_bytes)
{
	size_t wanted, larger = *capacity > SIZE_MAX / 2 ? SIZE_MAX : *capacity * 2, bytes;
	void *moved = NULL;

	if (!__builtin_add_overflow(count, more, &wanted)) {
		larger = larger > wanted ? larger : wanted;
		larger = larger > 64 ? larger : 64;
		moved = __builtin_mul_overflow(larger, item_bytes, &bytes) ? NULL : realloc(array, bytes);
	}
	if (moved)
		*capacity = larger;
	return moved;
}

/* tw_grow_by - make sure that the array is there, and can hold `more` items than `count`, as bytes of a text. Otherwise as tw_grow(). */
#define tw_grow_by(array, count, capacity, more)                                                                  \
	(((array) && (size_t)(more) <= (size_t)(capacity) - (size_t)(count)) || __extension__({                   \
		 size_t tw_grow_capacity = (capacity);                                                            \
		 void *tw_grow_moved = tw_grown_by((array), &tw_grow_capacity, (count), (more), sizeof *(array)); \
                                                                                                                  \
		 if (tw_grow_moved) {                                                                             \
			 (array) = tw_grow_moved;                                                                 \
			 (capacity) = (__typeof__(capacity))tw_grow_capacity;                                     \
		 }                                                                                                \
		 tw_grow_moved != NULL;                                                                           \
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
