/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.h - can this program be traced by preloading?  And start it.
 *
 * Preloading needs the dynamic loader of glibc, for x86-64, and a program that the loader trusts with
 * its environment: neither set-uid nor with capabilities.  For a script all of it is asked of the
 * interpreter.
 */
#ifndef TW_TOOLS_LAUNCH_H
#define TW_TOOLS_LAUNCH_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#define TW_LAUNCH_REASON_BYTES (PATH_MAX + 256)

struct tw_launch {
	char path[PATH_MAX];	/* of the program */
	char program[PATH_MAX]; /* of what is executed in the end: the interpreter, for a script */
	bool is_script;
	bool is_output_ours; /* standard output is a stream of events: the program's goes to standard error */
	char reason[TW_LAUNCH_REASON_BYTES]; /* why not, as a sentence */
};

/*
 * tw_launch_find - where execvp() would find a command, and whether it can be traced.
 *
 * Answers 0, or the exit code of the refusal with reason filled in.  TW_EXIT_NOT_STARTED is the only
 * one where the program could be run untraced.
 */
int tw_launch_find(struct tw_launch *launch, const char *command);

/* The path of libtracewheel-agent.so, which lies at a fixed place relative to this executable.  False: reason says so. */
bool tw_launch_agent(char path[PATH_MAX], char reason[TW_LAUNCH_REASON_BYTES]);

/* A closed pipe and a file size limit become errors of write(); the program started later is as before. */
void tw_launch_ignore_signals(void);

/*
 * tw_launch_start - start the program with the agent preloaded, by way of the environment of this process.
 *
 * @argv	of the program.
 * @pid		of the child, on success.
 * Call tw_launch_ignore_signals() before.  Answers 0, or an exit code with reason filled in.
 */
int tw_launch_start(struct tw_launch *launch, char **argv, const char *agent, const char *ring_set, pid_t *pid);

#endif
