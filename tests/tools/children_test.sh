#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Processes that a traced one starts and that are not followed are counted and said in every view, whichever call
#         makes them; calls of a child of vfork() are events of the thread that made it, or losses with a cause of their own.
# Method  A program that starts a known number of children by each call; the same with --follow-fork; children that use their parent's
#         memory without libc's vfork().
build=$1
. "$(dirname "$0")/lib.sh"

cat >starts.c <<'C'
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
pid_t _Fork(void);
__attribute__((noinline)) void step(int i) { __asm__ volatile("" : : "r"(i)); }
static char stack[65536];
static int run_true(void *unused)
{
	step(1);
	execl("/bin/true", "true", (char *)0);
	_exit(1);
}
int main(int argc, char **argv)
{
	char *arguments[] = {"true", NULL};
	pid_t child = 1;
	FILE *pipe;
	if (!strcmp(argv[1], "fork") && (child = fork()) == 0)
		_exit(fork() == 0);
	if (!strcmp(argv[1], "_Fork") && (child = _Fork()) == 0)
		_exit(0);
	if (!strcmp(argv[1], "syscall") && (child = (pid_t)syscall(SYS_fork)) == 0)
		_exit(0);
	if (!strcmp(argv[1], "spawn"))
		child = -posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environ);
	if (!strcmp(argv[1], "system"))
		child = -system("exit 0");
	if (!strcmp(argv[1], "popen") && (pipe = popen("exit 0", "r")))
		child = -pclose(pipe);
	if (!strcmp(argv[1], "daemon") && daemon(1, 1) == 0)
		sleep(1);
	if (!strcmp(argv[1], "vfork"))
		for (int i = 0; i < 20; i++)
			if ((child = vfork()) == 0)
				run_true(NULL);
	/* Not by libc's vfork(), and on a thread without any event so far. */
	if (!strcmp(argv[1], "clone"))
		for (int i = 0; i < 20; i++)
			child = clone(run_true, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
	if (!strcmp(argv[1], "fails")) {
		struct rlimit none = {0, 0};
		setrlimit(RLIMIT_NPROC, &none);
		errno = 0;
		child = fork();
		return child == 0 ? 0 : child < 0 && errno == EAGAIN ? 11 : 12;
	}
	while (wait(NULL) > 0)
		;
	return child < 0;
}
C
gcc -O1 -D_GNU_SOURCE -fpatchable-function-entry=9 -o starts starts.c || fail "gcc"

# Each way of starting one process.
for way in fork _Fork syscall spawn system popen daemon; do
	expect 0 "$tw" record --force --allow-nothing -o "$way.tw" -t 'starts:step' -- ./starts $way
	says '1 process that it started was not traced; --follow-fork traces it\.'
	expect 0 "$tw" info --json "$way.tw"
	is "$(json 'd["account"]["missing"]["children"], d["account"]["whole"], d["complete"]')" \
		"{'events': 0, 'places': 1, 'more': True} False True" "$way"
done
expect 0 "$tw" info fork.tw
shows '^lost *nothing, but not everything was traced'
shows '^children *1 process that it started was not traced; --follow-fork traces it'
expect 0 "$tw" report fork.tw
shows '^Nothing was lost of what was traced'
shows '^1 process that it started was not traced; --follow-fork traces it\.'
expect 0 "$tw" report --json fork.tw
is "$(json 'd["account"]["missing"]["children"]["places"], d["live"]')" "1 False"

# None is counted if all are followed, or none is started; the program sees its own errno.
for way in fork spawn system vfork; do
	expect 0 "$tw" record --force --follow-fork -o followed.tw -t 'starts:main' -- ./starts $way
	! grep -q 'not traced' err || fail "$way: followed, and said to be not traced"
done
expect 0 "$tw" record --force -o none.tw -t 'starts:main' -- ./starts none
! grep -q 'not traced' err || fail "a child of a program that starts none"
expect 0 "$tw" report none.tw
shows '^Nothing was lost\.$'
setpriv=(setpriv --reuid=65534 --clear-groups)
# A tree below a folder that only root may search cannot be used by nobody.
if [ "$(id -u)" = 0 ] && mkdir -m 777 of-nobody && cp -r starts of-nobody/ && chmod 755 "$work" &&
	"${setpriv[@]}" test -r "$build/lib/libtracewheel-agent.so"; then
	cd of-nobody || exit 1
	export TRACEWHEEL_SHM=$PWD
	expect 11 "${setpriv[@]}" "$tw" record -o fails.tw -t 'starts:main' -- ./starts fails
	! grep -q 'not traced' err || fail "a child that was refused is counted"
	cd ..
	unset TRACEWHEEL_SHM
fi

# Children of vfork(): the parent's events, although it made none before.
expect 0 "$tw" record --force -o vfork.tw -t 'starts:step' -t 'libc:execl' -- ./starts vfork
says '20 processes that it started were not traced'
! grep -q LOST err || fail "calls of children of vfork() are lost"
is "$(calls vfork.tw step) $(calls vfork.tw execl)" "20 20" "calls of children of vfork()"
expect 0 "$tw" info --json vfork.tw
is "$(json 'len(d["processes"]), d["threads"]')" "1 1"
# Where they find no ring, they are counted.
expect 0 "$tw" record --force -o clone.tw -t 'starts:step' -t 'libc:execl' -- ./starts clone
says 'LOST 40 events: vfork 40\..* vfork are calls of children that still ran in the program'
expect 0 "$tw" info clone.tw
shows '^lost *vfork 40$'
expect 0 "$tw" info --json clone.tw
is "$(json '[d["account"]["missing"][c]["events"] for c in ("no_ring", "ended", "vfork")], d["lost"]["no_ring"]')" "[0, 0, 40] 40"
expect 0 "$tw" report clone.tw
shows 'LOST 40 events, 100.00 % of all: vfork 40'
echo PASS
