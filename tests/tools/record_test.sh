#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    An unmodified program is recorded; info, report and print agree with each other; no file is replaced without a
#         request.
build=$1
. "$(dirname "$0")/lib.sh"
make_work

sqlite3 plain.db <work.sql >expected || fail "sqlite3 does not work here"
expect 0 bash -c "'$tw' record -t 'libsqlite3:_' -- sqlite3 traced.db < work.sql"
cmp -s out expected || fail "the traced program answered otherwise"
says "sqlite3.tw: .* events of 1 thread in .* B an event"
[ -d sqlite3.tw ] || fail "the capture is not named after the program"

expect 0 "$tw" info --json sqlite3.tw
events=$(json 'd["events"]')
[ "$events" -gt 100 ] || fail "only $events events"
is "$(json 'sorted(d["lost"])')" "['full', 'nested', 'no_ring', 'overwritten', 'too_big']"
is "$(json 'sum(d["lost"].values())')" 0
is "$(json 'd["complete"], d["threads"], d["segments"]')" "True 1 1"
json 'd["bytes"], d["bytes_per_event"], d["seconds"], d["functions"]' >/dev/null
is "$(json 'd["processes"][0]["command"]')" "['sqlite3', 'traced.db']"
expect 0 "$tw" info sqlite3.tw
shows '^complete  *yes'

expect 0 "$tw" print sqlite3.tw
is "$(wc -l <out)" "$events" "one line an event"
shows 'call libsqlite3:sqlite3_open'
awk '{ if ($1 + 0 < last) exit 1; last = $1 + 0 }' out || fail "not in order of time"
expect 0 "$tw" print --limit 7 sqlite3.tw
is "$(wc -l <out)" 7
expect 0 "$tw" print --format json -t 'libsqlite3:sqlite3_step' sqlite3.tw
steps=$(wc -l <out)
[ "$steps" -ge 4 ] || fail "only $steps calls of sqlite3_step"
python3 -c '
import json
for line in open("out"):
    event = json.loads(line)
    assert event["kind"] == "call" and event["function"] == "sqlite3_step" and event["module"] == "libsqlite3", event
' || fail "a line of JSON is not what it should be"
expect 0 "$tw" print --format erlang --bare-pids --limit 1000 sqlite3.tw
expect 0 "$tw" print --format erlang --bare-pids --timestamps wall --limit 1 sqlite3.tw
shows '^{trace_ts,<0.*>,call,{libsqlite3,.*},{[0-9]*,[0-9]*,[0-9]*}}\.$'
expect 0 "$tw" print --format erlang --bare-pids --limit 1000 sqlite3.tw
strange=$(grep -v -E '^\{trace(_ts)?,<0\.[0-9]+\.[0-9]+>,call,\{libsqlite3,[a-z][A-Za-z0-9_]*,[^ ]+\}(,[0-9]+)?\}\.$' out | head -n 1)
[ -z "$strange" ] || fail "not a trace message: $strange"

expect 0 bash -c "'$tw' record -q --global -t 'libsqlite3:_' -o slots.tw -- sqlite3 slots.db < work.sql"
expect 0 "$tw" print slots.tw
shows 'call libsqlite3:sqlite3_open.* from sqlite3$'

expect 0 "$tw" report --json --top 0 sqlite3.tw
is "$(json 'd["events"]')" "$events"
is "$(json 'sum(f["calls"] for f in d["by_function"])')" "$(json 'd["calls"]')"
is "$(json 'sum(f["calls"] for f in d["by_caller"])')" "$(json 'd["calls"]')"
is "$(json '[f["calls"] for f in d["by_function"] if f["name"].startswith("libsqlite3:sqlite3_step/")]')" "[$steps]"
expect 0 "$tw" report --top 0 sqlite3.tw
shows 'Nothing was lost'
shows 'libsqlite3:sqlite3_step'
expect 0 "$tw" report --sort name --top 3 sqlite3.tw
shows 'more$'

# A session of the command's own: those of the program go on beside it, and both have every call.
expect 0 "$tw" record -q -o own.tw -t 'numbers:_' -- "$build/examples/example-count_calls"
shows 'collatz/1 was called 111 times'
expect 0 "$tw" info --json own.tw
is "$(json 'd["events"]')" 111

# An existing capture: one that was named is left alone; COMMAND.tw becomes COMMAND.tw.old, and --force replaces it.
before=$(cat sqlite3.tw/* | cksum)
expect 125 "$tw" record -o sqlite3.tw -- sqlite3 -version
says "exists; --force"
is "$(cat sqlite3.tw/* | cksum)" "$before" "the capture was touched"
expect 0 "$tw" record -- sqlite3 -version
says "previous capture sqlite3.tw is now sqlite3.tw.old"
is "$(cat sqlite3.tw.old/* | cksum)" "$before" "the old capture was touched"
expect 0 "$tw" report sqlite3.tw.old
before=$(cat sqlite3.tw/* | cksum)
expect 0 "$tw" record -q -- sqlite3 -version
[ ! -s err ] || fail "--quiet is not"
is "$(cat sqlite3.tw.old/* | cksum)" "$before" "not the one before"
mkdir true.tw true.tw.old
touch true.tw/mine true.tw.old/mine
expect 125 "$tw" record -- true
says "'true.tw' is not replaced: it is not a capture"
rm true.tw/mine
expect 125 "$tw" record -- true
[ -f true.tw.old/mine ] || fail "another's folder was removed"
rm -r true.tw true.tw.old
before=$(cat sqlite3.tw/* | cksum)
expect 0 "$tw" record --force -q -- sqlite3 -version
[ ! -s err ] || fail "--quiet is not"
[ "$(cat sqlite3.tw/* | cksum)" != "$before" ] || fail "--force did not replace it"

# The message names the limit on files, not permissions.
code=0
(ulimit -f 100 && "$tw" record -o limited.tw -- true) >out 2>err || code=$?
is "$code" 125 "with ulimit -f"
says 'files may have 100 KiB at most here (ulimit -f)'
# Enough for the command, and not for the program's rings: one reason, the right one.
(ulimit -f 500 && "$tw" record -t '_:_' -o refused.tw -- true) >out 2>err || fail "with ulimit -f 500"
says '1 process was not traced'
! grep -q 'is empty' err || fail "a wrong reason: $(cat err)"
