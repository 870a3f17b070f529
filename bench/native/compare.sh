#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# compare.sh - the cost of tracing every call and return of a native program, beside uftrace in the same run.
#
#	./run bench native [ROUNDS]
#
# Question  How much slower is a whole command, and what does one call with its return cost, when every function
#	    is traced to disk: by tracewheel (at entry sleds and at entries of the plain build, lossless), and by uftrace (the same
#	    functions, and its own patches of the plain build); one call also by a uprobe, where bpftrace is there and the kernel
#	    lets it?
# Method    Builds the same source plain, with sleds for tracewheel (9 bytes of NOPs) and with sleds for uftrace (5 bytes).
#	    Each round runs every variant once, one after the other, so that all are measured under the same load. The
#	    program's answer is compared in each run.
# Unit	    seconds of a whole command, nanoseconds a call; medians (and min-max) over the rounds.
set -eu
cd "$(dirname "$0")/../.."
rounds=${1:-5}
bin=$PWD/build/release/bin/tracewheel
source=$PWD/build/bench-native
work=$(mktemp -d "${TMPDIR:-/tmp}/tracewheel-native.XXXXXX")
trap 'rm -rf "$work"' EXIT
export LC_ALL=C
TIMEFORMAT='%R %U %S'

bench/native/fetch_sqlite.sh "$source/sqlite"

# build NAME FLAG...: both programs with these flags.
build() {
	local name=$1
	shift
	if [ ! -x "$source/sqlite_work.$name" ] || [ bench/native/sqlite_work.c -nt "$source/sqlite_work.$name" ]; then
		gcc -O2 -g "$@" -DSQLITE_THREADSAFE=0 -DSQLITE_OMIT_LOAD_EXTENSION -I"$source/sqlite" \
			-o "$source/sqlite_work.$name" bench/native/sqlite_work.c "$source/sqlite/sqlite3.c" -lm
	fi
	gcc -O2 -g "$@" -o "$source/leaf.$name" bench/native/leaf.c
	if [ "$name" = sled ]; then
		"$bin" compact --quiet "$source/sqlite_work.sled" "$source/leaf.sled"
	fi
}

echo "== building SQLite four times"
build plain
build loose -fpatchable-function-entry=9
build sled -fpatchable-function-entry=9
# uftrace 0.13 writes 16 bytes past the end of the text segment: this layout leaves space for them.
build sled5 -fpatchable-function-entry=5 -Wl,-z,max-page-size=0x10000

{
	for round in 1 2 3 4 5 6; do
		cat <<-SQL
			CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT, c INTEGER);
			CREATE INDEX tc ON t (c);
			BEGIN;
			WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
				INSERT INTO t SELECT i, 'row ' || i || hex(i * 7919), (i * 7919) % 10007 FROM n;
			COMMIT;
			SELECT count(*), sum(length(b)), max(c) FROM t WHERE c BETWEEN 100 AND 5000 AND b LIKE '%7%';
			SELECT c % 97, count(*) FROM t GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 3;
			SELECT count(*) FROM t AS x JOIN t AS y ON x.c = y.a WHERE x.a < 8000;
			UPDATE t SET b = b || 'x' WHERE a % 3 = $((round % 3));
			DELETE FROM t WHERE a % 5 = 0;
			SELECT count(*), sum(length(b)) FROM t;
			DROP TABLE t;
		SQL
	done
} >"$work/work.sql"

# peer FILE COMMAND...: as leaf(), of a tool that may not be there or may fail: no sample then.
peer() {
	local file=$1
	shift
	! "$@" >"$work/out" 2>"$work/err" || awk 'NF == 3 && $1 + 0 > 0 { print $3; exit }' "$work/out" >>"$file"
}

# sample FILE COMMAND...: appends the seconds of a whole command; its output goes to $work/out.
sample() {
	local file=$1
	shift
	{ time "$@" <"$work/work.sql" >"$work/out" 2>"$work/err"; } 2>>"$file" ||
		{ cat "$work/err" >&2; echo "compare: $* failed" >&2; exit 1; }
}

# answer NAME: the program's output must be that of the plain one.
answer() {
	if [ "$(head -n 1 "$work/out")" != "$expected" ]; then
		echo "compare: under $1 SQLite answered '$(head -n 1 "$work/out")', not '$expected'" >&2
		exit 1
	fi
}

# leaf FILE COMMAND...: appends the nanoseconds a call that the program itself measured.
leaf() {
	local file=$1
	shift
	"$@" >"$work/out" 2>"$work/err" || { cat "$work/err" >&2; exit 1; }
	awk 'NF == 3 { print $3; exit }' "$work/out" >>"$file"
}

median() { sort -n "$1" | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
# Processor time of a command and its children, which other work on the machine changes less.
processor() { awk '{ print $2 + $3 }' "$1" | sort -n | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
spread() { sort -n "$1" | awk 'NR == 1 { low = $1 } END { printf "%s-%s", low, $1 }'; }

# record NAME.tw OPTION... -- COMMAND...
record() {
	local out=$1
	shift
	"$bin" record -q --force --local --on-full block -o "$out" "$@"
}

expected=$("$source/sqlite_work.plain" <"$work/work.sql")
for ((round = 1; round <= rounds; round++)); do
	printf '\r   round %d of %d ' "$round" "$rounds" >&2
	sample "$work/sql.plain" "$source/sqlite_work.plain"
	sample "$work/sql.loose" "$source/sqlite_work.loose"
	sample "$work/sql.sled" "$source/sqlite_work.sled"
	answer "sleds that are not armed"
	sample "$work/sql.calls" record "$work/calls.tw" -- "$source/sqlite_work.sled"
	answer "tracewheel record"
	sample "$work/sql.pairs" record "$work/pairs.tw" --returns -- "$source/sqlite_work.sled"
	answer "tracewheel record --returns"
	sample "$work/sql.entries" record "$work/entries.tw" -- "$source/sqlite_work.plain"
	answer "tracewheel record at entries"
	sample "$work/sql.entry_pairs" record "$work/entry_pairs.tw" --returns -- "$source/sqlite_work.plain"
	answer "tracewheel record --returns at entries"
	rm -rf "$work/uf"
	sample "$work/sql.uftrace" uftrace record --no-pager --no-libcall --no-event -P . -d "$work/uf" "$source/sqlite_work.sled5"
	answer "uftrace record"
	rm -rf "$work/ufplain"
	sample "$work/sql.uftrace_plain" uftrace record --no-pager --no-libcall --no-event -P . -d "$work/ufplain" "$source/sqlite_work.plain"
	answer "uftrace record of the plain build"
	leaf "$work/leaf.plain" "$source/leaf.plain" 20000000
	leaf "$work/leaf.sled" "$source/leaf.sled" 20000000
	leaf "$work/leaf.calls" record "$work/leaf.tw" -t 'leaf.sled:leaf/_' -- "$source/leaf.sled" 20000000
	leaf "$work/leaf.pairs" record "$work/leaf.tw" --returns -t 'leaf.sled:leaf/_' -- "$source/leaf.sled" 20000000
	leaf "$work/leaf.entry_calls" record "$work/leaf.tw" -t 'leaf.plain:leaf/_' -- "$source/leaf.plain" 20000000
	leaf "$work/leaf.entry_pairs" record "$work/leaf.tw" --returns -t 'leaf.plain:leaf/_' -- "$source/leaf.plain" 20000000
	if command -v bpftrace >/dev/null 2>&1; then
		peer "$work/leaf.uprobe" bpftrace -e "uprobe:$source/leaf.plain:leaf { @ = count(); }" -c "$source/leaf.plain 200000"
	fi
	rm -rf "$work/ufleaf"
	leaf "$work/leaf.uftrace" uftrace record --no-pager --no-libcall --no-event -P '^leaf$' -d "$work/ufleaf" "$source/leaf.sled5" 5000000
done
printf '\r%30s\r' '' >&2

bytes_of() { du -sb "$1" | cut -f 1; }
events_of() { "$bin" info --json "$1" | awk -F '[:,]' '/"events"/ { gsub(/[^0-9]/, "", $2); print $2; exit }'; }
lost_of() { "$bin" info "$1" | grep -i -m 1 lost || echo "nothing lost"; }

row() {
	awk -v name="$1" -v median="$(median "$2")" -v spread="$(spread "$2")" -v base="$(median "$3")" -v unit="$4" \
		'BEGIN { printf "   %-44s %9.3f %s  (%s)  x %.2f, + %.3f %s\n", name, median, unit, spread, median / base, median - base, unit }'
}

echo "== SQLite, every function, to disk: seconds of the whole command, $rounds rounds"
row "plain" "$work/sql.plain" "$work/sql.plain" s
row "sleds as gcc leaves them, not armed" "$work/sql.loose" "$work/sql.plain" s
row "sleds compact, not armed" "$work/sql.sled" "$work/sql.plain" s
row "tracewheel record, calls" "$work/sql.calls" "$work/sql.plain" s
row "tracewheel record --returns, calls and returns" "$work/sql.pairs" "$work/sql.plain" s
row "entries of the plain build, calls" "$work/sql.entries" "$work/sql.plain" s
row "entries of the plain build, calls and returns" "$work/sql.entry_pairs" "$work/sql.plain" s
row "uftrace record, calls and returns" "$work/sql.uftrace" "$work/sql.plain" s
row "uftrace record of the plain build" "$work/sql.uftrace_plain" "$work/sql.plain" s
events=$(events_of "$work/pairs.tw")
pairs=$((events / 2))
entry_pairs=$(($(events_of "$work/entry_pairs.tw") / 2))
plain_uf=$(($(cat "$work"/ufplain/*.dat | wc -c) / 32))
awk -v sleds="$(processor "$work/sql.pairs")" -v entries="$(processor "$work/sql.entry_pairs")" -v n="$pairs" -v m="$entry_pairs" -v u="$plain_uf" 'BEGIN {
	printf "   entries beside sleds, calls and returns: %+.1f %% of processor time (%.2f s, %.2f s); pairs at sleds %d, at entries %d, of uftrace in the plain build %d\n",
		100 * (entries - sleds) / sleds, entries, sleds, n, m, u }'
bytes=$(bytes_of "$work/pairs.tw")
uf_bytes=$(cat "$work"/uf/*.dat | wc -c)
awk -v pairs="$pairs" -v bytes="$bytes" -v uf="$uf_bytes" 'BEGIN {
	printf "   on disk: tracewheel %.2f bytes a pair (%d pairs, %.1f MB); uftrace 32 bytes a pair (%.1f MB, %d pairs)\n",
		bytes / pairs, pairs, bytes / 1e6, uf / 1e6, uf / 32 }'
echo "   tracewheel: $(lost_of "$work/pairs.tw")"
echo "== one call of an empty function: nanoseconds, $rounds rounds"
row "plain" "$work/leaf.plain" "$work/leaf.plain" ns
row "sled compiled in, not armed" "$work/leaf.sled" "$work/leaf.plain" ns
row "tracewheel, call" "$work/leaf.calls" "$work/leaf.plain" ns
row "tracewheel, call and return" "$work/leaf.pairs" "$work/leaf.plain" ns
row "entry of the plain build, call" "$work/leaf.entry_calls" "$work/leaf.plain" ns
row "entry of the plain build, call and return" "$work/leaf.entry_pairs" "$work/leaf.plain" ns
row "uftrace, call and return" "$work/leaf.uftrace" "$work/leaf.plain" ns
if [ -s "$work/leaf.uprobe" ]; then
	row "bpftrace, a uprobe that counts" "$work/leaf.uprobe" "$work/leaf.plain" ns
else
	echo "   bpftrace: no uprobe here (not installed, or the kernel does not let it)"
fi
