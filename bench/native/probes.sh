#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# probes.sh - what a hit of a probe costs, beside a call of a function at its entry.
#
#	./run bench native probes [TURNS]
#
# Question  How much processor time of the program does a probe with two arguments take: counted, and recorded?
# Unit	    ns a hit, above the loop without a recording: medians and range of the turns (7).
# Method    probes_work.c, in turns: a loop with a probe, and one that calls a function; alone, counted (`--count`), recorded, and of the function
#	    recorded with its registers (`--args=raw`).  The capture has as many hits as were made.
set -eu
cd "$(dirname "$0")/../.."
build=$(realpath build/release)
turns=${1:-7}
work=$(mktemp -d "${TMPDIR:-/tmp}/tracewheel-probes.XXXXXX")
trap 'rm -rf "$work"' EXIT
cc -O2 -D_GNU_SOURCE bench/native/probes_work.c -o "$work/probes_work"
cd "$work"
tw=$build/bin/tracewheel
hits=2000000

# turn ROW WHAT HITS [OPTION...]: its ns a hit; with options, recorded.
turn() {
	local row=$1 what=$2 wanted=$3 pattern=probes_work:tick
	shift 3
	[ $what = entry ] || pattern=sdt:bench:tick
	if [ $# = 0 ]; then
		./probes_work $what $hits >>"$row"
		return
	fi
	"$tw" record -q --force -o work.tw "${@//PATTERN/$pattern}" -- ./probes_work $what $hits >>"$row"
	"$tw" report --json work.tw | python3 -c '
import json, sys
d = json.load(sys.stdin)
got = d["calls"] + d.get("counted_calls", 0)
sys.exit(f"{got} hits, not {sys.argv[1]}" if got != int(sys.argv[1]) or any(d["lost"].values()) else 0)' "$wanted"
}
# row NAME ROW ALONE
row() {
	paste "$2" "$3" | awk -v name="$1" '{ print $1 - $2 }' | sort -n | awk -v name="$1" '{ value[NR] = $1 }
		END { printf "%-44s %6.1f (%.1f..%.1f)\n", name, value[int((NR + 1) / 2)], value[1], value[NR] }'
}
for _ in $(seq "$turns"); do
	for what in probe entry; do
		turn $what.alone $what 0
		turn $what.counted $what $hits --count PATTERN
		turn $what.recorded $what $hits -t PATTERN
	done
	turn entry.words entry $hits -t PATTERN --args=raw
done
row "probe, counted" probe.counted probe.alone
row "function at its entry, counted" entry.counted entry.alone
row "probe with two arguments, recorded" probe.recorded probe.alone
row "function at its entry, recorded" entry.recorded entry.alone
row "function, recorded with six registers" entry.words entry.alone
