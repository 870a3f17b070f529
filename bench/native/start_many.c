/* SPDX-License-Identifier: Apache-2.0 */
/*
 * start_many.c - processes for start.py.
 *
 *	start_many turn N		N forked children, one after the other, of one call each
 *	start_many exec N PROGRAM	N times fork and exec
 *	start_many once N		N children of five calls each, alive at the same time
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline, noipa)) long tick(long a)
{
	return a + 1;
}

static void in_turn(int count, char **program)
{
	for (int i = 0; i < count; i++) {
		if (fork() == 0) {
			tick(i);
			if (program)
				execv(program[0], program);
			_exit(0);
		}
		wait(NULL);
	}
}

static int at_once(int count)
{
	int ready[2], go[2], made = 0;
	char byte = 0;

	if (pipe(ready) || pipe(go))
		return 1;
	while (made < count) {
		pid_t child = fork();

		if (child < 0)
			break;
		made++;
		if (child)
			continue;
		close(go[1]);
		for (int i = 0; i < 5; i++)
			tick(i);
		if (write(ready[1], &byte, 1) == 1 && read(go[0], &byte, 1) == 0)
			_exit(0);
		_exit(1);
	}
	for (int i = 0; i < made; i++)
		if (read(ready[0], &byte, 1) != 1)
			return 1;
	close(go[1]);
	while (wait(NULL) > 0)
		;
	return made != count;
}

int main(int argc, char **argv)
{
	int count = argc > 2 ? atoi(argv[2]) : 0;

	if (argc > 2 && !strcmp(argv[1], "once"))
		return at_once(count);
	if (argc > 2)
		in_turn(count, argc > 3 ? argv + 3 : NULL);
	return argc < 3;
}
