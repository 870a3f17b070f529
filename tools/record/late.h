/* SPDX-License-Identifier: Apache-2.0 */
/*
 * late.h - arguments of functions in what the program opens while it runs, by dlopen or by exec.
 *
 * The agent says only that there is something new; which files that is, the kernel tells (/proc/PID/maps), so no path
 * is opened on the program's word.  Debug information is read on a thread of its own: rings are drained meanwhile.
 */
#ifndef TW_TOOLS_LATE_H
#define TW_TOOLS_LATE_H

#include "tools/record/arguments.h"

struct tw_late;
struct tw_recorder;

/* @arguments, @config borrow, until tw_late_end().  NULL: there is nothing to look up, or no memory. */
struct tw_late *tw_late_begin(const struct tw_arguments *arguments, const char *config, struct tw_recorder *recorder);

/* Takes up a question, or hands out an answer that has become ready.  Never waits. */
void tw_late_look(struct tw_late *late);

/* Says, unless @is_quiet, what could not be found.  Before the recorder ends.  NULL is allowed. */
void tw_late_end(struct tw_late *late, bool is_quiet);

/* The file of a line of /proc/PID/maps that has code in it: NULL: none.  Changes the line. */
const char *tw_late_code_file(char *line);

#endif
