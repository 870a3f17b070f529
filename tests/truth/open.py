#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long calls lasted that are open at the end of their process or thread: all views against the program's own clock.

Each program says the least time, and one whose threads end early the most as well. Stored as a stream and in a merged
capture, the times are the same. A recording that ends before its program, of record and of attach: its calls are open up to the end of the
recording, which has a limit of time; the least is this limit, from the start of the command on, and the most the time of the command.

open.py BUILD [--self-test]
"""
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

# The program, its ways to end, the function that is open then, and the others that are recorded.
PROGRAMS = (("truth_open", ("exit", "killed", "exec"), "main", "*_step"),
            ("truth_open_silent", ("exit", "killed"), "main", "*_step"),
            ("truth_open_silent", ("exit", "killed"), "main", None),  # nothing returns
            ("truth_open_leaves", ("exit", "cancelled"), "leaves", "*_step"))
VIEWS = ("report", "flame", "timeline")
OUTLIVED_NS = 700000000
COPIES = ("a part without an end", "a stream", "a merged capture")


class Capture:
    def __init__(self, build, path, name):
        self.tw, self.path, self.name = os.path.join(build, "bin/tracewheel"), path, name

    def run(self, *words):
        return subprocess.run([self.tw, *words, self.path], check=True, capture_output=True, text=True).stdout

    def total(self, *words):
        rows = json.loads(self.run("report", "--json", *words))["by_function"]
        return sum(round(row["total"] * 1e9) for row in rows if row["name"] == self.name + "/_")

    def timeline(self):
        return sum(round(event["dur"] * 1000) - event["args"].get("own_ns", 0)
                   for event in json.loads(self.run("print", "--format", "chrome"))["traceEvents"]
                   if event["ph"] == "X" and event["name"].startswith(self.name))

    def flame(self):
        lines = [line.rsplit(" ", 1) for line in self.run("flame", "--folded").splitlines()]
        return sum(int(value) for path, value in lines if path.split(";")[0].startswith(self.name))

    def thread_alone(self):
        """From the call to the last event of its thread, and to the last event of the process."""
        events = [json.loads(line) for line in self.run("print", "--format", "json").splitlines()]
        calls = [event for event in events if event["kind"] == "call" and event["function"] == self.name.split(":")[1]]
        last = [event["ns"] for event in events
                if [event[key] for key in ("thread", "process")] == [calls[0][key] for key in ("thread", "process")]
                and event.get("exec") == calls[0].get("exec")]
        return last[-1] - calls[0]["ns"], events[-1]["ns"] - calls[0]["ns"]


def record(capture, way, words, *patterns):
    """Returns the numbers that the program prints."""
    selected = [word for pattern in patterns for word in ("-t", pattern)]
    program = os.path.join(os.path.dirname(os.path.dirname(capture.tw)), "tests", words[0])
    done = subprocess.run([capture.tw, "record", "-q", "--force", "--returns", *selected, "-o", capture.path, "--",
                           program, *words[1:]], check=way != "killed", capture_output=True, text=True)
    return [int(word) for word in done.stdout.split()]


def play(build, folder, program, way, function, others):
    """Returns the least and the most time of the function by the program's clock, and that of each view, in ns."""
    path, stream, merged = (os.path.join(folder, name) for name in ("open.tw", "open.tws", "merged.tw"))
    capture = Capture(build, path, f"{program}:{function}")

    told = record(capture, way, [program, way], *(f"{program}:{name}" for name in (function, others) if name))
    shown = {"report": capture.total(), "timeline": capture.timeline(), "flame": capture.flame(),
             "a part without an end": capture.total("--to", "1000"),
             "half": capture.total("--to", "0.2"), "the end": capture.total("--from", "0.2")}
    shown["thread alone"], shown["process"] = capture.thread_alone()
    with open(stream, "wb") as all_of_it:
        for segment in sorted(glob.glob(os.path.join(path, "*.tws"))):
            with open(segment, "rb") as part:
                shutil.copyfileobj(part, all_of_it)
    shown["a stream"] = Capture(build, stream, capture.name).total()
    capture.run("merge", "-q", "--force", "-o", merged, os.path.join(folder, "other.tw"))
    shown["a merged capture"] = Capture(build, merged, capture.name).total()
    return told[0], told[1] if len(told) > 1 else None, shown


def differences(least, most, shown):
    wrong = [f"{view}: {shown[view]} ns, the program says {least}" for view in VIEWS if shown[view] < least]
    wrong += [f"{view}: {shown[view]} ns, the program says no more than {most}" for view in VIEWS
              if most and shown[view] > most]
    wrong += [f"{view}: {shown[view]} ns, report {shown['report']}" for view in VIEWS + COPIES
              if view in shown and abs(shown[view] - shown["report"]) > 2000]
    if abs(shown["half"] + shown["the end"] - shown["report"]) > 2000:
        wrong.append(f"two parts have {shown['half']} and {shown['the end']} ns, the whole {shown['report']}")
    return wrong


def play_outlived(build, folder, way):
    """Likewise of a recording of at most OUTLIVED_NS, which the program outlives."""
    capture = Capture(build, os.path.join(folder, "outlived.tw"), "truth_open_silent:main")
    program, limits = os.path.join(build, "tests/truth_open_silent"), ["-q", "--force", "--returns", "--time", f"{OUTLIVED_NS}ns",
                                                                       "-o", capture.path]
    begun = time.time_ns()
    if way == "record":
        subprocess.run([capture.tw, "record", *limits, "-t", "truth_open_silent:{main,silent_step}", "--", program, "stays"],
                       check=True, capture_output=True)
    else:
        capture.name = "truth_open_silent:silent_rest"
        with subprocess.Popen([program, "rests"], stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            begun = time.time_ns()
            subprocess.run([capture.tw, "attach", *limits, "-t", "truth_open_silent:silent_*", str(process.pid)], check=True,
                           capture_output=True)
            process.kill()
    ended = time.time_ns()
    shown = {"report": capture.total(), "timeline": capture.timeline(), "flame": capture.flame()}
    start = int(json.loads(capture.run("info", "--json"))["start_wall_ns"])
    shown["thread alone"], _ = capture.thread_alone()
    # Less the moments between two calls, and what the tracer took for itself.
    return begun + OUTLIVED_NS - OUTLIVED_NS // 10 - start, ended - start, shown


def check_outlived(build, folder, way, is_self_test):
    least, most, shown = play_outlived(build, folder, way)
    good = {"half": shown["report"], "the end": 0}
    wrong = differences(least, most, shown | good)
    if is_self_test:
        wrong += [f"not noticed: {view} ends with the thread" for view in VIEWS
                  if not differences(least, most, shown | good | {view: shown["thread alone"]})]
    return [f"{way}, outlived: {line}" for line in wrong]


def main():
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        record(Capture(sys.argv[1], os.path.join(folder, "other.tw"), ""), "exit", ["truth_open"], "truth_open:open_step")
        for program, ways, function, others in PROGRAMS:
            for way in ways:
                least, most, shown = play(sys.argv[1], folder, program, way, function, others)
                wrong += [f"{program} {way}: {line}" for line in differences(least, most, shown)]
                untrue = shown["process" if most else "thread alone"]
                if "--self-test" in sys.argv:
                    wrong += [f"{program} {way}: not noticed: {view} ends elsewhere" for view in VIEWS
                              if not differences(least, most, shown | {view: untrue})]
        for way in ("record", "attach"):
            wrong += check_outlived(sys.argv[1], folder, way, "--self-test" in sys.argv)
    print("\n".join(wrong) or "open calls last as long as the programs say")
    return bool(wrong)


sys.exit(main())
