#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which program of its process made each call: print --format json against what the programs say.

execs.py BUILD [--self-test]
"""
import collections
import json
import os
import subprocess
import sys
import tempfile

WAYS = (("0", "3", "5", "2"), ("1", "4", "1", "7", "6"), ("0", "9"))


def play(build, folder, way):
    """Returns what the program says, and the events: calls of exec_step by (process, number of the program)."""
    capture, program = os.path.join(folder, "execs.tw"), os.path.join(build, "tests/truth_execs")
    tw = os.path.join(build, "bin/tracewheel")
    told = subprocess.run([tw, "record", "-q", "--force", "--follow-fork", "-t", "truth_execs:exec_step", "-o", capture, "--", program,
                           program, way[0], "1", *way[1:]], check=True, capture_output=True, text=True).stdout
    said = [tuple(int(word) for word in line.split()) for line in told.splitlines()]
    shown = subprocess.run([tw, "print", "--format", "json", capture], check=True, capture_output=True, text=True).stdout
    return said, [json.loads(line) for line in shown.splitlines()]


def differences(said, events):
    programs = collections.Counter(process for process, _, _ in said)
    true = {(process, number if programs[process] > 1 else None): calls for process, number, calls in said}
    seen = collections.Counter((event["process"], event.get("exec")) for event in events if event["kind"] == "call")
    return [] if true == dict(seen) else [f"said {true}, shown {dict(seen)}"]


def main():
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        for way in WAYS:
            said, events = play(sys.argv[1], folder, way)
            wrong += differences(said, events)
            if "--self-test" in sys.argv and len(way) > 2:
                events = [{name: value for name, value in event.items() if name != "exec"} for event in events]
                if not differences(said, events):
                    wrong.append(f"{way}: not noticed that no event says its program")
    print("\n".join(wrong) or "each call is shown in its program")
    return bool(wrong)


sys.exit(main())
