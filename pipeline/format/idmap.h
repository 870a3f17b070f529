/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idmap.h - maps numbers to small numbers: a hash table with open addressing that only grows.
 *
 * Threads  one at a time while it grows; any number of readers afterwards.
 */
#ifndef TW_PIPELINE_IDMAP_H
#define TW_PIPELINE_IDMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TW_IDMAP_NONE UINT32_MAX

struct tw_idmap_slot {
	uint64_t key;
	uint32_t value; /* TW_IDMAP_NONE: free */
};

/* Zeroed: empty. */
struct tw_idmap {
	struct tw_idmap_slot *slots;
	uint32_t count;
	uint32_t capacity; /* a power of two, at least twice the count; or 0 */
};

void tw_idmap_fini(struct tw_idmap *map);
/* Adds or changes the value of a key; false: no memory. */
bool tw_idmap_put(struct tw_idmap *map, uint64_t key, uint32_t value);
/* TW_IDMAP_NONE: there is none. */
uint32_t tw_idmap_get(const struct tw_idmap *map, uint64_t key);

#endif
