#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    A capture converted for speedscope has every call of each thread with its times, in a file that its importer takes:
#         begins and ends nest, times do not go back, each frame has a name.
# Method  Files are read as its importer reads evented profiles, and compared with the other timeline's slices and moments.
build=$1
. "$(dirname "$0")/lib.sh"
"$build/tests/tools_report_test" captures "$work" || fail "no captures"
cat >calls.c <<'C'
#include <pthread.h>
#include <stdlib.h>
__attribute__((noinline)) int leaf(int i) { __asm__ volatile("" : "+r"(i)); return i; }
__attribute__((noinline)) int node(int i) { return leaf(i) + leaf(i + 1); }
static void *work(void *arg)
{
	for (int i = 0; i < 200; i++)
		node(i);
	return arg;
}
int main(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, work, NULL);
	work(NULL);
	pthread_join(thread, NULL);
	exit(node(0) != 1);
}
C
${CC:-cc} -O1 -pthread -fpatchable-function-entry=9 calls.c -o calls || fail "no program"
expect 0 "$tw" record -q --returns -t 'calls:_' -o own.tw -- ./calls
expect 0 "$tw" record -q -t 'calls:_' -o plain.tw -- ./calls
expect 0 "$tw" record -q -p running,procs,call -t 'chat:_' --returns --on-full block -o chat.tw -- "$build/bin/actors" chat -m 300

cat >compare.py <<'P'
import collections, json, sys
name = sys.argv[1]
d = json.load(open(name + ".speedscope.json"))
assert d["$schema"] == "https://www.speedscope.app/file-format-schema.json"
frames = [frame["name"] for frame in d["shared"]["frames"]]
calls, times = collections.Counter(), collections.Counter()
for profile in d["profiles"]:
    assert profile["type"] == "evented" and profile["unit"] == "nanoseconds" and profile["events"], profile["name"]
    stack, last = [], profile["startValue"]
    for event in profile["events"]:
        assert event["at"] >= last, "time goes back"
        last = event["at"]
        if event["type"] == "O":
            stack.append((event["frame"], last))
        else:
            frame, began = stack.pop()
            assert frame == event["frame"], "an end of another call"
            calls[frames[frame]] += 1
            times[frames[frame]] += last - began
    assert not stack and last == profile["endValue"], profile["name"]
# Slices of calls and runs, and calls without an end; the other timeline's inner slices begin some ns later.
want, length = collections.Counter(), collections.Counter()
for e in json.load(open("out"))["traceEvents"]:
    if e["ph"] == "X" and e.get("cat") != "own_time" or e["ph"] == "i" and (":" in e["name"] and "what" not in e.get("args", {})):
        want[e["name"]] += 1
        length[e["name"]] += round(e.get("dur", 0) * 1000)
assert calls == want and calls, (calls - want, want - calls)
for function, ns in length.items():
    assert 0 <= times[function] - ns <= 60 * calls[function], (function, times[function], ns)
print(len(d["profiles"]), sum(calls.values()))
P
# Losses are no part of profiles, nor all that is known of them of timelines: they are said.
"$tw" info --json calls.tw >out 2>err
lost=$(json 'sum(d["lost"].values())')
[ "$lost" -gt 0 ] || fail "calls.tw has no losses"
for form in speedscope perfetto pprof callgrind chrome; do
	expect 0 "$tw" convert -q --force --to $form calls.tw -o x
	says "$lost"
done
for form in speedscope perfetto; do
	"$tw" print --format $form calls.tw >out 2>err
	says "$lost"
done

for name in random actors own plain chat; do
	expect 0 "$tw" convert -q --to speedscope $name.tw -o $name.speedscope.json
	expect 0 "$tw" print --format chrome $name.tw
	python3 compare.py $name >numbers || fail "$name: not the same as the other timeline"
done
expect 0 "$tw" print --format chrome own.tw
python3 compare.py own >numbers || fail "own.tw"
is "$(cat numbers)" "2 1206" "profiles and calls"
# The comparison notices a call that is missing, and one that ends behind the call around it.
cp own.speedscope.json whole
for change in 's/calls:leaf/calls:lead/' '0,/"type":"C","frame":\([0-9]*\)/s//"type":"C","frame":99/'; do
	sed "$change" whole >own.speedscope.json
	! python3 compare.py own >/dev/null 2>&1 || fail "not noticed: $change"
done
