#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# actors_bench.sh BUILD [ROUNDS] - what the hooks of a run-time cost it: examples/actors with them and without.
#
# Question  How many ns does a message cost more because the run-time could be traced, while no session traces? How many
#           events a second reach a capture when everything is traced?
# Method    The same loads by two programs, one of them compiled with ACTORS_NO_TRACE, in turns; medians of the paired
#           differences. self measures the path of a message alone; ring adds a switch to each message; busy adds two
#           calls, and a switch to every fourth message. One scheduler, so that no cache line moves.
# Unit      ns a message; million events a second.  `chrt -f 10` beside other work.
set -eu
bin=$1/bin
rounds=${2:-9}
folder=$(mktemp -d /tmp/actors-bench-XXXXXX)
trap 'rm -rf "$folder"' EXIT INT TERM

ns() { # PROGRAM LOAD MESSAGES
	"$bin/$1" "$2" --schedulers 1 --messages "$3" |
		awk -v messages="$3" '/ messages in / { printf "%.3f\n", $4 * 1e9 / messages }'
}
middle() { sort -n | awk '{ v[NR] = $1 } END { printf "%.2f (%.2f .. %.2f)", v[int((NR + 1) / 2)], v[1], v[NR] }'; }

echo "off: ns a message, median (least .. most) of $rounds rounds"
for load in self:20000000 ring:2000000 busy:5000000; do
	name=${load%:*}
	messages=${load#*:}
	: >"$folder/without" && : >"$folder/with"
	for round in $(seq "$rounds"); do
		ns actors-untraced "$name" "$messages" >>"$folder/without"
		ns actors "$name" "$messages" >>"$folder/with"
	done
	paste "$folder/without" "$folder/with" | awk '{ print $2 - $1 }' >"$folder/more"
	echo "  $name: without $(middle <"$folder/without"), with $(middle <"$folder/with"), more $(middle <"$folder/more")"
done

echo "on: busy with call, send, receive, procs and running, to a capture, lossless"
for round in $(seq "$rounds"); do
	"$bin/tracewheel" record --force --on-full block --output "$folder/busy.tw" \
		--processes call,send,receive,procs,running -t 'busy:_' -- "$bin/actors" busy >/dev/null 2>&1
	"$bin/tracewheel" info "$folder/busy.tw" | awk '/^events/ { gsub(",", ""); n = $2 } /^time/ { t = $2 }
		END { printf "%.2f\n", n / t / 1e6 }' >>"$folder/rate"
done
echo "  million events a second: $(middle <"$folder/rate")"
