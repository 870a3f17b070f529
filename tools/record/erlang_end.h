/* SPDX-License-Identifier: Apache-2.0 */
/* erlang_end.h - how a trace of an Erlang node has ended, as `record --erlang` says it. */
#ifndef TW_RECORD_ERLANG_END_H
#define TW_RECORD_ERLANG_END_H

#include "tracewheel/consumer.h"

#include <stdbool.h>

/*
 * tw_erlang_sum_up - say what came into the capture and what did not.
 *
 * @counts	KEY=VALUE..., as the helper VM gives the result of tracewheel:stop/1; is changed.
 *
 * Returns the exit code.
 */
int tw_erlang_sum_up(char *counts, const char *path, const struct tw_recorder_options *recorder, bool is_quiet);

/* The same of a flight recorder, which has written so many snapshots. */
int tw_erlang_sum_up_flight(char *counts, uint32_t snapshots, bool is_quiet);

#endif
