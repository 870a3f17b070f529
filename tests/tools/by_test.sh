#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    report --by sums calls up by an argument (by number, by name, a string), the result, errno, the caller, thread, process, program and module;
#         --histogram by ranges of arguments, results and durations. Every call is in one row or said to have no value. Without types, without
#         returns, with declared functions' terms, in a part of the time; what cannot be asked is one sentence.
# Method  A program with two threads and recursion. A model computes calls, total and ranges from `print --format json` alone.
build=$1
. "$(dirname "$0")/lib.sh"
cat >app.c <<'C'
#include <pthread.h>
#include <unistd.h>
volatile int sink;
__attribute__((noinline)) int take(int n, const char *word) { sink += *word; return n % 7 - 3; }
__attribute__((noinline)) int down(int n) { int sum = take(n * n * 100, n % 2 ? "odd" : "even"); return n ? sum + down(n - 1) : sum; }
__attribute__((noinline)) int other(int n) { return take(-n, "other") + down(n % 4); }
static void *run(void *unused) { for (int i = 0; i < 40; i++) other(i); return unused; }
int main(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, run, NULL);
	for (int i = 0; i < 30; i++)
		down(i % 9);
	pthread_join(thread, NULL);
	for (int i = 0; i < 5; i++)
		close(1000 + i);
	return 0;
}
C
gcc -w -g -O1 -fno-optimize-sibling-calls -fpatchable-function-entry=9 -pthread -o app app.c || fail gcc
expect 0 "$tw" record -q --on-full block --args --returns -t app:take -t app:down -t app:other -o a.tw -- ./app
expect 0 "$tw" print --format json --setups a.tw
cp out events.json
cat >model.py <<'P'
import collections, json, subprocess, sys
tw = sys.argv[1]
open_, calls, own = collections.defaultdict(list), [], collections.defaultdict(list)
for line in open("events.json"):
    e = json.loads(line)
    stack = open_[e.get("thread")]
    if e["kind"] == "call":
        stack.append({"function": e["function"], "args": e["args"], "names": e["names"], "thread": e["thread"], "at": e["ns"],
                      "caller": stack[-1]["function"] if stack else None, "around": list(stack)})
    elif e["kind"] == "return_from":
        call = stack.pop()
        assert call["function"] == e["function"]
        tracer = sum(max(0, min(e["ns"], to) - max(call["at"], at)) for at, to in own[e["thread"]])
        call.update(total=e["ns"] - call["at"] - tracer, result=e["value"], end=e["ns"])
        calls.append(call)
    elif e["kind"] == "own_time":
        own[e["thread"]].append((e["ns"], e["ns"] + e["own_ns"]))
assert not any(open_.values())
def load(*words):
    return json.loads(subprocess.run([tw, "report", "--json", "--top", "0", *words, "a.tw"], stdout=subprocess.PIPE, check=True).stdout)
def text(value):
    return '"%s"' % value if isinstance(value, str) else str(value)
def argument(which):
    def key(call):
        at = which - 1 if isinstance(which, int) else call["names"].index(which) if which in call["names"] else None
        return None if at is None or at >= len(call["args"]) else (call["function"], text(call["args"][at]))
    return key
def check(words, key, late=False):
    want, none = collections.defaultdict(lambda: [0, 0]), 0
    for call in calls:
        group = key(call)
        if group is None:
            none += 1
            continue
        want[group][0] += 1
        nested = any(c["function"] == call["function"] if late else key(c) == group for c in call["around"])
        want[group][1] += 0 if nested else call["total"]
    got = load(*words)
    rows = {(row.get("function"), row["value"]): (row["calls"], round(row["total"] * 1e9)) for row in got["by_value"]}
    assert got["without_value"] == none, (words, got["without_value"], none)
    assert set(rows) == set(want) and got["groups"] == len(want), (words, set(rows) ^ set(want))
    for group, (count, total) in want.items():
        assert rows[group][0] == count and abs(rows[group][1] - total) <= count, (words, group, rows[group], count, total)
    return got
check(["--by", "arg:1"], argument(1))
check(["--by", "arg:n"], argument("n"))
check(["--by", "arg:word"], argument("word"))
check(["--by", "result"], lambda c: (c["function"], str(c["result"])), late=True)
check(["--by", "caller"], lambda c: (c["function"], "app:" + c["caller"] + "/1" if c["caller"] else "no recorded caller"))
threads = {row["value"].split()[0]: row["calls"] for row in load("--by", "thread")["by_value"]}
assert threads == {str(k): n for k, n in collections.Counter(c["thread"] for c in calls).items()}, threads
for key in "program", "module":
    assert [(r["value"], r["calls"]) for r in load("--by", key)["by_value"]] == [("app", len(calls))], key
assert len(load("--by", "process")["by_value"]) == 1
def ranges(value):
    if value <= 0:
        return value, 1
    width = 1 << (value.bit_length() - 1)
    return width, width
def steps(step):
    return lambda value: (value // step * step, step)
def histogram(words, value, where):
    want = collections.Counter((c["function"], *where(value(c))) for c in calls if value(c) is not None)
    rows = load("--histogram", words)["by_value"]
    got = {(r["function"], r["low"], r["width"]): r["calls"] for r in rows}
    assert got == dict(want), (words, got, want)
    keys = [(r["function"], r["low"]) for r in rows]
    assert all(a[0] != b[0] or a[1] < b[1] for a, b in zip(keys, keys[1:])), "ranges in order"
first = lambda c: c["args"][0]
histogram("arg:n", first, ranges)
histogram("arg:1/100", first, steps(100))
histogram("result", lambda c: c["result"], ranges)
histogram("duration", lambda c: c["total"], ranges)
histogram("duration/1us", lambda c: c["total"], steps(1000))
print(len(calls))
P
python3 model.py "$tw" >count || fail "the model"
# A part of the time, and of the functions: every call that the report has is in a row.
for selection in '-t app:take' '--from 100us' '--to 1ms' '--longer 1us'; do
	for key in arg:n caller thread; do
		# shellcheck disable=SC2086 # words
		expect 0 "$tw" report --json --top 0 $selection a.tw
		want=$(python3 -c 'import json; print(sum(r["calls"] for r in json.load(open("out"))["by_function"]))')
		# shellcheck disable=SC2086 # words
		expect 0 "$tw" report --json --top 0 $selection --by $key a.tw
		is "$(python3 -c 'import json; d = json.load(open("out")); print(sum(r["calls"] for r in d["by_value"]) + d["without_value"])')" \
			"$want" "calls, $selection --by $key"
	done
done

# What a person reads.
expect 0 "$tw" report --by arg:word -t app:take a.tw
grep -q 'app:take/2 word = "odd"$' out || fail "no row: $(cat out)"
for key in errno:errno caller:caller thread:thread process:process program:program module:module arg:1:argument result:result; do
	expect 0 "$tw" report --by "${key%:*}" a.tw
	[ "$key" = errno:errno ] || grep -qE "  (function and )?${key##*:} \([0-9,]+\)$" out || fail "the title by $key: $(cat out)"
done
expect 0 "$tw" report --histogram arg:n -t app:take a.tw
grep -q '^\[64, 128) .* %' out && fail "no call has that"
grep -q '^ *\[256, 512) *[0-9]* ' out || fail "no range: $(cat out)"
expect 0 "$tw" report --csv --by arg:n a.tw
is "$(head -n 1 out | cut -d, -f1-3)" name,calls,share

# Calls that are in no row are said: those that were counted only, and those that were too short.
expect 0 "$tw" record -q --force --count app:take --args --returns -t 'app:_' -o counted.tw -- ./app
expect 0 "$tw" report --by arg:1 counted.tw
says '281 calls of 1 function'
expect 0 "$tw" report --by arg:1 --longer 1us a.tw
grep -q 'Calls of 1.00 us or longer only: .* left out' out || fail "no word of --longer: $(cat out)"

# Callers by recorded stacks, with and without returns: those that the capture with all calls has.
callers() {
	expect 0 "$tw" report --json --top 0 --by caller -t app:take "$1"
	python3 -c 'import json; print(sorted((r["value"].split("/")[0], r["calls"]) for r in json.load(open("out"))["by_value"]))'
}
for returns in '' --returns; do
	# shellcheck disable=SC2086 # one word or none
	expect 0 "$tw" record -q --force --stack 1 --on-full block $returns -t app:take -o stack.tw -- ./app
	is "$(callers stack.tw)" "$(callers a.tw)" "callers of --stack $returns"
done

# Lines of the caller, with all calls and with one function's: those that the stacks of `print` tell.
for what in _ take; do
	expect 0 "$tw" record -q --force --stack 1 --on-full block --returns -t "app:$what" -o line.tw -- ./app
	expect 0 "$tw" print --format json line.tw
	mv out line.json
	expect 0 "$tw" report --json --top 0 --by line line.tw
	python3 -I -S - <<'P' || fail "lines of app:$what"
import collections, json
want, last = collections.Counter(), {}
for e in map(json.loads, open("line.json")):
    if e["kind"] == "call":
        last[e["thread"]] = e
    elif e["kind"] == "stack":
        call, at = last.pop(e["thread"]), e["stack"][0]
        line = " at %s:%d" % (at["file"].split("/")[-1], at["line"]) if "file" in at else ""
        want[call["function"], "%s:%s%s" % (at["module"], at["function"], line)] += 1
d = json.load(open("out"))
assert d["without_value"] == len(last) == 0, (d["without_value"], last)
assert {(r["function"], r["value"]): r["calls"] for r in d["by_value"]} == dict(want), (d["by_value"], want)
assert sum("app.c:" in value for _, value in want) >= 2 and all(r["total"] > 0 for r in d["by_value"]), want
P
done
expect 1 "$tw" report --by line a.tw
says "lines need callers, and 'a.tw' has none: record with --stack 1 or more"

# errno, where prototypes tell it.
expect 0 "$tw" record -q --force --syscalls -o sys.tw -- ./app
expect 0 "$tw" report --json --by errno -t libc:close sys.tw
is "$(python3 -c 'import json; print([(r["value"], r["calls"]) for r in json.load(open("out"))["by_value"] if r["value"] != "no error"])')" \
	"[('EBADF', 5)]" errno
# Without types, and without returns.
expect 0 "$tw" record -q --force --args=raw -t app:take -o raw.tw -- ./app
expect 0 "$tw" report --json --top 0 --by arg:1 raw.tw
is "$(python3 -c 'import json; d = json.load(open("out")); print(sum(r["calls"] for r in d["by_value"]), any("total" in r for r in d["by_value"]))')" \
	"$(python3 -c 'import json; print(sum(json.loads(l)["kind"] == "call" and json.loads(l)["function"] == "take" for l in open("events.json")))') False"
expect 0 "$tw" record -q --force -t app:take -o bare.tw -- ./app
expect 0 "$tw" report --by arg:1 bare.tw
grep -q 'calls have no such value in the capture, and in no row: record with --args' out || fail "no word of --args: $(cat out)"
expect 1 "$tw" report --by result bare.tw
says "durations, results and errno need returns, and 'bare.tw' has none: record with --returns"
expect 1 "$tw" report --histogram duration bare.tw
for bad in 'arg' 'arg:' 'arg:0' 'arg:1/4' 'size' 'result/2'; do
	expect 2 "$tw" report --by "$bad" a.tw
	says "\-\-by is arg:N, arg:NAME, .*not '$bad'"
done
for bad in 'arg:1/' 'arg:1/x' 'arg:n/0' 'duration/-1' 'caller'; do
	expect 2 "$tw" report --histogram "$bad" a.tw
	says "\-\-histogram is arg:N, .*not '$bad'"
done
expect 2 "$tw" report --by arg:1 --tree a.tw
says 'are views of their own'
exit 0
