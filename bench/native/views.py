#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What views of a large capture take: time on the wall, processor time, memory.

    ./run bench native views [ROUNDS] [OTHER]

Question  How much sooner does a view end whose events are decoded and put in order by other threads than the one that sums them up?
          How long do views of some 40 million calls and returns take, and how much memory?  OTHER: the command of another tree,
          which reads the same capture.
Method    The calls and returns of all functions of sqlite3, one thread, recorded once.  Each view by turns, with TRACEWHEEL_WORKERS=1,
          without it, and by OTHER; their outputs must be the same, those of OTHER are only measured.  The order of the turns
          changes from round to round; a first one, which reads the files, is not counted.
Unit      Seconds: medians over the rounds, with the least and the most time on the wall; MB: the most of all rounds.
"""
import hashlib
import os
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TW = os.path.join(ROOT, "build/release/bin/tracewheel")
SQL = """create table t(a integer primary key, b text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 93000) insert into t select i, printf('%d', i * 7) from n;
select count(*), sum(length(b)) from t where b like '%7%';
"""
LEAST_EVENTS = 30_000_000
VIEWS = ["report", "report --tree", "report --by caller", "report --diff", "flame", "print --slowest 10", "print --tree --limit 10"]


def record(folder):
    capture = os.path.join(folder, "sqlite3.tw")
    subprocess.run([TW, "record", "-q", "--returns", "-t", "_:_", "-o", capture, "--", "/usr/bin/sqlite3"], input=SQL,
                   text=True, check=True, stdout=subprocess.DEVNULL)
    text = subprocess.run([TW, "info", capture], check=True, capture_output=True, text=True).stdout
    events = int(next(line.split()[1] for line in text.splitlines() if line.startswith("events")).replace(",", ""))
    assert events >= LEAST_EVENTS, f"{events} events are too few"
    return capture, events


def run(command, view, capture, workers):
    words = view.split()
    captures = [capture] * (2 if "--diff" in words else 1)
    environment = dict(os.environ)
    environment.pop("TRACEWHEEL_WORKERS", None)
    if workers:
        environment["TRACEWHEEL_WORKERS"] = workers
    begun = time.perf_counter()
    process = subprocess.Popen([command, *words, *captures], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment)
    digest = hashlib.sha256()
    while piece := process.stdout.read(1 << 20):
        digest.update(piece)
    _, status, used = os.wait4(process.pid, 0)
    assert status == 0, f"{view}: status {status}"
    return time.perf_counter() - begun, used.ru_utime + used.ru_stime, used.ru_maxrss / 1000, digest.hexdigest()


def measure(view, capture, ways, rounds):
    results = {way: [] for way in ways}
    for turn in range(rounds + 1):
        for way in list(ways) if turn % 2 else reversed(list(ways)):
            result = run(*ways[way][:1], view, capture, ways[way][1])
            if turn:
                results[way].append(result)
    own = {result[3] for way in ("1 thread", "threads") for result in results[way]}
    assert len(own) == 1, f"{view}: outputs differ"
    first = statistics.median(result[0] for result in results["1 thread"])
    for way, all_of in results.items():
        wall = [result[0] for result in all_of]
        print(f"{view:24}  {way:9} {statistics.median(wall):6.2f} ({min(wall):.2f} to {max(wall):.2f})  x {statistics.median(wall) / first:.2f}"
              f"  CPU {statistics.median(result[1] for result in all_of):6.2f}  {max(result[2] for result in all_of):4.0f} MB", flush=True)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    ways = {"1 thread": (TW, "1"), "threads": (TW, None)}
    if len(sys.argv) > 2:
        ways["OTHER"] = (os.path.abspath(sys.argv[2]), None)
    with tempfile.TemporaryDirectory() as folder:
        capture, events = record(folder)
        print(f"{events:,} events, {len(os.sched_getaffinity(0))} processors, load {os.getloadavg()[0]:.1f}, {rounds} rounds")
        for view in VIEWS:
            measure(view, capture, ways, rounds)


main()
