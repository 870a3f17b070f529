#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# sql.sh - what queries of a large capture take, in SQL and in Python.
#
#	./run bench native sql [MILLIONS [TURNS]]
#
# Question  How long do the queries of docs/sql.md take over so many million calls (50), how fast and how large is `convert --to sqlite`, and how
#	    fast does Python get the same events and calls as columns (docs/python.md)? Beside them `report`, which makes its sums of the calls.
# Unit	    seconds of wall time and of processor time, medians and range of the turns (3); bytes a call.
# Method    sql_work.c, recorded with its returns and nothing lost; each query in turn, the capture's files in the page cache. A database is
#	    made of a capture of a tenth of the calls.
set -eu
cd "$(dirname "$0")/../.."
build=$(realpath build/release)
millions=${1:-50}
turns=${2:-3}
work=$(mktemp -d "${TMPDIR:-/tmp}/tracewheel-sql.XXXXXX")
trap 'rm -rf "$work"' EXIT
cc -O2 bench/native/sql_work.c -o "$work/sql_work"
cd "$work"
record() {
	"$build/bin/tracewheel" record -q --local --returns --on-full block -t 'sql_work:{often,seldom,rarely}' -o "$1" -- ./sql_work "$2"
	"$build/bin/tracewheel" info "$1" | grep -q '^complete *yes' || { echo "sql.sh: the recording lost events" >&2 && exit 1; }
}
record many.tw "$millions"000000
record few.tw "$((millions * 100000))"
middle=$("$build/bin/tracewheel" info --json many.tw | python3 -c "import json, sys; print(int(json.load(sys.stdin)['seconds'] * 5e8))")

# figure COLUMN: the median of the turns, and their range.
figure() {
	awk -v column="$1" '{ print column == 1 ? $1 : $2 + $3 }' times | sort -n |
		awk '{ value[NR] = $1 } END { printf "%.2f (%.2f..%.2f)", value[int((NR + 1) / 2)], value[1], value[NR] }'
}

# row NAME COMMAND...: wall and processor time of each turn.
row() {
	local name=$1
	shift
	rm -f times
	for _ in $(seq "$turns"); do
		rm -f few.db
		{ TIMEFORMAT='%R %U %S' && time "$@" >/dev/null 2>err; } 2>>times || { cat err >&2 && exit 1; }
	done
	printf '%-60s %18s %18s\n' "$name" "$(figure 1)" "$(figure 2)"
}
echo "$millions million calls with returns, $(du -sb many.tw | cut -f1) bytes; seconds of wall time, of processor time"
sql() {
	"$build/bin/tracewheel" sql many.tw "$1"
}
row 'select function, calls from functions' sql 'select function, calls from functions'
row 'select function, calls, total, self, median from functions' sql 'select function, calls, total, self, median from functions'
row 'select function, count(*) from calls group by function' sql 'select function, count(*) from calls group by function'
row "events of 10 ms, at $middle" sql "select count(*) from events where time between $middle and $middle + 10000000"
row "calls of 10 ms, at $middle" sql "select count(*) from calls where start between $middle and $middle + 10000000"
row "report" "$build/bin/tracewheel" report --json many.tw
if [ -e "$build/python/tracewheel/_tracewheel.abi3.so" ]; then
	export PYTHONPATH=$build/python
	batches() {
		/usr/bin/python3 -c "import tracewheel; n = sum(len(batch) for batch in tracewheel.open('many.tw').$1()); assert n >= $2, n"
	}
	row "python: event_batches(), twice as many events" batches event_batches "$((millions * 2000000))"
	row "python: call_batches()" batches call_batches "$((millions * 1000000))"
fi
row "convert --to sqlite, of a tenth" "$build/bin/tracewheel" convert --to sqlite few.tw -o few.db
awk -v bytes="$(stat -c %s few.db)" -v calls="$((millions * 100000))" 'BEGIN { printf "a call in the database: %.1f bytes\n", bytes / calls }'
