/* SPDX-License-Identifier: Apache-2.0 */
/*
 * group_signals.h - a process that shows which signals were sent to the whole process group.
 *
 * A signal's receiver cannot know whether the other processes of its group got it too.  The recorder has to: a signal
 * that was meant for it alone (kill) is passed on to the recorded program, and one that the program got as well (timeout,
 * a shell's `kill %1`) must not come twice.  This process is in the group and does nothing but
 * count the signals that it gets.
 *
 * Threads  one.
 */
#ifndef TW_TOOLS_RECORD_GROUP_SIGNALS_H
#define TW_TOOLS_RECORD_GROUP_SIGNALS_H

#include <stdbool.h>

/*
 * Starts it, with no file of the caller's; it ends with the caller.
 *
 * @last_word	the last word of the command line; pkill -f does not take this process for the command.
 */
void tw_group_signals_begin(const char *last_word);
/* Has it got the signal since it was last asked about this one?  False also if it could not be started. */
bool tw_group_signals_got(int number);
bool tw_group_signals_are_counted(void);
/* Has the signal come that it could not count yet, for want of a processor? */
bool tw_group_signals_are_behind(int number);
void tw_group_signals_end(void);

#endif
