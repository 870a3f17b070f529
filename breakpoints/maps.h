/* SPDX-License-Identifier: Apache-2.0 */
/* maps.h - the mappings of this process: /proc/self/maps, read once per run of writes. */
#ifndef TW_BREAKPOINTS_MAPS_H
#define TW_BREAKPOINTS_MAPS_H

#include <stddef.h>
#include <stdint.h>

struct tw_mapping {
	uintptr_t low, high;
	int protection; /* PROT_* */
};

/* Zeros: not read. */
struct tw_mappings {
	struct tw_mapping *list;
	size_t count, capacity;
};

/*
 * tw_mapping_at - the mapping that holds an address; NULL: none, or not readable.
 *
 * Reads the file if the address is in no known mapping.  The result is borrowed until the next call or
 * tw_mappings_forget().
 */
const struct tw_mapping *tw_mapping_at(struct tw_mappings *mappings, uintptr_t address);
/* The next call of tw_mapping_at() reads the file again. */
void tw_mappings_forget(struct tw_mappings *mappings);

#endif
