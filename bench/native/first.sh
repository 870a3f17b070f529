#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# first.sh - the cost of a thread's first event above its second.
#
#	./run bench native first [ROUNDS]
#
# Question  How much time does a thread's first traced call add, one thread after another and 200 at once, at the
#	    smallest, the default and a large ring, and with overwritten rings?
# Method    first_hit.c with entry sleds.  Each round runs every variant once.
# Unit	    microseconds: the median over the threads and their 90th percentile, by the clock and by processor time; of each of
#	    these the median over the rounds.
set -eu
cd "$(dirname "$0")/../.."
rounds=${1:-5}
bin=$PWD/build/release/bin/tracewheel
work=$(mktemp -d "${TMPDIR:-/tmp}/tracewheel-first.XXXXXX")
trap 'rm -rf "$work"' EXIT
export LC_ALL=C
gcc -O2 -g -fpatchable-function-entry=9 -pthread -o "$work/first_hit" bench/native/first_hit.c
"$bin" compact --quiet "$work/first_hit"

variants=("64K drop" "4M drop" "64M drop" "4M block" "4M overwrite")
for ((round = 0; round < rounds; round++)); do
	for variant in "${variants[@]}"; do
		read -r ring policy <<<"$variant"
		for how in turn once; do
			"$bin" record -q --force --local -o "$work/out.tw" -t '_:leaf' --ring "$ring" --ring-cap 2G \
				--on-full "$policy" -- "$work/first_hit" "$how" 200 2>/dev/null >>"$work/$ring.$policy.$how"
		done
	done
done
middle() { sort -n -k "$2,$2" "$1" | awk -v c="$2" '{ v[NR] = $c } END { print v[int((NR + 1) / 2)] }'; }
printf '%-8s %-10s %-6s %10s %10s %10s %10s\n' ring on-full how median p90 cpu cpu-p90
for variant in "${variants[@]}"; do
	read -r ring policy <<<"$variant"
	for how in turn once; do
		file=$work/$ring.$policy.$how
		printf '%-8s %-10s %-6s %10s %10s %10s %10s\n' "$ring" "$policy" "$how" \
			"$(middle "$file" 1)" "$(middle "$file" 2)" "$(middle "$file" 3)" "$(middle "$file" 4)"
	done
done
