/* SPDX-License-Identifier: Apache-2.0 */
/* tracee.h - changing the flags of one process from inside of a hit. */
#ifndef TW_SESSION_TRACEE_H
#define TW_SESSION_TRACEE_H

#include <stdint.h>

/*
 * tw_tracee_change - takes flags from a process and gives it others, in one session.
 *
 * Returns 1 when its flags are others now, 0 when not, -1 when there is no such process.
 * Threads: any, also in a hit.  Takes the registry's lock.
 */
int tw_tracee_change(uint64_t pid, unsigned session, uint32_t removed, uint32_t added);

#endif
