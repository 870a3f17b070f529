/* SPDX-License-Identifier: Apache-2.0 */
/* idmap.c - linear probing, at most half full. */
#include "pipeline/format/idmap.h"

#include <stdlib.h>

#define FIRST_CAPACITY 64

void tw_idmap_fini(struct tw_idmap *map)
{
	free(map->slots);
	*map = (struct tw_idmap){0};
}

static struct tw_idmap_slot *find(const struct tw_idmap *map, uint64_t key)
{
	uint64_t at = key * UINT64_C(0x9e3779b97f4a7c15) >> 32;

	for (;; at++) {
		struct tw_idmap_slot *slot = &map->slots[at & (map->capacity - 1)];

		if (slot->value == TW_IDMAP_NONE || slot->key == key)
			return slot;
	}
}

static bool grow(struct tw_idmap *map)
{
	struct tw_idmap larger = {NULL, map->count, map->capacity ? map->capacity * 2 : FIRST_CAPACITY};

	if (!larger.capacity)
		return false;
	larger.slots = malloc(larger.capacity * sizeof *larger.slots);
	if (!larger.slots)
		return false;
	for (uint32_t i = 0; i < larger.capacity; i++)
		larger.slots[i].value = TW_IDMAP_NONE;
	for (uint32_t i = 0; i < map->capacity; i++) {
		if (map->slots[i].value != TW_IDMAP_NONE)
			*find(&larger, map->slots[i].key) = map->slots[i];
	}
	free(map->slots);
	*map = larger;
	return true;
}

bool tw_idmap_put(struct tw_idmap *map, uint64_t key, uint32_t value)
{
	struct tw_idmap_slot *slot;

	if ((map->count + 1) * UINT64_C(2) > map->capacity && !grow(map))
		return false;
	slot = find(map, key);
	map->count += slot->value == TW_IDMAP_NONE;
	*slot = (struct tw_idmap_slot){key, value};
	return true;
}

uint32_t tw_idmap_get(const struct tw_idmap *map, uint64_t key)
{
	return map->capacity ? find(map, key)->value : TW_IDMAP_NONE;
}
