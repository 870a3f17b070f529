/* SPDX-License-Identifier: Apache-2.0 */
/* guard.h - an owner that programs cannot end by taking pages of their files away. */
#ifndef TW_RINGBUF_GUARD_H
#define TW_RINGBUF_GUARD_H

#include "ringbuf/ringset.h"

/*
 * tw_rs_guard - handles SIGBUS of what is mapped of this set: the image is damaged (damaged_tables), and reads as empty.
 *
 * For one set of a process that does nothing but own it.  The set may not be moved until tw_rs_unguard(), or tw_rs_destroy().
 * Threads: the owner's, before its first look.
 */
void tw_rs_guard(struct tw_rs *rs);
void tw_rs_unguard(struct tw_rs *rs);

#endif
