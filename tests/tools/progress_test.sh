#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    A recording says how much it has stored: each second with --progress, when SIGUSR1 asks, and never by itself in a pipe.
# Method  A program that waits; the lines on standard error are compared with what it did.
build=$1
. "$(dirname "$0")/lib.sh"

make_calls
mkfifo go

await() {
	for _ in $(seq 1200); do
		grep -q "$1" err && return
		sleep 0.05
	done
	fail "no '$1'"
}

"$tw" record --progress -t _:step -o a.tw -- ./calls <go >said 2>err &
recording=$!
exec 7>go
await '500 events, .*nothing lost'
echo xx >&7
exec 7>&-
wait "$recording" || fail "record --progress"

"$tw" record -q -t _:step -o b.tw -- ./calls <go >said 2>err &
recording=$!
exec 7>go
for _ in $(seq 600); do
	[ -s said ] && break
	sleep 0.05
done
[ ! -s err ] || fail "progress without being asked"
# It ends nobody: neither the recorder nor the program.
while ! grep -q '500 events, .*nothing lost' err; do
	kill -USR1 "$recording" || fail "SIGUSR1 has ended the recording"
	sleep 0.2
done
echo xx >&7
exec 7>&-
wait "$recording" || fail "record after SIGUSR1"
is "$(calls b.tw step)" 1000 "calls"

# On a terminal the line is replaced, and gone at the end.
script -qec "$tw record -q --progress -t _:step -o c.tw -- sh -c 'sleep 3'" typescript >/dev/null </dev/null || fail "script"
grep -q '0 events, .*nothing lost' typescript || fail "no line on the terminal: $(cat typescript)"
[ "$(tr '\r' '\n' <typescript | grep -c 'nothing lost')" -ge 2 ] || fail "only one line in three seconds"

# The loudest function, from the second line on; its name as people read it.
cat >loud.cpp <<'C'
#include <unistd.h>
namespace shop {
__attribute__((noinline)) int often(int x) { __asm__ volatile("nop; nop; nop; nop; nop; nop" : "+r"(x)); return x + 1; }
__attribute__((noinline)) int seldom(int x) { __asm__ volatile("nop; nop; nop; nop; nop; nop" : "+r"(x)); return x + 2; }
}
int main()
{
	while (access("end", F_OK)) {
		for (int i = 0; i < 300; i++)
			shop::often(i);
		for (int i = 0; i < 100; i++)
			shop::seldom(i);
		usleep(1000);
	}
}
C
g++ -O2 -o loud loud.cpp || fail "loud"
"$tw" record -q --progress -t 'loud:*shop*' -o d.tw -- ./loud 2>err &
recording=$!
await '; loudest loud:shop::often(int), 7[45] %'
touch end
wait "$recording" || fail "record of loud"
