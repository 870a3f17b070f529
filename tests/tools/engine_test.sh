#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    An engine that has loaded the summaries gives the answers of the folder, to the digit; what fails is said, and no answer is a part.
# Method  Two nodes with threads, recursion over borders of segments and losses; a strict stand-in of ClickHouse, which answers the questions of
#         clickhouse_ask.sql only. In the long form ClickHouse itself and DuckDB, from npm (chdb, @duckdb/node-api), with loads that are killed.
build=$1
. "$(dirname "$0")/lib.sh"
here=$(dirname "$common")/tools
statements=$(realpath "$here/../../fleet")
[ -x "$build/bin/tracewheel-fleet" ] || { echo "tracewheel-fleet is not built here: not tested" && exit 77; }
servers=
trap 'kill $servers 2>/dev/null; rm -rf "$work"' EXIT
export CLICKHOUSE_USER=reader CLICKHOUSE_PASSWORD=secret

cat >work.c <<'EOT'
#include <pthread.h>
#include <stdlib.h>
#define OUT __attribute__((noinline))
OUT void leaf(int i) { __asm__ volatile("" ::"r"(i)); }
OUT void inner(int i) { leaf(i); leaf(i); __asm__ volatile(""); }
OUT void tree(int depth, int n) { for (int i = 0; i < n; i++) { inner(i); if (depth) tree(depth - 1, n / 8); } __asm__ volatile(""); }
OUT void *work(void *n) { for (int i = 0; i < 2; i++) tree(3, (int)(long)n); __asm__ volatile(""); return n; }
int main(int argc, char **argv)
{
	pthread_t thread;
	long n = atoi(argv[1]);
	pthread_create(&thread, NULL, work, (void *)n);
	work((void *)(n / 2));
	pthread_join(thread, NULL);
	return 0;
}
EOT
${CC:-cc} -O1 -g -fno-optimize-sibling-calls -fpatchable-function-entry=9 work.c -o work -lpthread || fail "no program"
for node in web-1 web-2 db-1; do
	ring=64K
	[ $node = db-1 ] || ring=16M
	expect 0 "$tw" record -q --force --returns -t work:_ --ring $ring --rotate 64K -o $node.tw -- ./work 250
	expect 0 "$tw" ship -q --spool spool-$node --node $node --to all $node.tw
done
[ "$(ls web-1.tw | wc -l)" -gt 2 ] || fail "too few segments"

# same QUESTION...: the engine says what the folder says, with the same exit code.
same() {
	local code=0
	"$tw" fleet "$@" "$folder" >folder.out 2>folder.err || code=$?
	expect "$code" "$tw" fleet "$@" --clickhouse "$url"
	cmp out folder.out || fail "another answer to $*"
	is "$(sed 's/^[^ ]* //; s/.*\(sum\)/\1/' err | sort)" "$(sed 's/^[^ ]* //; s/.*\(sum\)/\1/' folder.err | sort)" "what is said of $*"
}
questions() {
	same report --json --top 0
	same report --sort p99 --node 'web-*'
	same report --csv --top 3 --since 1h
	same report -t 'none:*'
	same report --to 2h
	same slowest --json --top 40
	same slowest --sort total --top 0 -t 'work:tree/*'
	same slowest -t 'none:*'
	same nodes --node 'none*'
	same diff --json --top 0 --node 'web-*' --old-node 'db-*'
	same diff --since 10m
	same diff --node 'db-[1]' --old-node "web'*"
	same nodes --json
	same losses --json
}
folder=all
python3 -I -S "$here/fake_clickhouse.py" "$statements" all >port 2>server.err &
servers=$!
wait_until test -s port
url=http://127.0.0.1:$(cat port)/
expect 0 "$tw" fleet setup --clickhouse "$url" --from all
says "loads the summaries of all into its database 'tracewheel' each second"
is "$(grep -c "^setup .*'DATABASE': 'tracewheel'" all/statements)" "$(grep -c ';$' "$statements/clickhouse.sql")" "statements, in their order"
grep -q "^setup .*'OBJECTS': \"file('$work/all/\*\*/\*.jsonl.zst', 'RawBLOB', 'data String')\"" all/statements || fail "what is loaded"
expect 0 "$tw" fleet setup --clickhouse "$url" --from all
questions
# A summary that is cut is said by both, and two contents of one number count once.
mkdir twice
cp -r all/sum twice
cp "$(find all -name 'web-1-*-000002-*.jsonl.zst')" twice/other.jsonl.zst
python3 -I -S - twice/other.jsonl.zst twice/sum/cut.jsonl.zst <<'EOT' || fail "other contents"
import ctypes, json, sys
zstd = ctypes.CDLL("libzstd.so.1")
zstd.ZSTD_compress.restype = zstd.ZSTD_decompress.restype = ctypes.c_size_t
plain, again, packed = ctypes.create_string_buffer(1 << 22), ctypes.create_string_buffer(1 << 22), open(sys.argv[1], "rb").read()
size = zstd.ZSTD_decompress(plain, ctypes.c_size_t(1 << 22), packed, ctypes.c_size_t(len(packed)))
text = plain.raw[:size]
key = json.loads(text.splitlines()[0])["seg"]
for path, body in (sys.argv[1], text.replace(key.encode(), key[:-4].encode() + b"0000")), (sys.argv[2], text[:-20]):
    size = zstd.ZSTD_compress(again, ctypes.c_size_t(1 << 22), body, ctypes.c_size_t(len(body)), 1)
    open(path, "wb").write(again.raw[:size])
EOT
python3 -I -S "$here/fake_clickhouse.py" "$statements" twice >port2 2>server.err &
servers="$servers $!"
wait_until test -s port2
all=$url url=http://127.0.0.1:$(cat port2)
expect 1 "$tw" fleet report --json --top 0 --clickhouse "$url"
says 'cut.jsonl.zst was set aside: it was cut off'
says 'was set aside: another segment of this number has other contents'
expect 0 "$tw" fleet report --json --top 0 all
mv out folder.out
expect 1 "$tw" fleet report --json --top 0 --clickhouse "$url"
cmp out folder.out || fail "a segment counts twice"
url=$all

# What fails is one sentence, and no answer.
for fault in '401|refuses user or password, with 401; CLICKHOUSE_USER' '500|answers 500: Code: 241. DB::Exception: Memory limit exceeded?\[31m' \
	'cut|gave an answer that was cut off' 'short|gave an answer that was cut off, or is none' "tables|has no tables of summaries in its database 'tracewheel'; .tracewheel fleet setup"; do
	IFS='|' read -r kind sentence <<<"$fault"
	echo "$kind" >all/fault
	for question in report slowest 'diff --since 10m' losses nodes; do
		expect 1 "$tw" fleet $question --clickhouse "$url"
		says "^tracewheel: the engine at $url* $sentence"
		is "$(wc -l <err) $(wc -c <out)" "1 0" "one sentence and no answer to $question, $kind"
	done
done
echo 401 >all/fault
expect 1 "$tw" fleet setup --clickhouse "$url" --from all
says 'refuses user or password'
echo old >all/fault
expect 1 "$tw" fleet setup --clickhouse "$url" --from all
says 'is ClickHouse 23.8, without materialized views that are refreshed and append; update it to 24.10 or later'
echo failure >all/fault
expect 1 "$tw" fleet nodes --clickhouse "$url"
says 'fails to load, so that answers lack what came since: Code: 499'
rm all/fault
expect 1 "$tw" fleet nodes --clickhouse http://127.0.0.1:9
says 'the engine at http://127.0.0.1:9 is not to be reached'
expect 1 env CLICKHOUSE_PASSWORD=other "$tw" fleet nodes --clickhouse "$url"
says 'refuses user or password'
expect 1 "$tw" fleet nodes --clickhouse "$url" --database other
expect 1 "$tw" fleet nodes --clickhouse localhost:8123
says '--clickhouse is the address of a server'
expect 2 "$tw" fleet nodes --clickhouse "$url" all
expect 2 "$tw" fleet fetch -o f.tw --clickhouse "$url"
says 'give that in place of --clickhouse'
expect 2 "$tw" fleet nodes --database d all
expect 2 "$tw" fleet setup --from all
expect 2 "$tw" fleet setup --clickhouse "$url"
expect 2 "$tw" fleet setup --print oracle --from all
expect 1 "$tw" fleet setup --print clickhouse --from 'al*'
# Statements by hand, without secrets.
expect 0 env AWS_ENDPOINT_URL=http://gateway:7480 AWS_ACCESS_KEY_ID=TWACCESS AWS_SECRET_ACCESS_KEY=TWSECRET "$tw" fleet setup --print clickhouse --database d --from s3://traces/prod
shows "FROM s3('http://gateway:7480/traces/prod/sum/\*\*/\*.jsonl.zst', 'KEY', 'SECRET', 'RawBLOB', 'data String')"
shows '^CREATE DATABASE IF NOT EXISTS d;'
! grep -q 'TWSECRET\|\$[A-Z]' out || fail "a secret, or a word that was not replaced"
expect 0 "$tw" fleet setup --print duckdb --from all
shows "read_json('$work/all/\*\*/\*.jsonl.zst'"
[ -n "${TW_TEST_LONG:-}" ] || exit 0

# ClickHouse itself, as a library behind HTTP, which is killed while it loads.
modules=${TW_CHDB_MODULES:-$work/node_modules}
[ -d "$modules/chdb" ] || npm install --prefix "$work" --no-audit --no-fund chdb@3.4.0 @duckdb/node-api@1.5.6-r.1 >npm.log 2>&1 || fail "npm: $(tail -n 3 npm.log)"
engine() {
	: >chdb.port
	node "$here/chdb_server.cjs" "$modules" "$work/db" >chdb.port 2>>chdb.err &
	engine=$!
	servers="$servers $engine"
	wait_until test -s chdb.port
	url=http://127.0.0.1:$(cat chdb.port)
}
ask() {
	curl -sS "$url/?database=tracewheel" --data-binary "$1"
}
rm -f all/statements twice/statements
objects=$(find all -name '*.jsonl.zst' | wc -l)
is_loaded() {
	[ "$(ask 'SELECT count() FROM loaded')" = "$1" ]
}
for _ in {1..10}; do
	engine
	"$tw" fleet setup --clickhouse "$url" --from all 2>/dev/null &
	sleep $((RANDOM % 2)).$((RANDOM % 900 + 100))
	kill -9 $engine
	wait $! 2>/dev/null
done
engine
expect 0 "$tw" fleet setup --clickhouse "$url" --from all
wait_until is_loaded "$objects"
sleep 3
is "$(ask 'SELECT count(), uniqExact(path) FROM loaded')" "$objects	$objects" "objects, each once"
echo "rows: $(ask 'SELECT count() FROM summaries'), of these loaded: $(ask 'SELECT count() FROM summaries WHERE pass IN (SELECT pass FROM loaded)')"
questions
same slowest --json --sort p99 --top 100
same slowest --json --sort median --top 100 -t 'work:*'
# DuckDB has the same sums, without calls over borders.
expect 0 "$tw" fleet setup --print duckdb --from all
mv out duckdb.sql
columns='name, sum(calls), sum(returned), sum(exceptions), sum(total), sum(self), max(max)'
ask "SELECT $columns FROM functions GROUP BY name ORDER BY name" >functions
expect 0 node "$here/duckdb_ask.cjs" "$modules" duckdb.sql "SELECT name, calls, returned, exceptions, total, self, coalesce(max, 0) FROM functions ORDER BY name"
cmp out functions || fail "other sums in DuckDB"
[ -s functions ] || fail "no functions"
# What comes later is there two seconds after it was written; one that is cut is set aside alone.
expect 0 "$tw" fleet report --json --top 0 all
mv out once
for object in $(find all -name 'web-1-*.jsonl.zst' | head -n 3); do
	begin=$(date +%s%N)
	cp "$object" "${object%/*}/x${object##*/}"
	objects=$((objects + 1))
	wait_until is_loaded "$objects"
	echo "visible after $((($(date +%s%N) - begin) / 1000000)) ms"
done
cp twice/sum/cut.jsonl.zst all
wait_until is_loaded $((objects + 1))
expect 1 "$tw" fleet report --json --top 0 --clickhouse "$url"
says 'cut.jsonl.zst was set aside: it was cut off'
cmp out once || fail "copies count twice"
