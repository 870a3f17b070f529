/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map.c - maps: a block of keys in exact term order, then the values in the same order.
 *
 * Flat at any size: lookup is a binary search.  Building sorts the pairs in place by a stable bottom-up merge sort,
 * with scratch of the same size that comes from the end of the arena and is returned.
 */
#include "term/term.h"
#include "base/export.h"

static const struct tw_term none = {0};

struct tw_term tw_map_open(struct tw_arena *arena, size_t count, struct tw_term **words)
{
	uint64_t *block;

	if (count >= SIZE_MAX / 32)
		return none;
	block = tw_arena_take(arena, 8 + count * 16);
	if (!block)
		return none;
	block[0] = tw_header(TW_BLOCK_MAP, 0, count);
	*words = (struct tw_term *)(block + 1);
	return tw_term_of_block(block);
}

static bool is_strictly_sorted(const struct tw_term_pair *pairs, size_t count)
{
	size_t i;

	for (i = 1; i < count; i++) {
		if (tw_term_compare_exact(pairs[i - 1].key, pairs[i].key) >= 0)
			return false;
	}
	return true;
}

/* Merges from[low .. middle) and from[middle .. high) into to, stably. */
static void merge(const struct tw_term_pair *from, struct tw_term_pair *to, const size_t bounds[3])
{
	size_t left = bounds[0], right = bounds[1], at = bounds[0];

	while (at < bounds[2]) {
		if (right >= bounds[2] ||
		    (left < bounds[1] && tw_term_compare_exact(from[left].key, from[right].key) <= 0))
			to[at++] = from[left++];
		else
			to[at++] = from[right++];
	}
}

/* Sorts a[] with b[] as scratch; returns the array that holds the result. */
static struct tw_term_pair *sort(struct tw_term_pair *a, struct tw_term_pair *b, size_t count)
{
	struct tw_term_pair *swap;
	size_t width, low;

	for (width = 1; width < count; width *= 2) {
		for (low = 0; low < count; low += 2 * width) {
			size_t middle = low + width < count ? low + width : count;
			size_t high = low + 2 * width < count ? low + 2 * width : count;

			merge(a, b, (const size_t[]){low, middle, high});
		}
		swap = a;
		a = b;
		b = swap;
	}
	return a;
}

/* Keeps the last of equal neighbours; returns the number left. */
static size_t drop_repeated(struct tw_term_pair *pairs, size_t count)
{
	size_t i, kept = 0;

	for (i = 0; i < count; i++) {
		if (i + 1 < count && tw_term_compare_exact(pairs[i].key, pairs[i + 1].key) == 0)
			continue;
		pairs[kept++] = pairs[i];
	}
	return kept;
}

static void fill(struct tw_term *words, const struct tw_term_pair *pairs, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		words[i] = pairs[i].key;
		words[count + i] = pairs[i].value;
	}
}

TW_API struct tw_term tw_term_map(struct tw_arena *arena, const struct tw_term_pair *pairs, size_t count)
{
	struct tw_term_pair *scratch, *sorted;
	struct tw_term *words;
	struct tw_term map;
	size_t i, kept;

	for (i = 0; i < count; i++) {
		if (tw_term_is_none(pairs[i].key) || tw_term_is_none(pairs[i].value))
			return none;
	}
	map = tw_map_open(arena, count, &words);
	if (tw_term_is_none(map))
		return none;
	if (is_strictly_sorted(pairs, count)) {
		fill(words, pairs, count);
		return map;
	}
	scratch = tw_arena_take(arena, 2 * count * sizeof *scratch);
	if (!scratch)
		return none;
	memcpy(scratch, pairs, count * sizeof *scratch);
	sorted = sort(scratch, scratch + count, count);
	kept = drop_repeated(sorted, count);
	*((uint64_t *)words - 1) = tw_header(TW_BLOCK_MAP, 0, kept);
	fill(words, sorted, kept);
	tw_arena_trim(arena, scratch, 2 * count * sizeof *scratch, 0);
	return map;
}

TW_API size_t tw_term_map_count(struct tw_term map)
{
	return tw_is_map(map) ? tw_block_size(map) : 0;
}

TW_API struct tw_term_pair tw_term_map_at(struct tw_term map, size_t index)
{
	size_t count = tw_term_map_count(map);

	if (index >= count)
		return (struct tw_term_pair){none, none};
	return (struct tw_term_pair){tw_elements(map)[index], tw_elements(map)[count + index]};
}

TW_API struct tw_term tw_term_map_get(struct tw_term map, struct tw_term key)
{
	size_t low = 0, high = tw_term_map_count(map), count = high;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = tw_term_compare_exact(key, tw_elements(map)[middle]);

		if (order == 0)
			return tw_elements(map)[count + middle];
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return none;
}
