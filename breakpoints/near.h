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

/* Readable and writable pages that a jump at `from` reaches, up to 1 MiB behind their start; NULL: no space. */
void *tw_near_map(uintptr_t from, size_t bytes);

/* Does a jump at `from` reach memory that begins there, as above? */
bool tw_near_reaches(uintptr_t memory, uintptr_t from);

#endif
