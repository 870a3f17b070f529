/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of one process, by exec of the same file.
 *
 * execs SELF FORKS NUMBER CALLS...: calls step() as often as the next number of CALLS says, tells so on its output, and
 * executes itself with the others. With FORKS 1, the first of them does this in a child, too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int sink;

static __attribute__((noinline)) void exec_step(int number)
{
	sink = number;
}

int main(int count, char **arguments)
{
	char number[12];
	if (count < 5)
		return count < 4;
	if (atoi(arguments[2]))
		fork();
	for (int i = 0; i < atoi(arguments[4]); i++)
		exec_step(i);
	printf("%d %s %s\n", (int)getpid(), arguments[3], arguments[4]);
	fflush(stdout);
	snprintf(number, sizeof number, "%d", atoi(arguments[3]) + 1);
	arguments[2] = "0";
	arguments[3] = number;
	arguments[4] = arguments[1];
	if (count > 5) {
		/* The arguments move by one: those that are left. */
		arguments[4] = arguments[5];
		for (int i = 5; i < count; i++)
			arguments[i] = arguments[i + 1];
		execv(arguments[1], arguments);
	}
	while (wait(NULL) > 0)
		;
	return 0;
}
