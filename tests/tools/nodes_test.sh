#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    A merged capture is a capture like any other: every view of it agrees with those of its parts and names the node
#         of each process. A merge that is killed, or finds no space, leaves nothing that looks whole. Captures that cannot be
#         merged are refused in one sentence.
# Method  Nodes with clocks hours apart (tools_merge_test); recordings of this machine, which share its clock; kill -9 in the
#         middle; a limit on the size of files.
build=$1
. "$(dirname "$0")/lib.sh"
"$build/tests/tools_merge_test" captures "$work" || fail "no captures"

expect 0 "$tw" merge -o all.tw a.tw b.tw c.tw
shows '^all.tw: 6,000 events of 3 captures'
shows '^  a  its clock is that of the merged capture$'
shows '^  b  clock [-+][0-9,]*\.[0-9]* s, within .* us (.* at the ends), drift .* ppm within .* ppm; [0-9]* messages sent, [0-9]* received$'
expect 0 "$tw" info --json all.tw
is "$(json 'd["events"], d["complete"], sorted(p["program"] for p in d["processes"])')" "6000 True ['/bin/shop', '/bin/shop', '/bin/shop']"
expect 0 "$tw" seq --format json --label 1 all.tw
python3 - <<'EOT' || fail "an effect before its cause"
import json
d = json.load(open("out"))
assert d["messages"] == 3000 and d["no_send"] == 0 and d["no_receive"] == 0, d
for hop in d["hops"]:
    assert hop["received_ns"] >= hop["sent_ns"], hop
    if "cause" in hop:
        assert d["hops"][hop["cause"]]["received_ns"] <= hop["sent_ns"], hop
assert {hop["from"].split("@")[1] for hop in d["hops"]} == {"a", "b", "c"}
EOT
expect 0 "$tw" print all.tw
is "$(wc -l <out) $(grep -c ' a:  ' out) $(grep -c ' b:  ' out)" "6000 $("$tw" print a.tw | wc -l) $("$tw" print b.tw | wc -l)"
expect 0 "$tw" print --format json all.tw
python3 - <<'EOT' || fail "not the node of each event"
import collections, json
rows = [json.loads(line) for line in open("out")]
assert [row["ns"] for row in rows] == sorted(row["ns"] for row in rows)
assert {(row["node"], row["process"]) for row in rows} == {("a", 1001), ("b", 1002), ("c", 1003)}
EOT
expect 0 "$tw" print --format chrome all.tw
python3 - <<'EOT' || fail "not the arrows between nodes"
import json
events = json.load(open("out"))["traceEvents"]
assert {e["args"]["name"] for e in events if e["name"] == "process_name"} == {"a:/bin/shop", "b:/bin/shop", "c:/bin/shop"}
ends = {}
for event in events:
    if event.get("cat") == "seq":
        ends.setdefault(event["id"], []).append(event)
assert len(ends) == 3000 and all(len(pair) == 2 for pair in ends.values())
between = [pair for pair in ends.values() if pair[0]["pid"] != pair[1]["pid"]]
assert len(between) > 1500 and all(s["ph"] == "s" and f["ph"] == "f" and s["ts"] <= f["ts"] for s, f in ends.values())
EOT

# Recordings of one machine: all views agree with the parts.
actors=$build/bin/actors
"$tw" record -q --on-full block -o bank.tw -p send,receive,procs,running -t 'mailbox:_' -- "$actors" bank --actors 4 --messages 400 >/dev/null || fail "bank"
"$tw" record -q -o ls.tw --returns -t libc:malloc -t libc:free -- ls -l / >/dev/null || fail "ls"
expect 0 "$tw" merge --json -o both.tw bank.tw ls.tw
is "$(json '[(c["by"], c["offset_ns"], c["clock"]) for c in d["captures"]]')" "[('reference', 0, 0), ('reference', 0, 0)]"
for view in 'report --json --top 0' 'why-late --json --top 20' 'info --json'; do
	for name in bank ls both; do
		"$tw" $view $name.tw >"$name.${view%% *}" 2>/dev/null || fail "$view $name"
	done
done
python3 - <<'EOT' || fail "the views of the merged capture are not those of its parts"
import json
def load(name, view):
    return json.load(open(f"{name}.{view}"))
functions = {}
for name in ("bank", "ls"):
    functions.update({f["name"]: f["calls"] for f in load(name, "report")["by_function"]})
assert functions == {f["name"]: f["calls"] for f in load("both", "report")["by_function"]}
assert load("both", "info")["events"] == load("bank", "info")["events"] + load("ls", "info")["events"]
own, merged = load("bank", "why-late"), load("both", "why-late")
for member in ("messages", "taken", "still_waiting", "lost", "unsure"):
    assert own[member] == merged[member], member
assert len(own["late"]) == len(merged["late"]) == 20
for one, other in zip(own["late"], merged["late"]):
    assert abs(one["waited"] - other["waited"]) < 1e-6 + one["waited"] / 100, (one, other)
EOT
is "$("$tw" print both.tw | wc -l)" "$(($("$tw" print bank.tw | wc -l) + $("$tw" print ls.tw | wc -l)))"
"$tw" print both.tw | grep -c ' ls:' >count
is "$(cat count)" "$("$tw" print ls.tw | wc -l)"
expect 0 "$tw" why-late --top 1 both.tw
shows " to bank:<0\."
expect 0 "$tw" flame both.tw
shows '</html>'

# Two programs that pass a request on to each other, as they name themselves.
"$build/examples/example-seq_tcp" serve server.tw >port &
server=$!
until [ -s port ] || ! kill -0 $server 2>/dev/null; do sleep 0.05; done
"$build/examples/example-seq_tcp" call "$(cat port)" client.tw || fail "the client"
wait $server || fail "the server"
expect 0 "$tw" merge server.tw client.tw -o programs.tw
shows ': 15 events of 2 captures, 6 messages between them'
! grep -q 'one end only' out || fail "messages were not paired"
for label in 1 2 3; do
	expect 0 "$tw" seq --label "{request,$label}" --format json programs.tw
	is "$(json 'd["messages"], d["prints"], d["processes"], d["depth"], d["no_send"] + d["no_receive"]')" '2 1 2 2 0'
	is "$(json '[(h["from"].split("@")[1], h.get("to", "@").split("@")[1], h.get("cause")) for h in d["hops"]]')" \
		"[('client', 'server', None), ('server', '', 0), ('server', 'client', 0)]"
done

# Inputs that cannot be merged.
expect 1 "$tw" merge -o all.tw a.tw b.tw
says "'all.tw' exists; --force replaces a capture"
mkdir other && touch other/file file
for target in other file; do
	expect 1 "$tw" merge --force -o $target a.tw b.tw
	says "'$target' is not replaced: it is not a capture"
done
[ -e other/file ] || fail "a folder that is no capture was touched"
expect 1 "$tw" merge -o again.tw a.tw a.tw
says 'a.tw and a.tw are the same capture'
expect 1 "$tw" merge -o again.tw all.tw bank.tw
says 'all.tw is merged already'
cp -r b.tw cut.tw && mv cut.tw/segment-000001.tws cut.tw/segment-000001.tws.part && truncate -s -100 cut.tw/segment-000001.tws.part
expect 1 "$tw" merge -o again.tw a.tw cut.tw
says 'cut.tw has no end yet'
expect 2 "$tw" merge -o again.tw a.tw
says 'At least two'
expect 2 "$tw" merge a.tw b.tw
says 'where to?'
[ ! -e again.tw ] && [ ! -e again.tw.part ] || fail "something was written"
# A damaged block is left out, and counted.
cp -r b.tw hurt.tw && printf xxxx | dd of=hurt.tw/segment-000001.tws bs=1 seek=2000 conv=notrunc status=none
expect 1 "$tw" merge -o hurt-all.tw a.tw hurt.tw
shows 'cannot be read and are left out'
expect 1 "$tw" info --json hurt-all.tw
is "$(json 'd["complete"], d["account"]["missing"]["damaged"]["events"] > 0')" 'False True'

# Killed in the middle: nothing has the name of the capture, and the rest is not taken for one.
mkdir big && "$build/tests/tools_merge_test" large big 3000000 || fail "no large captures"
# Again if it was done before the signal came: the machine may be busy.
for try in 1 2 3 4 5 6 7 8 9 10; do
	rm -rf whole.tw
	"$tw" merge -q -o whole.tw big/a.tw big/b.tw big/c.tw &
	merge=$!
	until [ -s whole.tw.part/segment-000001.tws.part ] || ! kill -0 $merge 2>/dev/null; do sleep 0.01; done
	kill -9 $merge 2>/dev/null
	wait $merge 2>/dev/null
	[ -e whole.tw ] || break
done
[ ! -e whole.tw ] && [ -d whole.tw.part ] || fail "it was not killed in the middle"
expect 1 "$tw" recover whole.tw.part
says 'half of a merge'
"$tw" info --json whole.tw.part >out 2>err
[ ! -s out ] || is "$(json 'd["complete"]')" False
expect 0 "$tw" merge -q -o whole.tw big/a.tw big/b.tw big/c.tw
[ ! -e whole.tw.part ] || fail "the rest of the killed merge is there"
expect 0 "$tw" info --json whole.tw
is "$(json 'd["events"], d["complete"]')" '9006000 True'

# No space: a clear word, and nothing left.
(ulimit -f 600 && exec "$tw" merge -o full.tw big/a.tw big/b.tw big/c.tw) >out 2>err
is $? 1 "the exit code without space"
says 'the disk is full'
[ ! -e full.tw ] && [ ! -e full.tw.part ] || fail "something is left on the full disk"
exit 0
