/* SPDX-License-Identifier: Apache-2.0 */
/*
 * foreign.h - hits of a thread whose %fs is not libc's (base/thread_base.h): nothing is recorded, and each event is counted as
 * one of a thread without a ring.
 *
 * Threads  any; no thread-local variable is read.
 */
#ifndef TW_PIPELINE_HIT_FOREIGN_H
#define TW_PIPELINE_HIT_FOREIGN_H

#include "breakpoints/breakpoints.h"

const char *tw_foreign_hit(struct tw_place *place);
/* Returns where the call returns to. */
uintptr_t tw_foreign_return(uint64_t *slot);

#endif
