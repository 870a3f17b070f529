#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    --longer leaves out calls that took less, with all in them, and counts them; the time of those is their caller's. All
#         views agree: report, its tree, print --tree, strace's form, the timeline, the flame graph. A part of the capture
#         (--from) judges calls by their whole duration. Captures without durations are refused with a sentence.
# Method  A program with two threads, recursion, exceptions out of nested calls, and naps. A model computes from all events which
#         calls are long, their number, total and self by function. The same with losses: nothing is shown twice or unmatched.
build=$1
. "$(dirname "$0")/lib.sh"
cat >app.cc <<'C'
#include <pthread.h>
#include <time.h>
extern "C" {
__attribute__((noinline)) void nap(long us) { struct timespec t = {0, us * 1000}; nanosleep(&t, nullptr); }
__attribute__((noinline)) int leaf(int a) { __asm__ volatile("" : "+r"(a)); return a; }
/* Each second level naps: short and long calls of one function within each other. */
__attribute__((noinline)) int down(int n)
{
	int sum = leaf(n) + leaf(n + 1);
	if (n % 2)
		nap(1500);
	if (n)
		sum += down(n - 1);
	return sum + leaf(n);
}
__attribute__((noinline)) int throws(int n) { leaf(n); if (n == 0) throw 1; return throws(n - 1); }
__attribute__((noinline)) int catches(void) { try { return throws(5); } catch (int) { nap(2500); return 7; } }
__attribute__((noinline)) int work(int rounds)
{
	int sum = 0;
	for (int i = 0; i < rounds; i++) {
		sum += down(3);
		for (int k = 0; k < 200; k++)
			sum += leaf(k);
		sum += catches();
	}
	return sum;
}
static void *run(void *) { work(4); return nullptr; }
}
int main()
{
	pthread_t thread;
	pthread_create(&thread, nullptr, run, nullptr);
	int sum = work(5);
	pthread_join(thread, nullptr);
	return sum == 0;
}
C
g++ -w -O1 -fno-optimize-sibling-calls -fpatchable-function-entry=9 -pthread -o app app.cc || fail g++
expect 0 "$tw" record -q --force --exceptions --on-full block -t app:_ -o a.tw -- ./app
expect 0 "$tw" print --format json --setups a.tw
cp out events.json
cat >model.py <<'P'
import collections, json, sys
least = int(sys.argv[1])
open_, calls = collections.defaultdict(list), collections.Counter()
total, own = collections.Counter(), collections.Counter()
setups = collections.defaultdict(list)
shown = hidden = 0
def end(stack, ns):
    """The call's duration, and what of it lies in calls that are long."""
    global shown, hidden
    name, began, inner = stack.pop()
    took = ns - began - sum(max(0, min(ns, to) - max(began, at)) for at, to in setups[id(stack)])
    if took < least:
        hidden += 1
        return
    shown += 1
    calls[name] += 1
    own[name] += took - inner
    if name not in [f[0] for f in stack]:
        total[name] += took
    if stack:
        stack[-1][2] += took
for line in open("events.json"):
    e = json.loads(line)
    stack = open_[e["thread"]]
    if e["kind"] == "call":
        stack.append([e["function"], e["ns"], 0])
    elif e["kind"] in ("return_from", "exception_from"):
        assert stack[-1][0] == e["function"], e
        end(stack, e["ns"])
    elif e["kind"] == "own_time":
        setups[id(stack)].append((e["ns"], e["ns"] + e["own_ns"]))
assert not any(open_.values())
report = json.load(open("out"))
rows = {f["function"]: f for f in report["by_function"]}
assert {n: r["calls"] for n, r in rows.items()} == dict(calls), (rows.keys(), calls)
for name, row in rows.items():
    assert abs(row["total"] * 1e9 - total[name]) < 200, (name, row["total"], total[name])
    assert abs(row["self"] * 1e9 - own[name]) < 200, (name, row["self"], own[name])
assert report["unmatched"] == {"calls": 0, "returns": 0, "open": 0, "lost": 0, "before": 0, "shorter": hidden}
assert shown and hidden
open("model", "w").write(f"{shown} {hidden}\n")
P
for least in 1ms:1000000 2ms:2000000 3us:3000; do
	expect 0 "$tw" report --json -n 0 --longer "${least%:*}" a.tw
	python3 model.py "${least#*:}" || fail "report --longer ${least%:*} is not the model's"
	read -r shown hidden <model
	expect 0 "$tw" print --tree --longer "${least%:*}" a.tw
	is "$(sed -n 's/.* only: \([0-9,]*\) calls\? .* left out.*/\1/p' err | tr -d ,)" "$hidden" "the sentence"
	is "$(grep -cE '^.[ 0-9.]+ [mun]?s ' out)" "$shown" "returns in the tree"
	expect 0 "$tw" print --format strace --longer "${least%:*}" a.tw
	is "$(grep -cE '<[0-9.]+>$' out)" "$shown" "lines of strace's form"
	expect 0 "$tw" print --format chrome --longer "${least%:*}" a.tw
	is "$(json 'sum(e["ph"] == "X" and e.get("cat") != "own_time" for e in d["traceEvents"])')" "$shown" "slices"
	expect 0 "$tw" flame --folded --longer "${least%:*}" a.tw
	! grep -q 'leaf' out || [ "$least" = 3us:3000 ] || fail "a leaf is long"
done
# A call that began before the part is as long as it was.
from=$(python3 -c '
import json
print(next(e["ns"] for e in map(json.loads, open("events.json")) if e.get("function") == "work") // 1000 + 500)')us
expect 0 "$tw" report --json -n 0 --longer 2ms --from "$from" a.tw
json '[f["function"] for f in d["by_function"] if f["before"]]' >before
grep -q work before || fail "work was open at $from, and took longer than 2 ms: $(cat before)"

# With losses: long calls are among those that are shown without it, and no return is without its call.
expect 0 "$tw" record -q --force --exceptions --on-full drop --ring 64K --ring-cap 256K -t app:_ -o l.tw -- ./app
for least in 1ms 50ms; do
	expect 0 "$tw" report --json -n 0 l.tw
	json 'd["unmatched"]["returns"]' >all
	expect 0 "$tw" report --json -n 0 --longer $least l.tw
	[ "$(json 'd["unmatched"]["returns"]')" -le "$(cat all)" ] || fail "returns without calls"
done

expect 2 "$tw" print --longer 1ms a.tw
says "goes with --tree"
expect 2 "$tw" report --longer soon a.tw
says "--longer is a duration"
expect 0 "$tw" record -q --force -t app:_ -o n.tw -- ./app
for view in report flame "print --tree" "print --format strace"; do
	# shellcheck disable=SC2086
	expect 1 "$tw" $view --longer 1ms n.tw
	says "has no returns: record with --returns"
done
echo PASS
