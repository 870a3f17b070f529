#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do ran, preempted and off say how a call's thread spent its time?  `record --sched` against the program's own clocks.

Goal    Of each call: ran + preempted + off = total; ran is the thread's processor time; a call that sleeps or waits for a lock
        is off, one that a competitor keeps from its processor is preempted; as many switches as the kernel counts.
Method  sched.c reads CLOCK_THREAD_CPUTIME_ID and getrusage() at the beginning and the end of each call. The states of the threads, as
        `print --sched` lists them, are summed up here once more, and must give what `report` says, and every other view that divides times:
        tables of SQL, the module of Python, the slowest calls, differences.

sched.py BUILD [--self-test]
    --self-test: switches are left out, preempted is taken for off, ...: each must be noticed
"""
import collections
import json
import os
import subprocess
import sys
import tempfile

CALLS = ("sleeps", "spins", "blinks", "waits", "competes", "all_of_it")
SUMS = ("ran", "preempted", "off")
STATES = {"running": "ran", "preempted": "preempted", "off": "off"}
MS = 1000000
# The kernel charges a thread for the switch itself, before and after the moment at which the switch is told.
SWITCH_NS = 60000
CALL_NS = 300000
# Of the time that a thread has a processor, the kernel charges it for none in which the machine below took the processor away, or an interrupt.
TAKEN_PART = 8
SKIPPED = 77


def run(tw, *words):
    return subprocess.run([tw, *words], check=True, capture_output=True, text=True)


def record(build, folder):
    """What the program said of each call, what report says, and the events."""
    tw, path = os.path.join(build, "bin/tracewheel"), os.path.join(folder, "sched.tw")
    done = run(tw, "record", "-q", "--force", "--sched", "--returns", "-t", "truth_sched:{begins," + ",".join(CALLS) + "}", "-o", path,
               "--", os.path.join(build, "tests/truth_sched"))
    if "no states of threads are recorded" in done.stderr:
        print(done.stderr)
        sys.exit(SKIPPED)
    told = {}
    for line in done.stdout.splitlines():
        name, *numbers = line.split()
        told[name] = dict(zip(("thread", "wall", "cpu", "voluntary", "involuntary"), map(int, numbers)))
    rows = {row["name"].split(":")[1].split("/")[0]: row
            for row in json.loads(run(tw, "report", "--json", path).stdout)["by_function"]}
    events = [json.loads(line) for line in run(tw, "print", "--sched", "--setups", "--format", "json", path).stdout.splitlines()]
    return told, rows, events, views_of(build, folder, path, events)


def views_of(build, folder, path, events):
    """By view and function: ns by state, as that view has them."""
    tw, views = os.path.join(build, "bin/tracewheel"), {}
    lines = run(tw, "print", "--slowest", str(len(CALLS)), "-t", "truth_sched:{" + ",".join(CALLS) + "}", "--format", "json", path).stdout.splitlines()
    slowest = {row["name"].split(":")[1].split("/")[0]: row for row in map(json.loads, lines)}
    views["print --slowest"] = {name: {key: row[key + "_ns"] for key in SUMS} for name, row in slowest.items()}
    # From a part with nothing in it but states and the call that each thread begins with.
    part, end = os.path.join(folder, "part.tw"), min(e["ns"] for e in events if e["kind"] == "call" and e["function"] != "begins")
    run(tw, "cut", "-q", "--to", f"{end / 1e9:.9f}", "-o", part, path)
    diff = json.loads(run(tw, "report", "--json", "--diff", part, path).stdout)
    views["report --diff"] = {row["name"].split(":")[1].split("/")[0]: {key: round(row[key + "_change"] * 1e9) for key in SUMS}
                              for row in diff["by_function"]}
    if os.path.exists(os.path.join(build, "bin/tracewheel-sql")):
        for table in ("calls", "functions"):
            lines = run(tw, "sql", "--json", path, f"select function, ran, preempted, off from {table}").stdout.splitlines()
            views[f"sql {table}"] = {row.pop("function"): row for row in map(json.loads, lines)}
        views["sql of a part"] = {}
        for name in CALLS:
            start = min(e["ns"] for e in events if e["kind"] == "call" and e["function"] == name)
            row = json.loads(run(tw, "sql", "--json", path,
                                 f"select ran, preempted, off from calls where function = '{name}' and start >= {start} limit 1").stdout)
            views["sql of a part"][name] = row
    if os.path.isdir(os.path.join(build, "python/tracewheel")):
        sys.path.insert(0, os.path.join(build, "python"))
        import tracewheel
        with tracewheel.open(path) as capture:
            table = capture.calls(states=True)
            views["python"] = {capture.functions[number].function: {key: round(table[key][i]) for key in SUMS}
                               for i, number in enumerate(table["function"])}
    return views


def spent(events, thread, begin, end, skip_own):
    """ns by state of a thread between two moments, and how often each began; without the tracer's own time."""
    sums, begun = collections.Counter(), collections.Counter()
    own = [(e["ns"], e["ns"] + e["own_ns"]) for e in events if e["kind"] == "own_time" and e["thread"] == thread]
    changes = [(e["ns"], e["state"]) for e in events if e["kind"] == "thread_state" and e["thread"] == thread]
    for (since, state), (until, _) in zip(changes, changes[1:] + [(end, None)]):
        low, high = max(since, begin), min(until, end)
        begun[state] += begin <= since < end
        if low < high:
            taken = sum(max(0, min(high, b) - max(low, a)) for a, b in own) if skip_own else 0
            sums[STATES.get(state, state)] += high - low - taken
    return sums, begun


def calls_of(events):
    """(name, thread, begin, end) of each call; a function is called once."""
    begun = {}
    for event in events:
        if event.get("function") == "begins":
            continue
        if event["kind"] == "call":
            begun[event["function"]] = event
        elif event["kind"] == "return_from":
            call = begun.pop(event["function"])
            yield event["function"], call["thread"], call["ns"], event["ns"]


def problems_of(told, rows, events, views):
    calls = list(calls_of(events))
    if sorted(name for name, *_ in calls) != sorted(CALLS) or sorted(told) != sorted(CALLS):
        yield f"the calls are {[name for name, *_ in calls]}"
        return
    for name, thread, begin, end in calls:
        row, said = rows[name], told[name]
        ns = {key: round(row.get(key, 0) * 1e9) for key in (*SUMS, "unknown", "total")}
        switches = said["voluntary"] + said["involuntary"]
        # What lies before the program's first look at its clocks, and behind the last, is in the call, too.
        around = max(0, ns["total"] - said["wall"])
        margin = CALL_NS + SWITCH_NS * switches + around
        taken = margin + ns["ran"] // TAKEN_PART
        sums, begun = spent(events, thread, begin, end, True)
        if thread != said["thread"]:
            yield f"{name} is of thread {thread}, not {said['thread']}"
        if sum(ns[key] for key in SUMS) + ns["unknown"] != ns["total"]:
            yield f"{name}: the sums are not the total: {ns}"
        if ns["unknown"] > 1000:
            yield f"{name}: {ns['unknown']} ns are unknown"
        for key in SUMS:
            if abs(ns[key] - sums[key]) > 2000:
                yield f"{name}: {key} is {ns[key]} in report, and {sums[key]} by its events"
        own = dict(sums)
        for inner, other, low, high in calls if name == "all_of_it" else ():
            if inner != name and other == thread and begin <= low and high <= end:
                own = {key: own.get(key, 0) - spent(events, thread, low, high, True)[0][key] for key in SUMS}
        for view, found in views.items():
            by_state = own if view == "report --diff" else sums
            for key in SUMS:
                if name not in found or abs((found[name][key] or 0) - by_state.get(key, 0)) > 10000:
                    yield f"{name}: {key} is {found.get(name)} in {view}, and {by_state.get(key, 0)} by its events"
        if not -margin <= ns["ran"] - said["cpu"] <= taken:
            yield f"{name}: ran {ns['ran']}, but took {said['cpu']} ns of a processor ({switches} switches)"
        waited = said["wall"] - said["cpu"] - ns["preempted"] - ns["off"]
        if not -margin <= waited <= taken:
            yield f"{name}: preempted and off are {ns['preempted']} + {ns['off']}, not {said['wall'] - said['cpu']}"
        # A switch may fall between the kernel's count and the call's end.
        for state, count in (("off", said["voluntary"]), ("preempted", said["involuntary"])):
            if abs(begun[state] - count) > 1:
                yield f"{name}: {begun[state]} times {state}, the kernel says {count}"
    ns = {name: {key: round(rows[name].get(key, 0) * 1e9) for key in SUMS} for name in CALLS}
    for name, least in (("sleeps", 20 * MS), ("blinks", 200 * 50000), ("waits", 20 * MS)):
        if ns[name]["off"] < least:
            yield f"{name} was off for {ns[name]['off']} ns only"
    for name in ("spins", "competes"):
        if told[name]["voluntary"] == 0 and ns[name]["off"]:
            yield f"{name} never blocked, and was off for {ns[name]['off']} ns"
    if told["competes"]["wall"] - told["competes"]["cpu"] > 20 * MS and ns["competes"]["preempted"] < 10 * MS:
        yield f"competes was preempted for {ns['competes']['preempted']} ns only"
    if ns["spins"]["ran"] < 49 * MS:
        yield f"spins ran for {ns['spins']['ran']} ns only"


# ---- negative controls ----

def without_ins(told, rows, events, views):
    """Every other switch-in is lost, and nobody says so."""
    number, kept = 0, []
    for event in events:
        is_in = event["kind"] == "thread_state" and event["state"] == "running"
        number += is_in
        if not is_in or number % 2:
            kept.append(event)
    return told, rows, kept, views


def preempted_as_off(told, rows, events, views):
    rows = {name: {**row, "off": row.get("off", 0) + row.get("preempted", 0), "preempted": 0} for name, row in rows.items()}
    events = [{**e, "state": "off"} if e.get("state") == "preempted" else e for e in events]
    return told, rows, events, views


def all_ran(told, rows, events, views):
    rows = {name: {**row, "ran": row["total"], "preempted": 0, "off": 0, "unknown": 0} for name, row in rows.items()}
    return told, rows, events, views


def late_states(told, rows, events, views):
    """As if switches had another clock, 5 ms late."""
    return told, rows, [{**e, "ns": e["ns"] + 5 * MS} if e["kind"] == "thread_state" else e for e in events], views


def other_thread(told, rows, events, views):
    """Each call has the states of another thread."""
    threads = sorted({said["thread"] for said in told.values()})
    after = dict(zip(threads, threads[1:] + threads[:1]))
    return told, rows, [{**e, "thread": after.get(e["thread"], e["thread"])} if e["kind"] == "thread_state" else e for e in events], views


def one_view(told, rows, events, views):
    """A view that takes what is unknown for time off."""
    first = next(iter(views))
    return told, rows, events, {**views, first: {name: {**row, "off": row["off"] + MS} for name, row in views[first].items()}}


MISTAKES = (one_view, without_ins, preempted_as_off, all_ran, late_states, other_thread)


def main():
    build, is_self_test = sys.argv[1], "--self-test" in sys.argv[2:]
    with tempfile.TemporaryDirectory() as folder:
        seen = record(build, folder)
    problems = list(problems_of(*seen))
    print("\n".join(problems) if problems else "every call is split as its thread spent its time")
    failed = bool(problems)
    for mistake in MISTAKES if is_self_test else ():
        found = list(problems_of(*mistake(*seen)))
        print(f"{mistake.__name__}: {found[0] if found else 'NOT NOTICED'}")
        failed |= not found
    sys.exit(failed)


if __name__ == "__main__":
    main()
