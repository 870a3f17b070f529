/* SPDX-License-Identifier: Apache-2.0 */
/*
 * near.h - memory within reach of a 32-bit displacement.
 *
 * Location: below first.  Above a program is its heap, above the libraries the stack, and both grow; only if there is
 * no space below, memory is placed as far above as a jump can reach.
 */
#ifndef TW_BREAKPOINTS_NEAR_H
#define TW_BREAKPOINTS_NEAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Readable and writable pages between which and each address of `low` to `high` jumps reach, up to 1 MiB behind the pages' start;
 * NULL: no space.
 */
void *tw_near_map(uintptr_t low, uintptr_t high, size_t bytes);

/* Do jumps reach, as above, between these addresses and memory that begins there? */
bool tw_near_reaches(uintptr_t memory, uintptr_t low, uintptr_t high);

#endif
