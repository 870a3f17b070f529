/* SPDX-License-Identifier: Apache-2.0 */
/* crash.h - a signal that is about to end the program: where it was is written to the ring set, before the program dies of it. */
#ifndef TW_AGENT_CRASH_H
#define TW_AGENT_CRASH_H

#include <signal.h>

/* From now on; preload/crash.c has the handlers.  Before anything is traced. */
void tw_agent_crash_begin(void);
/* Set by preload/crash.c. */
extern void (*tw_agent_crash_watch)(void);

/*
 * tw_agent_crash_tell - write down the signal that the calling thread has got, and its stack.
 *
 * @context	the ucontext_t that its handler gets.
 *
 * Nothing in a process that is not recorded, as a forked child.  Waits for at most a fifth of a second, if another thread is at it.  In a signal
 * handler; never faults.
 */
void tw_agent_crash_tell(const siginfo_t *info, const void *context);

#endif
