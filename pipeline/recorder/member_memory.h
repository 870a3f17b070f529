/* SPDX-License-Identifier: Apache-2.0 */
/*
 * member_memory.h - the memory of a member of the ring set.
 *
 * Threads  the recorder's and the holder's: no call uses malloc() or a lock.
 */
#ifndef TW_PIPELINE_RECORDER_MEMBER_MEMORY_H
#define TW_PIPELINE_RECORDER_MEMBER_MEMORY_H

#include "ringbuf/ringset.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * tw_member_memory_open - open the memory of the process that an image belongs to.
 *
 * The process says itself which one it is; believed is a process that has mapped the image's file.  The memory is that of the
 * program that was there when it was opened: what is written after an exec() goes nowhere.
 *
 * @where	its thread_id is tried first: a thread that has ended shows no memory.
 *
 * Returns a descriptor, or -errno: -EACCES, -EPERM: the system refuses; -ENOENT: there is no such process.
 */
int tw_member_memory_open(const struct tw_rs *rs, const struct tw_rs_held_request *where);

/* False: not all of it can be read. */
bool tw_member_memory_read(int memory, uint64_t address, void *out, size_t bytes);

#endif
