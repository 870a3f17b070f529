#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which program of its process made each call: print --format json against what the programs say.

execs.py BUILD [--self-test]
"""
import collections
import json
import os
import re
import subprocess
import sys
import tempfile

WAYS = (("0", "3", "5", "2"), ("1", "4", "1", "7", "6"), ("0", "9"))


def play(build, folder, way):
    """Returns what the program says, and what the views show: events, rows of threads, lines at an exec."""
    capture, program = os.path.join(folder, "execs.tw"), os.path.join(build, "tests/truth_execs")
    tw = os.path.join(build, "bin/tracewheel")
    told = subprocess.run([tw, "record", "-q", "--force", "--follow-fork", "-t", "truth_execs:exec_step", "-o", capture,
                           "--", program, program, way[0], "1", *way[1:]],
                          check=True, capture_output=True, text=True).stdout
    said = [tuple(int(word) for word in line.split()) for line in told.splitlines()]
    views = [subprocess.run([tw, *view, capture], check=True, capture_output=True, text=True).stdout
             for view in (("print", "--format", "json"), ("report", "--json"), ("print",), ("print", "--tree"))]
    return said, {"events": [json.loads(line) for line in views[0].splitlines()],
                  "threads": json.loads(views[1])["by_thread"], "text": views[2], "tree": views[3]}


def differences(said, shown):
    programs = collections.Counter(process for process, _, _ in said)
    true = {(process, number if programs[process] > 1 else None): calls for process, number, calls in said}
    counts = collections.Counter((event["process"], event.get("exec")) for event in shown["events"]
                                 if event["kind"] == "call")
    threads = {(row["thread"], row.get("exec")): row["calls"] for row in shown["threads"]}
    lines = sorted((int(thread), int(number)) for thread, number in
                   re.findall(r"^ *[\d.]+ +(\d+) .*-- exec (\d+): the process now runs /", shown["text"], re.M))
    in_tree = collections.Counter()
    # Equal calls that follow each other are one line: exec_step()  x 5
    for thread, number, times in re.findall(r"^[^|]* (\d+) truth_execs(?: \(exec (\d+)\))? +\|.*?(?:  x (\d+))?$", shown["tree"], re.M):
        in_tree[int(thread), int(number) if number else None] += int(times or 1)
    wrong = [f"{name}: said {true}, shown {dict(seen)}"
             for name, seen in (("events", counts), ("by_thread", threads)) if seen != true]
    if lines != sorted((process, number) for process, number in true if (number or 1) > 1):
        wrong.append(f"said {true}, lines {lines}")
    if len(true) > 1 and in_tree != true:
        wrong.append(f"tree: said {true}, shown {dict(in_tree)}")
    return wrong


def without_execs(shown):
    """The same views, without the numbers of programs; one view at a time."""
    events = [{name: value for name, value in event.items() if name != "exec"} for event in shown["events"]]
    threads = [{name: value for name, value in row.items() if name != "exec"} for row in shown["threads"]]
    text = re.sub(r".*-- exec .*\n", "", shown["text"])
    tree = re.sub(r" \(exec \d+\)", "", shown["tree"])
    worse = {"events": events, "threads": threads, "text": text, "tree": tree}
    return [shown | {name: worse[name]} for name in worse]


def main():
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        for way in WAYS:
            said, shown = play(sys.argv[1], folder, way)
            wrong += differences(said, shown)
            if "--self-test" in sys.argv and len(way) > 2:
                wrong += [f"{way}: not noticed: {worse}" for worse in without_execs(shown)
                          if not differences(said, worse)]
    print("\n".join(wrong) or "each call is shown in its program")
    return bool(wrong)


sys.exit(main())
