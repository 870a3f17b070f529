/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leave.h - ends a command without waiting until the memory of its rings is freed.
 *
 * The kernel takes 50 ms to free rings of 256 MiB, at the end of the last process that has them mapped, and the shell
 * waits for the command meanwhile. With this, that process is a child, which does nothing else.
 *
 * Threads  one, the last.
 */
#ifndef TW_TOOLS_RECORD_LEAVE_H
#define TW_TOOLS_RECORD_LEAVE_H

#include <stdint.h>

/* Below this the delay is not noticeable: the command frees its memory itself. */
#define TW_LEAVE_BYTES_LEAST (UINT64_C(16) << 20)

/*
 * Starts a child that shares the memory of this process, has none of its files, and lives until this process has
 * ended. The caller ends next. If no child can be started nothing is done: the memory is freed at the end of the
 * process, as usual.
 */
void tw_leave_memory(uint64_t bytes);

#endif
