#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# orders_test.sh PROGRAM
#
# Goal    Each row measures what its name says, alone and behind any other row.
# Method  All rows run, as shortly as possible, from the last to the first, and in the long form from the first to the last too. Each asserts
#         what its loop made happen (bench.h: tw_bench_happened()); both orders say the same. Repeated runs, of one iteration and of up to
#         1,000, in the long form of more, come behind all that a row leaves in its process. A row beside which the clock or the core is slow
#         says so.
set -e
folder=$(mktemp -d "${TMPDIR:-/tmp}/tracewheel-orders.XXXXXX")
trap 'rm -rf "$folder"' EXIT
seconds=0
[ -z "${TW_TEST_LONG:-}" ] || seconds=0.001
TMPDIR=$folder "$1" --happened --seconds $seconds --repetitions 1 --reverse >"$folder/last"
"$1" --list | wc -l >"$folder/rows"
wc -l <"$folder/last" | diff "$folder/rows" -
# A row is marked while a probe is above what the user says that it takes, and not otherwise.
probes() {
	"$1" --seconds 0.001 --repetitions 1 --clock "$2" --sibling "$3" clock_empty_loop >"$folder/probes"
	head -n 1 "$folder/probes" | grep -q '^clock .* ns, transfer of a cache line .* ns, probe of the sibling .* ns;'
	sed -n 's/^clock_empty_loop.*SLOW://p' "$folder/probes"
}
[ "$(probes "$1" 0.001 1000000)" = " clock" ]
[ "$(probes "$1" 1000000 0.0001)" = " sibling" ]
[ -z "$(probes "$1" 1000000 1000000)" ]
"$1" --seconds 0.001 --repetitions 1 --json --clock 0.001 clock_empty_loop | grep -q '"clock_ns":.*"sibling_ns":.*"disturbed":true'
[ -n "${TW_TEST_LONG:-}" ] || exit 0
TMPDIR=$folder "$1" --happened --seconds $seconds --repetitions 2 >"$folder/first"
sort "$folder/first" >"$folder/first.sorted"
sort "$folder/last" >"$folder/last.sorted"
diff "$folder/first.sorted" "$folder/last.sorted"
