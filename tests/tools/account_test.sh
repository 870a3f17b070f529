#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Recorded events that are not in a capture are reported by every view, with their number, and by the exit code.
# Method  A program that counts its own calls is recorded with --keep; a segment is removed from another capture; losses
#         at the beginning of a third do not count for its end. A small ring makes the recorder write often: segments are as long as
#         --rotate says, however seldom the recorder has a processor.
build=$1
. "$(dirname "$0")/lib.sh"

cat >burst.c <<'EOT'
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
__attribute__((noinline)) void tick(int i) { __asm__ volatile("" ::"r"(i)); }
int main(int argc, char **argv)
{
	const struct timespec pause = {0, 4000000};
	for (int i = 0; i < atoi(argv[1]); i++)
		tick(i);
	for (int i = 0; i < 20; i++) {
		nanosleep(&pause, NULL);
		tick(i);
	}
	return 0;
}
EOT
${CC:-cc} -O2 -g -fpatchable-function-entry=9 burst.c -o burst || fail "no program"
account='d["account"]["missing"]'

# --keep: the sum is exact, and the exit code reports no failure.
expect 0 "$tw" record -t burst:tick --on-full block --ring 64K --rotate 64K --keep 2 -o keep.tw -- ./burst 1000000
says 'kept: the last [0-9,]* events; [0-9,]* before them were removed by --keep 2; [0-9.]* KiB on disk'
kept=$(sed -n 's/.*the last \([0-9,]*\) events.*/\1/p' err | tr -d ,)
removed=$(sed -n 's/.*events; \([0-9,]*\) before.*/\1/p' err | tr -d ,)
is $((kept + removed)) 1000020 "record's last line"
[ "$removed" -gt 0 ] || fail "nothing was removed"
expect 0 "$tw" info --json keep.tw
is "$(json 'd["events"]')" "$kept"
is "$(json "$account"'["removed"]["events"]')" "$removed"
is "$(json 'd["complete"], d["account"]["whole"], d["account"]["keep"]')" "False False 2"
comma=$(python3 -c "print(f'{$removed:,}')")
expect 0 "$tw" info keep.tw
shows "^removed  *$comma events before these were removed with [0-9]* segments (--keep 2)"
shows '^complete  *no: the oldest of it was removed'
expect 0 "$tw" report keep.tw
shows "^$comma events before these were removed"
! grep -q '^Nothing was lost\.' out || fail "the report says that nothing was lost"
expect 0 "$tw" report --json keep.tw
is "$(json "$account"'["removed"]["events"]')" "$removed"
expect 0 "$tw" print --limit 1 keep.tw
says "$comma events before these were removed"
expect 0 "$tw" print --format chrome --limit 1 keep.tw
is "$(json 'd["otherData"]["account"]["missing"]["removed"]["events"]')" "$removed"
expect 0 "$tw" flame keep.tw
shows "$comma events before these were removed"

# A segment that was removed by hand.
expect 0 "$tw" record -q -t burst:tick --on-full block --ring 64K --rotate 64K -o hole.tw -- ./burst 1000000
expect 0 "$tw" info --json hole.tw
is "$(json 'd["events"], d["complete"], d["account"]["whole"]')" "1000020 True True"
rm hole.tw/segment-000003.tws hole.tw/segment-000004.tws
expect 1 "$tw" info --json hole.tw
is "$(json 'd["events"] + '"$account"'["segments"]["events"]')" 1000020
is "$(json "$account"'["segments"]["places"], d["complete"]')" "2 False"
says '2 segments are missing, with [0-9,]* events'
expect 1 "$tw" report hole.tw
shows 'This capture is not complete: 2 segments are missing, with [0-9,]* events'
says '2 segments are missing'
expect 1 "$tw" print --limit 1 hole.tw
expect 1 "$tw" flame hole.tw
shows '2 segments are missing'

# Losses belong to the time in which they happened.
expect 0 "$tw" record -q -t burst:tick --on-full drop --ring 64K -o burst.tw -- ./burst 4000000
expect 0 "$tw" report --json burst.tw
lost=$(json 'd["lost"]["full"]')
is $((lost + $(json 'd["events"]'))) 4000020
last=$("$tw" print --format json --from 0.001 burst.tw 2>/dev/null | python3 -c '
import json, sys
print(max((json.loads(line)["ns"] for line in sys.stdin if "\"lost\"" in line), default=0) + 1)')
if [ "$lost" -gt 0 ]; then
	expect 0 "$tw" report --json --from "${last}ns" burst.tw
	is "$(json 'd["lost"]["full"], d["events"]')" "0 $(json 'd["events"]')"
	expect 0 "$tw" report --from "${last}ns" burst.tw
	shows 'Nothing was lost in this part'
	expect 0 "$tw" report --json --to "${last}ns" burst.tw
	is "$(json 'd["lost"]["full"]')" "$lost"
fi
# --rotate and --keep together with losses: those of removed segments do not count against the remaining events.
expect 0 "$tw" record -q -t burst:tick --on-full drop --ring 64K --rotate 64K --keep 1 -o both.tw -- ./burst 4000000
expect 0 "$tw" info --json both.tw
is "$(json 'd["events"] + sum(d["lost"].values()) + '"$account"'["removed"]["events"] + '"$account"'["removed"]["lost"]')" 4000020

# --local: functions that match a pattern and cannot be traced are counted in the capture, whether loaded at the start or later.
cat >plain.c <<'C'
#include <dlfcn.h>
__attribute__((naked, noinline)) void bare(void) { __asm__("ret"); }
__attribute__((noinline)) int whole(int i) { __asm__ volatile("" : "+r"(i)); return i; }
int main(void)
{
	void *handle = dlopen("./liblater.so", RTLD_NOW);
	bare();
	return !handle || whole(0);
}
C
gcc -O1 -o plain plain.c -ldl && gcc -O1 -shared -fPIC -Dmain=other -o liblater.so plain.c -ldl || fail "gcc"
expect 0 "$tw" record -q --local -t 'plain:_' -t 'liblater:_' --allow-nothing -o local.tw -- ./plain
expect 0 "$tw" functions --local --refused -t 'plain:_' ./plain
refused=$(grep -c '^entry' out)
[ "$refused" -ge 1 ] || fail "no function is refused"
expect 0 "$tw" info local.tw
grep -qE "note  *$refused function(s of plain that match are| of plain that matches is) not traced at" out || fail "not $refused functions of plain"
grep -qE 'note .* of liblater that match' out || fail "nothing of the late library"
# Thousands have separators, in the notes and in their sum.
python3 -c 'for i in range(1500): print("__attribute__((naked, noinline)) void bare_%d(void) { __asm__(\"ret\"); }" % i)' >bare.c
gcc -O1 -falign-functions=1 -shared -fPIC -o libbare.so bare.c || fail "gcc"
gcc -O1 -o plain plain.c -Wl,--no-as-needed ./libbare.so -ldl || fail "gcc"
expect 0 "$tw" record -q --force --local -t 'libbare:_' --allow-nothing -o local.tw -- ./plain
expect 0 "$tw" info local.tw
shows 'note  *1,5[0-9][0-9] functions of libbare that match are not traced at'
expect 0 "$tw" record --force --local -t '{plain,libbare}:_' --allow-nothing -o local.tw -- ./plain
says 'libbare has such functions, but they have no sled and no entry that can be traced'
says '1,5[0-9][0-9] functions of 2 objects that match are not traced at'
