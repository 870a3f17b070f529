#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    --longer leaves out calls that took less, with all in them, and counts them; the time of those is their caller's. All
#         views agree: report, its tree, print --tree, strace's form, the timeline, the flame graph. A part of the capture
#         (--from) judges calls by their whole duration. Captures without durations are refused with a sentence.
#         --slowest finds the calls that a model finds, with their times, threads, and all that they called.
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
leaves = sum(count for name, count in calls.items() if "leaf" in name)
open("model", "w").write(f"{shown} {hidden} {leaves}\n")
P
for least in 1ms:1000000 2ms:2000000 3us:3000; do
	expect 0 "$tw" report --json -n 0 --longer "${least%:*}" a.tw
	python3 model.py "${least#*:}" || fail "report --longer ${least%:*} is not the model's"
	read -r shown hidden leaves <model
	expect 0 "$tw" print --tree --longer "${least%:*}" a.tw
	is "$(sed -n 's/.* only: \([0-9,]*\) calls\? .* left out.*/\1/p' err | tr -d ,)" "$hidden" "the sentence"
	is "$(awk '/^[0-9.]+  .[ 0-9.]+ [mun]?s / { gsub(",", ""); sum += $(NF - 1) == "x" ? $NF : 1 } END { print sum }' out)" "$shown" "returns in the tree"
	expect 0 "$tw" print --format strace --longer "${least%:*}" a.tw
	is "$(grep -cE '<[0-9.]+>$' out)" "$shown" "lines of strace's form"
	expect 0 "$tw" print --format chrome --longer "${least%:*}" a.tw
	is "$(json 'sum(e["ph"] == "X" and e.get("cat") != "own_time" for e in d["traceEvents"])')" "$shown" "slices"
	expect 0 "$tw" flame --folded --longer "${least%:*}" a.tw
	# One that waits for the processor is long.
	is "$(($(grep -c leaf out) > 0))" "$((leaves > 0))" "leaves in the flame graph"
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

# ---- the slowest: found by their whole time, or by their own; with what each did
cat >slowest.py <<'P'
import collections, json, sys
name, count = sys.argv[1], int(sys.argv[2])
open_, setups = collections.defaultdict(list), collections.defaultdict(list)
calls = []
def took(stack, began, ns):
    return ns - began - sum(max(0, min(ns, to) - max(began, at)) for at, to in setups[id(stack)])
for line in open("events.json"):
    e = json.loads(line)
    stack = open_[e["thread"]]
    if e["kind"] == "call":
        stack.append({"f": e["function"], "ns": e["ns"], "inner": 0, "tree": [], "thread": e["thread"]})
    elif e["kind"] in ("return_from", "exception_from"):
        c = stack.pop()
        c["total"] = took(stack, c["ns"], e["ns"])
        c["self"] = c["total"] - c["inner"]
        if stack:
            stack[-1]["inner"] += c["total"]
            stack[-1]["tree"].append(c)
        calls.append(c)
    elif e["kind"] == "own_time":
        setups[id(stack)].append((e["ns"], e["ns"] + e["own_ns"]))
by = "total" if name else "self"
calls = [c for c in calls if not name or c["f"] == name]
best = sorted(calls, key=lambda c: -c[by])[:count]
found = [json.loads(line) for line in open("out")]
assert len(found) == count
def near(a, b):
    assert abs(a - b) <= 200, (a, b)
def sums(call, depth, into):
    for c in call["tree"]:
        if id(c) in listed:
            into[depth, c["f"], listed[id(c)]] += 1
            continue
        into[depth, c["f"], 0] += 1
        sums(c, depth + 1, into)
listed = {}
for i, row in enumerate(found):
    c = next(c for c in calls if abs(c["ns"] - row["ns"]) < 5 and c["f"] == row["name"].split(":")[1].split("/")[0])
    near(row["total_ns"], c["total"]), near(row["self_ns"], c["self"])
    near(row[by + "_ns"], best[i][by])
    assert row["slowest"] == i + 1 and row["process"].split()[0] == str(c["thread"])
    listed[id(c)] = i + 1
    row["call"] = c
for row in found:
    want, got = collections.Counter(), collections.Counter()
    sums(row["call"], 0, want)
    for n in row["inside"]:
        got[n["depth"], n["name"].split(":")[1].split("/")[0], n.get("slowest", 0)] += n["calls"]
    assert want == got, (want, got)
P
expect 0 "$tw" print --slowest 12 -t app:down --format json a.tw
python3 slowest.py down 12 || fail "the slowest calls of a function"
expect 0 "$tw" print --slowest 7 --format json a.tw
python3 slowest.py "" 7 || fail "the slowest calls"
expect 0 "$tw" print --slowest 1 -t app:work a.tw
shows '^The slowest of 2 calls, by their whole time\.$'
shows '^ 1 *[0-9.]* ms  app:work'
shows ' its own; from [0-9]*\.[0-9]\{9\} on [0-9]* app'
shows '^ *[0-9.]* ms  x [45] *| app:down$'
shows '^ *[0-9.]* ms  x [45] *| app:catches$'
# The time can be given to --from: the call begins there.
from=$(sed -n 's/.*; from \([0-9.]*\) on .*/\1/p' out)
expect 0 "$tw" print --from "$from" --limit 1 -t app:work a.tw
shows ' call *app:work'
expect 0 "$tw" print --slowest 5 l.tw
shows '^The 5 slowest of '
expect 2 "$tw" print --slowest 0 a.tw
says "from 1 to 1000"
expect 2 "$tw" print --slowest 3 --tree a.tw
says "a list of its own"
expect 1 "$tw" print --slowest 3 c.tw
says "no capture\|c.tw"

expect 0 "$tw" print --longer 1ms a.tw
says "of 1.00 ms or longer only"
expect 2 "$tw" print --process '<0.1.0>' --longer 1ms a.tw
says "not with --longer"
expect 2 "$tw" report --longer soon a.tw
says "--longer is a duration"
expect 0 "$tw" record -q --force -t app:_ -o n.tw -- ./app
expect 1 "$tw" print --slowest 3 n.tw
says "has no returns: record with --returns"
for view in report flame "print --tree" "print --format strace"; do
	# shellcheck disable=SC2086
	expect 1 "$tw" $view --longer 1ms n.tw
	says "has no returns: record with --returns"
done
echo PASS
