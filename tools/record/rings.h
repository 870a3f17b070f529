/* SPDX-License-Identifier: Apache-2.0 */
/* rings.h - the options of rings. */
#ifndef TW_TOOLS_RINGS_H
#define TW_TOOLS_RINGS_H

/* Of --ring. */
#define TW_RING_BYTES_DEFAULT (UINT64_C(4) << 20)
#define TW_RING_BYTES_LEAST   (UINT64_C(64) << 10)

#include "tracewheel/consumer.h"

struct tw_command;

/* The value of --on-full. False: it is not valid, which has been reported. */
bool tw_rings_set_policy(struct tw_recorder_options *options, const struct tw_command *command, const char *word);
/* Is one ring larger than all may be together? Reports it. */
bool tw_rings_are_too_large(const struct tw_recorder_options *options, const struct tw_command *command);

#endif
