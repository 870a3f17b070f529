/* SPDX-License-Identifier: Apache-2.0 */
/*
 * erlang_print.h - `record --erlang NODE --print`: shows the capture while the node writes it.
 *
 * The lines are those of `tracewheel print --follow`, which runs as a process of its own: it reads the capture, and costs the node nothing.
 *
 * Threads  one.
 */
#ifndef TW_RECORD_ERLANG_PRINT_H
#define TW_RECORD_ERLANG_PRINT_H

#include <stdbool.h>

/*
 * Begins to print a capture, from its first event, on standard output.
 *
 * @self	borrows: the path of this command.
 * @lines	borrows: the most in a second, as --lines takes it.
 *
 * False: it cannot be started, which has been reported.  Ctrl-C does not end it: it ends with the recording.
 */
bool tw_erlang_print_begin(const char *self, const char *path, const char *lines);

/* For a handler of SIGCHLD: has it ended, as its reader has gone or the capture cannot be read? Signal handlers: yes. */
bool tw_erlang_print_has_ended(void);

/* Ends it, without the lines that are left.  Signal handlers: yes. */
void tw_erlang_print_kill(void);

/* Waits until it has shown the end of the recording.  Does nothing if none was begun. */
void tw_erlang_print_end(void);

#endif
