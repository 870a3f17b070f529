# SPDX-License-Identifier: Apache-2.0
"""check.py - compares what every view says with the program's own account, and with each other.

`print --format json` is compared with the account: which calls, in which order within each thread, how nested, each recorded
interval around the one that the program noted.  The other views are compared with what follows from the JSON, exactly.
Own time (the tracer's) is taken off by the same rule as views do: it lies in nobody's self, total or extremes.
"""
import collections
import json

import views
from views import Untrue

OBJECTS = {"prog": "prog", "slots": "libslots", "plug": "libplug"}
# Clocks: the capture's is the processor's counter mapped by snapshots, the account's is the system's.
CLOCK_NS = 20000


class Mode:
    """How a run was recorded, as far as it decides what must be in the capture."""

    def __init__(self, name, options, returns=True, lossless=True, modules=("prog", "slots", "plug"), when=None, newest=False,
                 patterns=None):
        self.name, self.options, self.returns, self.lossless = name, options, returns, lossless
        self.modules, self.when, self.newest = modules, when, newest
        self.patterns = patterns or ["prog:prog_*", "libslots:slots_*", "libplug:plug_*"]

    def sees(self, function, argument, caller):
        if function.module not in self.modules:
            return False
        if "--global" in self.options and caller and caller.module == function.module:
            return False
        return self.when is None or self.when(function, argument)


def expected(mode, truth):
    """{thread: [(is_enter, name, ns)]} of what the mode must have recorded, and how many events that is."""
    threads = {}
    for thread, items in truth.items():
        wanted, open_calls = [], []
        for is_enter, function, ns, argument in items:
            if is_enter:
                seen = mode.sees(function, argument, open_calls[-1][0] if open_calls else None)
                open_calls.append((function, seen))
            else:
                seen = open_calls.pop()[1] and mode.returns
            if seen:
                wanted.append((is_enter, "%s:%s" % (OBJECTS[function.module], function.name), ns))
        if wanted:
            threads[thread] = wanted
    return threads, sum(len(items) for items in threads.values())


def is_subsequence(part, whole):
    rest = iter(whole)
    return all(any(item == other for other in rest) for item in part)


def calls_of(events):
    return [e for e in events if e["kind"] in ("call", "return_from", "exception_from")]


def name_of(event):
    return "%s:%s" % (event["module"], event["function"])


def check_account(mode, events, truth, start_ns):
    """The events of print --format json against the program's own account."""
    wanted, total = expected(mode, truth)
    seen = collections.defaultdict(list)
    for event in calls_of(events):
        if event["kind"] == "exception_from":
            raise Untrue("an exception where none was thrown: %s" % event)
        seen[event["thread"]].append((event["kind"] == "call", name_of(event), event["ns"] + start_ns))
    lost = sum(sum(e.get(c, 0) for c in ("full", "too_big", "nested", "no_ring")) for e in events if e["kind"] == "lost")
    count = sum(len(items) for items in seen.values())
    if mode.lossless and lost:
        raise Untrue("%d events are told as lost where nothing may be lost" % lost)
    if count + lost != total:
        raise Untrue("%d events and %d lost are not the %d that were made" % (count, lost, total))
    unknown = set(seen) - set(wanted)
    if unknown:
        raise Untrue("events of threads that made none: %s" % sorted(unknown))
    for thread, items in wanted.items():
        have = seen.get(thread, [])
        names, have_names = [i[:2] for i in items], [i[:2] for i in have]
        if mode.lossless and names != have_names:
            at = next((n for n, (a, b) in enumerate(zip(names, have_names)) if a != b), min(len(names), len(have_names)))
            raise Untrue("thread %d: event %d is %s, %s was made" % (thread, at, have_names[at:at + 1], names[at:at + 1]))
        if mode.newest and have_names != names[len(names) - len(have_names):]:
            raise Untrue("thread %d: what was kept is not its newest" % thread)
        if not is_subsequence(have_names, names):
            raise Untrue("thread %d: its events are not in the order in which they were made" % thread)
        if mode.lossless:
            for (is_enter, name, noted), (_, _, stamp) in zip(items, have):
                if stamp > noted + CLOCK_NS if is_enter else stamp < noted - CLOCK_NS:
                    raise Untrue("thread %d: %s of %s is stamped %d ns %s what the program saw" % (
                        thread, "call" if is_enter else "return", name, abs(stamp - noted), "after" if is_enter else "before"))
    check_order(events)
    return wanted, lost


def check_order(events):
    last = None
    for event in events:
        if last is not None and event["ns"] < last:
            raise Untrue("print is not in order of time: %d after %d" % (event["ns"], last))
        last = event["ns"]


class Call:
    """One call: its times, what of it was the tracer's own, and the calls within."""

    def __init__(self, name, thread, path, start):
        self.name, self.thread, self.path, self.start = name, thread, path, start
        self.end, self.own, self.within = None, 0, 0

    def total(self):
        return self.end - self.start - self.own


def nest(events):
    """All calls with their ends, from the JSON alone; of a lossless capture."""
    done, threads, own = [], collections.defaultdict(list), collections.defaultdict(list)
    for event in events:
        if event["kind"] == "own_time":
            own[event["thread"]].append((event["ns"], event["ns"] + event["own_ns"]))
    for event in events:
        calls = threads[event["thread"]] if "thread" in event else []
        if event["kind"] == "call":
            path = (calls[-1].path if calls else ()) + (name_of(event),)
            calls.append(Call(name_of(event), event["thread"], path, event["ns"]))
        elif event["kind"] == "return_from":
            call = calls.pop()
            if call.name != name_of(event):
                raise Untrue("%s returns inside of %s" % (name_of(event), call.name))
            call.end = event["ns"]
            call.own = sum(max(0, min(call.end, end) - max(call.start, start)) for start, end in own[event["thread"]])
            if calls:
                calls[-1].within += call.total()
            done.append(call)
    if any(threads.values()):
        raise Untrue("calls that never returned: %s" % [c.name for calls in threads.values() for c in calls])
    return done


def check_text(tw, capture, events):
    texts = views.print_text(views.output(tw, "print", capture))
    wanted = [("%d.%09d" % divmod(e["ns"], 10 ** 9), e["thread"], e["kind"], name_of(e)) for e in calls_of(events)]
    compare_lists("print", texts, wanted)


def check_erlang(tw, capture, events):
    erlang = views.print_erlang(views.output(tw, "print", "--format", "erlang", capture))
    compare_lists("print --format erlang", erlang, [(e["kind"], name_of(e)) for e in calls_of(events)])


def compare_lists(view, have, wanted):
    if have != wanted:
        at = next((n for n, (a, b) in enumerate(zip(have, wanted)) if a != b), min(len(have), len(wanted)))
        raise Untrue("%s: %d events, JSON has %d; the first that differs is %d: %s, not %s" % (
            view, len(have), len(wanted), at, have[at:at + 1], wanted[at:at + 1]))


def check_tree(tw, capture, wanted):
    threads = views.print_tree(views.output(tw, "print", "--tree", capture))
    have = sorted(tuple(items) for items in threads.values() if items)
    want = sorted(tuple(("enter" if is_enter else "leave", name) for is_enter, name, _ in items) for items in wanted.values())
    if have != want:
        raise Untrue("print --tree: other calls or another nesting than the program's (%s lines in %d threads, %s wanted in %d)" % (
            [len(i) for i in have], len(have), [len(i) for i in want], len(want)))


def check_chrome(tw, capture, calls):
    slices = views.print_chrome(views.output(tw, "print", "--format", "chrome", capture))
    have = sorted((ts, dur, name) for _, ts, dur, name in slices)
    want = sorted((c.start, c.end - c.start, c.name) for c in calls)
    compare_lists("print --format chrome", have, want)
    by_tid = collections.defaultdict(list)
    for tid, ts, dur, name in slices:
        by_tid[tid].append((ts, -dur, name))
    for tid, items in by_tid.items():
        ends = []
        for ts, negative, name in sorted(items):
            while ends and ends[-1] <= ts:
                ends.pop()
            if ends and ts - negative > ends[-1]:
                raise Untrue("print --format chrome: %s of track %d ends after the slice around it" % (name, tid))
            ends.append(ts - negative)


def check_folded(tw, capture, calls):
    paths = views.folded(views.output(tw, "flame", "--folded", "--least", "0", capture))
    want = collections.Counter()
    for call in calls:
        want[call.path] += call.total() - call.within
    zero = {path for path, ns in want.items() if not ns}
    differ = [p for p in set(paths) | set(want) if paths.get(p, 0) != want.get(p, 0) and p not in zero]
    if differ:
        raise Untrue("flame --folded: %d paths differ, the first: %s is %s, not %s" % (
            len(differ), ";".join(differ[0]), paths.get(differ[0]), want.get(differ[0])))


def check_report(tw, capture, calls):
    report = json.loads(views.output(tw, "report", "--json", "--top", "0", capture))
    rows = {views.plain(row["name"]): row for row in report["by_function"]}
    by_name = collections.defaultdict(list)
    for call in calls:
        by_name[call.name].append(call)
    if set(rows) != set(by_name):
        raise Untrue("report: other functions than were called: %s" % sorted(set(rows) ^ set(by_name)))
    if report["calls"] != len(calls):
        raise Untrue("report: %d calls, %d were made" % (report["calls"], len(calls)))
    for name, mine in by_name.items():
        row = rows[name]
        totals = [c.total() for c in mine]
        want = {
            "calls": len(mine), "returned": len(mine), "exceptions": 0, "cut": 0, "open": 0,
            "total": sum(c.total() for c in mine if name not in c.path[:-1]) / 1e9,
            "self": sum(c.total() - c.within for c in mine) / 1e9, "min": min(totals) / 1e9, "max": max(totals) / 1e9,
        }
        for member, value in want.items():
            if abs(row[member] - value) > 1e-9 + 1e-6 * abs(value):
                raise Untrue("report: %s of %s is %s, not %s" % (member, name, row[member], value))
        callers = collections.Counter(c.path[-2] if len(c.path) > 1 else "" for c in mine)
        if {views.plain(c["name"]): c["calls"] for c in row["callers"]} != dict(callers):
            raise Untrue("report: the callers of %s are %s, not %s" % (name, row["callers"], dict(callers)))


def check_sums(tw, capture, mode, events, wanted, lost):
    """info, and the account of losses in every summary."""
    info = json.loads(views.output(tw, "info", "--json", capture))
    report = json.loads(views.output(tw, "report", "--json", "--top", "0", capture))
    count = sum(e["kind"] not in ("lost", "own_time") for e in events)
    told = sum(info["lost"].values())
    if info["events"] != count or told != lost:
        raise Untrue("info: %d events and %d lost, print has %d and %d" % (info["events"], told, count, lost))
    if report["events"] != count or sum(report["lost"].values()) != lost:
        raise Untrue("report: %d events and %s lost, print has %d and %d" % (report["events"], report["lost"], count, lost))
    if mode.lossless and (info["threads"] != len(wanted) or not info["complete"]):
        raise Untrue("info: %d threads of %d, complete: %s" % (info["threads"], len(wanted), info["complete"]))
    made = collections.Counter(name for items in wanted.values() for is_enter, name, _ in items if is_enter)
    for row in report["by_function"]:
        if row["calls"] > made[views.plain(row["name"])]:
            raise Untrue("report: %d calls of %s, %d were made" % (row["calls"], row["name"], made[views.plain(row["name"])]))


def check_parts(tw, capture, events):
    """A part that is asked for is that part: by time, thread and pattern, in print and in report."""
    calls = calls_of(events)
    if not calls:
        return
    first, last = calls[0]["ns"], calls[-1]["ns"]
    low, high = first + (last - first) // 3, first + (last - first) * 2 // 3
    thread, module = calls[len(calls) // 2]["thread"], calls[len(calls) // 2]["module"]
    parts = [
        (["--from", "%dns" % low, "--to", "%dns" % high], lambda e: low <= e["ns"] < high),
        (["--thread", str(thread)], lambda e: e["thread"] == thread),
        (["-t", module + ":_"], lambda e: e["module"] == module),
        (["--thread", str(thread), "-t", module + ":_", "--from", "%dns" % low],
         lambda e: e["thread"] == thread and e["module"] == module and e["ns"] >= low),
    ]
    for options, is_wanted in parts:
        wanted = [(e["ns"], e["thread"], e["kind"], name_of(e)) for e in calls if is_wanted(e)]
        # An empty part is said to be empty, with exit code 1.
        codes = (0,) if wanted else (0, 1)
        have = views.print_json(views.output(tw, "print", "--format", "json", *options, capture, codes=codes))
        compare_lists("print " + " ".join(options), [(e["ns"], e["thread"], e["kind"], name_of(e)) for e in calls_of(have)], wanted)
        if not wanted:
            continue
        report = json.loads(views.output(tw, "report", "--json", "--top", "0", *options, capture))
        if report["calls"] != sum(kind == "call" for _, _, kind, _ in wanted):
            raise Untrue("report %s: %d calls, print has %d" % (
                " ".join(options), report["calls"], sum(kind == "call" for _, _, kind, _ in wanted)))
        lost = sum(sum(e.get(c, 0) for c in ("full", "too_big", "nested", "no_ring")) for e in have if e["kind"] == "lost")
        if "-t" not in options and sum(report["lost"].values()) != lost:
            raise Untrue("report %s: %s lost, print of the same has %d" % (" ".join(options), report["lost"], lost))


def check_lossy_times(tw, capture, truth):
    """After losses: no unmarked sum is above what the program itself measured, by more than a hit's cost a call."""
    report = json.loads(views.output(tw, "report", "--json", "--top", "0", capture))
    true_total, true_calls, rooms = collections.Counter(), collections.Counter(), collections.defaultdict(list)
    for thread, items in truth.items():
        for is_enter, function, ns, _ in items:
            name = "%s:%s" % (OBJECTS[function.module], function.name)
            if is_enter:
                rooms[thread].append((name, ns))
                true_calls[name] += 1
            else:
                name, start = rooms[thread].pop()
                if name not in [n for n, _ in rooms[thread]]:
                    true_total[name] += ns - start
    for row in report["by_function"]:
        name = views.plain(row["name"])
        # Each call within may have cost what a hit costs, and a thread may have been held up between two stamps.
        allowed = true_total[name] * 1.5 + 20e6 + 2000 * sum(true_calls.values())
        if row["total"] * 1e9 > allowed and not row.get("lossy"):
            raise Untrue("report: total of %s is %.6f s without a mark; the program measured %.6f s" % (
                name, row["total"], true_total[name] / 1e9))

def check_capture(tw, capture, mode, truth):
    """All views of one capture.  Raises Untrue."""
    start_ns = json.loads(views.output(tw, "info", "--json", capture))["start_wall_ns"]
    events = views.print_json(views.output(tw, "print", "--format", "json", "--setups", capture))
    wanted, lost = check_account(mode, events, truth, start_ns)
    check_text(tw, capture, events)
    check_erlang(tw, capture, events)
    check_sums(tw, capture, mode, events, wanted, lost)
    check_parts(tw, capture, events)
    if mode.returns and mode.lossless:
        calls = nest(events)
        check_tree(tw, capture, wanted)
        check_chrome(tw, capture, calls)
        check_folded(tw, capture, calls)
        check_report(tw, capture, calls)
    elif mode.returns:
        check_lossy_times(tw, capture, truth)
    return sum(len(items) for items in wanted.values()), lost
