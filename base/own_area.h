/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_area.h - large, mostly unused areas of the library in a program's memory.
 *
 * A program that locks all its memory (mlockall) means its own memory: areas noted here are excluded (agent/preload/lock.c).
 *
 * Threads  any.  Signal handlers: yes.
 */
#ifndef TW_BASE_OWN_AREA_H
#define TW_BASE_OWN_AREA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Notes a permanent area.  Areas beyond TW_OWN_AREAS_MAX are locked like the program's memory. */
#define TW_OWN_AREAS_MAX 256
void tw_own_area_add(const void *address, size_t bytes);

/*
 * tw_own_area_find - the first area that overlaps [from, to).
 *
 * @first, @end	give: the overlapping part.
 */
bool tw_own_area_find(uintptr_t from, uintptr_t to, uintptr_t *first, uintptr_t *end);

/* Sets whether future mappings are locked and made present as a whole (MCL_FUTURE). */
void tw_own_area_set_future_locked(bool is_locked);
bool tw_own_area_is_future_locked(void);

/*
 * tw_own_area_map - map private zeroed memory and note it; no page is present before it is touched.
 *
 * @at		the address; NULL: any.  Existing mappings are not replaced.
 * NULL: no memory, or the address is in use.
 */
void *tw_own_area_map(void *at, size_t bytes);

#endif
