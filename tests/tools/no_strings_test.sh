#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    With `record --no-strings`, and `attach --no-strings`, nothing that arguments and results point to is in a capture: strings by
#         debug information, memory by prototypes, what calls fill, also in libraries that are opened later; addresses and numbers are.
#         With `record --redact`, or `cut --redact` later, what an expression matches in any of them is nowhere, and all else is.
# Method  A program passes secrets in each of these ways. Without the option each is shown, with it none is in what print, report and the
#         files say. A recorder that is killed has the expressions in its ring set, and a flight recorder too.
build=$1
. "$(dirname "$0")/lib.sh"

cat >late.c <<'C'
__attribute__((noipa)) int late(const char *name, int n) { return n + *name; }
C
cat >secrets.c <<'C'
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((noipa)) const char *check(const char *password, int n) { return password + n; }
int main(int argc, char **argv)
{
	char got[32];
	/* Until it is killed. */
	for (; argc > 2; usleep(1000))
		check(*argv ? "secret-argument" : "", 0);
	int (*late)(const char *, int), pipes[2];
	check("secret-argument", 0);
	setenv("KEY", "secret-environment", 1);
	if (!getenv("KEY") || pipe(pipes) || write(pipes[1], "secret-memory", 13) != 13 || read(pipes[0], got, sizeof got) != 13)
		return 1;
	late = (int (*)(const char *, int))dlsym(dlopen("./liblate.so", RTLD_NOW), "late");
	return late("secret-late", 5) != 5 + 's';
}
C
gcc -O1 -g -shared -fPIC -fpatchable-function-entry=9 -o liblate.so late.c &&
	gcc -O1 -g -fpatchable-function-entry=9 -o secrets secrets.c -ldl || fail "the compiler"
wanted=(-t secrets:check -t liblate:late -t 'libc:{read,write,getenv,setenv}')
secrets='secret-argument|secret-environment|secret-memory|secret-late'

expect 0 "$tw" record -q --args --returns "${wanted[@]}" -o open.tw -- ./secrets
expect 0 "$tw" print open.tw
# Memory is shown by prototypes, where libc has no debug information of its own.
[ "$(grep -oE "$secrets" out | sort -u | wc -l)" -ge 3 ] || fail "not all secrets are shown without the option"

expect 0 "$tw" record -q --args --returns --no-strings "${wanted[@]}" -o closed.tw -- ./secrets
expect 0 "$tw" print closed.tw
shows 'secrets:check/2 (password = 0x[0-9a-f]*, n = 0)'
shows 'liblate:late/2 (name = 0x[0-9a-f]*, n = 5)'
shows 'return_from libc:read.* -> 13'
! grep -q 'secret-' out || fail "a secret is shown"
# 4 secrets of 11 letters and more do not become shorter matches by packing.
! grep -rqaE "secret-(argument|environment|memory|late)" closed.tw || fail "a secret is in a file"

# attached NAME.tw OPTION...: the same of a program that runs.  Each recorder gets what it asks for, whatever those before it did.
./secrets until killed & program=$!
attached() {
	local name=$1
	shift
	expect 0 "$tw" attach -q --events 20 "$@" -t secrets:check -o "$name" $program
	expect 0 "$tw" print "$name"
}
attached plain.tw
shows 'call secrets:check$'
attached shown.tw --args
shows 'secrets:check/2 (password = "secret-argument", n = 0)'
attached hidden.tw --args --no-strings
shows 'secrets:check/2 (password = 0x[0-9a-f]*, n = 0)'
! grep -rqa 'secret-argument' out hidden.tw || fail "a secret of the program that was attached to"
attached short.tw --args=8
shows 'secrets:check/2 (password = "secret-a"..., n = 0)'
attached words.tw --args=raw
shows 'secrets:check (0x[0-9a-f]*, 0x0, '
attached given.tw --args='check(hex)' --returns
shows 'secrets:check/1 (0x[0-9a-f]*)'
attached again.tw --returns
shows 'return_from secrets:check -> 0x'
! grep -rqa 'secret-argument' out again.tw || fail "a secret of the program that was attached to, by its result"
kill $program

expect 2 "$tw" record --no-strings --ports -o ports.tw -- true
says 'no-strings and --ports exclude each other'

# redacted NAME.tw: nothing of the secrets is in it, all else is, and views say so.
redacted() {
	expect 0 "$tw" print "$1"
	shows 'secrets:check/2 (password = "secret-\*\{8\}", n = 0)'
	shows 'liblate:late/2 (name = "\*\{11\}", n = 5)'
	shows 'return_from libc:read.* -> 13'
	says "text that --redact names is replaced by '\*'"
	! grep -rqaE "secret-(argument|late)|hidden" "$1" || fail "a secret is in $1"
	expect 0 "$tw" report --json "$1"
	json "d['notes']" | grep -q redact || fail "report has no note"
	expect 0 "$tw" info "$1"
	shows "secrets '\*\*\*\*\*\*'"
}
expressions=(--redact 'SECRET-(argument)' --redact 'secret-late|hidden')
expect 0 "$tw" record --args --returns "${expressions[@]}" "${wanted[@]}" -o redacted.tw -- ./secrets hidden
says "text of 2 events in redacted.tw was replaced"
redacted redacted.tw
expect 0 "$tw" record -q --args --returns "${wanted[@]}" -o whole.tw -- ./secrets hidden
expect 0 "$tw" cut "${expressions[@]}" -o part.tw whole.tw
says "text of 2 events in part.tw was replaced"
redacted part.tw
expect 0 "$tw" cut --redact nothing-like-it -o same.tw whole.tw
says "nothing in the events of same.tw matched"

cat >loop.c <<'C'
#include <unistd.h>
__attribute__((noipa)) int query(const char *sql) { return *sql; }
int main(void)
{
	for (;; usleep(1000))
		query("password='hunter2' and more");
}
C
gcc -O1 -g -fpatchable-function-entry=9 -o loop loop.c || fail "the compiler"
# shows_query NAME.tw
shows_query() {
	expect 0 "$tw" print "$1"
	shows "sql = \"password='\*\{7\}' and more\""
	! grep -rqa hunter2 "$1" || fail "a secret is in $1"
}
"$tw" record -q --args -t loop:query --redact "password='([^']*)" -o killed.tw -- ./loop &
recorder=$!
sleep 0.5
program=$(pgrep -P $recorder -x loop)
kill -KILL "$recorder" "$program"
wait $recorder 2>wait.err
expect 0 "$tw" recover killed.tw
says 'killed.tw is whole'
shows_query killed.tw
"$tw" record -q --flight --args -t loop:query --redact "password='([^']*)" -o flight.tw -- ./loop 2>flight.err &
recorder=$!
sleep 0.5
expect 0 "$tw" snapshot $recorder
kill "$(pgrep -P $recorder -x loop)"
wait $recorder
shows_query flight.tw

expect 2 "$tw" record --redact '(' -- true
says "redact '(': Unmatched ("
expect 2 "$tw" cut --redact 'a*' -o never.tw whole.tw
says 'It matches the empty text'
