#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Goal    `record --ports` and `report --ports` name each descriptor of an unmodified program, with the exact bytes each way, also where
#         threads get closed numbers at once, where a child reads what its parent has closed, and of those that it was started with.
# Method  programs/ports.c uses every kind of descriptor in known amounts, optimized and with fortified calls of libc; the
#         sums of the JSON report are compared with these amounts.
. "$(dirname "$0")/lib.sh"

tracewheel=$build/bin/tracewheel
mkdir "$folder/files" || exit 1
echo 1234567 >"$folder/inherited"

"$tracewheel" record -q --force --ports --follow-fork --on-full block -o "$folder/a.tw" -- \
	"$programs/agent_ports" "$folder/files" >"$folder/out" 2>"$folder/err" || fail "status $?: $(cat "$folder/err")"
grep -q done "$folder/out" || fail "the program did not end well"
"$tracewheel" report --ports --json --top 0 "$folder/a.tw" >"$folder/all.json" || fail "report --json"
"$tracewheel" report --ports=each --json --top 0 "$folder/a.tw" >"$folder/each.json" || fail "report =each --json"
port=$(sed -n 's/^port //p' "$folder/out")

python3 - "$folder" "$port" <<'PYTHON' || fail "sums differ"
import json, sys
folder, port = sys.argv[1:]
bad = 0
ports = json.load(open(folder + "/all.json"))["ports"]
each = json.load(open(folder + "/each.json"))["ports"]

def expect(what, opener, **wanted):
    global bad
    found = [p for p in ports if p["what"] == what and p.get("opener") == opener]
    sums = {key: sum(p[key] for p in found) for key in wanted}
    if not found or sums != wanted:
        print(f"{what} by {opener}: {sums}, not {wanted}")
        bad = 1

def file(name):
    return f"file {folder}/files/{name}"

openers = {p["opener"] for p in ports if p.get("what") == file("whole")}
read = openers.pop() if len(openers) == 1 else "open"
# Written once, read once, and the source of sendfile().
expect(file("whole"), read, opened=3, open=0, in_bytes=1400, out_bytes=1000, failed=0)
expect(file("copy"), read, opened=1, open=0, in_bytes=0, out_bytes=400)
expect(file("child"), read, opened=2, in_bytes=100, out_bytes=100)
expect(file("other"), read, opened=2, open=0, in_bytes=20, out_bytes=100)
expect(file("left"), read, opened=3, open=1, in_bytes=30, out_bytes=100)
for number in range(4):
    expect(file(f"thread{number}"), read, opened=201, open=0, in_bytes=200 * 10 * (number + 1), out_bytes=100)
stream = {p["opener"] for p in ports if p["what"] == file("stream")}.pop()
expect(file("stream"), stream, opened=2, open=0, in_bytes=7 + 16, out_bytes=7 + 15 + 1)
expect("pipe", "pipe", opened=4, in_bytes=311, out_bytes=311)
expect("unix", "socketpair", opened=2, open=0, in_bytes=50, out_bytes=50)
expect(f"tcp 127.0.0.1:{port}", "socket", opened=1, open=0, in_bytes=0, out_bytes=0, failed=0)
expect(f"tcp -> 127.0.0.1:{port}", "socket", opened=4, open=0, in_bytes=210, out_bytes=15000, failed=1)
expect(f"tcp 127.0.0.1:{port} <- 127.0.0.1", "accept", opened=3, open=0, in_bytes=15000, out_bytes=210)
expect("eventfd", "eventfd", opened=1, open=0, in_bytes=8, out_bytes=8)
expect("timer", "timerfd_create", opened=1, open=0, in_bytes=8)
expect("epoll", "epoll_create1", opened=1, open=0, failed=0)
expect("process", "fork", opened=1, open=0, calls=1)
if [p["what"] for p in each].count(file("thread2")) != 201:
    print("=each does not show each")
    bad = 1
sys.exit(bad)
PYTHON

"$tracewheel" report --ports='*/files/copy' "$folder/a.tw" | grep -A3 '^ports' >"$folder/text"
{ grep -q /copy "$folder/text" && ! grep -q /whole "$folder/text"; } || fail "a glob selects something else: $(cat "$folder/text")"

# A descriptor that the program did not open, and one of the standard ones.
# shellcheck disable=SC2016
"$tracewheel" record -q --force --ports -o "$folder/b.tw" -- \
	python3 -c 'import os; os.read(7, 5); os.write(1, b"abc")' 7<"$folder/inherited" >"$folder/out" || fail "inherited: status $?"
"$tracewheel" report --ports --top 0 "$folder/b.tw" >"$folder/text"
grep -q "5 B .*file $folder/inherited (inherited)" "$folder/text" || fail "nothing is said of descriptor 7: $(cat "$folder/text")"
grep -q "3 B .*file $folder/out (inherited)" "$folder/text" || fail "nothing is said of standard output"
grep -q 'not seen to be opened' "$folder/text" && fail "inherited descriptors count as unseen"

# Other captures have no ports, and say so.
"$tracewheel" record -q --force -o "$folder/c.tw" -- true
"$tracewheel" report --ports "$folder/c.tw" | grep -q 'record --ports' || fail "no advice"
finish
