#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""runtime.py BUILD [--seconds N] [--self-test] [SEED...] - is what is shown of declared functions what the run-time did?

Goal: calls, tail calls, returns and exceptions of processes that move between threads are shown as the run-time itself noted
them, each process' in its order, in every way of asking; events that are not shown are reported as lost.
Method: runtime.c plays random ones and writes its account; print's JSON, its Erlang terms, info and report are compared with it.
--self-test is the negative control: what JSON says is changed in six ways, and each must be noticed.
"""
import argparse
import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import views
from views import Untrue

IS_LONG = bool(os.environ.get("TW_TEST_LONG"))
BLOCK = ["--on-full", "block"]
# The recorded events, and whether all of them are.
MODES = {
    "calls": (["call"], BLOCK),
    "returns": (["call", "return_from"], ["--returns", *BLOCK]),
    "exceptions": (["call", "return_from", "exception_from"], ["--exceptions", *BLOCK]),
    "return_to": (["call", "return_to"], ["--return-to", *BLOCK]),
    "all": (["call", "return_from", "exception_from", "return_to"], ["--exceptions", "--return-to", *BLOCK]),
    "lossy": (["call", "return_from", "exception_from", "return_to"], ["--exceptions", "--return-to", "--on-full", "drop", "--ring", "64K"]),
}


def account_of(path, kinds):
    """{pid: [(kind, function, number)]}"""
    account = collections.defaultdict(list)
    with open(path, encoding="ascii") as file:
        for line in file:
            pid, kind, function, number = line.split()
            if kind in kinds:
                account["<0.%s.0>" % pid].append((kind, function, int(number)))
    return account


def item_of(event):
    """The same of an event."""
    kind = event["kind"]
    if kind == "return_to":
        mfa = event["mfa"]
        return kind, mfa[1:-1].split(",")[1] if mfa.startswith("{") else mfa, 0
    number = 0
    if kind == "call":
        value = str(event["args"][0])
        number = int(value[3:-1] if value.startswith("{t,") else value)
    elif kind == "return_from":
        number = event["values"][0]
    return kind, event["function"], number


def is_subsequence(part, whole):
    rest = iter(whole)
    return all(any(item == other for other in rest) for item in part)


def compare(events, account, is_lossless):
    """Each process' events in their order.  Returns the numbers shown and lost."""
    seen = collections.defaultdict(list)
    lost = 0
    for event in events:
        if event["kind"] == "lost":
            lost += sum(event.get(cause, 0) for cause in ("full", "too_big", "nested", "no_ring", "overwritten"))
        elif event["kind"] != "own_time":
            seen[event["pid"]].append(item_of(event))
    made, shown = sum(map(len, account.values())), sum(map(len, seen.values()))
    if is_lossless and lost:
        raise Untrue("%d events are told as lost where nothing may be" % lost)
    for pid in sorted(set(account) | set(seen)):
        have, want = seen[pid], account[pid]
        if have != want if is_lossless else not is_subsequence(have, want):
            at = next((n for n, (a, b) in enumerate(zip(have, want)) if a != b), min(len(have), len(want)))
            raise Untrue("%s: event %d is %s, not %s (%d of %d)" % (pid, at, have[at:at + 1], want[at:at + 1], len(have), len(want)))
    if shown + lost != made:
        raise Untrue("%d events and %d lost are not the %d that were made" % (shown, lost, made))
    return shown, lost


def check(tw, capture, account, is_lossless):
    events = views.print_json(views.output(tw, "print", "--format", "json", capture))
    shown, lost = compare(events, account, is_lossless)
    info = json.loads(views.output(tw, "info", "--json", capture))
    if info["events"] != shown or sum(info["lost"].values()) != lost:
        raise Untrue("info: %d events and %s lost, print has %d and %d" % (info["events"], info["lost"], shown, lost))
    erlang = [kind for kind, _ in views.print_erlang(views.output(tw, "print", "--format", "erlang", capture))]
    wanted = [e["kind"] for e in events if e["kind"] in ("call", "return_from", "exception_from")]
    if erlang != wanted:
        raise Untrue("print --format erlang: %d calls and ends, JSON has %d" % (len(erlang), len(wanted)))
    report = json.loads(views.output(tw, "report", "--json", "--top", "0", capture))
    rows = {views.plain(row["name"]): row["calls"] for row in report["by_function"]}
    calls = collections.Counter("truth:" + e["function"] for e in events if e["kind"] == "call")
    if is_lossless and rows != dict(calls):
        raise Untrue("report: calls are %s, not %s" % (rows, dict(calls)))
    return shown, lost


def record(tw, program, folder, seed, options):
    # The lossy way needs more than a ring holds.
    steps = "1500" if IS_LONG or "--ring" in options else "500"
    capture, account = os.path.join(folder, "x.tw"), os.path.join(folder, "account")
    shutil.rmtree(capture, ignore_errors=True)
    done = subprocess.run([tw, "record", "-q", "--force", "-o", capture, "-t", "truth:_", *options, "--", program, str(seed), "9", "3",
                           steps, account], stderr=subprocess.PIPE, check=False)
    if done.returncode:
        raise Untrue("record ended with %d: %s" % (done.returncode, done.stderr.decode(errors="replace")))
    return capture, account


def one(tw, program, folder, seed):
    shown = lost = 0
    for name, (kinds, options) in MODES.items():
        capture, account = record(tw, program, folder, seed, options)
        try:
            more, gone = check(tw, capture, account_of(account, kinds), "--ring" not in options)
        except Untrue as error:
            raise Untrue("seed %d, %s: %s\n  %s record -t truth:_ %s" % (seed, name, error, tw, " ".join(options))) from None
        shown, lost = shown + more, lost + gone
    return shown, lost


def self_test(tw, program, folder):
    kinds, options = MODES["all"]
    capture, path = record(tw, program, folder, 1, options)
    events = views.print_json(views.output(tw, "print", "--format", "json", capture))
    compare(events, account_of(path, kinds), True)
    ends = [n for n, e in enumerate(events) if e["kind"] == "return_from"]
    at = ends[len(ends) // 2]
    later = next(n for n in range(at + 1, len(events)) if events[n]["pid"] == events[at]["pid"] and item_of(events[n]) != item_of(events[at]))
    other = next(e["pid"] for e in events if e["pid"] != events[at]["pid"])
    changes = {
        "one is missing": events[:at] + events[at + 1:],
        "one is there twice": events[:at] + events[at:at + 1] + events[at:],
        "two are swapped": events[:at] + events[later:later + 1] + events[at + 1:later] + events[at:at + 1] + events[later + 1:],
        "another value": events[:at] + [dict(events[at], values=[-1])] + events[at + 1:],
        "another function": events[:at] + [dict(events[at], function="f")] + events[at + 1:],
        "another process": events[:at] + [dict(events[at], pid=other)] + events[at + 1:],
    }
    missed = 0
    for name, changed in changes.items():
        try:
            compare(changed, account_of(path, kinds), True)
            missed += 1
            print("not noticed: %s" % name)
        except Untrue:
            pass
    print("%d of %d changes noticed" % (len(changes) - missed, len(changes)))
    return missed == 0


def main():
    parser = argparse.ArgumentParser(description="Is what is shown of declared functions what the run-time did?")
    parser.add_argument("build", help="folder of the built programs")
    parser.add_argument("seeds", type=int, nargs="*", help="by default as many as the time allows, from a random one")
    parser.add_argument("--seconds", type=float, default=4 if IS_LONG else 0)
    parser.add_argument("--self-test", action="store_true", help="the negative control")
    options = parser.parse_args()
    tw, program = (os.path.realpath(os.path.join(options.build, *path)) for path in (("bin", "tracewheel"), ("tests", "truth_runtime")))
    folder = tempfile.mkdtemp(prefix="tracewheel-truth.")
    end, seed = time.monotonic() + options.seconds, int.from_bytes(os.urandom(3), "big")
    played = shown = lost = 0
    try:
        if options.self_test:
            passed = self_test(tw, program, folder)
            shutil.rmtree(folder, ignore_errors=True)
            return 0 if passed else 1
        while options.seeds[played:] if options.seeds else time.monotonic() < end or not played:
            more, gone = one(tw, program, folder, options.seeds[played] if options.seeds else seed + played)
            played, shown, lost = played + 1, shown + more, lost + gone
    except Untrue as error:
        print("UNTRUE: %s\n  the capture and the account are in %s" % (error, folder))
        return 1
    print("%d programs, %d events, %d told as lost: as the run-time noted (first seed %d)" % (played, shown, lost, (options.seeds or [seed])[0]))
    shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
