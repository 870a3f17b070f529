/* SPDX-License-Identifier: Apache-2.0 */
/* account.h - what a person is told when a recording begins, and when it has ended. */
#ifndef TW_TOOLS_ACCOUNT_H
#define TW_TOOLS_ACCOUNT_H

#include "tracewheel/consumer.h"

/* How much was recorded, how fast, and what of it --keep has left. */
void tw_account_events(const struct tw_recorder_stats *stats, const char *path, uint32_t segments_kept);
/* At the start: memory in /dev/shm that recordings which were cut off have left, and nobody gives back. */
void tw_account_dead_sets(void);
/* Why there is no capture. */
void tw_account_not_created(int error, const char *path, bool may_replace);
/* What went wrong: said even when quiet. */
void tw_account_troubles(const struct tw_recorder_stats *stats, const char *path, int error);
/* @path: NULL for a stream. */
void tw_account_losses(const struct tw_recorder_stats *stats, const char *path, enum tw_recorder_policy policy);

#endif
