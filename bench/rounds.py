#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rounds.py PROGRAM [--rounds N] [FILTER ...] - the rows of the benchmark in several rounds, as docs/costs.md shows them.

Question: what does a row cost on this machine, and how far does another round differ?
Method: all rows, one round after the other, each row five times for 30 ms; processor time of the row's own threads. The median round, and the
lowest and highest, in ns an operation.
"""
import argparse
import json
import statistics
import subprocess
import sys


def measure(program, filters):
    run = subprocess.run([program, "--json", "--seconds", "0.03", "--repetitions", "5", *filters], stdout=subprocess.PIPE, check=False)
    if run.returncode:
        sys.exit(run.returncode)
    return {row["name"]: row["cpu_ns"] for row in json.loads(run.stdout)}


def shown(ns):
    """Three digits of it, and no fraction of more than a hundred."""
    return "%.0f" % ns if ns >= 99.5 else "%.*f" % (1 if ns >= 9.95 else 2, ns)


def main():
    parser = argparse.ArgumentParser(description="Rows of the benchmark in several rounds.")
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("filters", nargs="*")
    options = parser.parse_intermixed_args()
    rounds = [measure(options.program, options.filters) for _ in range(max(1, options.rounds))]
    print("%-44s %9s %9s %9s" % ("ns of processor time for one operation", "median", "lowest", "highest"))
    for name in rounds[0]:
        every = [rows[name] for rows in rounds]
        print("%-44s %9s %9s %9s" % (name, shown(statistics.median(every)), shown(min(every)), shown(max(every))))


if __name__ == "__main__":
    main()
