#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# memory.sh - what `record --memory` takes, beside heaptrack.
#
#	./run bench native memory [TURNS]
#
# Question  How much longer does a program take that allocates all the time, and how large is what is written?
# Unit	    seconds of wall time, medians and range of the turns (5); bytes of the last turn.
# Method    memory_work.c (a million pairs of malloc and free) and python3 with libc's allocator: plain, with heaptrack and with `record
#	    --memory --on-full block`, by turns. Each recording must hold all allocations.
set -eu
cd "$(dirname "$0")/../.."
build=$(realpath build/release)
turns=${1:-5}
work=$(mktemp -d "${TMPDIR:-/tmp}/tracewheel-memory.XXXXXX")
trap 'rm -rf "$work"' EXIT
cc -O2 bench/native/memory_work.c -o "$work/memory_work"
cd "$work"
cat >work.py <<'P'
rows = {}
for i in range(150000):
    rows[str(i)] = [i] * (i % 50)
    if i % 3:
        rows.pop(str(i - 1), None)
P
export PYTHONMALLOC=malloc
python=$(python3 -c 'import sys; print(sys.executable)')

# turn NAME COMMAND...: its wall time.
turn() {
	local name=$1
	shift
	{ TIMEFORMAT=%R && time "$@" >/dev/null 2>err; } 2>>"$name" || { cat err >&2 && exit 1; }
}
# row PROGRAM HOW BYTES
row() {
	sort -n "$2" | awk -v name="$1, $2" -v bytes="$3" '{ value[NR] = $1 }
		END { printf "%-32s %6.2f s (%.2f..%.2f) %14s bytes\n", name, value[int((NR + 1) / 2)], value[1], value[NR], bytes }'
}
measure() {
	local name=$1 calls
	shift
	rm -f plain heaptrack tracewheel
	for _ in $(seq "$turns"); do
		rm -rf heap.* memory.tw
		turn plain "$@"
		turn heaptrack command heaptrack -o heap "$@"
		turn tracewheel "$build/bin/tracewheel" record -q --memory --on-full block -o memory.tw -- "$@"
	done
	calls=$("$build/bin/tracewheel" report --memory --json memory.tw | python3 -c 'import json, sys; d = json.load(sys.stdin); print(0 if d["unknown"]["lost"] else d["calls"])')
	[ "$calls" -ge 1000000 ] || { echo "memory.sh: only $calls allocations were recorded" >&2 && exit 1; }
	row "$name" plain -
	row "$name" heaptrack "$(cat heap.* | wc -c)"
	row "$name" tracewheel "$(du -sb memory.tw | cut -f1)"
}
measure memory_work ./memory_work
measure python3 "$python" work.py
