/* SPDX-License-Identifier: Apache-2.0 */
/* fit.h - is it a process that inject.h may bring the agent into?  Threads: the command's. */
#ifndef TW_TOOLS_FIT_H
#define TW_TOOLS_FIT_H

#include <stdbool.h>

struct tw_dormant;

/* False: `dormant->reason` says why not, and what to do.  The process is only looked at. */
bool tw_fit(struct tw_dormant *dormant);

#endif
