/* SPDX-License-Identifier: Apache-2.0 */
/* list.h - processes with agents. */
#ifndef TW_TOOLS_LIST_H
#define TW_TOOLS_LIST_H

/* The one process of this name that has a dormant agent; 0: none or several, which has been reported. */
int tw_list_find(const char *name);

#endif
