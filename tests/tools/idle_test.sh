#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    A recorder without work sleeps: a few polls a second, events on disk all the same while the program runs; when
#         many events come after a silence, none waits for the next poll, and none is lost with --on-full block.
# Method  A program with three events a second; the switches of the recorder's thread are counted while it runs, and
#         compared with the elapsed time, however long. Then bursts after silences, counted.
build=$1
. "$(dirname "$0")/lib.sh"

cat >idle.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((noipa)) long tick(long a) { return a + 1; }
int main(int argc, char **argv)
{
	long n = 0, pause_us = atol(argv[1]), burst = atol(argv[2]), rounds = atol(argv[3]);
	for (long i = 0; i < rounds; i++) {
		usleep(pause_us);
		for (long k = 0; k < burst; k++)
			n = tick(n);
	}
	return n != burst * rounds;
}
C
gcc -w -O2 -fpatchable-function-entry=9 -o idle idle.c || fail "gcc"
"$tw" record -q -o slow.tw -t idle:tick -- ./idle 333333 1 3000 & recorder=$!
# events on disk while it runs
events() {
	"$tw" info --json slow.tw 2>/dev/null | python3 -c 'import json, sys
try: print(json.load(sys.stdin)["events"])
except Exception: print(0)'
}
wait_until eval '[ "$(events)" -ge 2 ]'
switches() {
	awk '/^(non)?voluntary_ctxt_switches/ { sum += $2 } END { print sum }' "/proc/$recorder/status"
}
begun=$(date +%s%N) before=$(switches)
sleep 3
after=$(switches) ended=$(date +%s%N)
looks=$((after - before)) most=$(((ended - begun) * 6 / 1000000000 + 8))
kill "$recorder"
wait "$recorder"
[ $looks -le $most ] || fail "$looks polls in $(((ended - begun) / 1000000)) ms"

expect 0 "$tw" record -q -o burst.tw --ring 256K --on-full block -t idle:tick -- ./idle 400000 200000 4
expect 0 "$tw" info --json burst.tw
is "$(json 'd["events"], sum(d["lost"].values())')" "800000 0"
