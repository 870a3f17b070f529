#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""entries.py BUILD [ROUNDS] - plans of function entries: how long they take, and how many functions can be traced.

Question  How long does the command take for the plan of a file that it has not seen?  Of how many functions of Debian's binaries can the
          entry take a jump?  What does the planting of a whole library add to a program's start?
Method    `functions --local` with an empty cache and with a full one, in turn; the difference is the plan's. (What a plan from the cache
          costs is measured by `tracewheel-bench plan_`.) The start: a program that ends at once, recorded with all functions of a
          library and with one, in turn.
Unit      milliseconds of processor time, of the command and its children; medians (lowest to highest) over the rounds.
"""
import glob
import os
import resource
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile

LIBRARIES = "/usr/lib/x86_64-linux-gnu/"
OBJECTS = [LIBRARIES + "libsqlite3.so.0", "/usr/bin/sqlite3", "/usr/bin/python3.11", "/usr/bin/redis-server", "/usr/bin/git",
           LIBRARIES + "libc.so.6", LIBRARIES + "libstdc++.so.6", "/usr/bin/bash", LIBRARIES + "libcrypto.so.3",
           "/usr/lib/postgresql/15/bin/postgres"]
ROW = struct.Struct("<IIIIIHBBBBBBBB2x")


def spent(words, environment):
    """Milliseconds of processor time of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit("%s: exit code %d: %s" % (" ".join(words), done.returncode, done.stderr.decode(errors="replace")))
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def counted(folder):
    """Functions of the only plan of a cache, and how many can be traced."""
    plans = glob.glob(os.path.join(folder, "tracewheel", "plans", "*.plan"))
    if len(plans) != 1:
        return 0, 0
    with open(plans[0], "rb") as file:
        plan = file.read()
    count, rows = struct.unpack_from("<II", plan, 68)
    found = [ROW.unpack_from(plan, rows + i * ROW.size) for i in range(count)]
    # 32: it reads status flags of its caller.
    return count, sum(row[6] == 0 and not row[7] & 32 for row in found)


def shown(values):
    return "%7.1f (%.1f to %.1f)" % (statistics.median(values), min(values), max(values))


def plan(tw, path, rounds, work):
    name = os.path.basename(path).split(".so")[0]
    plans = []
    environment = {**os.environ, "XDG_CACHE_HOME": work}
    words = [tw, "functions", "--local", "-t", name + ":_", path]
    for _ in range(rounds):
        shutil.rmtree(os.path.join(work, "tracewheel"), ignore_errors=True)
        cold = spent(words, environment)
        plans.append(cold - spent(words, environment))
    count, possible = counted(work)
    if count:
        print("   %-14s %s   %6d of %6d functions, %.2f %%" % (name, shown(plans), possible, count, 100 * possible / count), flush=True)
    else:
        print("   %-14s has no plan: its entries are left alone" % name)


def start(tw, rounds, work):
    environment = {**os.environ, "XDG_CACHE_HOME": work}
    words = [tw, "record", "-q", "--force", "--local", "-o", os.path.join(work, "start.tw")]
    command = ["--", "sqlite3", ":memory:", "select 1"]
    every, one = [], []
    for _ in range(rounds + 1):
        one.append(spent([*words, "-t", "libsqlite3:sqlite3_libversion", *command], environment))
        every.append(spent([*words, "-t", "libsqlite3:_", *command], environment) - one[-1])
    # The first round fills the cache.
    print("   a start with every function of libsqlite3 planted, above one with one function: %s ms" % shown(every[1:]))


def main():
    tw = os.path.join(os.path.realpath(sys.argv[1]), "bin", "tracewheel")
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    with tempfile.TemporaryDirectory(prefix="tracewheel-bench.") as work:
        print("== plans: milliseconds of processor time, medians of %d rounds, and functions whose entry can take a jump" % rounds)
        for path in OBJECTS:
            if os.path.exists(path):
                plan(tw, path, rounds, work)
            else:
                print("   %s is not installed" % path)
        print("== the start of a program")
        start(tw, rounds, work)


main()
