/* SPDX-License-Identifier: Apache-2.0 */
/* list.h - processes with agents. */
#ifndef TW_TOOLS_LIST_H
#define TW_TOOLS_LIST_H

#include <limits.h>
#include <stdbool.h>

/* The one process of this name that has a dormant agent; 0: none or several, which has been reported. */
int tw_list_find(const char *name);
/* The folder of the ring set that a process has mapped, as one that is recorded or records.  False: none, or this user may not know. */
bool tw_list_set(int pid, char set[PATH_MAX]);
/* The process that records into this ring set; 0: none is seen. */
int tw_list_recorder(const char *set);

#endif
