#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    --when EXPR and -t 'PATTERN if EXPR' select calls by arguments, results, exceptions, durations and threads, in all views alike:
#         print (text, JSON, --tree, strace's form, --slowest), report, its --by, flame. Calls that are left out give their time to the calls
#         around. What a capture does not hold is unknown, as NULL in SQL. Wrong conditions are refused with one sentence and exit code 2.
# Method  A program with two threads, recursion, exceptions, naps, integers, strings and enumerators. A model evaluates the same conditions,
#         written in Python, on all events of `print --format json`, and computes calls, total and self by function. It starts the commands
#         itself, and the numbers of the other reports are compared at the end: a Python that starts for each would be most of the test.
build=$1
. "$(dirname "$0")/lib.sh"
cat >app.cc <<'C'
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>
enum mode { MODE_READ = 1, MODE_WRITE = 2 };
extern "C" {
__attribute__((noinline)) int leaf(int a) { __asm__ volatile("" : "+r"(a)); return a; }
__attribute__((noinline)) int take(int size, const char *name, mode how)
{
	struct timespec t = {0, 1500000};
	for (int i = 0; i < size % 5; i++)
		leaf(i - 2);
	if (size % 7 == 0)
		nanosleep(&t, nullptr);
	return how == MODE_WRITE ? -size : size + (int)strlen(name);
}
__attribute__((noinline)) int throws(int n) { leaf(n); if (n == 0) throw 1; return throws(n - 1); }
__attribute__((noinline)) int outer(int count)
{
	int sum = 0;
	for (int i = 0; i < count; i++)
		sum += take(i * 3, i % 3 ? "users" : "groups", i % 2 ? MODE_READ : MODE_WRITE);
	try { throws(count / 10); } catch (int) { sum++; }
	return count > 10 ? sum + outer(count / 2) : sum;
}
static void *run(void *) { outer(20); return nullptr; }
}
int main()
{
	pthread_t thread;
	pthread_create(&thread, nullptr, run, nullptr);
	int sum = outer(30);
	pthread_join(thread, nullptr);
	return sum == 0;
}
C
g++ -w -g -O1 -fno-optimize-sibling-calls -fpatchable-function-entry=9 -pthread -o app app.cc || fail g++
expect 0 "$tw" record -q --force --exceptions --args --on-full block -t app:_ -o a.tw -- ./app
expect 0 "$tw" print --format json --setups a.tw
cp out events.json
cat >model.py <<'P'
import collections, json, os, re, subprocess, sys
TW = sys.argv[1]
# CONDITIONS[TEXT](call): the condition, or None where a value is not known. Written by hand.
def arg(c, name): return c["args"].get(name)
def less(a, b): return None if a is None else a < b
def both(*t): return False if False in t else None if None in t else True
def any_(*t): return True if True in t else None if None in t else False
def no(t): return None if t is None else not t
CONDITIONS = {
    "$1 > 40": lambda c: no(less(arg(c, "$1"), 41)),
    "size > 40 and name == \"users\"": lambda c: both(no(less(arg(c, "size"), 41)), arg(c, "name") == "users"),
    "how == MODE_WRITE and result < 0": lambda c: both(arg(c, "how") == "MODE_WRITE", less(c["result"], 0)),
    "duration > 1ms": lambda c: c["took"] > 1000000,
    "duration > 1ms and $1 > 0.02K": lambda c: both(c["took"] > 1000000, no(less(arg(c, "$1"), 21))),
    "not (size > 40)": lambda c: less(arg(c, "size"), 41),
    # The inner calls of a function that calls itself, and not the outer one.
    "count < 20": lambda c: less(arg(c, "count"), 20),
    "exception or size == 42": lambda c: any_(c["exception"], None if arg(c, "size") is None else arg(c, "size") == 42),
    "result < $1": lambda c: None if c["result"] is None or arg(c, "$1") is None else c["result"] < arg(c, "$1"),
    "count - 5 > 20 xor duration < 100us": lambda c:
        None if arg(c, "count") is None else (arg(c, "count") > 25) != (c["took"] < 100000),
    "thread != MAIN and a < 0": lambda c: both(c["thread"] != MAIN, less(arg(c, "a"), 0)),
    "-t": lambda c: arg(c, "size") > 80 if c["name"] == "take" else c["took"] > 1000000 if c["name"] == "outer" else False,
}
events = [json.loads(line) for line in open("events.json")]
MAIN = next(e["thread"] for e in events if e.get("function") == "main")
def read_calls():
    stacks, setups, calls = collections.defaultdict(list), collections.defaultdict(list), []
    for e in events:
        stack = stacks[e["thread"]]
        if e["kind"] == "call":
            args = {"$%d" % (i + 1): v for i, v in enumerate(e.get("args", []))}
            args.update(zip(e.get("names", []), e.get("args", [])))
            stack.append({"name": e["function"], "ns": e["ns"], "thread": e["thread"], "args": args, "around": stack[-1] if stack else None})
            calls.append(stack[-1])
        elif e["kind"] in ("return_from", "exception_from"):
            call = stack.pop()
            assert call["name"] == e["function"]
            own = sum(max(0, min(e["ns"], to) - max(call["ns"], at)) for at, to in setups[e["thread"]])
            call.update(end=e["ns"], took=e["ns"] - call["ns"] - own, exception=e["kind"] == "exception_from", result=e.get("value") if e["kind"] == "return_from" else None)
        elif e["kind"] == "own_time":
            setups[e["thread"]].append((e["ns"], e["ns"] + e["own_ns"]))
    return calls
def around(call):
    call = call["around"]
    while call and not call["is"]:
        call = call["around"]
    return call
def times(chosen):
    count, total, own = collections.Counter(), collections.Counter(), collections.Counter()
    for c in chosen:
        count[c["name"]] += 1
        own[c["name"]] += c["took"]
        outer, is_outermost = around(c), True
        if outer:
            own[outer["name"]] -= c["took"]
        while outer:
            is_outermost = is_outermost and outer["name"] != c["name"]
            outer = around(outer)
        total[c["name"]] += c["took"] if is_outermost else 0
    return count, total, own
def is_turn(name, step): return list(CONDITIONS).index(name) % step == 0 or name == "-t" or bool(os.environ.get("TW_TEST_LONG"))
# check(NAME): every view with this condition shows what the model chooses.
def check(name, calls):
    options = ["--when", name.replace("MAIN", str(MAIN))]
    if name == "-t":  # A pattern has its own condition, or that of --when.
        options = ["-t", "app:take if size > 80", "-t", "app:outer", "--when", "duration > 1ms"]
    errors = ""
    def view(*command):
        nonlocal errors
        done = subprocess.run([TW, *command, *options, "a.tw"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        assert done.returncode == 0, (command, done)
        errors = done.stderr
        return done.stdout
    def lines(*command): return [json.loads(line) for line in view(*command, "--format", "json").splitlines()]
    for call in calls:
        call["is"] = CONDITIONS[name](call) is True
    if name == "-t":
        calls = [c for c in calls if c["name"] in ("take", "outer")]
    chosen = [c for c in calls if c["is"]]
    assert 0 < len(chosen) < len(calls), len(chosen)
    count, total, own = times(chosen)
    shown = lines("print")
    assert [(e["ns"], e["thread"]) for e in shown if e["kind"] == "call"] == [(c["ns"], c["thread"]) for c in chosen]
    assert sorted((e["ns"], e["thread"]) for e in shown if e["kind"].endswith("_from")) == sorted((c["end"], c["thread"]) for c in chosen)
    # Each view shows the same choice: in the short form with every second condition, or fewer.
    if not is_turn(name, 2):
        return
    report = json.loads(view("report", "--json", "-n", "0"))
    rows = {f["function"]: f for f in report["by_function"] if f["calls"]}
    assert {n: r["calls"] for n, r in rows.items()} == dict(count), (rows, count)
    for function, row in rows.items():
        assert abs(row["total"] * 1e9 - total[function]) < 300, (function, row["total"], total[function])
        assert abs(row["self"] * 1e9 - own[function]) < 300, (function, row["self"], own[function])
    unmatched = {k: v for k, v in report["unmatched"].items() if v}
    assert unmatched == {"left_out": len(calls) - len(chosen)}, unmatched
    if not is_turn(name, 4):
        return
    by = json.loads(view("report", "--by", "result", "--json", "-n", "0"))
    results = collections.Counter((c["name"], c["result"]) for c in chosen if c["result"] is not None)
    assert sum(g["calls"] for g in by["by_value"]) == sum(results.values()), (by, results)
    assert by["without_value"] == sum(c["result"] is None for c in chosen), by
    for group in by["by_value"]:
        assert results[group["function"], int(group["value"].replace("NULL", "0"))] == group["calls"], group
    slowest = lines("print", "--slowest", "3")
    if name == "-t":
        best = sorted(chosen, key=lambda c: -c["took"])[:3]
        assert len(slowest) == len(best)
        for row, c in zip(slowest, best):
            assert abs(row["total_ns"] - c["took"]) < 300, (row, c)
    else:
        assert all(any(abs(row["ns"] - c["ns"]) < 5 for c in chosen) for row in slowest) and slowest
    tree = [l.replace(",", "").split() for l in view("print", "--tree").splitlines() if re.match(r"[0-9.]+ .*[0-9] [mun]?s ", l)]
    assert sum(int(words[-1]) if words[-2] == "x" else 1 for words in tree) == len(chosen), "calls in the tree"
    assert " only: %d calls are left out" % (len(calls) - len(chosen)) in errors, errors
    assert sum(bool(re.search(r"<[0-9.]+>$", l)) for l in view("print", "--format", "strace").splitlines()) == len(chosen), "lines of strace's form"
    slices = json.loads(view("print", "--format", "chrome"))["traceEvents"]
    assert sum(e["ph"] == "X" and e.get("cat") != "own_time" for e in slices) == len(chosen), "slices"
    assert view("flame", "--folded"), "an empty flame graph"
calls = read_calls()
for name in CONDITIONS:
    try:
        check(name, calls)
    except BaseException:
        print("condition:", name, file=sys.stderr)
        raise
# A moment in the call outer(30), for the shell.
print(str(next(e["ns"] for e in events if e.get("function") == "outer" and e.get("args") == [30]) // 1000 + 500) + "us")
P
from=$(python3 model.py "$tw") || fail "not the model's calls"
# reports NAME OPTION...: keeps the report in a file for the comparison at the end.
reports() {
	"$tw" report --json -n 0 "${@:2}" >"$1.json" 2>err </dev/null || fail "exit code $?: report ${*:2}"
}
expect 0 "$tw" print -t 'app:take  if  size > 80' -t app:leaf a.tw
cp out own
expect 0 "$tw" print -t 'app:{take,leaf}' --when 'size > 80 or a > -100' a.tw
cmp -s own out || fail "a pattern without a condition, and without --when, has none"
# The first pattern that matches decides.
expect 0 "$tw" print -t 'app:take if size > 80' -t app:_ a.tw
cp out own
expect 0 "$tw" print --when 'size > 80 or not (size > -1000) or count > -1 or a > -9 or n > -1 or exception' -t app:_ -N 'app:{main,run}' a.tw
is "$(grep -c 'call app:take' own)" "$(grep -c 'call app:take' out)" "the first pattern"
[ "$(grep -c 'call app:leaf' own)" -gt 10 ] || fail "the second pattern has no condition"
# --longer is short for it.
expect 0 "$tw" print --format json --longer 1ms a.tw
cp out longer
expect 0 "$tw" print --format json --when 'duration >= 1ms' a.tw
cmp -s longer out || fail "--longer 1ms is not duration >= 1ms"
reports longer --longer 1ms --when 'size > 40' a.tw
reports both --when 'duration >= 1ms and size > 40' a.tw
# A call that began before the part is judged whole.
reports before --from "$from" --when 'count == 30' a.tw
expect 0 "$tw" flame --when 'duration > 1ms' a.tw
shows 'Calls with duration .* only: .* left out'

# ---- without returns: conditions on arguments need none; others have nothing to decide by
expect 0 "$tw" record -q --force --args -t app:_ -o n.tw -- ./app
reports no-returns --when 'size > 40' n.tw
reports returns --when 'size > 40' a.tw
for view in report flame print "print --tree" "report --by arg:1"; do
	# shellcheck disable=SC2086
	expect 1 "$tw" $view --when 'result > 1' n.tw
	says "about how calls end, and 'n.tw' has no returns: record with --returns"
done
expect 0 "$tw" record -q --force --returns -t app:_ -o w.tw -- ./app
expect 0 "$tw" report --when '$1 > 40' w.tw
shows 'holds the values that are named of none of them (record with --args'
# Numbers with units, as in all conditions.
expect 0 "$tw" match --when '$1 > 64K and $2 == 1.5ms and $3 == -2us' --args '[65537, 1500000, -2000]'
shows true
expect 0 "$tw" match --when '$1 > 64K' --args '[65536]'
shows false
# ---- record: as in record_conditions; a duration alone is --longer
expect 0 "$tw" record -q --force --args -t 'app:take if size > 40' -o r.tw -- ./app
reports by-name r.tw
expect 0 "$tw" record -q --force -t 'app:{take,outer}  if  $1 > 0.02K' -t 'app:leaf if $1 > 0.02K' -o r.tw -- ./app
reports by-number r.tw
reports all a.tw
number=0
for condition in 'duration >= 1ms' '1ms =< duration' 'duration > 999999ns'; do
	expect 0 "$tw" record -q --force -t app:_ --when "$condition" -o d.tw -- ./app
	number=$((number + 1))
	expect 0 "$tw" info --json d.tw
	mv out longer-$number.info
done
expect 0 "$tw" record -q --force -t 'app:_ if duration >= 1ms' -o d.tw -- ./app
expect 0 "$tw" print --format json --when 'duration < 1ms' d.tw
[ ! -s out ] || fail "a shorter call was recorded"
python3 - <<'P' || fail "reports differ"
import json
events = [json.loads(line) for line in open("events.json")]
def rows(name, least=1): return [(f["function"], f["calls"]) for f in json.load(open(name + ".json"))["by_function"] if f["calls"] >= least]
assert rows("longer", 0) == rows("both", 0), "--longer and --when together"
assert "outer" in [f["function"] for f in json.load(open("before.json"))["by_function"] if f["before"]], "outer(30) was open"
assert rows("no-returns") == rows("returns"), "with and without returns"
large = sum(e["kind"] == "call" and e["function"] == "take" and e["args"][0] > 40 for e in events)
assert dict(rows("by-name")).get("take") == large, ("record -t if", rows("by-name"), large)
by_number, every = dict(rows("by-number")), dict(rows("all"))
assert by_number["outer"] > 0 and by_number.get("take", 0) < every["take"], ("record -t if by number", by_number, every)
for number in (1, 2, 3):
    assert json.load(open("longer-%d.info" % number))["counted"]["longer_ns"] == 1000000, number
P
no_record() {
	expect 2 "$tw" record -q --force -o x.tw "${@:2}" -- ./app
	says "$1"
	[ ! -e x.tw ] || fail "a capture was made"
}
no_record "without a condition" --count 'app:take if size > 4'
no_record "is refused: a value" -t 'app:take if size >'
no_record "which calls are long is known when they end" -t 'app:take if size > 4' --longer 1ms --return-to
# ---- what is refused
refused() {
	expect 2 "$tw" print "${@:2}" a.tw
	says "$1"
}
refused "no function of the capture has an argument 'length': there are .*size.* and result, errno" --when 'length > 4'
refused "column 14: an operator is missing here" --when 'duration > 5 5'
refused "column 14: a value" --when 'size > 40 and'
refused "unknown function" --when 'largest(size) > 4'
refused "string_at reads the running program" --when 'string_at($2) == "users"'
refused "the condition 'sise > 4' is refused: no function" -t 'app:take if sise > 4'
refused "the condition '' is refused" -t 'app:take if'
refused "whatever\|left out with all their calls" -N 'app:take if size > 4'
refused "given twice" --when 'size > 4' --when 'size < 9'
expect 2 "$tw" print --when 'size > 4' w.tw
says "has an argument 'size'; .record --args. records them by name"
expect 2 "$tw" report --locks --when 'size > 4' a.tw
says "need all calls"
expect 2 "$tw" cut -t 'app:take if size > 4' -o cut.tw a.tw
says "conditions are for report, print and flame"
expect 2 "$tw" functions -t 'app:take if size > 4' ./app
says "whatever their calls"
echo PASS
