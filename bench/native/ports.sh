#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# ports.sh - what `record --ports` takes from a server.
#
#	./run bench native ports [TURNS]
#
# Question  How much of its throughput does a server lose that makes 100,000 small reads and writes a second, when each is recorded
#	    with its return?  And what does one cost, when the server does nothing else?
# Unit	    nanoseconds of the server's processor time (and of wall time) a read or write; the loss is of processor time, which other
#	    work on the machine disturbs less. A server that is busy all the time loses that share of its throughput.
# Method    ports_work.c with a loop between read and write, so long that plain a read or write takes 10 us in all, and without;
#	    plain, beside a process that only sleeps 1 ms at a time, and recorded in turn; medians.
# Clients   A client that takes answers in batches leaves the server alone. One that waits for each answer is woken by the server's
#	    write, and what a wake-up costs depends on whether anything else ran on the client's processor meanwhile: the column of
#	    the sleeping process shows that part, which is not a cost of recording.
set -eu
cd "$(dirname "$0")/../.."
build=$(realpath build/release)
turns=${1:-7}
requests=50000
work=$(mktemp -d "${TMPDIR:-/tmp}/tracewheel-ports.XXXXXX")
trap 'rm -rf "$work"' EXIT
cc -O2 bench/native/ports_work.c -o "$work/ports_work"
cd "$work"

# median FILE COLUMN
median() {
	sort -n -k"$2,$2" "$1" | awk -v column="$2" '{value[NR] = $column} END {print value[int((NR + 1) / 2)]}'
}
range() {
	sort -n "$1" | awk 'NR == 1 {first = $1} {last = $1} END {printf "%d..%d", first, last}'
}
# How long the loop must be for 10 us a read or write.
for _ in 1 2 3 4 5; do
	./ports_work 10000 1000 batch >>none
	./ports_work 10000 31000 batch >>some
done
loops=$(awk -v none="$(median none 1)" -v some="$(median some 1)" 'BEGIN {print int(1000 + 30000 * (10000 - none) / (some - none))}')
for _ in $(seq "$turns"); do
	for kind in "$loops batch" "$loops each" "0 each"; do
		# shellcheck disable=SC2086 # two words
		set -- $kind
		./ports_work "$requests" "$@" >>"plain.$1.$2"
		./ports_work sleep &
		sleeper=$!
		./ports_work "$requests" "$@" >>"beside.$1.$2"
		kill "$sleeper"
		wait "$sleeper" 2>/dev/null || true
		"$build/bin/tracewheel" record -q --force --ports -o a.tw -- ./ports_work "$requests" "$@" >>"ports.$1.$2"
	done
done
printf '%-34s %20s %20s %20s %8s %18s\n' "ns a read or write" "plain" "beside a sleeper" "record --ports" "loss" "wall time"
row() {
	plain=$(median "plain.$1" 1)
	ports=$(median "ports.$1" 1)
	printf '%-34s %20s %20s %20s %8s %18s\n' "$2" "$(printf '%.0f' "$plain") ($(range "plain.$1"))" \
		"$(printf '%.0f' "$(median "beside.$1" 1)") ($(range "beside.$1"))" "$(printf '%.0f' "$ports") ($(range "ports.$1"))" \
		"$(awk -v a="$plain" -v b="$ports" 'BEGIN {printf "%.1f %%", 100 * (b - a) / b}')" \
		"$(median "plain.$1" 2) -> $(median "ports.$1" 2)"
}
row "$loops.batch" "100,000 a second, in batches"
row "$loops.each" "100,000 a second, client woken"
row 0.each "reads and writes only"
"$build/bin/tracewheel" info a.tw | grep -i lost || true
