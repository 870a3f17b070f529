/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.h - checks whether a program can be traced by preloading, and starts it.
 *
 * Preloading needs the dynamic loader of glibc, for x86-64, and a program whose environment the loader trusts:
 * neither set-uid nor with capabilities. For a script all of this applies to its interpreter.
 */
#ifndef TW_TOOLS_LAUNCH_H
#define TW_TOOLS_LAUNCH_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#define TW_LAUNCH_REASON_BYTES (PATH_MAX + 256)

struct tw_launch {
	char path[PATH_MAX];	/* of the program */
	char program[PATH_MAX]; /* of the file that is executed in the end: for a script, its interpreter */
	int process_id;		/* it runs already; 0: it is to be started */
	bool is_script;
	bool is_output_ours; /* standard output is a stream of events: the program's output goes to standard
			      * error */
	const char *output;  /* a file for the program's output and errors; NULL: as this command's */
	char reason[TW_LAUNCH_REASON_BYTES]; /* why it cannot be traced, as a sentence */
};

/*
 * tw_launch_find - find a command as execvp() does, and check whether it can be traced.
 *
 * Returns 0, or the exit code of the refusal with `reason` filled in. Only with TW_EXIT_NOT_STARTED could the program
 * be run untraced.
 */
int tw_launch_find(struct tw_launch *launch, const char *command);

/*
 * The path of libtracewheel-agent.so, which has a fixed location relative to this executable. False: `reason` is
 * filled in.
 */
bool tw_launch_agent(char path[PATH_MAX], char reason[TW_LAUNCH_REASON_BYTES]);

/*
 * Turns a closed pipe and a file size limit into errors of write(); the program that is started later is not
 * affected.
 */
void tw_launch_ignore_signals(void);

/*
 * tw_launch_start - start the program with the agent preloaded, by the environment of this process.
 *
 * @argv	of the program.
 * @pid		of the child, on success.
 *
 * tw_launch_ignore_signals() must be called before. Returns 0, or an exit code with `reason` filled in.
 */
int tw_launch_start(struct tw_launch *launch, char **argv, const char *agent, const char *ring_set, pid_t *pid);

#endif
