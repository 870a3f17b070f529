#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Hundreds of processes that are alive at the same time are recorded whole, even if the cap suffices for few of
#         them, and if each has executed another program.
# Method  Children that make a known number of calls, report that, and wait until the last one has; 400 of them, and
#         memory for 60 rings. Every call must be in the capture, under the right number of processes.
build=$1
. "$(dirname "$0")/lib.sh"

cat >many.c <<'C'
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline, noipa)) long tick(long a) { return a + 1; }
static int work(void)
{
	char byte = 0;
	for (int i = 0; i < 5; i++)
		tick(i);
	return write(3, &byte, 1) != 1 || read(4, &byte, 1) != 0;
}
int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 0, ready[2], go[2], status;
	char byte;
	if (!count)
		return work();
	if (pipe(ready) || pipe(go))
		return 2;
	for (int i = 0; i < count; i++) {
		if (fork())
			continue;
		close(go[1]);
		int in = dup2(go[0], 20), out = dup2(ready[1], 21);
		for (int fd = 3; fd < 20; fd++)
			close(fd);
		dup2(out, 3), dup2(in, 4);
		if (i % 4 == 0)
			execl(argv[0], argv[0], NULL);
		_exit(work());
	}
	for (int i = 0; i < count; i++)
		if (read(ready[0], &byte, 1) != 1)
			return 3;
	close(go[1]);
	while (wait(&status) > 0)
		if (status)
			return 4;
	return 0;
}
C
gcc -w -O1 -fpatchable-function-entry=9 -o many many.c || fail gcc
expect 0 "$tw" record -q -o m.tw --follow-fork --on-full drop --ring 64K --ring-cap 4M -t many:tick -- ./many 400
expect 0 "$tw" info --json m.tw
is "$(json 'd["events"], sum(d["lost"].values()), d["account"]["whole"]')" "2000 0 True"
expect 0 "$tw" report --json --top 0 m.tw
is "$(json "[f['calls'] for f in d['by_function']]")" "[2000]"
echo PASS
