/* SPDX-License-Identifier: Apache-2.0 */
/* guard.h - keeps a program from ending its recorder by removing pages of its files. */
#ifndef TW_RINGBUF_GUARD_H
#define TW_RINGBUF_GUARD_H

#include "ringbuf/ringset.h"

/*
 * tw_rs_guard - handle SIGBUS in the mappings of this set: the image counts as damaged (damaged_tables) and reads as
 * empty.
 *
 * For one set, in a process that does nothing but own it.  The set must not move in memory until tw_rs_unguard() or
 * tw_rs_destroy().
 * Threads: the owner's, before its first scan.
 */
void tw_rs_guard(struct tw_rs *rs);
void tw_rs_unguard(struct tw_rs *rs);

#endif
