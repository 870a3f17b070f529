#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# sched.sh - what `record --sched` takes from a program that does nothing but switch.
#
#	./run bench native sched [TURNS]
#
# Question  How much processor time does a context switch take more, of the program and of the recorder?
# Unit	    ns a switch (a thread loses the processor and another gets it), medians and range of the turns (7); bytes a switch.
# Method    sched_work.c: two threads on one processor wake each other 200,000 times; without a recording, recorded without --sched, and
#	    with it, by turns. One call is recorded. A turn in which the kernel lost switches is said so.
set -eu
cd "$(dirname "$0")/../.."
build=$(realpath build/release)
turns=${1:-7}
work=$(mktemp -d "${TMPDIR:-/tmp}/tracewheel-sched.XXXXXX")
trap 'rm -rf "$work"' EXIT
cc -O2 -D_GNU_SOURCE -pthread bench/native/sched_work.c -o "$work/sched_work"
cd "$work"
rounds=100000

# turn HOW [COMMAND...]: ns a switch of the program, and of all that the command waited for, less the program.
turn() {
	local how=$1 switches wall_us cpu_us all
	shift
	all=$({ TIMEFORMAT='%U %S' && time "$@" ./sched_work $rounds >out 2>err; } 2>&1) || { cat err >&2 && exit 1; }
	read -r switches wall_us cpu_us <out
	awk -v n="$switches" -v wall="$wall_us" -v cpu="$cpu_us" -v all="$all" \
		'BEGIN { split(all, part, " "); printf "%.0f %.0f %.0f\n", cpu * 1000 / n, (part[1] + part[2]) * 1e9 / n - cpu * 1000 / n, n / wall * 1e6 }' >>"$how"
	! grep 'switch.* lost' err || true
}
# row HOW COLUMN NAME
row() {
	sort -n -k "$2,$2" "$1" | awk -v column="$2" -v name="$1, $3" '{ value[NR] = $column }
		END { printf "%-34s %8d (%d..%d)\n", name, value[int((NR + 1) / 2)], value[1], value[NR] }'
}
for _ in $(seq "$turns"); do
	turn alone env
	turn recorded "$build/bin/tracewheel" record --force --returns -t sched_work:main -o work.tw --
	turn sched "$build/bin/tracewheel" record --force --sched --returns -t sched_work:main -o work.tw --
done
for how in alone recorded sched; do
	row $how 1 'ns a switch: program'
	[ $how = alone ] || row $how 2 'ns a switch: recorder'
	row $how 3 'switches a second'
done
"$build/bin/tracewheel" report --json work.tw | python3 -c '
import json, sys
d = json.load(sys.stdin)
row = d["by_function"][0]
assert row["ran"] > 0, row
print("bytes of the last capture:", d["bytes"], "; unknown:", row["unknown"], "s of", row["total"])'
