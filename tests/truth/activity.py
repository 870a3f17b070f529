#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""activity.py BUILD [--self-test] - are run times, messages and waits of processes what the events say?

Goal: `report`, `print --process` and `why-late` show the same run times, without the tracer's own time on the thread that ran the process,
no run behind a process' exit, time-outs apart from messages, and the tracer's share of a wait not above the wait.
Method: loads of the actor run-time, with rings so small that threads wait for the recorder; every number is computed again from the
events of print's JSON, by thread. --self-test is the negative control: own time left out, charged to the process that the delayed event
belongs to, runs that do not end at the exit, and time-outs counted as messages must each give another number.
"""
import argparse
import collections
import json
import os
import re
import shutil
import sys
import tempfile

import views
from views import Untrue

EVENTS = "send,receive,procs,running"
UNITS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
# Loads: accounts that crash, a room whose members wait with a time-out, a ring.
IS_LONG = bool(os.environ.get("TW_TEST_LONG"))
LOADS = ((["bank", "-m", "20000"], ["chat", "-m", "1000"], ["ring", "-m", "3000"]) if IS_LONG
         else (["bank", "-m", "6000"], ["chat", "-m", "300"], ["ring", "-m", "1500"]))


class Own:
    """The tracer's own time by thread: [(from, to)] in order, what overlaps counted once."""

    def __init__(self):
        self.stretches = collections.defaultdict(list)

    def add(self, thread, start, end):
        last = self.stretches[thread][-1][1] if self.stretches[thread] else 0
        if end > max(start, last):
            self.stretches[thread].append((max(start, last), end))

    def within(self, thread, start, end):
        return sum(max(0, min(end, b) - max(start, a)) for a, b in self.stretches[thread] if a < end and b > start)


def runs_of(events, change=None):
    """{pid: [ns of each run]} without own time, and {pid: (born, ended)}."""
    own, runs, since, life = Own(), collections.defaultdict(list), {}, {}
    for event in events:
        if event["kind"] == "own_time" and change != "own time left out":
            own.add(event["pid"] if change == "charged to the event's process" else event["thread"], event["ns"],
                    event["ns"] + event["own_ns"])
    for event in events:
        kind, pid, ns = event["kind"], event.get("pid"), event["ns"]
        key = pid if change == "charged to the event's process" else event["thread"]
        if kind == "spawned":
            life[pid] = [ns, None]
        elif kind == "exit" and pid in life:
            life[pid][1] = ns
        elif kind in ("in", "in_exiting"):
            since[pid] = ns, key
        elif kind in ("out", "out_exiting", "out_exited") and pid in since:
            start, key = since.pop(pid)
            runs[pid].append(ns - start - own.within(key, start, ns))
    last = events[-1]["ns"]
    open_runs = {}
    for pid, (start, key) in since.items():
        end = life[pid][1] if pid in life and life[pid][1] and change != "runs behind the exit" else last
        open_runs[pid] = end - start - own.within(key, start, end)
    return runs, open_runs, life


def messages_of(events, change=None):
    received, timeouts = 0, 0
    for event in events:
        if event["kind"] == "receive":
            is_timeout = event["terms"][0] == "timeout" if event.get("terms") else event.get("message") == "timeout"
            timeouts += is_timeout
            received += not is_timeout or change == "time-outs are messages"
    return sum(event["kind"] == "send" for event in events), received, timeouts


def same(what, have, want, slack):
    if abs(have - want) > slack:
        raise Untrue("%s: %s, not %s" % (what, have, want))


def check_report(report, events, change=None):
    runs, _, _ = runs_of(events, change)
    sent, received, timeouts = messages_of(events, change)
    told = report["messages"]
    if (told["sent"], told["received"], told["timeouts"]) != (sent, received, timeouts):
        raise Untrue("report: %d sent, %d received, %d time-outs, not %s" % (told["sent"], told["received"], told["timeouts"],
                                                                             (sent, received, timeouts)))
    for row in report["processes"]:
        mine = runs[row["pid"]]
        if row["runs"] != len(mine):
            raise Untrue("report: %s ran %d times, not %d" % (row["pid"], row["runs"], len(mine)))
        same("report: %s ran" % row["pid"], round(row["ran"] * 1e9), sum(mine), 1)
        same("report: longest run of %s" % row["pid"], round(row["longest_run"] * 1e9), max(mine, default=0), 1)
    busy = sum(row["busy"] for row in report["schedulers"])
    same("report: busy", round(busy * 1e9), sum(map(sum, runs.values())), len(report["schedulers"]) + 1)


def check_life(tw, capture, pid, events, sums):
    """The head of `print --process`: its run time, and no more time than the process lived."""
    head = views.output(tw, "print", "--process", pid, "--limit", "1", capture)
    figures = re.search(r"\n    ran ([\d.]+) (\w+), was ready ([\d.]+) (\w+), was blocked ([\d.]+) (\w+)\n", head)
    if not figures:
        raise Untrue("print --process %s has no sums: %s" % (pid, head[:200]))
    ran, ready, blocked = (float(figures[n]) * UNITS[figures[n + 1]] for n in (1, 3, 5))
    runs, open_runs, life = sums
    want = sum(runs[pid]) + open_runs.get(pid, 0)
    same("print --process %s: ran" % pid, ran, want, want * 0.006 + 1)
    born, ended = life.get(pid, (0, None))
    whole = (ended if ended is not None else events[-1]["ns"]) - born
    if ran + ready + blocked > whole * 1.02 + 100:
        raise Untrue("print --process %s: %d ns of doings in a life of %d ns" % (pid, ran + ready + blocked, whole))


def check_late(tw, capture):
    late = json.loads(views.output(tw, "why-late", "--json", capture))
    shares = [row["tracer"] for row in late["late"]]
    for row in late["late"]:
        if row["tracer"] > row["waited"] + 1e-9:
            raise Untrue("why-late: of a wait of %g s the tracer took %g s" % (row["waited"], row["tracer"]))
    page = views.output(tw, "why-late", "--html", capture)
    if any(shares) and [round(s * 1e9) for s in shares] != [int(n) for n in re.findall(r'"tracer":(\d+)', page)]:
        raise Untrue("why-late --html has other shares of the tracer than --json")


def record(tw, actors, folder, load):
    capture = os.path.join(folder, load[0] + ".tw")
    views.output(tw, "record", "-q", "--force", "--ring", "64K", "--on-full", "block", "-o", capture, "-p", EVENTS, "-t", "mailbox:_", "--",
                 actors, *load)
    events = views.print_json(views.output(tw, "print", "--format", "json", "--setups", capture))
    return capture, events


def check(tw, capture, events):
    check_report(json.loads(views.output(tw, "report", "--json", "--top", "0", capture)), events)
    by_events = collections.Counter(e["pid"] for e in events if e["kind"] in ("in", "out", "exit") and "pid" in e)
    pids = [pid for pid, _ in by_events.most_common()]
    some, sums = 6 if IS_LONG else 3, runs_of(events)
    for pid in pids[:some] + pids[-some:]:
        check_life(tw, capture, pid, events, sums)
    check_late(tw, capture)


def self_test(tw, captures):
    missed = 0
    for change in ("own time left out", "charged to the event's process", "runs behind the exit", "time-outs are messages"):
        noticed = False
        for capture, events in captures:
            try:
                check_report(json.loads(views.output(tw, "report", "--json", "--top", "0", capture)), events, change)
                sums = runs_of(events, change)
                for pid in sorted({e["pid"] for e in events if e["kind"] == "exit"})[:20] if "exit" in change else ():
                    check_life(tw, capture, pid, events, sums)
            except Untrue:
                noticed = True
        missed += not noticed
        print("%s: %s" % (change, "noticed" if noticed else "NOT noticed"))
    return missed == 0


def main():
    parser = argparse.ArgumentParser(description="Are run times, messages and waits of processes what the events say?")
    parser.add_argument("build", help="folder of the built programs")
    parser.add_argument("--self-test", action="store_true", help="the negative control")
    options = parser.parse_args()
    tw, actors = (os.path.realpath(os.path.join(options.build, "bin", name)) for name in ("tracewheel", "actors"))
    folder = tempfile.mkdtemp(prefix="tracewheel-truth.")
    try:
        captures = [record(tw, actors, folder, load) for load in LOADS]
        if options.self_test:
            passed = self_test(tw, captures)
            shutil.rmtree(folder, ignore_errors=True)
            return 0 if passed else 1
        for capture, events in captures:
            check(tw, capture, events)
    except Untrue as error:
        print("UNTRUE: %s\n  the captures are in %s" % (error, folder))
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    print("%d events: run times, messages and waits are those of the events" % sum(len(events) for _, events in captures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
