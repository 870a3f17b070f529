/* SPDX-License-Identifier: Apache-2.0 */
/* confined.h - which traced processes have seccomp filters that the recorder has not.  Threads: the recorder's. */
#ifndef TW_PIPELINE_CONFINED_H
#define TW_PIPELINE_CONFINED_H

#include "ringbuf/ringset.h"

/* Looks at the living images, and sets filter_seen in the slots of those.  @turn: how many looks there were before. */
void tw_confined_look(struct tw_rs *rs, uint32_t turn);

#endif
