/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search.h - binary search in a sorted array, and the order of two numbers for qsort().
 *
 * Threads  none of its own: the caller's array, the caller's lock.
 * Units    counts and indexes in items.
 */
#ifndef TW_BASE_SEARCH_H
#define TW_BASE_SEARCH_H

#include <stddef.h>

/*
 * tw_search - the number of items that stand before a wanted position; the index of the first that does not, or `count`.
 *
 * @index	a name for the index of an item, for use in @is_before.
 * @is_before	an expression that is true of the first items, and false of all others.
 *
 *	tw_search(i, count, list[i].low <= address)
 */
#define tw_search(index, count, is_before)                                                   \
	__extension__({                                                                      \
		size_t tw_search_low = 0, tw_search_high = (count);                          \
                                                                                             \
		while (tw_search_low < tw_search_high) {                                     \
			size_t index = tw_search_low + (tw_search_high - tw_search_low) / 2; \
                                                                                             \
			if (is_before)                                                       \
				tw_search_low = index + 1;                                   \
			else                                                                 \
				tw_search_high = index;                                      \
		}                                                                            \
		tw_search_low;                                                               \
	})

/*
 * TW_ORDER - below 0, 0 or above 0 as the first number is smaller than, equal to or larger than the second.  Arguments are evaluated twice.
 *
 *	return TW_ORDER(x->image, y->image) ?: TW_ORDER(x->number, y->number);
 */
#define TW_ORDER(first, second) (((first) > (second)) - ((first) < (second)))

#endif
