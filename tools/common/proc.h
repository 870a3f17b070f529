/* SPDX-License-Identifier: Apache-2.0 */
/* proc.h - text files of /proc/PID. */
#ifndef TW_TOOLS_PROC_H
#define TW_TOOLS_PROC_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* The beginning of /proc/PID/NAME, without a last line end. Returns its bytes, or a negative errno, with @out "". */
long tw_proc_read(int pid, const char *name, char *out, size_t capacity);
/* The number behind `KEY:` in /proc/PID/status, the @index-th of the line from 0 on; -1: it is not there. */
long tw_proc_status(int pid, const char *key, unsigned index);
/* Has the thread a seccomp filter that this command has not?  Then no system call of a tracer is safe there. */
bool tw_proc_has_filter(int thread);
/* The state of a process as one letter (R, S, D, T, t, Z); 0: there is none. */
char tw_proc_state(int pid);
/*
 * Copies the path of the first mapped file that has @part in its path, and ends with @end, to @path.  False: there is none, or this user
 * may not see it, and @path is "".
 */
bool tw_proc_maps(int pid, const char *part, const char *end, char path[PATH_MAX]);
/* The number of a process, as the user writes it; 0: it is none. */
int tw_proc_number(const char *text);
/*
 * tw_proc_started_as - the name by which the process was executed, as a link that leads to its file, or a script.
 *
 * False: it is not known.
 */
bool tw_proc_started_as(int pid, char path[PATH_MAX]);
/* The file that the process executes. Returns 0 or a negative errno; a file that was removed has " (deleted)" behind its name. */
int tw_proc_program(int pid, char path[PATH_MAX]);

#endif
