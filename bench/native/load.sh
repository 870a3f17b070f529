#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# load.sh - loading and unloading code while threads are traced.
#
#	./run bench native load [ROUNDS]
#
# Question  What does an object cost that is opened and closed again while two threads make traced calls, and is any of them
#	    ever stopped for it?
# Unit	    microseconds of dlopen(), a call and dlclose(), or of declaring a module, a call and unloading it, median; how often the calling threads waited for anything meanwhile.
# Method    load_work.c by itself, recorded without the functions of the object, and with them (entry sleds,
#	    armed at each load), in turn; reload_work.c without and with a session that counts all calls; medians of five turns.
set -eu
cd "$(dirname "$0")/../.."
build=$(realpath build/release)
rounds=${1:-500}
work=$(mktemp -d "${TMPDIR:-/tmp}/tracewheel-load.XXXXXX")
trap 'rm -rf "$work"' EXIT
cc -O2 -pthread bench/native/load_work.c -o "$work/load_work"
cc -O2 -shared -fPIC -fpatchable-function-entry=9 bench/native/loaded.c -o "$work/libloaded.so"
cc -O2 -pthread -Iinclude bench/native/reload_work.c -L"$build/lib" -ltracewheel -Wl,-rpath,"$build/lib" -o "$work/reload_work"
cd "$work"
"$build/bin/tracewheel" compact libloaded.so 2>/dev/null
for _ in 1 2 3 4 5; do
	./load_work ./libloaded.so "$rounds" >>plain
	"$build/bin/tracewheel" record -q -t libc:getppid --force -o a.tw -- ./load_work ./libloaded.so "$rounds" >>outside
	"$build/bin/tracewheel" record -q -t libc:getppid -t 'libloaded:_' --allow-nothing --force -o b.tw -- \
		./load_work ./libloaded.so "$rounds" >>inside
	./reload_work off "$rounds" >>declared
	./reload_work on "$rounds" >>on_load
done
printf '%-44s %16s %10s\n' "" "round, us" "waits"
row() {
	printf '%-44s %16s %10s\n' "$2" "$(sort -n "$1" | awk 'NR == 3 {print $1}')" "$(awk '{n += $2} END {print n}' "$1")"
}
row plain "by itself"
row outside "two threads traced, the object not"
row inside "two threads traced, and the object"
row declared "a declared module, nothing traced"
row on_load "a declared module, on_load and two threads"
