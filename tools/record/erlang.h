/* SPDX-License-Identifier: Apache-2.0 */
/* erlang.h - `tracewheel record --erlang`: the recorder of an Erlang VM, and how a running one is reached. */
#ifndef TW_RECORD_ERLANG_H
#define TW_RECORD_ERLANG_H

#include "tracewheel/consumer.h"

/* The command `record --erlang`: with a node or a process attach.c, else tw_record_erlang_port().  Returns the exit code. */
int tw_record_erlang(int argc, char **argv);

/*
 * tw_record_erlang_port - record what a tracer in another process writes, until it says stop or its end of the pipe is closed.
 *
 * On standard output, one line each: `ready RING-SET`, or `error NAME TEXT`; at the end `done KEY=NUMBER...`.  On standard
 * input: `stop`, or `abort` for no capture; the end of the input is a stop.  Returns the exit code.
 */
int tw_record_erlang_port(struct tw_recorder_options *options, const char *path, bool is_flight);

#endif
