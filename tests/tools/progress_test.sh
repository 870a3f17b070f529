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
await '500 events, .*nothing lost$'
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
while ! grep -q '500 events, .*nothing lost$' err; do
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
