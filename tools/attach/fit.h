/* SPDX-License-Identifier: Apache-2.0 */
/* fit.h - is it a process that inject.h may bring the agent into?  Threads: the command's. */
#ifndef TW_TOOLS_FIT_H
#define TW_TOOLS_FIT_H

#include <stdbool.h>

struct tw_dormant;

/*
 * How this command gets to where the process lives, in a container, behind a chroot, or in a user namespace: the beginning of a line for a
 * shell, and the process's number there.  Empty: the process has the same files, numbers and users before it.
 */
#define TW_FIT_WAY_BYTES 128
int tw_fit_way(int process, char way[TW_FIT_WAY_BYTES]);

/* False: `dormant->reason` says why not, and what to do.  The process is only looked at. */
bool tw_fit(struct tw_dormant *dormant);

#endif
