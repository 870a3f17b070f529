#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    A flight recorder of a node writes what was before a process ended by an error, that process first; each end is a snapshot or
#         counted; the logger's handler harms nothing and goes. The same from outside, where a signal asks for one, too.
# Method  Processes that crash, by the logger and by monitors, in one VM (flight.erl); the captures by print, report and info. A node and the command.
build=$1 modules=(flight attach)
. "$(dirname "$0")/lib.sh"
erl_run flight main >out 2>&1 || fail "flight.erl: $(cat out)"
grep -qx ok out || fail "flight.erl: $(cat out)"

expect 0 "$tw" print fly.tw
says "a flight recorder's snapshot, at .*: process <0\.[0-9]*\.0> victim ended: {boom,.with.na line.}"
shows '^the last 20 of 50 events of <0\.[0-9]*\.0> victim:$'
is "$(sed -n '2p;21p' out | grep -o 'step/1 (.*)')" "step/1 (31)
step/1 (50)" "the last calls"
is "$(sed -n '23p' out)" "all processes:" "those of all"
is "$(grep -c 'call flight:step/1 (' out)" 70
expect 0 "$tw" report fly.tw
shows '^A flight recorder.s snapshot, at .*: process <0\.[0-9]*\.0> victim ended: {boom,'
expect 0 "$tw" print fly-2.tw
shows '^the events of <0\.[0-9]*\.0>:$'
says 'ended: badarith\.'
expect 0 "$tw" info --json fly-2.tw
is "$(python3 -I -S -c 'import json; t = json.load(open("out"))["trigger"]; print(t["reason"].startswith("process " + t["pid"] + " ended: "))')" True
expect 0 "$tw" print fly-3.tw
says "it was asked for"
is "$(grep -c 'all processes' out)" 0
expect 0 "$tw" print chosen.tw
says 'ended: oops\.'
is "$(sed -n '2p' out | grep -o 'step/1 (.*)')" "step/1 (oops)"
expect 0 "$tw" report chosen-2.tw
shows 'process <0\.[0-9]*\.0> a abort b ended: named'

# What is left of rings: the newest calls, each of its process. The process may have gone from one scheduler to another, with older calls left there.
expect 0 "$tw" print --format json long.tw
python3 -I -S - "$(cat long.pid)" <<'P' || fail "long.tw"
import json, sys
calls = [e for e in map(json.loads, open("out")) if e["kind"] == "call"]
numbers = [int(e["args"][0]) for e in calls]
assert numbers[-500:] == list(range(99501, 100001)), numbers[:3] + numbers[-3:]
assert len(numbers) < 100000, "nothing was overwritten"
assert {e["pid"] for e in calls} == {sys.argv[1]}, {e["pid"] for e in calls}
P

command -v epmd >/dev/null || { echo "no epmd here: the rest is not tested" && exit 77; }
a_home
start_node -sname shop@localhost -setcookie secret
"$tw" record --erlang --flight --cookie-file cookie -t attach:step/1 --every 1ms --snapshots 1 -o shop.tw shop@localhost >out 2>err </dev/null &
recording=$!
wait_for $recording grep -q "flight recorder of 'shop@localhost'" err
sleep 0.1
: >crash
wait_for $recording grep -q 'shop.tw: [0-9]* events; process <.*> victim ended: boom' err
: >crash
wait_until test ! -e crash
kill -USR2 $recording
wait_for $recording grep -q 'shop-2.tw: [0-9]* events; it was asked for' err
kill -TERM $recording
ended_with 0
says "the flight recorder has ended: 2 snapshots"
says "1 further end by an error without a snapshot of their own"
unloaded() {
	: >unloaded
	wait_until test ! -e unloaded
}
unloaded
expect 0 "$tw" print shop.tw
shows '^the events of <0\.[0-9]*\.0> victim:$'
is "$(sed -n '2p' out | grep -o 'step/1 (.*)')" "step/1 (victim)" "the last call"
"$tw" print shop-2.tw | grep -q 'call attach:step/1' || fail "no calls"
is "$(ls -d shop*)" "shop-2.tw
shop.tw" "what is left"
refused 2 "--flight goes without --print" --cookie-file cookie --flight --print -t attach -o none.tw shop@localhost
refused 2 "--snapshots is for --flight" --cookie-file cookie --snapshots 3 -t attach -o none.tw shop@localhost
refused 2 "has no process 'nobody' (--process, --snapshot-on)" --cookie-file cookie --flight --snapshot-on nobody -t attach -o none.tw shop@localhost
unloaded
