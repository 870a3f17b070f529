#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long calls lasted that are open at the end of their process: all views against the program's own clock.

open.py BUILD [--self-test]
"""
import json
import os
import subprocess
import sys
import tempfile

WAYS = ("exit", "killed", "exec")
MAIN = "truth_open:main/_"


def play(build, folder, way):
    """Returns the least time of main() by the program's clock, and by each view, in ns."""
    capture, program = os.path.join(folder, "open.tw"), os.path.join(build, "tests/truth_open")
    tw = os.path.join(build, "bin/tracewheel")
    told = subprocess.run([tw, "record", "-q", "--force", "--returns", "-t", "truth_open:main", "-t",
                           "truth_open:open_step", "-o", capture, "--", program, way],
                          check=way != "killed", capture_output=True, text=True)

    def run(*words):
        return subprocess.run([tw, *words, capture], check=True, capture_output=True, text=True).stdout

    def total(*words):
        rows = json.loads(run("report", "--json", *words))["by_function"]
        return sum(round(row["total"] * 1e9) for row in rows if row["name"] == MAIN)
    slices = [event for event in json.loads(run("print", "--format", "chrome"))["traceEvents"]
              if event["ph"] == "X" and event["name"].startswith("truth_open:main")]
    folded = [line.rsplit(" ", 1) for line in run("flame", "--folded").splitlines()]
    events = [json.loads(line) for line in run("print", "--format", "json").splitlines()]
    mine = [event["ns"] for event in events if event["process"] == event["thread"] and "exec" not in event]
    return int(told.stdout), {
        "report": total(),
        "a part without an end": total("--to", "1000"),
        "timeline": sum(round(event["dur"] * 1000) - event["args"].get("own_ns", 0) for event in slices),
        "flame": sum(int(value) for path, value in folded if path.split(";")[0].startswith("truth_open:main")),
        "half": total("--to", "0.2"),
        "thread alone": mine[-1] - mine[0] if mine else 0}


def differences(clock, shown):
    wrong = [f"{view}: {shown[view]} ns, the program says {clock}" for view in ("report", "flame", "timeline")
             if shown[view] < clock]
    wrong += [f"{view}: {shown[view]} ns, report {shown['report']}"
              for view in ("flame", "timeline", "a part without an end")
              if abs(shown[view] - shown["report"]) > 2000]
    if shown["half"] > shown["report"]:
        wrong.append(f"a part has {shown['half']} ns, the whole {shown['report']}")
    return wrong


def main():
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        for way in WAYS:
            clock, shown = play(sys.argv[1], folder, way)
            wrong += [f"{way}: {line}" for line in differences(clock, shown)]
            if "--self-test" in sys.argv:
                wrong += [f"{way}: not noticed: {view} ends with the thread" for view in ("report", "flame", "timeline")
                          if not differences(clock, shown | {view: shown["thread alone"]})]
    print("\n".join(wrong) or "open calls last as long as the program says")
    return bool(wrong)


sys.exit(main())
