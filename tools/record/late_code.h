/* SPDX-License-Identifier: Apache-2.0 */
/*
 * late_code.h - arguments of functions in objects that the program opens while it runs, by dlopen or by exec.
 *
 * The agent reports only that there is a new object; its files are read from /proc/PID/maps, so no path is taken from
 * the program. Debug information is read on a thread of its own: rings are drained meanwhile.
 */
#ifndef TW_TOOLS_LATE_CODE_H
#define TW_TOOLS_LATE_CODE_H

#include "tools/record/arguments.h"

struct tw_late_code;
struct tw_recorder;

/*
 * @arguments, @config borrow, until tw_late_code_end(). NULL: nothing has to be looked up, or no memory.
 */
struct tw_late_code *tw_late_code_begin(const struct tw_arguments *arguments, const char *config,
					struct tw_recorder *recorder);

/* Accepts a question, or delivers an answer that is ready. Never waits. */
void tw_late_code_poll(struct tw_late_code *late);

/* Reports, unless @is_quiet, what could not be found. Called before the recorder ends. NULL is allowed. */
void tw_late_code_end(struct tw_late_code *late, bool is_quiet);

/* The file of a line of /proc/PID/maps, if it is mapped executable: NULL: none. Modifies the line. */
const char *tw_late_code_file(char *line);

#endif
