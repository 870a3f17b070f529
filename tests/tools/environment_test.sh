#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Programs started by a traced program run as if it were untraced, unless tracing was requested: the environment
#         has no variable of ours and all of the user's, programs that cannot load our library start, and the program
#         itself stays traced across exec, whatever environment it makes.
# Method  env, as a child and in place of a shell; every call that executes a program; libraries that the user preloads;
#         a program of another C library, a static one, scripts of both.
build=$1
. "$(dirname "$0")/lib.sh"

cat >child.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* As programs do that have no libc: behind the arguments and the environment. */
static const char *vector(char **at)
{
	unsigned long *pair;
	while (*at++)
		;
	for (pair = (unsigned long *)at; pair[0]; pair += 2)
		if (pair[0] == 6 && pair[1] == 4096)
			return "found";
	return "not found";
}
__attribute__((noinline)) int child(int n) { __asm__ volatile("" : "+r"(n)); return n; }
int main(int argc, char **argv)
{
	printf("%s, %d words, X=%s, ours: %s %s, vector %s\n", argv[0], argc, getenv("X") ? getenv("X") : "",
	       getenv("TRACEWHEEL_AGENT") ? "agent" : "-", getenv("LD_PRELOAD") && strstr(getenv("LD_PRELOAD"), "tracewheel") ? "preload" : "-",
	       vector(argv + argc + 1));
	return child(4);
}
C
cat >exec.c <<'C'
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static char *own[] = {"X=own", "PATH=/nowhere", NULL}, *words[] = {"child", "a", "b", NULL};
static void execute(int how, const char *path)
{
	int fd;
	switch (how) {
	case 0: execve(path, words, own); break;
	case 1: execv(path, words); break;
	case 2: execvp("child", words); break;
	case 3: execvpe("child", words, own); break;
	case 4: execl(path, "child", "a", "b", NULL); break;
	case 5: execlp("child", "child", "a", "b", NULL); break;
	case 6: execle(path, "child", "a", "b", NULL, own); break;
	case 7: execveat(AT_FDCWD, path, words, own, 0); break;
	case 8: fd = open(path, O_RDONLY); fexecve(fd, words, own); break;
	case 9: fd = open(path, O_PATH); execveat(fd, "", words, environ, AT_EMPTY_PATH); break;
	}
	_exit(99);
}
static int start(int how, const char *kind, const char *path)
{
	int status = 0;
	pid_t pid = 0;
	if (!strcmp(kind, "exec"))
		execute(how, path);
	if (how == 10)
		posix_spawn(&pid, path, NULL, NULL, words, own);
	else if (how == 11)
		posix_spawnp(&pid, "child", NULL, NULL, words, environ);
	else if (how == 12)
		return system("./child a b") != 4 << 8;
	else if (!strcmp(kind, "vfork") ? !(pid = vfork()) : !(pid = fork()))
		execute(how, path);
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status) != 4;
}
int main(int argc, char **argv)
{
	int is_wrong = 0;
	setvbuf(stdout, NULL, _IONBF, 0);
	for (char *how = strtok(argv[1], ","); how; how = strtok(NULL, ","))
		is_wrong |= start(atoi(how), argv[2], argv[3]);
	return is_wrong;
}
C
gcc -O1 -fpatchable-function-entry=9 -o child child.c && gcc -w -O1 -o exec exec.c && gcc -O1 -static -o fixed child.c || fail gcc
export PATH=$PWD:$PATH

# called COUNT FUNCTION WHAT: so many calls of it are in the capture e.tw; all_called looks at all of them.
reports=0
called() {
	expect 0 "$tw" report --json --top 0 e.tw
	mv out "called$reports.json"
	echo "$1	$2	$3" >"called$reports"
	reports=$((reports + 1))
}
all_called() {
	python3 -I -S - "$reports" <<-'P' || fail "another number of calls"
		import json, sys
		for i in range(int(sys.argv[1])):
		    count, function, what = open(f"called{i}").read().strip().split("\t")
		    calls = sum(f["calls"] for f in json.load(open(f"called{i}.json"))["by_function"] if f["name"].startswith(function))
		    assert calls == int(count), f"{what}: {calls} calls of {function}, not {count}"
	P
}

# The short form records all functions of some programs only, and of the others those that start programs.
starting=(-t child:_ -t exec:_ -t 'libc:{execve,execv,execvp,execvpe,execl,execlp,execle,execveat,fexecve,posix_spawn,posix_spawnp,system,fork,vfork,waitpid,wait4}')
traced=(-t _:_)
some_are_traced() {
	[ -n "${TW_TEST_LONG:-}" ] || traced=("${starting[@]}")
}

# started HOW[,HOW...] KIND COUNT: children by these calls, so many. Those that are not followed: as untraced. Those that are: traced, once.
started() {
	./exec "$1" "$2" ./child >expected || fail "exec $1 $2 untraced"
	expect 0 "$tw" record -q --force "${traced[@]}" -o e.tw -- ./exec "$1" "$2" ./child
	cmp -s out expected || fail "$1 $2: $(diff out expected)"
	called 0 child:child "$1 $2, not followed"
	expect 0 "$tw" record -q --force --follow-fork --on-full block "${traced[@]}" -o e.tw -- ./exec "$1" "$2" ./child
	called "$3" child:child "$1 $2, followed"
}
# In the short form one program uses all calls in turn.
if [ -z "${TW_TEST_LONG:-}" ]; then
	started 0,6 vfork 2
	some_are_traced
	started 0,1,2,3,4,5,6,7,8,9,10,11,12 fork 13
else
	for how in 0 1 2 3 4 5 6 7 8 9 10 11 12; do
		started $how fork 1
		case $how in 0 | 6) started $how vfork 1 ;; esac
	done
fi

# The program itself executes another one.
traced=(-t _:_)
for how in 0 2 6 8 9; do
	expect 4 "$tw" record -q --force "${traced[@]}" --on-full block -o e.tw -- ./exec $how exec ./child
	grep -q "child, 3 words, X=.*, ours: - -, vector found" out || fail "exec $how: $(cat out)"
	called 1 child:child "exec $how"
	some_are_traced
done
expect 0 "$tw" record -q --force "${traced[@]}" --on-full block -o e.tw -- ./exec 1 fork ./child
# Nothing of a forked child that is not followed is recorded.
called 0 libc:execv "a child that is not followed"
expect 4 "$tw" record -q --force "${traced[@]}" --on-full block -o e.tw -- ./exec 1 exec ./child
called 1 libc:execv "the call that goes through ours"
all_called

# The user's own libraries stay, in their order, and no variable is added.
printf 'int mark;\n' | gcc -shared -fPIC -x c -o one.so - && cp one.so two.so || fail gcc
traced=(-t _:_)
number=0
for preload in "" "$PWD/one.so" "$PWD/one.so:$PWD/two.so" "$PWD/two.so $PWD/one.so"; do
	if [ -n "$preload" ]; then export LD_PRELOAD=$preload; else unset LD_PRELOAD; fi
	expect 4 "$tw" record -q --force -t child:_ -o e.tw -- ./child
	shows 'vector found'
	number=$((number + 1))
	sh -c env >untraced$number
	expect 0 "$tw" record -q --force "${traced[@]}" -o e.tw -- sh -c 'env; true'
	mv out traced$number
	some_are_traced
done
unset LD_PRELOAD
python3 -I -S - $number <<'P' || fail "another environment"
import sys
def variables(name):
    return sorted(line.replace(" ", ":") for line in open(name) if not line.startswith("_="))
for number in range(1, int(sys.argv[1]) + 1):
    traced, untraced = variables(f"traced{number}"), variables(f"untraced{number}")
    assert untraced and traced == untraced, {*traced} ^ {*untraced}
P

# A program that cannot load our library starts, and its children are traced again.
traced=(-t _:_)
if command -v musl-gcc >/dev/null && musl-gcc -O1 -o musl child.c 2>/dev/null; then
	programs="fixed musl"
else
	programs=fixed
fi
for program in $programs; do
	printf '#!%s/%s\n' "$PWD" $program >script.$program && chmod +x script.$program
	for what in $program script.$program; do
		for options in "" --follow-fork; do
			# shellcheck disable=SC2086 # no word, or one
			if [ -z "$options" ] || [ -n "${TW_TEST_LONG:-}" ]; then
				expect 0 "$tw" record -q --force $options "${traced[@]}" -o e.tw -- sh -c "./$what a; [ \$? = 4 ]"
				grep -q "ours: - -" out || fail "$what $options: $(cat out)"
			fi
			# shellcheck disable=SC2086
			expect 4 "$tw" record -q --force $options "${traced[@]}" -o e.tw -- sh -c "exec ./$what a"
			grep -q "ours: - -" out || fail "exec $what $options: $(cat out)"
			some_are_traced
		done
	done
done

# Each of them is counted, by reason.
for program in $programs; do
	expect 0 "$tw" record --force --follow-fork -t _:_ -o e.tw -- sh -c "./$program a; ./$program a; ./script.$program; true"
	is "$(grep -c "ours: - -" out)" 3 "children that are followed"
	says '3 processes were not traced'
	expect 0 "$tw" info e.tw
	case $program in
	fixed) shows '3 processes were not traced: 3 statically linked' ;;
	musl) shows '3 processes were not traced: 3 of another C library' ;;
	esac
	expect 0 "$tw" info --json e.tw
	is "$(json 'd["account"]["missing"]["processes"]["places"]')" 3
done
