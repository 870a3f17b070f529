#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal: the timeline for Perfetto is JSON, its slices nest and have the times of the report, whoever's tracks they are.
build=$1
. "$(dirname "$0")/lib.sh"
"$build/tests/tools_report_test" captures "$work" || fail "no captures"

expect 0 "$tw" print --format chrome random.tw
"$tw" report --json --top 0 random.tw >report || fail "report"
python3 - <<'EOT' || fail "the slices are not the calls"
import collections, json
events = json.load(open("out"))["traceEvents"]
report = {f["name"]: f for f in json.load(open("report"))["by_function"]}
calls = collections.Counter()
tracks = collections.defaultdict(list)
for event in events:
    if event["ph"] == "X":
        calls[event["name"]] += 1
        tracks[event["tid"]].append((round(event["ts"] * 1000), round((event["ts"] + event["dur"]) * 1000)))
assert calls == {name: f["calls"] for name, f in report.items()}, calls
assert len(tracks) == 4
for slices in tracks.values():
    ends = []
    for start, end in sorted(slices, key=lambda s: (s[0], -s[1])):
        while ends and ends[-1] <= start:
            ends.pop()
        assert not ends or end <= ends[-1], (start, end, ends[-1])
        ends.append(end)
names = {e["args"]["name"] for e in events if e["name"] == "thread_name"}
assert names == {"worker%d" % i for i in range(1, 5)}, names
assert set(tracks) == {100, 101, 102, 103}, "not the numbers of the threads"
EOT
expect 0 "$tw" print --format chrome actors.tw
python3 - <<'EOT' || fail "not what the schedulers ran"
import json
events = json.load(open("out"))["traceEvents"]
runs = [e for e in events if e["ph"] == "X" and e["tid"] >= 1000000000]
assert len(runs) == 24 and round(sum(e["dur"] for e in runs), 3) == 12, runs
sent = [e for e in events if e["name"] == "send"]
assert len(sent) == 8 and sent[0]["args"]["what"] == " {work,1} to <0.45.0>", sent
EOT
expect 0 "$tw" print --format chrome calls.tw
python3 -c '
import json
events = json.load(open("out"))["traceEvents"]
assert {e["args"]["end"] for e in events if e["ph"] == "X" and "args" in e} == {"exception", "no return seen", "still open", "lost"}
assert {e["name"] for e in events if e["ph"] == "X" and e.get("args", {}).get("lossy")} == {"app:main/0", "app:step/1"}
assert [e["args"]["what"] for e in events if e["name"] == "LOST"] == ["7 events"]
' || fail "losses and ends are not told"
