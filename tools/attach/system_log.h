/* SPDX-License-Identifier: Apache-2.0 */
/*
 * system_log.h - who attaches to which process, and detaches, for the log of the system (syslog).
 *
 * Threads  the command's only one.
 */
#ifndef TW_TOOLS_SYSTEM_LOG_H
#define TW_TOOLS_SYSTEM_LOG_H

/*
 * tw_system_log - one line: `VERB process PID (NAME) of user UID, by user UID: WHY`.
 *
 * @why	NULL: nothing is appended.  A system without such a log, as a container, gets none.
 */
void tw_system_log(const char *verb, int process, const char *why);

/* Before this command goes on as another user: later lines, also those of the program that it executes, tell who has begun it. */
void tw_system_log_keep_user(void);

#endif
