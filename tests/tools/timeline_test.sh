#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    The timeline for Perfetto is valid JSON, its slices nest and have the times of the report, on all tracks; they
#         have the arguments and results of the calls, and arrows lead from the sending of a message to its receipt.
build=$1
. "$(dirname "$0")/lib.sh"
"$build/tests/tools_report_test" captures "$work" || fail "no captures"

expect 0 "$tw" print --format chrome random.tw
"$tw" report --json --top 0 random.tw >report || fail "report"
python3 - <<'EOT' || fail "the slices are not the calls"
import collections, json
events = json.load(open("out"))["traceEvents"]
report = {f["name"].removesuffix("/_"): f for f in json.load(open("report"))["by_function"]}
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
python3 - <<'EOT' || fail "not the runs of the schedulers"
import json
events = json.load(open("out"))["traceEvents"]
runs = [e for e in events if e["ph"] == "X" and e["tid"] >= 1000000000]
assert len(runs) == 24 and round(sum(e["dur"] for e in runs), 3) == 12, runs
sent = [e for e in events if e["name"] == "send"]
assert len(sent) == 8 and sent[0]["args"]["what"] == "{work,1} to <0.45.0>", sent
EOT
expect 0 "$tw" print --format chrome calls.tw
python3 -c '
import json
events = json.load(open("out"))["traceEvents"]
assert {e["args"]["end"] for e in events if e["ph"] == "X" and "args" in e} == {"exception", "no return seen", "still open", "lost"}
assert {e["name"] for e in events if e["ph"] == "X" and e.get("args", {}).get("lossy")} == {"app:main/0", "app:step/1"}
assert [e["args"]["what"] for e in events if e["name"] == "LOST"] == ["7 events"]
' || fail "losses and ends are not reported"

# Arguments and results: by type, as words, as terms.
cat >types.c <<'EOT'
#include <string.h>
enum mode { OFF, SLOW, FAST };
struct pair {
	int x, y;
};
__attribute__((noinline)) long find(const char *name, unsigned size, enum mode mode, struct pair *at, struct pair pair)
{
	__asm__ volatile("");
	return (long)strlen(name) - (long)size - pair.x - (mode == SLOW) - (at == 0);
}
__attribute__((noinline)) void nothing(double share)
{
	__asm__ volatile("" ::"x"(share));
}
__attribute__((noinline)) int down(int n)
{
	int below = n ? down(n - 1) : 0;
	__asm__ volatile("");
	return below + n;
}
int main(void)
{
	struct pair pair = {1, 2};
	find("a \"b\" <c>", 30, FAST, &pair, pair);
	nothing(1.5);
	down(3);
	return 0;
}
EOT
${CC:-cc} -O2 -g -fpatchable-function-entry=9 types.c -o types || fail "no program"
needs_strings
expect 0 "$tw" record -q --returns --args -t 'types:{find,nothing,down}' -o types.tw -- ./types
expect 0 "$tw" print --format chrome types.tw
python3 - <<'EOT' || fail "arguments and results by type"
import json
slices = {}
for event in json.load(open("out"))["traceEvents"]:
    if event["ph"] == "X" and event.get("cat") != "own_time":
        slices.setdefault(event["name"].split(":")[1].split("/")[0], []).append(event["args"])
find = slices["find"][0]
assert find["arguments"]["at"].startswith("0x7"), find
del find["arguments"]["at"]
find.pop("own_ns", None)
assert find == {"arguments": {"name": "a \"b\" <c>", "size": 30, "mode": "FAST", "pair": {"x": 1, "y": 2}}, "result": -22}, find
assert slices["nothing"] == [{"arguments": {"share": 1.5}}], slices["nothing"]
assert sorted((a["arguments"]["n"], a["result"]) for a in slices["down"]) == [(0, 0), (1, 1), (2, 3), (3, 6)], slices["down"]
EOT
expect 0 "$tw" record -q --returns --args=raw -t 'types:{find,down}' -o raw.tw -- ./types
expect 0 "$tw" print --format chrome raw.tw
python3 - <<'EOT' || fail "arguments and results as words"
import json
slices = {}
for event in json.load(open("out"))["traceEvents"]:
    if event["ph"] == "X" and event.get("cat") != "own_time":
        slices.setdefault(event["name"].split(":")[1].split("/")[0], []).append(event["args"])
find = slices["find"][0]
assert find["arguments"]["$2"] == 30 and find["arguments"]["$4"].startswith("0x7") and find["result"] == -22, find
assert sorted((a["arguments"]["$1"], a["result"]) for a in slices["down"]) == [(0, 0), (1, 1), (2, 3), (3, 6)], slices["down"]
EOT

# Messages: every received one has an arrow from its sender, found by pid or name.
expect 0 "$tw" record -q -p send,receive,running,procs,call -t 'chat:_' --returns --on-full block -o chat.tw -- "$build/bin/actors" chat -m 10000
expect 0 "$tw" print --format chrome chat.tw
"$tw" report --json chat.tw >report || fail "report"
python3 - <<'EOT' || fail "the arrows are not the messages"
import json
messages = json.load(open("report"))["messages"]
events = json.load(open("out"))["traceEvents"]
moments = {}
last = None
sent, received = {}, {}
for event in events:
    if event["ph"] in "sf":
        # The moment comes before it: same track, same time.
        assert last["ph"] == "i" and (last["tid"], last["ts"]) == (event["tid"], event["ts"]), (last, event)
        side = sent if event["ph"] == "s" else received
        assert event["id"] not in side
        side[event["id"]] = (event["ts"], event["tid"], last["args"]["what"])
    last = event
names = {e["tid"]: e["args"]["name"].split()[0] for e in events if e["name"] == "thread_name"}
# A process that waits too long for its turn has time-outs: the report counts them by themselves.
assert messages["timeouts"] == sum(e["name"] == "receive" and e["args"]["what"] == "timeout" for e in events)
assert len(sent) == messages["sent"] > 100 and len(received) == messages["received"] > 100, (len(sent), len(received), messages)
for number, (ts, tid, what) in received.items():
    assert sent[number][0] <= ts, (sent[number], ts)
    message, to = sent[number][2].rsplit(" to ", 1)
    assert message == what and (to == names[tid] or not to.startswith("<")), (sent[number], what, names[tid])
calls = [e["args"]["arguments"] for e in events if e["name"] == "chat:member/2"]
assert calls and all(c["$1"] == "<0.2.0>" and c["$2"].isdigit() for c in calls), calls[:5]
EOT
