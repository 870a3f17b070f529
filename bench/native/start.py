#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cost of recording a program at all, before its first call and after its last.

    ./run bench native start [ROUNDS]

Question  How much longer do true, ls, git, python3, sqlite3 and node take when they are recorded, with each function in its best way and with
          --global? How much does each short process of a tree cost with --follow-fork: forked, forked and executed, and 4,000 that are alive at the same
          time?
Method    In turns, so that all are measured under the same load; uftrace beside it if installed. A first turn, which fills the cache
          of plans, is not counted. Each capture has a name that no
          capture had before: ext4 takes long to make files where many were removed in the last minute. The events of the 4,000
          are counted: all of them must be there.
Unit      Milliseconds of the clock, and of processor time of the whole tree with the recorder: medians over the rounds, a process; the
          least and the most processor time behind them.
"""
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TW = os.path.join(ROOT, "build/release/bin/tracewheel")
captures = 0


def run(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    elapsed = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return elapsed, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def recorded(work, command, *options):
    global captures
    captures += 1
    return [TW, "record", "-q", "-o", f"{work}/{captures}.tw", *options, "--", *command]


def measure(name, processes, rounds, variants, check=None):
    taken = {variant: [] for variant in variants}
    for turn in range(rounds + 1):
        for variant, make in variants.items():
            spent = run(make())
            if turn:
                taken[variant].append(spent)
            if check and variant != "plain":
                check()
    plain = None
    for variant, pairs in taken.items():
        clock = statistics.median(p[0] for p in pairs) * 1e3 / processes
        least = min(p[0] for p in pairs) * 1e3 / processes
        cpus = [p[1] * 1e3 / processes for p in pairs]
        cpu = statistics.median(cpus)
        plain = plain or (clock, least, cpu)
        print(f"{name:28} {variant:10} {clock:8.2f} {least:8.2f} {cpu:8.2f}   x {clock / plain[0]:5.2f} "
              f"{clock - plain[0]:8.2f} {least - plain[1]:8.2f} {cpu - plain[2]:8.2f}   {min(cpus):.2f} to {max(cpus):.2f}", flush=True)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    work = tempfile.mkdtemp(prefix="tracewheel-start.")
    many = f"{work}/start_many"
    subprocess.run(["gcc", "-O2", "-fpatchable-function-entry=9", "-o", many,
                    os.path.join(ROOT, "bench/native/start_many.c")], check=True)
    true, ls = shutil.which("true"), shutil.which("ls")

    def whole(events):
        def check():
            info = json.loads(subprocess.check_output([TW, "info", "--json", f"{work}/{captures}.tw"]))
            if (info["events"], sum(info["lost"].values())) != (events, 0):
                sys.exit(f"{info['events']} events of {events}, lost: {info['lost']}")
        return check

    print(f"{'':28} {'':10} {'clock':>8} {'least':>8} {'CPU':>8}   {'':7} {'+clock':>8} {'+least':>8} {'+CPU':>8}   CPU, ms a process")
    programs = [([true], [], 8), ([ls], ["-t", "libc:malloc"], 3), ([ls], ["-t", "_:_"], 3)]
    # By their paths: another one in PATH may be a script.
    programs += [(words.split(), [], 3) for words in ("/usr/bin/git --version", "/usr/bin/python3 -c pass", "/usr/bin/sqlite3 -version")]
    programs += [(["/usr/bin/node", "-e", "1"], ["-t", "node:main"], 2), (["/usr/bin/node", "-e", "1"], [], 1)]
    for command, options, turns in programs:
        if not os.access(command[0], os.X_OK):
            print(f"{command[0]} is not installed")
            continue
        variants = {"plain": lambda c=command: c,
                    "recorded": lambda c=command, o=options: recorded(work, c, *o),
                    "--global": lambda c=command, o=options: recorded(work, c, "--global", *o)}
        if command == [true] and shutil.which("uftrace"):
            variants["uftrace"] = lambda: ["uftrace", "record", "--no-pager", "--force", "-d", f"{work}/uftrace", true]
        measure(" ".join([os.path.basename(command[0]), *command[1:], *options]), 1, rounds * turns, variants)
    follow = ["--follow-fork", "--on-full", "block", "-t", "start_many:tick"]
    for name, count, arguments, events in [("forked", 300, ["turn", "300"], 300),
                                           ("forked and executed", 200, ["exec", "200", true], 200),
                                           ("4,000 alive at once", 4000, ["once", "4000"], 20000)]:
        command = [many, *arguments]
        measure(name, count, rounds, {"plain": lambda c=command: c,
                                      "recorded": lambda c=command: recorded(work, c, *follow)}, whole(events))
    shutil.rmtree(work)


main()
