/* SPDX-License-Identifier: Apache-2.0 */
/* sched.h - what `record --sched` says: states of threads that the kernel refuses, or has lost. */
#ifndef TW_TOOLS_SCHED_H
#define TW_TOOLS_SCHED_H

#include "tracewheel/consumer.h"

/* Before the program starts: nothing, or one sentence why there are no states, and what to do.  Also when quiet. */
void tw_sched_say_refused(const struct tw_recorder *recorder);
/* At the end: switches that are missing. */
void tw_sched_say_lost(const struct tw_recorder_stats *stats);

#endif
