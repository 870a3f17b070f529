/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leave.h - end a command without waiting until the memory of its rings is free.
 *
 * To free rings of 256 MiB takes the kernel 50 ms, at the end of the last process that has them mapped; the shell waits for
 * the command meanwhile.  Then that process is a child, which does nothing else.
 *
 * Threads  one, the last.
 */
#ifndef TW_TOOLS_RECORD_LEAVE_H
#define TW_TOOLS_RECORD_LEAVE_H

#include <stdint.h>

/* Below this, nobody would notice: the command frees its memory itself. */
#define TW_LEAVE_BYTES_LEAST (UINT64_C(16) << 20)

/*
 * Starts a child that shares the memory of this process, has none of its files, and is there until this process has ended.
 * The caller ends next.  Where no child can be started nothing is done: the memory is freed by the end of the process, as always.
 */
void tw_leave_memory(uint64_t bytes);

#endif
