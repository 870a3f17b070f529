#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# orders_test.sh PROGRAM
#
# Goal    Each row measures what its name says, alone and behind any other row.
# Method  All rows run, as shortly as possible, from the first to the last and from the last to the first. Each asserts what its loop made
#         happen (bench.h: tw_bench_happened()); both orders say the same. Repeated runs come behind all that a row leaves in its process.
set -e
folder=$(mktemp -d "${TMPDIR:-/tmp}/tracewheel-orders.XXXXXX")
trap 'rm -rf "$folder"' EXIT
TMPDIR=$folder "$1" --happened --seconds 0.0005 --repetitions $((${TW_TEST_LONG:-0} + 1)) >"$folder/first"
TMPDIR=$folder "$1" --happened --seconds 0.0005 --repetitions 1 --reverse >"$folder/last"
sort "$folder/first" >"$folder/first.sorted"
sort "$folder/last" >"$folder/last.sorted"
diff "$folder/first.sorted" "$folder/last.sorted"
"$1" --list | wc -l >"$folder/rows"
wc -l <"$folder/first" | diff "$folder/rows" -
