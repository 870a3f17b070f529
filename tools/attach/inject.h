/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inject.h - loads the agent into a program that was started without it, where it sleeps (dormant.h).
 *
 * Threads  the command's.
 */
#ifndef TW_TOOLS_INJECT_H
#define TW_TOOLS_INJECT_H

struct tw_dormant;

/*
 * tw_inject - load the agent's library into `dormant->process`.
 *
 * @agent	the path of the library, which the process need not be able to read.
 *
 * Returns 0, and its agent can be found by tw_dormant_find(); or an exit code, with the reason in `dormant->reason`.  The program is then as
 * it was, or has loaded the library and goes on.
 */
int tw_inject(struct tw_dormant *dormant, const char *agent);

#endif
