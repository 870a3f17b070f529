#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# orders_test.sh PROGRAM
#
# Goal    Each row measures what its name says, alone and behind any other row.
# Method  All rows run, as shortly as possible, from the last to the first, and in the long form from the first to the last too. Each asserts
#         what its loop made happen (bench.h: tw_bench_happened()); both orders say the same. Repeated runs, of one iteration and of up to
#         1,000, in the long form of more, come behind all that a row leaves in its process.
set -e
folder=$(mktemp -d "${TMPDIR:-/tmp}/tracewheel-orders.XXXXXX")
trap 'rm -rf "$folder"' EXIT
seconds=0
[ -z "${TW_TEST_LONG:-}" ] || seconds=0.001
TMPDIR=$folder "$1" --happened --seconds $seconds --repetitions 1 --reverse >"$folder/last"
"$1" --list | wc -l >"$folder/rows"
wc -l <"$folder/last" | diff "$folder/rows" -
[ -n "${TW_TEST_LONG:-}" ] || exit 0
TMPDIR=$folder "$1" --happened --seconds $seconds --repetitions 2 >"$folder/first"
sort "$folder/first" >"$folder/first.sorted"
sort "$folder/last" >"$folder/last.sorted"
diff "$folder/first.sorted" "$folder/last.sorted"
