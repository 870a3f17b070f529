#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    `import tracewheel` shows what the commands show: every event of print, with what it holds; every call with its time, as report sums them up;
#         what is missing. With numpy and without; parts by function, time, thread and kind; streams in files. Wrong use is an exception, never a crash.
# Method  Captures of programs with threads, exceptions, arguments, strings, losses, and of actors. The same numbers are taken from `print --format json` and
#         `report --json`, and compared in Python.
build=$1
. "$(dirname "$0")/lib.sh"
[ -e "$build/python/tracewheel/_tracewheel.abi3.so" ] || {
	echo "skipped: python3-dev is not installed, so that import tracewheel was not built"
	exit 77
}
export PYTHONPATH=$build/python PYTHONDONTWRITEBYTECODE=1
cat >app.cc <<'C'
#include <pthread.h>
#include <unistd.h>
extern "C" {
__attribute__((noinline)) int leaf(int a, const char *s) { __asm__ volatile("" : "+r"(a)); return a + *s; }
__attribute__((noinline)) double half(double x) { __asm__ volatile("" : "+x"(x)); return x / 2; }
__attribute__((noinline)) int down(int n) { int sum = leaf(n, n % 2 ? "odd\n" : "even \"x\""); return n ? sum + down(n - 1) : sum; }
__attribute__((noinline)) int throws(int n) { if (n == 0) throw 1; return throws(n - 1) + 1; }
static void *run(void *) { for (int i = 0; i < 60; i++) down(i % 9); return nullptr; }
}
int main()
{
	pthread_t thread;
	pthread_create(&thread, nullptr, run, nullptr);
	for (int i = 0; i < 50; i++)
		down(i % 7) + (int)half(i);
	try { throws(5); } catch (int) { }
	close(1000);
	pthread_join(thread, nullptr);
	return 0;
}
C
g++ -w -g -O1 -fno-optimize-sibling-calls -pthread -o app app.cc || fail g++
expect 0 "$tw" record -q --on-full block --args --exceptions --stack 2 -t app:_ -t libc:close -o a.tw -- ./app
expect 0 "$tw" record -q --on-full block --exceptions -t app:_ -o - -- ./app
cp out stream.file
expect 0 "$tw" record -q --syscalls -o sys.tw -- ./app
expect 0 "$tw" record -q --on-full block -t app:_ -o moments.tw -- ./app
expect 0 "$tw" record -q -p all -o actors.tw -- "$build/bin/actors" bank --actors 2 --messages 100
# A ring that is too small, and a recorder that does not keep up.
cat >loud.c <<'C'
__attribute__((noinline)) int loud(int a) { volatile int b = a; b = b * 3 + 1; return b; }
int main(void) { int sum = 0; for (int i = 0; i < 100000; i++) sum += loud(i); return sum == 1; }
C
gcc -w -O1 -g -o loud loud.c || fail gcc
expect 0 "$tw" record -q --on-full drop --ring 64K --ring-cap 128K -t loud:_ -o lost.tw -- ./loud
for name in a moments actors lost; do
	expect 0 "$tw" print --format json "$name.tw"
	mv out "$name.events"
	expect 0 "$tw" report --json --top 0 "$name.tw"
	mv out "$name.report"
done
cat >model.py <<'P'
import collections, itertools, json, math, sys
if sys.argv[1] == "plain":
    sys.modules["numpy"] = None
import tracewheel

def columns(tables):
    found = collections.defaultdict(list)
    for table in tables:
        for name, column in table.items():
            assert len(column) == len(table)
            found[name] += list(column)
    return found

def compare(name):
    lines, report = [json.loads(line) for line in open(name + ".events")], json.load(open(name + ".report"))
    with tracewheel.open(name + ".tw") as capture:
        info, functions, threads = capture.info, capture.functions, capture.threads
        # Every event, with all that print has of it.
        events = list(capture.events())
        assert len(events) == len(lines), (name, len(events), len(lines))
        for event, line in zip(events, lines):
            assert event.kind == line["kind"], (event, line)
            assert event.time == line["ns"], (event, line)
            if "function" in line and event.kind not in ("return_to",):
                assert event.function.function == line["function"] and event.function.module == line["module"], (event, line)
            if "thread" in line:
                assert event.thread.id == line["thread"], (event, line)
            assert event.details.items() <= line.items(), (event, line)
            for member in ("args", "value", "stack", "names", "full"):
                assert event.details.get(member) == line.get(member), (event, line)
        # The same as numbers.
        table = columns(capture.event_batches(rows=1000, words=1))
        assert table["time"] == [event.time for event in events] and len(table["word1"]) == len(events)
        assert [functions[n] if n != tracewheel.NONE else None for n in table["function"]] == [event.function for event in events]
        assert all(n not in threads or threads[n] == event.thread for n, event in zip(table["thread"], events))
        # Of parts, by blocks where one thread is read, and without an order: each thread's events in theirs.
        times = sorted(event.time for event in events)
        low, high = times[len(times) // 3], times[2 * len(times) // 3]
        of_thread = events[len(events) // 2].thread.id
        some = next((event.function for event in events if event.function), None)
        parts = [{"start": low, "end": high}, {"thread": of_thread}, {"thread": of_thread, "start": low, "kinds": ["return_from", "call"]}, {}, {"kinds": ["call"]}]
        parts += [{"functions": f"{some.module}:{some.function}", "start": low, "end": high}] if some and some.function.isalnum() else []
        for part in parts:
            wanted = [(e.time, e.kind, e.function, e.thread) for e in capture.events(**part)]
            for order, words in itertools.product((True, False), (0, 2)):
                table = columns(capture.event_batches(rows=333, words=words, order=order, **part))
                found = [(time, tracewheel._KIND_NAMES.get(kind, str(kind)), functions[function] if function != tracewheel.NONE else None, threads.get(thread))
                         for time, kind, function, thread in zip(table["time"], table["kind"], table["function"], table["thread"])]
                if order:
                    # A loss without a thread's ring has no thread.
                    assert [row[:3] for row in found] == [row[:3] for row in wanted], (name, part)
                for thread in threads.values():
                    assert [row for row in found if row[3] == thread] == [row for row in wanted if row[3] == thread], (name, part, order, thread)
        # Calls and their times, as report has them.
        calls, batched = capture.calls(values=True), columns(capture.call_batches(rows=77, values=True))
        for column in calls:
            assert [str(x) for x in calls[column]] == [str(x) for x in batched[column]], column
        count, own = collections.Counter(), collections.Counter()
        for number, self_ns in zip(calls["function"], calls["self"]):
            count[functions[number].name] += 1
            own[functions[number].name] += 0 if math.isnan(self_ns) else self_ns
        for row in report["by_function"]:
            row["name"] = row["name"].removesuffix("/_")  # the number of arguments is not known
            assert count[row["name"]] == row["calls"], (name, row, count)
            if "self" in row:
                assert abs(own[row["name"]] - row["self"] * 1e9) < 1 + row["calls"], (name, row, own[row["name"]])
        assert sum(count.values()) == sum(row["calls"] for row in report["by_function"])
        ids = {n: i for i, n in enumerate(calls["id"])}
        for i, parent in enumerate(calls["parent"]):
            assert not parent or calls["function"][ids[parent]] == calls["caller"][i] and calls["start"][ids[parent]] <= calls["start"][i]
        # What is missing.
        missing = {cause: at["events"] for cause, at in report["account"]["missing"].items() if at["events"]}
        assert {cause: at["events"] for cause, at in info["missing"].items() if at["events"]} == missing, (info["missing"], missing)
        assert info["whole"] == report["account"]["whole"] and info["events"] == report["account"]["events"]
    return missing

missing = {name: compare(name) for name in (("a", "moments", "actors", "lost") if sys.argv[1] == "plain" else ("a",))}
assert not missing["a"] and missing.get("lost", {"full": 1001})["full"] > 1000, missing
with tracewheel.open("a.tw") as capture:
    calls = capture.calls(values=True)
    by_name = collections.defaultdict(list)
    for i, number in enumerate(calls["function"]):
        by_name[capture.functions[number].function].append(i)
    assert {calls["ended"][i] for i in by_name["throws"]} == {1}
    assert sorted(set(calls["args"][i][1] for i in by_name["leaf"])) == ['even "x"', "odd\n"], "strings"
    assert [calls["result"][i] for i in by_name["half"]] == [i / 2 for i in range(50)]
    # Parts.
    some = list(capture.events(["app:leaf", "libc:_"], kinds=["call"]))
    assert {e.function.function for e in some} == {"leaf", "close"} and {e.kind for e in some} == {"call"}
    middle = sorted(calls["start"])[len(calls) // 2]
    assert [e.time for e in capture.events(start=middle)] == [e.time for e in capture.events() if e.time >= middle]
    part = capture.calls("app:leaf", start=middle)
    whole = [i for i in by_name["leaf"] if calls["start"][i] >= middle]
    assert list(part["start"]) == [calls["start"][i] for i in whole] and list(part["duration"]) == [calls["duration"][i] for i in whole]
    assert list(capture.calls(end=middle)["start"]) == [s for s in calls["start"] if s < middle]
    for number, thread in capture.threads.items():
        mine = [s for s, t in zip(calls["start"], calls["thread"]) if t == number]
        assert list(capture.calls(thread=thread.id)["start"]) == mine
        assert {e.thread for e in capture.events(thread=thread.id)} == {thread}
    assert len(capture.calls("app:nothing")) == 0 and list(capture.calls("app:nothing", values=True)["args"]) == []
    frame_columns = ["start", "duration", "self", "id", "parent", "function", "caller", "thread", "depth", "ended"]
    assert list(capture.calls()) == frame_columns
    try:
        import pandas
    except ImportError:
        pandas = None
    if pandas and sys.argv[1] != "plain":
        frame = capture.calls().to_pandas()
        sums = frame.groupby("function", observed=True)["self"].sum()
        for row in json.load(open("a.report"))["by_function"]:
            assert abs(sums[row["name"].removesuffix("/_")] - row["self"] * 1e9) < 1 + row["calls"]
        assert list(frame.columns) == frame_columns and set(frame["ended"].dropna()) <= {"returned", "exception", "cut", "open", "lost"}
        assert len(next(capture.event_batches()).to_pandas()) > 0
with tracewheel.open("sys.tw") as capture:
    calls = capture.calls("libc:close", values=True)
    assert (-1, "EBADF") in zip(calls["result"], calls["errno"]), calls
with tracewheel.open("stream.file") as capture:
    assert len(capture.calls()) > 100 and capture.info["whole"]
# What is kept of a batch stays, whatever keeps it; control: where each array counts as free, it does not.
def kept_of():
    kept, values = [], []
    for i, table in enumerate(tracewheel.open("a.tw").event_batches(rows=20)):
        time = table["time"]
        kept.append([time, time[3:], memoryview(time), table, {"time": time}][i % 5 if i % 3 else 0])
        values.append(list(time)[3 if i % 3 and i % 5 == 1 else 0:])
    return [list(at["time"] if isinstance(at, dict) else at) for at in kept] == values
assert kept_of(), "a column was written over"
if sys.argv[1] != "plain":
    class Careless:
        getrefcount = staticmethod(lambda _: tracewheel._HELD_BY_A_LIST)
    real, tracewheel._sys = tracewheel._sys, Careless
    assert not kept_of(), "the control found nothing"
    tracewheel._sys = real
    arrays = {table["time"].__array_interface__["data"][0] for table in tracewheel.open("a.tw").event_batches(rows=20)}
    assert len(arrays) <= 3, (len(arrays), "arrays that nobody has are not filled again")
# Wrong use.
def raises(error, text, function):
    try:
        function()
    except error as raised:
        assert text in str(raised), (text, raised)
    else:
        raise AssertionError("no " + error.__name__)
raises(FileNotFoundError, "none.tw", lambda: tracewheel.open("none.tw"))
raises(OSError, "model.py", lambda: tracewheel.open("model.py"))
raises(TypeError, "", lambda: tracewheel.open(7))
capture = tracewheel.open("a.tw")
raises(ValueError, "is not a pattern", lambda: list(capture.events("a:b:c:d[")))
raises(ValueError, "is not a pattern", lambda: capture.calls(["app:_", "x\ny"]))
raises(ValueError, "no kind of events is named 'calls': there are", lambda: list(capture.events(kinds=["calls"])))
raises(TypeError, "whole nanoseconds: round(0.5 * 1e9)", lambda: capture.calls(start=0.5))
raises(ValueError, "not below 0", lambda: capture.calls(end=-1))
raises(ValueError, "rows", lambda: list(capture.event_batches(rows=0)))
raises((TypeError, BufferError), "", lambda: capture._capture.events().fill([b"read only"] * 4))
raises(ValueError, "arrays", lambda: capture._capture.events().fill([]))
raises(TypeError, "", lambda: type(capture._capture)())
events = capture.events()
next(events)
raises(BufferError, "still read", capture.close)
del events
capture.close()
capture.close()
raises(ValueError, "closed", lambda: capture.info)
raises(ValueError, "closed", lambda: list(capture.events()))
raises(ValueError, "closed", lambda: capture.calls())
P
# Two captures at once, by turns.
cat >two.py <<'P'
import tracewheel
one, two = tracewheel.open("a.tw"), tracewheel.open("sys.tw")
both = [(str(x), str(y)) for x, y in zip(one.events(), two.events())]
assert both == list(zip(map(str, one.events()), map(str, two.events()))) and len(both) > 5
P
expect 0 python3 -X faulthandler two.py
has_module() {
	python3 -c "import importlib.util, sys; sys.exit(importlib.util.find_spec('$1') is None)"
}
kinds=plain
has_module numpy && kinds='plain numpy'
for kind in $kinds; do
	python3 -X faulthandler model.py "$kind" 2>err >out || fail "with $kind arrays"
done
[ ! -s out ] || fail "something was written"

# The notebook of the examples, on what it says of itself.
notebook=$(dirname "$common")/../examples/calls.ipynb
if has_module pandas && command -v sqlite3 >/dev/null; then
	echo "create table t(a integer primary key, b text); with recursive n(i) as (select 1 union all select i + 1 from n where i < 3000) insert into t select i, 'b' || i from n; select count(*) from t;" >work.sql
	python3 - "$notebook" "$tw" <<'P' || fail "the notebook"
import json, shlex, subprocess, sys
cells = json.load(open(sys.argv[1]))["cells"]
command = next(line for line in "".join(cells[0]["source"]).splitlines() if line.strip().startswith("tracewheel record"))
subprocess.run(shlex.quote(sys.argv[2]) + command.strip().removeprefix("tracewheel") , shell=True, check=True, stdout=subprocess.DEVNULL)
space = {}
for cell in cells:
    if cell["cell_type"] == "code":
        exec("".join(cell["source"]), space)
table = space["by_function"]
assert table["calls"].sum() == space["total"] and len(table) > 20 and any(name.startswith("libsqlite3:") for name in table.index), table
P
fi
echo PASS
