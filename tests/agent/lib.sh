# SPDX-License-Identifier: Apache-2.0
# lib.sh - read by the tests beside it: run programs traced and untraced, and ask what was recorded.
set -u
build=$1
programs=$build/tests/agent
agent=$build/lib/libtracewheel-agent.so
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0

fail() {
	echo "FAILED: $*"
	failures=$((failures + 1))
}

# traced CONFIG [WATCH-OPTION...] -- PROGRAM [ARGUMENT...]: sets status; output, errors and report are in $folder
traced() {
	config=$1
	shift
	timeout 300 "$programs/agent_watch" "$agent" "$folder/report" "$config" "$@" >"$folder/out" 2>"$folder/err"
	status=$?
}

# same CONFIG PROGRAM [ARGUMENT...]: its traced output and exit code must equal the untraced ones
same() {
	config=$1
	shift
	traced "$config" -- "$@"
	timeout 300 "$@" >"$folder/out2" 2>"$folder/err2"
	untraced=$?
	[ $status = $untraced ] || fail "$* ($config): status $status, untraced $untraced"
	cmp -s "$folder/out" "$folder/out2" || fail "$* ($config): another output: $(diff "$folder/out" "$folder/out2" | head -3)"
	cmp -s "$folder/err" "$folder/err2" || fail "$* ($config): other errors: $(head -3 "$folder/err")"
}

# calls PATTERN: the sum of the calls on matching lines of the report
calls() {
	awk -v pattern="$1" '$1 == "call" && $0 ~ pattern { sum += $NF } END { print sum + 0 }' "$folder/report"
}

# expect NUMBER PATTERN
expect() {
	found=$(calls "$2")
	[ "$found" = "$1" ] || fail "$2: $found calls recorded, not $1"
}

expect_some() {
	[ "$(calls "$1")" -gt 0 ] || fail "$1: nothing recorded"
}

# expect_exact WHAT: the calls that the program printed ("calls N") are recorded or counted as lost, each once
expect_exact() {
	made=$(sed -n 's/^calls //p' "$folder/out")
	found=$(awk '$1 == "call" { sum += $NF } $1 == "lost" { sum += $2 + $3 + $4 } END { print sum + 0 }' "$folder/report")
	[ "$found" = "$made" ] || fail "$1: $made calls were made, $found recorded or counted"
}

finish() {
	[ $failures = 0 ] && echo "all as it should be"
	exit $failures
}
