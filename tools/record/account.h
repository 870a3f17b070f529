/* SPDX-License-Identifier: Apache-2.0 */
/* account.h - messages at the beginning and the end of a recording. */
#ifndef TW_TOOLS_ACCOUNT_H
#define TW_TOOLS_ACCOUNT_H

#include "tracewheel/consumer.h"

/* Says how many processes the program started that were not followed. */
void tw_account_children(const struct tw_recorder_stats *stats);

/* Reports where the events of --tracer went, and those that were not passed to it. */
void tw_account_tracer(const struct tw_recorder_stats *stats, const char *module, const char *path);
/*
 * Reports which functions were not traced at their entries, and why: the notes of the capture's processes, each once. True: a plan was
 * not ready in time, so that functions are missing that the next recording can have.
 */
bool tw_account_entries(const char *path);
/* Says how much was recorded, how fast, and what --keep has left of it. */
void tw_account_events(const struct tw_recorder_stats *stats, const char *path, uint32_t segments_kept);
/* At the start: reports memory in /dev/shm that cut-off recordings have left and that is not in use. */
void tw_account_dead_sets(void);
/* Says why the capture could not be made. */
void tw_account_not_created(int error, const char *path, bool may_replace, const struct tw_recorder_options *options);
/* Reports errors, and processes that live on with changed code, even when quiet. */
void tw_account_troubles(const struct tw_recorder_stats *stats, const char *path, int error);
/* @path: NULL for a stream. */
void tw_account_losses(const struct tw_recorder_stats *stats, const char *path,
		       const struct tw_recorder_options *options);

#endif
