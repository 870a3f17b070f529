/* SPDX-License-Identifier: Apache-2.0 */
/*
 * erlang_helper.h - the helper VM of `record --erlang NODE`: its start, and the signals that it is told of.
 *
 * There is one helper in a process.  The end of its standard input is the order to stop; the line `snapshot` there asks for one.
 *
 * Threads  one.
 */
#ifndef TW_RECORD_ERLANG_HELPER_H
#define TW_RECORD_ERLANG_HELPER_H

#include <stdbool.h>
#include <stdio.h>

/*
 * The helper will be in the network of this process, which may be that of a container: there the addresses are that it listens at.
 * Returns 0, also where it has the same network or there is no such process, or an errno.
 */
int tw_erlang_helper_enter_network(int process_id);

/* Starts argv[0] of PATH.  @lines: gives its standard output.  Returns 0 or an errno. */
int tw_erlang_helper_start(char *const argv[], FILE **lines);

/* From here on signals stop the helper, and a second one kills it.  @asks_for_snapshots: USR2 asks for one. */
void tw_erlang_helper_catch_signals(bool asks_for_snapshots);

/* The order to stop. */
void tw_erlang_helper_stop(void);

/* The trace has begun: from here on an order to stop has all the time that it takes. */
void tw_erlang_helper_set_tracing(void);

/* Has a signal asked it to stop? */
bool tw_erlang_helper_was_stopped(void);

/* Waits for its end. */
void tw_erlang_helper_wait(void);

#endif
