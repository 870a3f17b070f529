#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a traced call costs, beside other tracers of Linux and of Erlang, by their public commands and calls.

    ./run bench peers [--rounds N] [--only REGEX] [--json] [--share PART]

Question  What does one recorded event cost the traced program: a call without arguments, with two integers, a call with its return, a call of
          the system; and SQLite, when each of its functions is traced?  How many events are there in the end, how many are lost, and how
          many bytes has one on the disk?  Tracewheel, LTTng-UST, uftrace, ltrace, strace, perf and bpftrace by uprobes; in an Erlang VM
          erlang:trace/3, dbg and ttb.
Method    The same program for all (calls.c; SQLite's source; calls.erl), compiled as each tracer needs it, and unmodified for those that need
          nothing.  Each round runs every row once, so that all are measured under the same load; the order changes from round to round.
          The program measures itself.  Events are read back by the tracer's own reader: those, and the losses that it counts itself, must
          be the calls made; the others are said.  Tracers that can wait for their reader do (tracewheel, LTTng-UST).  A tracer that is not
          here, or that the kernel refuses, is named with the reason.
Unit      program: ns of the program's processor time an event above the untraced run (Erlang: of the VM, with its tracing process).  others: ns of
          all other processes.  clock: how many times as long as untraced.  x ours: program beside tracewheel's in the same round.
          Medians over the rounds, with the least and the most.
"""
import argparse
import datetime
import json
import os
import platform
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile

import sqlite
import tracers
from tracers import Bed, Refused

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FLOORS = ("untraced", "clock read", "empty tracer module")
ERLANG = {"untraced": "untraced", "empty": "empty tracer module", "tracewheel": "tracewheel", "erlang:trace": "erlang:trace/3", "dbg": "dbg, a process",
          "dbg_file": "dbg, a file", "ttb": "ttb"}
ERLANG_CASES = {"call": "Erlang: call", "words": "Erlang: two words", "pair": "Erlang: call and return"}
TITLES = {tracers.CALL: "a call without arguments", tracers.WORDS: "a call with two integers", tracers.PAIR: "a call and its return",
          tracers.SYSTEM: "a call of the system (getppid)", sqlite.LONG: "SQLite, each call of each function, with its return",
          sqlite.SHORT: "SQLite, a short script, for a tracer that stops the program at each call",
          "Erlang: call": "Erlang: a call without arguments", "Erlang: two words": "Erlang: a call with two integers",
          "Erlang: call and return": "Erlang: a call and its return"}
VERSIONS = {"LTTng-UST": ["lttng", "--version"], "uftrace": ["uftrace", "--version"], "ltrace": ["ltrace", "--version"], "strace": ["strace", "--version"],
            "perf": ["perf", "--version"], "bpftrace": ["bpftrace", "--version"]}


class Rows:
    """All rows, their samples by round, and the tracers that cannot be measured."""

    def __init__(self):
        self.measures, self.samples, self.missing = [], {}, []

    def miss(self, peer, case, reason):
        if (peer, case) not in [(row["peer"], row["case"]) for row in self.missing]:
            self.missing.append({"peer": peer, "case": case, "reason": reason})

    def add(self, peer, make):
        """Rows of one tracer, whose cases make() yields."""
        try:
            for case, measure in make():
                self.measures.append((case, peer, measure))
        except Refused as refused:
            self.miss(peer, None, str(refused))

    def put(self, case, peer, sample):
        if sample["recorded"] == 0 and peer not in FLOORS:
            raise Refused(f"nothing was recorded, and {sample['lost']} events lost by its own count")
        self.samples.setdefault((case, peer), []).append(sample)

    def run(self, number):
        order = self.measures if number % 2 == 0 else list(reversed(self.measures))
        for case, peer, measure in order:
            if (peer, case) in [(row["peer"], row["case"]) for row in self.missing]:
                continue
            try:
                self.put(case, peer, measure())
            except (Refused, subprocess.TimeoutExpired) as refused:
                self.miss(peer, case, str(refused))
                self.samples.pop((case, peer), None)


def erlang_round(bed, rows):
    """One VM, in which all tracers run by turns."""
    environment = {"TRACEWHEEL": bed.tw, "ERL_FLAGS": "+sbwt none +sbwtdcpu none +sbwtdio none"}
    done = bed.run(["erl", "-noshell", "+S", "2:2", "-pa", bed.erlang, "-pa", ".", "-run", "calls", "main", str(bed.calls(100_000)), "."],
                   environment, cwd=bed.path("erlang"))
    for line in done.stdout.splitlines():
        if not line.startswith("{"):
            continue
        row = json.loads(line)
        peer, case = ERLANG[row.pop("peer")], ERLANG_CASES[row.pop("case")]
        try:
            if "refused" in row:
                raise Refused(row["refused"])
            rows.put(case, peer, {**row, "others_ns": 0})
        except Refused as refused:
            rows.miss(peer, case, str(refused))
            rows.samples.pop((case, peer), None)


def erlang_prepare(bed, build):
    tracers.need("erl")
    bed.erlang = os.path.join(build, "erlang/ebin")
    if not os.path.exists(os.path.join(build, "erlang/priv/tracewheel_nif.so")):
        raise Refused("the Erlang application is not built: apt-get install erlang-dev")
    os.mkdir(bed.path("erlang"))
    here, work = tracers.HERE, bed.path("erlang")
    root = bed.run(["erl", "-noshell", "-eval", 'io:format("~ts/usr/include", [code:root_dir()]), halt().']).stdout
    other = os.path.join(ROOT, "bench/erlang")
    bed.run(["cc", "-O2", "-shared", "-fPIC", "-I", root, "-o", os.path.join(work, "empty_tracer.so"), os.path.join(other, "empty_tracer.c")])
    bed.run(["erlc", "-o", work, os.path.join(here, "calls.erl"), os.path.join(other, "empty_tracer.erl")])


def spread(values):
    return {"median": statistics.median(values), "least": min(values), "most": max(values)}


def erlang_of(case):
    return case.startswith("Erlang")


def summary(rows):
    """A row for each case and tracer, in the order of cases."""
    result = []
    for case in TITLES:
        plain, ours = rows.samples.get((case, "untraced"), []), rows.samples.get((case, "tracewheel"), [])
        if case == tracers.PAIR:
            plain = rows.samples.get((tracers.WORDS, "untraced"), [])
        each = lambda sample, key: sample[key] / sample["calls"]
        is_whole = case in (sqlite.LONG, sqlite.SHORT)

        def above(samples, events):
            """ns an event above the untraced run of the same round."""
            return [(each(s, "cpu_ns") - each(p, "cpu_ns")) / events(s) for s, p in zip(samples, plain)]

        def count(sample):
            return max(1, sample["recorded"] + sample["lost"]) if is_whole else 1

        for (of, peer), samples in rows.samples.items():
            if of != case:
                continue
            last = samples[-1]
            row = {"case": case, "peer": peer, "rounds": len(samples), "calls": None if is_whole and peer not in FLOORS else last["made"],
                   "clock_ratio": spread([s["wall_ns"] / s["calls"] / (p["wall_ns"] / p["calls"]) for s, p in zip(samples, plain)])}
            if peer in FLOORS[:2]:
                row["program_ns"] = spread([each(s, "cpu_ns") for s in samples])
            else:
                mine = above(samples, count)
                theirs = above(ours, count)
                row["program_ns"] = spread(mine)
                row["others_ns"] = spread([s["others_ns"] / s["calls"] / count(s) for s in samples])
                row.update(recorded=last["recorded"], lost=sum(s["lost"] for s in samples), bytes_per_event=last["bytes"] / max(1, last["recorded"]))
                row["uncounted"] = 0 if is_whole else sum(s["made"] - s["recorded"] - s["lost"] for s in samples)
                if theirs and peer != "tracewheel":
                    row["times_ours"] = spread([a / b for a, b in zip(mine, theirs) if b > 0] or [0])
            result.append(row)
    return result


def figure(value):
    return f"{value:,.0f}" if value >= 99.5 else f"{value:.1f}"


def with_spread(values, shown=figure):
    return f"{shown(values['median'])} ({shown(values['least'])} to {shown(values['most'])})" if values else ""


def print_rows(result, missing):
    for case in TITLES:
        rows = [row for row in result if row["case"] == case]
        if not rows:
            continue
        print(f"\n{TITLES[case]}\n{'':20} {'program, ns':>28} {'others':>9} {'clock':>8} {'x ours':>24} {'recorded':>11} {'lost':>9} {'bytes':>7}")
        for row in rows:
            text = f"{row['peer']:20} {with_spread(row['program_ns']):>28}"
            if row["peer"] in FLOORS:
                print(text)
                continue
            others = figure(row["others_ns"]["median"]) if not erlang_of(case) else ""
            print(f"{text} {others:>9} {figure(row['clock_ratio']['median']):>8} {with_spread(row.get('times_ours')):>24} {row['recorded']:>11,}"
                  f" {row['lost']:>9,} {row['bytes_per_event']:>7.1f}")
            if row["uncounted"]:
                print(f"{'':20} of the calls of all rounds, {row['uncounted']:,} are neither recorded nor counted as lost by {row['peer']}")
    if missing:
        print("\nNot measured:")
    for row in missing:
        print(f"  {row['peer']}{', ' + TITLES[row['case']] if row['case'] else ''}: {row['reason']}")
    print(f"\nuftrace and ltrace record a call with its return only, strace calls of the system only.  In SQLite, uprobes are on {sqlite.FEW}: all take minutes.")


def machine():
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    return {"date": datetime.date.today().isoformat(), "processor": model, "processors": len(os.sched_getaffinity(0)), "kernel": platform.release(),
            "load": os.getloadavg()[0]}


def versions():
    found = {}
    for name, command in VERSIONS.items():
        if shutil.which(command[0]):
            done = subprocess.run(command, capture_output=True, text=True)
            number = re.search(r"\d+\.\d+[\w.]*", done.stdout + done.stderr)
            found[name] = number[0] if number else "?"
    return found


def prepare(bed, options, rows):
    is_wanted = re.compile(options.only).search
    for peer, make in tracers.TRACERS:
        if peer in (*FLOORS, "tracewheel") or is_wanted(peer):
            rows.add(peer, lambda make=make: make(bed))
    if is_wanted("sqlite"):
        try:
            program = sqlite.Sqlite(bed)
            program.build("plain")
        except Refused as refused:
            rows.miss("SQLite", None, str(refused))
        else:
            for peer, make in sqlite.TRACERS:
                if peer.startswith(("untraced", "tracewheel")) or is_wanted(peer):
                    rows.add(peer, lambda make=make: make(bed, program))
    if not is_wanted("erlang"):
        return False
    try:
        erlang_prepare(bed, options.build)
        return True
    except Refused as refused:
        rows.miss("Erlang", None, str(refused))
        return False


def main():
    parser = argparse.ArgumentParser(description="What a traced call costs, beside other tracers.")
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="tracers, sqlite or erlang, by a regular expression")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--share", type=float, default=1, help="of the calls: 0.01 is a quick look")
    options = parser.parse_args()
    options.build = os.path.abspath(options.build)
    # Probes and daemons do not outlive a run that is ended.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    rows = Rows()
    with tempfile.TemporaryDirectory(prefix="tracewheel-peers.") as folder:
        bed = Bed(options.build, folder, options.share)
        try:
            has_erlang = prepare(bed, options, rows)
            for number in range(max(1, options.rounds)):
                print(f"\r   round {number + 1} of {options.rounds} ", end="", file=sys.stderr, flush=True)
                rows.run(number)
                if has_erlang:
                    erlang_round(bed, rows)
        finally:
            print("\r" + " " * 30 + "\r", end="", file=sys.stderr)
            bed.close()
    result, here = summary(rows), {**machine(), "versions": versions()}
    if options.json:
        print(json.dumps({"machine": here, "rounds": options.rounds, "rows": result, "missing": rows.missing}, indent=1))
    else:
        print(f"{here['date']}, {here['processors']} processors of {here['processor']}, Linux {here['kernel']}, load {here['load']:.1f}, {options.rounds} rounds; "
              + ", ".join(f"{name} {version}" for name, version in here["versions"].items()))
        print_rows(result, rows.missing)
    failed = [f"{row['case']}: {row['uncounted']} events are missing" for row in result if row["peer"].startswith("tracewheel") and row.get("uncounted")]
    failed += [f"{row['case']}: {row['reason']}" for row in rows.missing if row["peer"].startswith("tracewheel")]
    if failed:
        sys.exit("peers: tracewheel did not record what was called: " + "; ".join(failed))


main()
