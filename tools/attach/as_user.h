/* SPDX-License-Identifier: Apache-2.0 */
/*
 * as_user.h - root acts on a process of another user as that user.
 *
 * Ring sets and agents belong to the user of the program, and what root opens at the names that a program gives could be anything.  So root's
 * command goes on as the program's user and group, without supplementary groups, with the two capabilities that it takes to trace a process which has
 * changed its user: CAP_SYS_PTRACE and CAP_DAC_OVERRIDE.  No other process of that user may trace it, because it has more capabilities.
 *
 * Threads  the command's only one.
 */
#ifndef TW_TOOLS_AS_USER_H
#define TW_TOOLS_AS_USER_H

/* Those of main(), which may since have been put in another order.  Lends, as long as the process lives. */
void tw_as_user_arguments(char **argv);

/*
 * tw_as_user_of - execute this command again, with its arguments, as the user of the process, if this is root and the process another user's.
 *
 * The environment loses HOME and XDG_CACHE_HOME: nothing is written into root's folders.  Returns if there is nothing to do, or if the system does
 * not allow it, with nothing changed.
 */
void tw_as_user_of(int process);

#endif
