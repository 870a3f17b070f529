#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    A capture converted for Perfetto has every call as a slice, with its track, times, arguments and result, every other
#         event as a moment, messages as flows, and losses as a counter; times within a packet sequence are differences.
# Method  The packets are unpacked by Python's zlib, and protoc decodes them, so that each field has the type that Perfetto reads; slices are made from begins and ends as
#         its trace_processor does, by the clocks and names of each sequence, and compared with `print --format chrome`.
build=$1
. "$(dirname "$0")/lib.sh"
tests=$(realpath "$common/../tools")
command -v protoc >/dev/null || { echo "no protoc here: not tested" && exit 77; }
"$build/tests/tools_report_test" captures "$work" || fail "no captures"
cat >types.c <<'C'
enum mode { OFF, SLOW, FAST };
__attribute__((noinline)) long find(const char *name, unsigned size, enum mode mode, void *at)
{
	__asm__ volatile("");
	return name[0] - (long)size - (mode == SLOW) - (at == 0);
}
__attribute__((noinline)) void *same(void *at)
{
	__asm__ volatile("");
	return at;
}
int main(void)
{
	for (int i = 0; i < 300; i++)
		same((void *)find("a \"b\" <c>", 130, FAST, same));
	return 0;
}
C
${CC:-cc} -O2 -g -fpatchable-function-entry=9 types.c -o types || fail "no program"
needs_strings
expect 0 "$tw" record -q --returns --args -t 'types:{find,same}' -o types.tw -- ./types
expect 0 "$tw" record -q -p send,receive,running,procs,call -t 'chat:_' -t 'mailbox:_' --returns --on-full block -o chat.tw -- "$build/bin/actors" chat -m 300
expect 0 "$tw" record -q --returns --on-full drop --ring 64K -t 'types:{find,same}' -o many.tw -- ./types

cat >compare.py <<'P'
import collections, json, re, subprocess, sys
import protoc_text
name, proto = sys.argv[1:3]

def run(*words):
    return subprocess.run(["TRACEWHEEL", *words, name + ".tw"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout

packets = protoc_text.decode(name + ".plain", proto, "Trace")["packet"]

class Sequence:
    pass
sequences, tracks, open_slices, slices, moments, flows, counters = {}, {}, collections.defaultdict(list), [], [], [[], []], collections.defaultdict(list)
for packet in packets:
    sequence = packet["sequence"][0]
    if packet["flags"] == [1]:
        now = sequences[sequence] = Sequence()
        now.names, now.annotations, now.clock, now.track, now.at = {}, {}, 6, None, None
    now = sequences[sequence]
    for defaults in packet["defaults"]:
        now.clock, now.track = defaults["clock"][0], defaults["event"][0]["track"][0]
    for snapshot in packet["clock_snapshot"]:
        clocks = {clock["id"][0]: clock for clock in snapshot["clocks"]}
        if 64 in clocks:
            assert clocks[64]["is_incremental"] == [True] and clocks[64]["timestamp"] == clocks[6]["timestamp"]
            now.at = clocks[64]["timestamp"][0]
        else:
            assert 10 ** 18 < clocks[1]["timestamp"][0] < 10 ** 19 or name in ("random", "actors", "calls"), "no time of day"
    for interned in packet["interned"]:
        now.names.update((n["iid"][0], n["name"][0]) for n in interned["event_names"])
        now.annotations.update((n["iid"][0], n["name"][0]) for n in interned["annotation_names"])
    for track in packet["track"]:
        tracks[track["uuid"][0]] = track
    if not packet["event"]:
        continue
    event, ns = packet["event"][0], packet["timestamp"][0]
    if (packet["clock"] or [now.clock])[0] == 64:
        now.at += ns
        ns = now.at
    track = (event["track"] or [now.track])[0]
    assert track in tracks, track
    words = {}
    for a in event["annotations"]:
        (kind, value), = [(k, v[0]) for k, v in a.items() if k != "name_iid"]
        words[now.annotations[a["name_iid"][0]]] = json.loads(value) if kind == "json" else hex(value) if kind == "pointer" else value
    shown = event["name"][0] if event["name"] else now.names[event["name_iid"][0]] if event["name_iid"] else None
    kind = event["type"][0]
    if kind == 1:
        open_slices[track].append((shown, ns, words))
    elif kind == 2:
        begun = open_slices[track].pop()
        slices.append((track & 0xffffffff, begun[0], begun[1], ns, begun[2] | words))
    elif kind == 3:
        moments.append((track & 0xffffffff, shown, ns, words))
        for ended, key in enumerate(("flow_ids", "ending_flow_ids")):
            flows[ended] += event[key]
    else:
        counters[tracks[track]["name"][0]].append((ns, event["counter_value"][0]))
assert not any(open_slices.values()), "slices without an end"
assert all(track["parent"][0] in tracks for track in tracks.values() if track["parent"])

# The same as the other timeline: its times are from the first event on, and an inner slice begins a few ns later.
wanted = json.load(open("out"))["traceEvents"]
theirs = [(e["tid"], e["name"], round(e["ts"] * 1000), round((e["ts"] + e["dur"]) * 1000), e.get("args", {})) for e in wanted if e["ph"] == "X"]
assert len(slices) == len(theirs) > 0, (len(slices), len(theirs))
key = lambda s: (s[0], s[3], s[1], s[2])
zero = min(s[3] for s in slices) - min(s[3] for s in theirs)
for ours, other in zip(sorted(slices, key=key), sorted(theirs, key=key)):
    assert ours[:2] == other[:2] and ours[3] - zero == other[3], (ours, other, zero)
    assert 0 <= other[2] - (ours[2] - zero) <= 200, (ours, other, zero)
    assert ours[4] == other[4], (ours, other)
other = [(e["tid"], e["name"], e.get("args", {})) for e in wanted if e["ph"] == "i"]
assert sorted(map(repr, other)) == sorted(repr((m[0], m[1], m[3])) for m in moments)
assert [len(f) for f in flows] == [sum(e["ph"] == p for e in wanted) for p in "sf"] and set(flows[1]) <= set(flows[0])
lost = sum(int(e["args"]["what"].split()[0]) for e in wanted if e["ph"] == "i" and e["name"] == "LOST" and e["args"]["what"][0].isdigit())
numbers = [number for _, number in counters.pop("events lost", [])]
assert (numbers or [0])[-1] == lost and numbers == sorted(numbers), (numbers, lost)
# Lengths of mailboxes and live memory are those of report; both where they are known alone.
report = json.loads(run("report", "--json", "-n", "0"))
boxes = {"mailbox of " + row["pid"] + (" " + row["name"] if row["name"] else ""): row for row in report.get("mailboxes", [])}
drawn = {name: [number for _, number in values] for name, values in counters.items() if name.startswith("mailbox of ")}
assert drawn.keys() == boxes.keys(), drawn.keys() ^ boxes.keys()
for name, numbers in drawn.items():
    # What came before the first message was taken is not drawn.
    assert max(numbers) <= boxes[name]["longest"] and numbers[-1] == boxes[name]["at_end"], (name, numbers[-5:], boxes[name])
assert not drawn or any(max(numbers) == boxes[name]["longest"] for name, numbers in drawn.items())
memory = counters.get("live memory", [])
assert bool(memory) == (sys.argv[3:] == ["memory"]), memory[:3]
if memory:
    known = json.loads(run("report", "--memory", "--json"))
    ns, peak = max(memory, key=lambda sample: sample[1])
    assert peak == known["peak"] and memory[-1][1] == known["live"] and len(memory) > 20, (peak, known["peak"], len(memory))
print(len(slices), len(moments), len(flows[0]), lost, len(drawn))
P
sed -i "s|TRACEWHEEL|$tw|" compare.py
export PYTHONPATH=$common PYTHONDONTWRITEBYTECODE=1
seq 3000 >lines
expect 0 "$tw" record -q --memory --on-full block -o memory.tw -- sort -r lines
for name in random actors calls types chat many memory; do
	expect 0 "$tw" convert -q --to perfetto $name.tw -o $name.pftrace
	python3 "$common/unpack_perfetto.py" $name.pftrace >$name.plain || fail "$name.pftrace is not packed as it should"
	expect 0 "$tw" print --format chrome $name.tw
	python3 compare.py $name "$tests/perfetto.proto" $([ $name != memory ] || echo memory) >>numbers || fail "$name: not the same as the other timeline"
done
[ "$(awk '$3 > 50' numbers | wc -l)" -ge 1 ] || fail "no flows: $(cat numbers)"
[ "$(awk '$5 > 5' numbers | wc -l)" -ge 1 ] || fail "no mailboxes: $(cat numbers)"
[ "$(awk '$4 > 0' numbers | wc -l)" -ge 1 ] || fail "no losses: $(cat numbers)"
# The comparison notices: another function, a time, a flow.
expect 0 "$tw" print --format chrome types.tw
cp out whole
for change in 's/types:same/types:some/' 's/"dur":0\.\([0-9]\)/"dur":1.\1/' 's/"size":130/"size":131/'; do
	sed "$change" whole >out
	! python3 compare.py types "$tests/perfetto.proto" >/dev/null 2>&1 || fail "not noticed: $change"
done

expect 0 "$tw" record -q --exceptions -t 'types:{find,same}' -o small.tw -- ./types
expect 0 "$tw" convert --to perfetto small.tw -o small.pftrace
says 'small.pftrace: 1,200 events'
# It is small: 12 bytes an event at most, also with results.
events=$("$tw" info --json many.tw 2>/dev/null | python3 -c 'import json, sys; print(json.load(sys.stdin)["events"])')
[ "$(stat -c %s many.pftrace)" -lt $((12 * events + 2000)) ] || fail "$(stat -c %s many.pftrace) bytes of $events events"
# decoded NAME: as protoc decodes it.
decoded() {
	python3 "$common/unpack_perfetto.py" "$1" | protoc --proto_path="$tests" --decode=Trace "$tests/perfetto.proto"
}
# A part of a capture, to a file; not to a terminal. It has no counters of the whole.
"$tw" print --format perfetto --limit 10 memory.tw >part.pftrace || fail "a part"
! decoded part.pftrace | grep -q 'live memory' || fail "live memory of a part"
"$tw" print --format perfetto --limit 10 types.tw >part.pftrace || fail "a part"
begins=$(decoded part.pftrace | grep -c ' type: 1$')
# The tracer's own time is a slice too.
[ "$begins" -ge 5 ] && [ "$begins" -le 10 ] || fail "not the first ten events: $begins"
expect 2 "$tw" convert --to perfetto --timestamps wall types.tw -o x.pftrace
says 'goes with --to ttb'
expect 2 "$tw" convert --to xml types.tw -o x
says "--to is one of perfetto|.*|ttb, not 'xml'"
expect 2 "$tw" print --tree --format perfetto types.tw
says 'cannot be --format perfetto'
