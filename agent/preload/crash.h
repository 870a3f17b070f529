/* SPDX-License-Identifier: Apache-2.0 */
/* crash.h - handlers of signals that end a program which has none: what the wrappers of sigaction() and the like must know. */
#ifndef TW_AGENT_PRELOAD_CRASH_H
#define TW_AGENT_PRELOAD_CRASH_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* Is this our handler, in place of SIG_DFL? */
bool tw_crash_is_handler(uintptr_t handler);
/* The program has set SIG_DFL: our handler takes its place again, if there was one. */
void tw_crash_stand_in(int number);
/* SIG_DFL from now on: the program is about to forbid itself system calls. */
void tw_crash_end(void);

/* fault.c: the thread is in a stub that looks for too little stack, and goes on in the copy.  False: it is not. */
bool tw_fault_leave_stub(int number, void *context);

#endif
