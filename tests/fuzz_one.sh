#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fuzz_one.sh FUZZER SECONDS - one fuzzer for so long, from its seeds in tests/fuzz/corpus/NAME if there are any.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
fuzzer=$1
name=$(basename "$fuzzer" | sed 's/^fuzz_//')
work=$(mktemp -d "${TMPDIR:-/tmp}/tracewheel-fuzz.XXXXXX")
trap 'rm -rf "$work"' EXIT INT TERM
mkdir "$work/corpus"
seeds=
[ ! -d "$here/fuzz/corpus/$name" ] || seeds="$here/fuzz/corpus/$name"
keep=$(pwd)/build/fuzz-findings/
mkdir -p "$keep"
# shellcheck disable=SC2086 # no seeds is no argument
if "$fuzzer" -max_total_time="$2" -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 \
	-artifact_prefix="$keep$name-" "$work/corpus" $seeds >"$work/log" 2>&1; then
	runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$work/log")
	printf '   %-24s %s runs, nothing found\n' "$name" "$runs"
else
	printf '   %-24s FAILED (the input is in build/fuzz-findings):\n' "$name"
	tail -n 60 "$work/log"
	exit 1
fi
