#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    A program that opens libraries all the time, whose threads are therefore stopped again and again, does not stand while its
#         recorder is stopped, nor while the process that stops threads is, nor both, nor the recorder's process group.
# Method  held.py: twenty threads that count, libraries whose functions are planted at each opening.
build=$1
. "$(dirname "$0")/lib.sh"
plant_with_traps

{
	for i in $(seq 0 39); do
		echo "__attribute__((noinline)) long storm_$i(long x) { __asm__ volatile(\"\"); return x + $i; }"
	done
	echo '__attribute__((noinline)) long storm_first(long x) { return storm_39(x) + 1; }'
} >storm.c
for i in 1 2 3; do
	gcc -O2 -shared -fPIC "-DNUMBER=$i" -o "libstorm$i.so" storm.c -Wl,--build-id || fail "the library does not compile"
done
python3 "$(dirname "$0")/held.py" "$tw" "$build/tests/crash/crash_storm" ./libstorm{1,2,3}.so >said 2>&1 || fail "$(cat said)"
cat said
expect 0 "$tw" info storm.tw
[ "$(calls storm.tw storm_first)" -gt 0 ] || fail "nothing was planted"
