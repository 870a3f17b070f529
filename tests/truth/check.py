# SPDX-License-Identifier: Apache-2.0
"""check.py - compares what every view says with the program's own account, and with each other.

`print --format json` is compared with the account: which calls, in which order within each thread, how nested, each recorded
interval around the one that the program noted.  The other views are compared with what follows from the JSON, exactly.
Own time (the tracer's) is taken off by the same rule as views do: it is in no function's self, total or extremes.
"""
import collections
import json
import os

import views
from program import ENTER, LEFT, RETURN
from views import Untrue

OBJECTS = {"prog": "prog", "slots": "libslots", "plug": "libplug", "left": "libleft"}
SLEDS = ("prog", "libplug", "libleft")
KINDS = {"call": ENTER, "return_from": RETURN, "exception_from": LEFT}
# These are not watched, so no call lies inside them.
UNWATCHED = ["libc:dlsym", "libc:_setjmp", "libc:longjmp", "libstdc++:__cxa_throw", "libgcc_s:_Unwind_Resume"]
LOSSES = ("full", "too_big", "nested", "no_ring", "overwritten")
# Clocks: the capture's is the processor's counter mapped by snapshots, the account's is the system's.
CLOCK_NS = 20000


class Mode:
    """The options of a run that decide what must be in the capture."""

    def __init__(self, name, options, returns=True, lossless=True, modules=tuple(OBJECTS), when=None, newest=False,
                 patterns=None, words=(), more=(), pauses=0):
        self.name, self.options, self.returns, self.lossless = name, options, returns, lossless
        self.modules, self.when, self.newest = modules, when, newest
        self.patterns = patterns or ["%s:%s%s_*" % (OBJECTS[m], "*" if m == "left" else "", m) for m in modules]
        self.patterns = [*self.patterns, *more]
        self.words = {word: value for word, value in words}
        self.pauses = pauses
        # In the short form a number, by which checks that are alike in all modes are done by turns.
        self.turn = None
        self.exceptions = "--exceptions" in options
        # Calls are left without a recorded end.
        self.unseen = returns and "TRUTH_LEAVE" in self.words and not self.exceptions

    def sees(self, function, argument, caller):
        if function.module not in self.modules:
            return False
        if "--global" in self.options and caller and caller.module == function.module:
            return False
        return self.when is None or self.when(function, argument)


class Item:
    """A call or its end, as the program noted it."""

    def __init__(self, kind, function, ns, argument, caller):
        self.kind, self.function, self.ns, self.argument = kind, function, ns, argument
        self.caller = title(caller) if caller else None
        self.key = (kind, title(function))


def title(function):
    return "%s:%s" % (OBJECTS[function.module], function.name)


def expected(mode, truth):
    """{thread: [Item]} that the mode must have recorded, and their number."""
    threads = {}
    for thread, items in truth.items():
        wanted, open_calls = [], []
        for kind, function, ns, argument in items:
            if kind == ENTER:
                caller = open_calls[-1][0] if open_calls else None
                seen = mode.sees(function, argument, caller)
                open_calls.append((function, seen, argument))
            else:
                ended, seen, argument = open_calls.pop()
                if ended is not function:
                    raise RuntimeError("the account of thread %d is not nested" % thread)
                caller = open_calls[-1][0] if open_calls else None
                seen = seen and mode.returns and (kind == RETURN or mode.exceptions)
            if seen:
                wanted.append(Item(kind, function, ns, argument, caller))
        if wanted:
            threads[thread] = wanted
    return threads, sum(len(items) for items in threads.values())


def by_turns(mode, checks):
    """All of them, or the one whose turn it is in this mode."""
    return checks if mode.turn is None else [checks[mode.turn % len(checks)]]


def is_subsequence(part, whole):
    rest = iter(whole)
    return all(any(item == other for other in rest) for item in part)


def is_own_name(name):
    return name.split(":")[0] in OBJECTS.values()


def calls_of(events):
    return [e for e in events if e["kind"] in KINDS and is_own(e)]


def name_of(event):
    return views.plain("%s:%s" % (event["module"], event["function"]))


def is_own(event):
    """True for the program's own functions, not for those of libraries that it calls."""
    return event["module"] in OBJECTS.values()


def by_thread(events):
    """{thread: [(kind, name, event)]} of calls and their ends."""
    threads = collections.defaultdict(list)
    for event in calls_of(events):
        threads[event["thread"]].append((KINDS[event["kind"]], name_of(event), event))
    return threads


def removed_of(info):
    """Events in segments that --keep removed."""
    removed = info["account"]["missing"]["removed"]
    if removed["more"]:
        raise Untrue("info: more than %d events were removed, and not how many" % removed["events"])
    return removed["events"]


def check_account(mode, events, truth, handled, info):
    """The events of print --format json against the program's own account."""
    wanted, total = expected(mode, truth)
    in_handlers, total_handled = expected(mode, handled)
    handlers = {item.key[1] for items in in_handlers.values() for item in items}
    seen, seen_handled = collections.defaultdict(list), collections.defaultdict(list)
    for thread, items in by_thread(events).items():
        for item in items:
            (seen_handled if item[1] in handlers else seen)[thread].append(item)
    causes = {cause: sum(e.get(cause, 0) for e in events if e["kind"] == "lost") for cause in LOSSES}
    lost, removed = sum(causes.values()), removed_of(info)
    count = sum(map(len, seen.values())) + sum(map(len, seen_handled.values()))
    # Calls of a handler that interrupts the recording of another call are lost in any case, and counted. The same
    # holds, without a stream, inside a thread's first call, which sets up its ring.
    in_hits = causes["nested"] + causes["no_ring"] if total_handled else 0
    if causes["no_ring"] > in_hits:
        raise Untrue("%d events found no ring" % causes["no_ring"])
    if mode.lossless and (lost > in_hits or removed):
        raise Untrue("%s are told as lost, and %d as removed, where nothing may be" % (causes, removed))
    if count + lost + removed != total + total_handled:
        raise Untrue("%d events, %d lost and %d removed are not the %d that were made" % (count, lost, removed, total + total_handled))
    for have, want, is_whole in ((seen, wanted, mode.lossless), (seen_handled, in_handlers, mode.lossless and not lost)):
        unknown = set(have) - set(want)
        if unknown:
            raise Untrue("events of threads that made none: %s" % sorted(unknown))
        for thread, items in want.items():
            check_thread(mode, thread, items, have.get(thread, []), info["start_wall_ns"], is_whole)
    check_order(events)
    return wanted, in_handlers, lost


def check_thread(mode, thread, items, have, start_ns, is_whole):
    names, have_names = [i.key for i in items], [i[:2] for i in have]
    if is_whole and names != have_names:
        at = next((n for n, (a, b) in enumerate(zip(names, have_names)) if a != b), min(len(names), len(have_names)))
        raise Untrue("thread %d: event %d is %s, %s was made" % (thread, at, have_names[at:at + 1], names[at:at + 1]))
    if mode.newest and have_names != names[len(names) - len(have_names):]:
        raise Untrue("thread %d: what was kept is not its newest" % thread)
    if not is_subsequence(have_names, names):
        raise Untrue("thread %d: its events are not in the order in which they were made" % thread)
    if not is_whole:
        return
    for item, (_, _, event) in zip(items, have):
        stamp = event["ns"] + start_ns
        if stamp > item.ns + CLOCK_NS if item.kind == ENTER else stamp < item.ns - CLOCK_NS:
            raise Untrue("thread %d: %s is stamped %d ns %s what the program saw" % (
                thread, item.key, abs(stamp - item.ns), "after" if item.kind == ENTER else "before"))
        if "--args" in mode.options:
            check_values(item, event)


def check_values(item, event):
    """Arguments and results by debug information, for the functions in C."""
    shape, a = item.function.shape, item.argument
    if item.kind == ENTER:
        more = {"int": [7], "double": [0.5], "text": ['a text with "quotes" and \\'], "pair": [{"first": 1, "second": 2}]}
        if shape in more and event["args"] != [a] + more[shape] or shape == "void" and event["args"] != [a]:
            raise Untrue("the arguments of %s are %s; its first was %d" % (item.key[1], event["args"], a))
    else:
        results = {"int": a + 7, "double": 1.0, "pair": {"first": 1, "second": 2}, "void": None, "bare": None}
        if shape in results and event.get("value") != results[shape]:
            raise Untrue("the result of %s is %s, not %s" % (item.key[1], event.get("value"), results[shape]))


def check_callers(tw, capture, mode, events, wanted):
    """--stack gives the callers of a call, --return-to where it returns to."""
    if "--stack" in mode.options:
        check_report_stacks(tw, capture, wanted)
        stacks = collections.defaultdict(list)
        for event in events:
            if event["kind"] == "stack":
                stacks[event["thread"]].append((name_of(event), name_of(event["stack"][0])))
        for thread, items in wanted.items():
            have = [pair for pair, item in zip(stacks[thread], items) if item.caller]
            compare_lists("the stacks of thread %d" % thread, have, [(i.key[1], i.caller) for i in items if i.caller])
            if len(stacks[thread]) != len(items):
                raise Untrue("thread %d: %d stacks, %d calls" % (thread, len(stacks[thread]), len(items)))
    if "--return-to" in mode.options:
        have, want = collections.defaultdict(list), collections.defaultdict(list)
        for event in events:
            if event["kind"] == "return_to":
                have[event["thread"]].append(name_of(event))
        for thread, items in wanted.items():
            for n, item in enumerate(items):
                # If several calls are left at once, only the last one returns.
                ends = item.kind == RETURN or item.kind == LEFT and items[n + 1].kind != LEFT
                if ends and item.key[1].split(":")[0] in SLEDS:
                    want[thread].append(item.caller)
            # The root functions are called by main() and by other functions that are not traced.
            shown = [a if b else None for a, b in zip(have[thread], want[thread])]
            compare_lists("return_to of thread %d" % thread, shown, want[thread])


def check_order(events):
    last = None
    for event in events:
        if last is not None and event["ns"] < last:
            raise Untrue("print is not in order of time: %d after %d" % (event["ns"], last))
        last = event["ns"]


class Call:
    """One call: its times, the tracer's share of them, and the calls within."""

    def __init__(self, name, thread, path, start):
        self.name, self.thread, self.path, self.start = name, thread, path, start
        self.end, self.own, self.within, self.is_left = None, 0, 0, False

    def total(self):
        return self.end - self.start - self.own


def nest(events):
    """All calls with their ends, from the JSON alone, for a lossless capture."""
    done, threads, own = [], collections.defaultdict(list), collections.defaultdict(list)
    for event in events:
        if event["kind"] == "own_time":
            own[event["thread"]].append((event["ns"], event["ns"] + event["own_ns"]))
    for event in events:
        calls = threads[event["thread"]] if "thread" in event else []
        if event["kind"] == "call" and is_own(event):
            path = (calls[-1].path if calls else ()) + (name_of(event),)
            calls.append(Call(name_of(event), event["thread"], path, event["ns"]))
        elif event["kind"] in ("return_from", "exception_from") and is_own(event):
            call = calls.pop()
            call.is_left = event["kind"] == "exception_from"
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
    texts = [t for t in views.print_text(views.output(tw, "print", capture)) if is_own_name(t[3])]
    wanted = [("%d.%09d" % divmod(e["ns"], 10 ** 9), e["thread"], e["kind"], name_of(e)) for e in calls_of(events)]
    compare_lists("print", texts, wanted)


def check_erlang(tw, capture, events):
    erlang = views.print_erlang(views.output(tw, "print", "--format", "erlang", capture))
    erlang = [e for e in erlang if is_own_name(e[1])]
    compare_lists("print --format erlang", erlang, [(e["kind"], name_of(e)) for e in calls_of(events)])


def compare_lists(view, have, wanted):
    if have != wanted:
        at = next((n for n, (a, b) in enumerate(zip(have, wanted)) if a != b), min(len(have), len(wanted)))
        raise Untrue("%s: %d events, JSON has %d; the first that differs is %d: %s, not %s" % (
            view, len(have), len(wanted), at, have[at:at + 1], wanted[at:at + 1]))


def check_tree(tw, capture, events):
    threads = views.print_tree(views.output(tw, "print", "--tree", capture))
    # A call that holds nothing is a line that enters and leaves.
    have = sorted(tuple(i for i in items if is_own_name(i[1])) for items in threads.values())
    have = [items for items in have if items]
    want = sorted(tuple(("enter" if kind == ENTER else "leave", name) for kind, name, _ in items) for items in by_thread(events).values())
    if have != want:
        raise Untrue("print --tree: other calls or another nesting than the program's (%s lines in %d threads, %s wanted in %d)" % (
            [len(i) for i in have], len(have), [len(i) for i in want], len(want)))


def check_chrome(tw, capture, calls):
    slices, tracks = views.print_chrome(views.output(tw, "print", "--format", "chrome", capture))
    have = sorted((ts, dur, name) for _, ts, dur, name in slices)
    want = sorted((c.start, c.end - c.start, c.name) for c in calls)
    compare_lists("print --format chrome", have, want)
    views.check_nesting(tracks)
    # Calls that are open at the beginning of a part begin with it, all at one time.
    if have:
        middle = have[len(have) // 2][0]
        part = views.output(tw, "print", "--format", "chrome", "--from", "%.9f" % (middle / 1e9), capture)
        views.check_nesting(views.print_chrome(part)[1])


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


def has_others(report):
    return any(views.plain(row["name"]) in UNWATCHED for row in report["by_function"])


def check_report(tw, capture, calls):
    report = json.loads(views.output(tw, "report", "--json", "--top", "0", capture))
    rows = {views.plain(row["name"]): row for row in report["by_function"] if views.plain(row["name"]) not in UNWATCHED}
    by_name = collections.defaultdict(list)
    for call in calls:
        by_name[call.name].append(call)
    if set(rows) != set(by_name):
        raise Untrue("report: other functions than were called: %s" % sorted(set(rows) ^ set(by_name)))
    if not has_others(report) and report["calls"] != len(calls):
        raise Untrue("report: %d calls, %d were made" % (report["calls"], len(calls)))
    for name, mine in by_name.items():
        row = rows[name]
        totals = [c.total() for c in mine]
        want = {
            "calls": len(mine), "returned": len(mine), "exceptions": sum(c.is_left for c in mine), "cut": 0, "open": 0,
            "total": sum(c.total() for c in mine if name not in c.path[:-1]) / 1e9,
            "self": sum(c.total() - c.within for c in mine) / 1e9, "min": min(totals) / 1e9, "max": max(totals) / 1e9,
        }
        for member, value in want.items():
            if abs(row[member] - value) > 1e-9 + 1e-6 * abs(value):
                raise Untrue("report: %s of %s is %s, not %s" % (member, name, row[member], value))
        callers = collections.Counter(c.path[-2] if len(c.path) > 1 else "" for c in mine)
        if {views.plain(c["name"]): c["calls"] for c in row["callers"]} != dict(callers):
            raise Untrue("report: the callers of %s are %s, not %s" % (name, row["callers"], dict(callers)))


def check_sums(tw, capture, mode, events, wanted, lost, info):
    """info, and the account of losses in every summary."""
    report = json.loads(views.output(tw, "report", "--json", "--top", "0", capture))
    count = sum(e["kind"] not in ("lost", "own_time") for e in events)
    told = sum(info["lost"].values())
    if info["events"] != count or told != lost:
        raise Untrue("info: %d events and %d lost, print has %d and %d" % (info["events"], told, count, lost))
    if report["events"] != count or sum(report["lost"].values()) != lost:
        raise Untrue("report: %d events and %s lost, print has %d and %d" % (report["events"], report["lost"], count, lost))
    threads = {e["thread"] for e in calls_of(events)}
    if mode.lossless and (info["threads"] != len(threads) or not info["complete"]):
        raise Untrue("info: %d threads of %d, complete: %s" % (info["threads"], len(threads), info["complete"]))
    made = collections.Counter(item.key[1] for items in wanted for item in items if item.kind == ENTER)
    for row in report["by_function"]:
        if is_own_name(row["name"]) and row["calls"] > made[views.plain(row["name"])]:
            raise Untrue("report: %d calls of %s, %d were made" % (row["calls"], row["name"], made[views.plain(row["name"])]))


def check_report_stacks(tw, capture, wanted):
    """The calls between functions, by the stacks alone."""
    report = json.loads(views.output(tw, "report", "--json", "--top", "0", capture))
    want = collections.Counter((i.key[1], i.caller) for items in wanted.values() for i in items if i.caller)
    have = collections.Counter()
    for row in report["by_function"]:
        for caller in row["callers"]:
            have[views.plain(row["name"]), views.plain(caller["name"])] += caller["calls"]
    differ = {pair: (have[pair], calls) for pair, calls in want.items() if have[pair] != calls}
    if differ:
        raise Untrue("report of stacks: callers and calls, there and made: %s" % differ)


def check_parts(tw, capture, mode, events):
    """A requested part contains the right events: by time, thread and pattern, in print and in report."""
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
    for options, is_wanted in by_turns(mode, parts):
        wanted = [(e["ns"], e["thread"], e["kind"], name_of(e)) for e in calls if is_wanted(e)]
        # An empty part is reported as empty, with exit code 1.
        codes = (0,) if wanted else (0, 1)
        have = views.print_json(views.output(tw, "print", "--format", "json", *options, capture, codes=codes))
        compare_lists("print " + " ".join(options), [(e["ns"], e["thread"], e["kind"], name_of(e)) for e in calls_of(have)], wanted)
        if not wanted:
            continue
        report = json.loads(views.output(tw, "report", "--json", "--top", "0", *options, capture))
        made = sum(e["kind"] == "call" for e in have)
        if report["calls"] != made:
            raise Untrue("report %s: %d calls, print has %d" % (" ".join(options), report["calls"], made))
        lost = sum(sum(e.get(c, 0) for c in LOSSES) for e in have if e["kind"] == "lost")
        if "-t" not in options and sum(report["lost"].values()) != lost:
            raise Untrue("report %s: %s lost, print of the same has %d" % (" ".join(options), report["lost"], lost))


def check_descent(tw, capture, truth, handled):
    """After losses calls lie in others at least one of whose calls had one of theirs within it."""
    within = collections.defaultdict(set)
    for items in truth.values():
        room = []
        for kind, function, _, _ in items:
            if kind == ENTER:
                for above in room:
                    within[above].add(title(function))
                room.append(title(function))
            else:
                room.pop()
    anywhere = {title(function) for items in handled.values() for _, function, _, _ in items}
    for path in views.folded(views.output(tw, "flame", "--folded", "--least", "0", capture)):
        for above, below in zip(path, path[1:]):
            if below not in within[above] and below not in anywhere:
                raise Untrue("flame --folded: %s in %s, where it never was: %s" % (below, above, ";".join(path)))


def check_segments(tw, capture, events):
    """Each segment is a capture, and together they are all."""
    count = 0
    for name in sorted(os.listdir(capture)):
        if name.endswith(".tws"):
            text = views.output(tw, "print", "--format", "json", os.path.join(capture, name), codes=(0, 1))
            count += len(calls_of(views.print_json(text)))
    if count != len(calls_of(events)):
        raise Untrue("the segments one by one have %d calls and ends, all together %d" % (count, len(calls_of(events))))


def check_times(tw, capture, truth):
    """No unmarked sum exceeds the program's own measurement by more than a hit's cost per call."""
    report = json.loads(views.output(tw, "report", "--json", "--top", "0", capture))
    true_total, true_calls, rooms = collections.Counter(), collections.Counter(), collections.defaultdict(list)
    for thread, items in truth:
        for kind, function, ns, _ in items:
            name = title(function)
            if kind == ENTER:
                rooms[thread].append((name, ns))
                true_calls[name] += 1
            else:
                name, start = rooms[thread].pop()
                if name not in [n for n, _ in rooms[thread]]:
                    true_total[name] += ns - start
    waiting = max(1, os.getloadavg()[0] / os.cpu_count())
    for row in report["by_function"]:
        name = views.plain(row["name"])
        # Each call within may have cost a hit's time, and a thread may have been descheduled between two stamps: longer, where others wait too.
        allowed = true_total[name] * 1.5 + 20e6 * waiting + 2000 * sum(true_calls.values())
        if row["total"] * 1e9 > allowed and not row.get("lossy") and not row.get("cut"):
            raise Untrue("report: total of %s is %.6f s without a mark; the program measured %.6f s" % (
                name, row["total"], true_total[name] / 1e9))


def check_unseen(tw, capture, truth):
    """Calls whose end was not recorded are reported for each function, and no others."""
    report = json.loads(views.output(tw, "report", "--json", "--top", "0", capture))
    left = collections.Counter(title(function) for items in truth.values() for kind, function, _, _ in items if kind == LEFT)
    cut = collections.Counter({views.plain(row["name"]): row["cut"] + row["open"] for row in report["by_function"]})
    if +cut != left:
        raise Untrue("report: calls without an end are %s, and %s were left" % (dict(+cut), dict(left)))


def check_capture(tw, capture, mode, truth, handled):
    """All views of one capture.  Raises Untrue."""
    info = json.loads(views.output(tw, "info", "--json", capture))
    events = views.print_json(views.output(tw, "print", "--format", "json", "--setups", capture))
    wanted, in_handlers, lost = check_account(mode, events, truth, handled, info)
    for check_print in by_turns(mode, [check_text, check_erlang]):
        check_print(tw, capture, events)
    check_sums(tw, capture, mode, events, [*wanted.values(), *in_handlers.values()], lost, info)
    check_parts(tw, capture, mode, events)
    check_callers(tw, capture, mode, events, wanted)
    if "--segment-time" in mode.options or "--rotate" in mode.options:
        check_segments(tw, capture, events)
    if mode.unseen:
        check_unseen(tw, capture, truth)
    elif mode.returns and mode.lossless and not lost:
        calls = nest(events)
        for check_drawn, given in by_turns(mode, [(check_tree, events), (check_chrome, calls), (check_folded, calls)]):
            check_drawn(tw, capture, given)
        check_report(tw, capture, calls)
        check_times(tw, capture, [*truth.items(), *handled.items()])
    elif mode.returns:
        check_descent(tw, capture, truth, handled)
        check_times(tw, capture, [*truth.items(), *handled.items()])
    return sum(len(items) for items in wanted.values()), lost
