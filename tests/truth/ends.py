#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does every call of a plain program have its end?  print --format json and report against the program's own counts.

ends.c is built by gcc and clang at -O1, -O2 and -Os, and by gcc with sleds, and says how often each function was called.

ends.py BUILD [--self-test]
"""
import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ends.c")
BUILDS = [(compiler, level) for compiler in ("gcc", "clang") for level in ("-O1", "-O2", "-Os")]
# Its attribute alone lets callers rely on what the function does not change; the option does not.
BUILDS += [("gcc", "-O2", "-DLOCAL=static __attribute__((noinline, patchable_function_entry(9)))")]
# Of the compiler and of libc, around main().
NOT_OURS = {"_start", "_init", "_fini", "frame_dummy", "register_tm_clones", "deregister_tm_clones", "__do_global_dtors_aux"}


def play(build, folder, words):
    """Returns what the program says, and what the views show: calls and ends by function, and rows of the report."""
    tw = os.path.join(build, "bin/tracewheel")
    program, capture = os.path.join(folder, "ends"), os.path.join(folder, "ends.tw")
    subprocess.run([words[0], "-std=gnu11", *words[1:], SOURCE, "-o", program, "-lpthread", "-lm"], check=True)
    alone = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    listed = json.loads(subprocess.run([tw, "functions", "--refused", "--json", "-t", "ends:_", program],
                                       check=True, capture_output=True, text=True).stdout)["functions"]
    refused = {row["function"] for row in listed if row["way"] == "entry" and row.get("refusal")}
    told = subprocess.run([tw, "record", "-q", "--force", "--returns", "-t", "ends:_", "-o", capture, "--", program],
                          check=True, capture_output=True, text=True).stdout
    said = {name: int(count) for name, count in (line.split() for line in told.splitlines() if line[0] != "=")
            if name not in refused}
    calls, ends = collections.Counter(), collections.Counter()
    for line in subprocess.run([tw, "print", "--format", "json", capture], check=True, capture_output=True,
                               text=True).stdout.splitlines():
        event = json.loads(line)
        counter = {"call": calls, "return_from": ends}.get(event["kind"])
        if counter is not None and event["function"] not in NOT_OURS:
            counter[event["function"].split(".")[0]] += 1
    report = json.loads(subprocess.run([tw, "report", "--json", "-n", "0", capture], check=True, capture_output=True,
                                       text=True).stdout)
    returned = collections.Counter()
    for row in report["by_function"]:
        returned[row["name"].split(":")[1].split("/")[0].split(".")[0]] += row["returned"]
    return said, {"output": told == alone, "calls": calls, "ends": ends, "report": returned}


def differences(said, shown):
    wrong = [] if shown["output"] else ["traced, the program says something else"]
    if len(said) < 30:
        wrong.append(f"only {len(said)} functions can be recorded")
    for view in ("calls", "ends", "report"):
        wrong += [f"{name}: called {count} times, {view}: {shown[view][name]}" for name, count in said.items()
                  if shown[view][name] != count]
    return wrong


def main():
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        for words in BUILDS[:1] if "--self-test" in sys.argv else BUILDS:
            if not shutil.which(words[0]):
                print(f"{words[0]} is not here: not tested")
                continue
            said, shown = play(sys.argv[1], folder, words)
            wrong += [f"{' '.join(words[:2])}: {line}" for line in differences(said, shown)]
            if "--self-test" in sys.argv:
                for view in ("calls", "ends", "report"):
                    less = {**shown, view: shown[view] - collections.Counter(["adds_to"])}
                    if not differences(said, less):
                        wrong.append(f"{' '.join(words[:2])}: not noticed: an end of adds_to is missing in {view}")
    print("\n".join(wrong) or "every call has its end")
    return bool(wrong)


sys.exit(main())
