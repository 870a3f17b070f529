/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_area.h - large areas of ours in a program's memory, of which little is in use.
 *
 * A program that locks all its memory (mlockall) means its own: what is noted here is left out (agent/preload/lock.c).
 *
 * Threads  any.  Signal handlers: yes.
 */
#ifndef TW_BASE_OWN_AREA_H
#define TW_BASE_OWN_AREA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Notes one that is there for ever.  Of more than TW_OWN_AREAS_MAX the rest is the program's as far as locks go. */
#define TW_OWN_AREAS_MAX 256
void tw_own_area_add(const void *address, size_t bytes);

/*
 * tw_own_area_find - the first one that reaches into [from, to).
 *
 * @first, @end	give: the part of it that does.
 */
bool tw_own_area_find(uintptr_t from, uintptr_t to, uintptr_t *first, uintptr_t *end);

/* Is what is mapped from now on locked, and made present as a whole (MCL_FUTURE)? */
void tw_own_area_set_future_locked(bool is_locked);
bool tw_own_area_is_future_locked(void);

/*
 * tw_own_area_map - empty memory of this process, noted, of which no page is there before it is touched.
 *
 * @at		where; NULL: anywhere.  Nothing that is mapped there is replaced.
 * NULL: no memory, or something else is there.
 */
void *tw_own_area_map(void *at, size_t bytes);

#endif
