/* SPDX-License-Identifier: Apache-2.0 */
/* maps.h - what the system says about memory: /proc/self/maps, read once a run.  Under the permit. */
#ifndef TW_BREAKPOINTS_MAPS_H
#define TW_BREAKPOINTS_MAPS_H

#include <stdint.h>

struct tw_mapping {
	uintptr_t low, high;
	int protection; /* PROT_* */
};

/*
 * tw_mapping_at - the mapping that holds an address; NULL: none, or the system does not say.
 *
 * Reads the file when the address is in nothing that is known.  What it lends ends with the next call and
 * with tw_mappings_forget().
 */
const struct tw_mapping *tw_mapping_at(uintptr_t address);
/* The next question reads anew. */
void tw_mappings_forget(void);

#endif
