/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map.h - maps keys of 64 bits to small numbers: an index of the caller's array. A hash table with open addressing that only grows.
 *
 * Keys     A key is exact (an id, two ids of 32 bits), or the hash of a longer one; then the caller's array tells items with one hash apart
 *	    (tw_map_find()).
 * Numbers  0 .. TW_MAP_NONE - 1, mostly the item's index.
 * Threads  one at a time while it grows; any number of readers afterwards.
 */
#ifndef TW_BASE_MAP_H
#define TW_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define TW_MAP_NONE UINT32_MAX

struct tw_map_slot {
	uint64_t key;
	uint32_t after; /* the number + 1; 0: free */
} __attribute__((packed, aligned(4)));

/* Zeroed: empty. */
struct tw_map {
	struct tw_map_slot *slots;
	uint32_t count, capacity; /* a power of two above the count; at most two of three slots are used */
};

/* ---- hashes: stable across versions ---- */

static inline uint64_t tw_hash_word(uint64_t hash, uint64_t word)
{
	word *= UINT64_C(0xbf58476d1ce4e5b9);
	hash = (hash ^ word ^ word >> 32) * UINT64_C(0x94d049bb133111eb);
	return hash ^ hash >> 29;
}

static inline uint64_t tw_hash_bytes(const void *data, size_t bytes, uint64_t seed)
{
	const unsigned char *at = data;
	uint64_t hash = seed ^ bytes * UINT64_C(0x9e3779b97f4a7c15);

	while (bytes > 0) {
		size_t step = bytes < 8 ? bytes : 8;
		uint64_t word = 0;

		memcpy(&word, at, step);
		hash = tw_hash_word(hash, word);
		at += step;
		bytes -= step;
	}
	return hash ^ hash >> 32;
}

/* ---- the map ---- */

static inline void tw_map_fini(struct tw_map *map)
{
	free(map->slots);
	*map = (struct tw_map){0};
}

/* The slot from which a key is searched. The map is not empty. */
static inline struct tw_map_slot *tw_map_home(const struct tw_map *map, uint64_t key)
{
	return &map->slots[(uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (map->capacity - 1)];
}

static inline struct tw_map_slot *tw_map_next(const struct tw_map *map, struct tw_map_slot *slot)
{
	return ++slot == map->slots + map->capacity ? map->slots : slot;
}

/*
 * tw_map_slot - the slot of a key for whose number an expression is true; NULL: none. The number may be changed there.
 *
 * @number	a name for the number, for use in @is_it.
 *
 *	tw_map_slot(&map, key, i, rows[i].image == image)
 */
#define tw_map_slot(map, wanted, number, is_it)                                                                  \
	__extension__({                                                                                          \
		const struct tw_map *tw_map_in = (map);                                                          \
		const uint64_t tw_map_key = (wanted);                                                            \
		struct tw_map_slot *tw_map_at = tw_map_in->capacity ? tw_map_home(tw_map_in, tw_map_key) : NULL; \
                                                                                                                 \
		while (tw_map_at && tw_map_at->after) {                                                          \
			const uint32_t number = tw_map_at->after - 1;                                            \
                                                                                                                 \
			(void)number;                                                                            \
			if (tw_map_at->key == tw_map_key && (is_it))                                             \
				break;                                                                           \
			tw_map_at = tw_map_next(tw_map_in, tw_map_at);                                           \
		}                                                                                                \
		tw_map_at && tw_map_at->after ? tw_map_at : NULL;                                                \
	})

/* The same, but returns the number, or TW_MAP_NONE. */
#define tw_map_find(map, wanted, number, is_it)                                                \
	__extension__({                                                                        \
		const struct tw_map_slot *tw_map_it = tw_map_slot(map, wanted, number, is_it); \
                                                                                               \
		tw_map_it ? tw_map_it->after - 1 : TW_MAP_NONE;                                \
	})

/* The number of an exact key; TW_MAP_NONE: there is none. */
static inline uint32_t tw_map_get(const struct tw_map *map, uint64_t key)
{
	return tw_map_find(map, key, number, true);
}

static inline void tw_map_fill(struct tw_map *map, uint64_t key, uint32_t after)
{
	struct tw_map_slot *slot = tw_map_home(map, key);

	while (slot->after)
		slot = tw_map_next(map, slot);
	*slot = (struct tw_map_slot){key, after};
	map->count++;
}

static inline bool tw_map_grow(struct tw_map *map)
{
	struct tw_map larger = {.capacity = map->capacity ? map->capacity * 2 : 64};

	larger.slots = larger.capacity ? calloc(larger.capacity, sizeof *larger.slots) : NULL;
	if (!larger.slots)
		return false;
	for (uint32_t i = 0; i < map->capacity; i++) {
		if (map->slots[i].after)
			tw_map_fill(&larger, map->slots[i].key, map->slots[i].after);
	}
	free(map->slots);
	*map = larger;
	return true;
}

/* Adds a number, beside those that the key may have. False: no memory; then nothing has changed. */
static inline bool tw_map_add(struct tw_map *map, uint64_t key, uint32_t number)
{
	if (map->count >= map->capacity / 3 * 2 && !tw_map_grow(map))
		return false;
	tw_map_fill(map, key, number + 1);
	return true;
}

/* Adds or changes the number of an exact key; false: no memory. */
static inline bool tw_map_put(struct tw_map *map, uint64_t key, uint32_t number)
{
	struct tw_map_slot *slot = tw_map_slot(map, key, old, true);

	if (!slot)
		return tw_map_add(map, key, number);
	slot->after = number + 1;
	return true;
}

#endif
