#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Goal    `report --ports` stays exact behind calls that never return, with children of vfork(), and where descriptors are replaced, duplicated, moved
#         by posix_spawn() or only marked to be closed; and it counts every call that it cannot assign.
# Method  programs/ports_edges.c leaves read() by siglongjmp more often than calls are remembered, and does the rest in known
#         amounts; the JSON report is compared with them, of the whole time and of none of it.
. "$(dirname "$0")/lib.sh"

tracewheel=$build/bin/tracewheel
mkdir "$folder/files" || exit 1
seq 100 >"$folder/given"

"$tracewheel" record -q --force --ports --follow-fork --on-full block -o "$folder/a.tw" -- \
	"$programs/agent_ports_edges" "$folder/files" 7 7<"$folder/given" >"$folder/out" 2>"$folder/err" ||
	fail "status $?: $(cat "$folder/err")"
grep -q done "$folder/out" || fail "the program did not end well: $(cat "$folder/err")"
"$tracewheel" report --ports --json --top 0 "$folder/a.tw" >"$folder/all.json" || fail "report --json"
"$tracewheel" report --ports --json --top 0 --from 1h "$folder/a.tw" >"$folder/none.json" 2>/dev/null

python3 - "$folder" <<'PYTHON' || fail "sums differ"
import json, os, sys
folder = sys.argv[1]
report = json.load(open(folder + "/all.json"))
bad = 0

def say(what):
    global bad
    print(what)
    bad = 1

def expect(name, **wanted):
    found = [p for p in report["ports"] if p["what"] == f"file {folder}/files/{name}"]
    sums = {key: sum(p[key] for p in found) for key in wanted}
    if sums != wanted:
        say(f"{name}: {sums}, not {wanted}")

expect("after", opened=1, open=0, in_bytes=0, out_bytes=70, partial=False)
expect("range", opened=1, open=0, out_bytes=11)
expect("first", opened=1, open=1, out_bytes=9)
expect("second", opened=1, open=0, out_bytes=3)
expect("third", opened=1, open=0, out_bytes=2)
# Its 20 children close it as well.
expect("parent", opened=1, open=0, calls=42, out_bytes=210)
expect("child", opened=1, open=0)
expect("old", opened=1, open=0, out_bytes=3)
expect("new", opened=1, open=0, out_bytes=5)
expect("wide", opened=1, open=0, partial=True)
expect("spliced", opened=1, open=0, out_bytes=40)
expect("spawned", opened=1, open=0, out_bytes=7)
expect("opened", opened=0, out_bytes=2)
expect("daemon", opened=1, open=0, out_bytes=10)
expect("sent", opened=1, open=1, out_bytes=0)
if os.path.getsize(f"{folder}/files/spawned") != 7:
    say("another number of bytes was written")
# The pipe of the calls that were left holds its mark.
pipes = [p for p in report["ports"] if p["what"] == "pipe" and p.get("opener") == "pipe"]
if not any(p["partial"] for p in pipes):
    say("bytes of a call that was left are taken as known")
if sum(p["in_bytes"] for p in pipes) != 80 or sum(p["out_bytes"] for p in pipes) != 80:
    say(f"pipes: {pipes}")
# The outermost of the calls that were left may still run, for all that the report can know.
if report["unfollowed_calls"] != 19:
    say(f"{report['unfollowed_calls']} calls not followed, not 19")
if report["calls_of_unseen_descriptors"] != 5:
    say(f"{report['calls_of_unseen_descriptors']} calls of unseen descriptors, not 5")
for port in report["ports"]:
    if "unseen" in port["what"] and port["calls"] != 5:
        say(f"unseen: {port}")
if sum(p["in_bytes"] for p in report["ports"] if p.get("opener") == "popen") != 3:
    say("popen")
given = [p for p in report["ports"] if p["what"] == f"file {folder}/given"]
if [(p["opened"], p["in_bytes"], p.get("opener")) for p in given] != [(0, 50, None)]:
    say(f"given: {given}")
size = os.path.getsize(f"{folder}/files/child")
written = sum(p["out_bytes"] for p in report["ports"] if p["what"] == f"file {folder}/files/child")
if size != 10 or written != size:
    say(f"children wrote {size} bytes, the report says {written}")
sys.exit(bad)
PYTHON
"$tracewheel" report --ports --top 0 "$folder/a.tw" >"$folder/text"
grep -q ' -  *?  .*/wide ' "$folder/text" || fail "one direction is marked for the other: $(grep wide "$folder/text")"
grep -q '^Calls not followed to their returns: 19;' "$folder/text" || fail "the text does not say what was not followed"
if [ -s "$folder/none.json" ]; then
	grep -q '"calls_of_unseen_descriptors": *0' "$folder/none.json" || fail "calls outside the window are counted"
	grep -q '"unfollowed_calls": *0' "$folder/none.json" || fail "unfollowed calls outside the window are counted"
fi

# With lost events no number is taken for all.
"$tracewheel" record -q --force --ports --ring 64K --on-full overwrite -o "$folder/c.tw" -- \
	dd if=/dev/zero of=/dev/null bs=1 count=100000 status=none 2>/dev/null || fail "overwrite: status $?"
"$tracewheel" report --ports "$folder/c.tw" >"$folder/text"
grep -q '^Gaps of lost events: 1\.' "$folder/text" || fail "lost events are not mentioned: $(cat "$folder/text")"
grep -q '[0-9] .*B+ .*device' "$folder/text" || fail "rows behind lost events are taken for whole: $(cat "$folder/text")"

# A condition is for the other functions.
# shellcheck disable=SC2016
"$tracewheel" record -q --force --ports -t libc:setlocale --when '$1 == 99' -o "$folder/b.tw" -- cat "$folder/given" >"$folder/out" ||
	fail "with a condition: status $?"
"$tracewheel" report --ports "$folder/b.tw" | grep -q ' 292 B .*/given (open' || fail "a condition hides calls of descriptors"

# At entries, the read() inside fread() is a call as well: the same bytes would count twice.
"$tracewheel" record -q --force --ports --local -o "$folder/d.tw" -- true 2>"$folder/said"
[ $? -eq 2 ] || fail "--ports --local: the exit code is not 2"
grep -q -- '--local and --ports exclude each other' "$folder/said" || fail "--ports --local: $(cat "$folder/said")"
finish
