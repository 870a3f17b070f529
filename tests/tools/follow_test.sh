#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    With --follow-fork a recording ends with the last of the program's processes: daemons, double forks and programs
#         that they execute are recorded whole. --until-first ends it with the first, a signal ends it at once, and then
#         the capture gives the number of processes that continued.
# Method  A daemon that works on after its first process has ended, and writes its number of calls to a file; one that
#         waits at a pipe until the test has checked. Progress decides, no time.
build=$1
. "$(dirname "$0")/lib.sh"

cat >daemon.c <<'C'
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) int work(int n) { __asm__ volatile("" : "+r"(n)); return n + 1; }
int main(int argc, char **argv)
{
	char byte;
	int fd;
	work(0);
	if (!strcmp(argv[1], "again")) {
		for (int i = 0; i < 500; i++)
			work(i);
		return 0;
	}
	if (!strcmp(argv[1], "hang"))
		for (;;)
			pause();
	/* Twice, as daemons do; the parents exit at once. */
	for (int i = 0; i < 2; i++) {
		if (fork())
			_exit(7);
		setsid();
		close(0), close(1), close(2);
	}
	for (int i = 0; i < 1000; i++) {
		if (i % 100 == 0)
			usleep(10000);
		work(i);
	}
	if (!strcmp(argv[1], "exec"))
		execl("./daemon", "daemon", "again", NULL);
	if (!strcmp(argv[1], "wait")) {
		fd = open("here", O_WRONLY);
		write(fd, "x", 1);
		fd = open("go", O_RDONLY);
		read(fd, &byte, 1);
		work(1);
		close(open("done", O_CREAT, 0600));
	}
	return 0;
}
C
gcc -w -O1 -fpatchable-function-entry=9 -o daemon daemon.c || fail gcc
calls() {
	expect 0 "$tw" report --json --top 0 f.tw
	json "sum(f['calls'] for f in d['by_function'] if f['name'].startswith('daemon:work'))"
}

for _ in 1 2 3 4 5; do
	expect 7 "$tw" record -q --force --follow-fork --on-full block -t daemon:work -o f.tw -- ./daemon work
	is "$(calls)" 1001 "a daemon"
	expect 7 "$tw" record -q --force --follow-fork --on-full block -t daemon:work -o f.tw -- ./daemon exec
	is "$(calls)" 1502 "a daemon that executes another program"
done
expect 0 "$tw" info --json f.tw
is "$(json 'd["account"]["missing"]["went_on"]["places"]')" 0 "processes that went on"
is "$(json 'd["account"]["whole"]')" True
# An overwriting ring is read once, at the end; who is alive is asked then.
expect 0 "$tw" record -q --force --on-full overwrite -t daemon:work -o f.tw -- ./daemon again
expect 0 "$tw" info --json f.tw
is "$(json 'd["account"]["missing"]["went_on"]["places"]')" 0 "processes that went on, of an overwriting recording"

# The daemon waits: it is alive, and no longer recorded.
mkfifo here go
"$tw" record --force --follow-fork --until-first --on-full block -t daemon:work -o f.tw -- ./daemon wait 2>err >out
is $? 7 "the first process's exit code"
head -c 1 here >/dev/null
echo x >go
wait_until test -e done
rm done

"$tw" record --force --follow-fork --on-full block -t daemon:work -o f.tw -- ./daemon wait 2>err >out &
recorder=$!
head -c 1 here >/dev/null
kill -TERM $recorder
wait $recorder
is $? 7 "the first process's exit code"
says "1 of its processes still run"
expect 0 "$tw" info f.tw
shows "1 process still ran when the recording ended"
expect 0 "$tw" info --json f.tw
is "$(json 'd["account"]["missing"]["went_on"]["places"]')" 1
is "$(json 'd["account"]["complete"]')" True
is "$(calls)" 1001
echo x >go
wait_until test -e done

# A program that does not end: one signal to the recorder ends both.
"$tw" record -q --force --follow-fork -t daemon:work -o f.tw -- ./daemon hang &
recorder=$!
until [ -n "$(pgrep -P $recorder -x daemon)" ] && grep -q pause "/proc/$(pgrep -P $recorder -x daemon)/wchan" 2>/dev/null || grep -q '^34 ' "/proc/$(pgrep -P $recorder -x daemon)/syscall" 2>/dev/null; do sleep 0.05; done
kill -TERM $recorder
wait $recorder
is $? 143 "the program was ended by the signal"

# fork() returns in the child as well: that is no return whose call is missing.
expect 0 "$tw" record -q --returns --force --follow-fork --on-full block -t 'libc:{fork,vfork,wait*}' -o f.tw -- sh -c '(exit 0); (exit 0)'
expect 0 "$tw" report --json --top 0 f.tw
is "$(json 'd["unmatched"]["returns"]')" 0 "returns without a call"
expect 0 "$tw" print --tree f.tw
is "$(grep -c 'libc:v*fork  (called by the parent)$' out)" 2 "returns of fork in children"
! grep -q 'no call seen' out || fail "a return whose call was not seen"
