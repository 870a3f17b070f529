#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What record --python takes from a script, beside cProfile.

    ./run bench native python [ROUNDS] [PYTHON]

Question  How much more processor time does a script take while its calls are recorded, and with their returns? While they are not
          selected? How much does cProfile take? The goal: at most 40 % of it, with returns.
Method    In turns, so that all are measured under the same load. The script measures each of its loads itself, after one round of each
          that is not measured; start and recorder are in the last line.
Unit      Milliseconds of processor time of a load: medians over the rounds.
"""
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TW = os.path.join(ROOT, "build/release/bin/tracewheel")
SCRIPT = r'''
import json, re, sys, time
from re import _compiler
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
class Table:
    def __init__(self):
        self.value = 1
    def get(self, i):
        return self.value + i
    def __getitem__(self, i):
        return i
def method():
    table = Table()
    for i in range(600000):
        table.get(i)
def item():
    table = Table()
    for i in range(400000):
        table[i]
def loop():
    total = 0
    for i in range(4000000):
        total += i * 2
def generator():
    sum(x for x in range(600000))
def text():
    data = {"a": [1, 2, 3, {"b": None, "c": "text"}] * 300}
    for i in range(30):
        json.loads(json.dumps(data, indent=1))
def patterns():
    for i in range(150):
        _compiler.compile(r"(a|b)*c+[d-z]{2,%d}(?P<x>foo|bar)" % (i + 3))
def exceptions():
    def fails(i):
        if i & 1:
            raise ValueError(i)
    for i in range(150000):
        try:
            fails(i)
        except ValueError:
            pass
took = {}
for round in range(2):
    for load in lambda: fib(24), method, item, loop, generator, text, patterns, exceptions:
        begun = time.process_time()
        load()
        took["recursion" if load.__name__ == "<lambda>" else load.__name__] = time.process_time() - begun
json.dump(took, open(sys.argv[1], "w"))
'''


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    python = sys.argv[2] if len(sys.argv) > 2 else "/usr/bin/python3"
    with tempfile.TemporaryDirectory() as folder:
        script, out, capture = (os.path.join(folder, name) for name in ("script.py", "took.json", "script.tw"))
        with open(script, "w") as file:
            file.write(SCRIPT)
        run = [python, script, out]
        record = [TW, "record", "-q", "--force", "-o", capture, "--python"]
        forms = {"plain": run, "cProfile": [python, "-m", "cProfile", "-o", os.path.join(folder, "profile"), script, out],
                 "none": [*record, "-t", "py:main_of_nobody", "--", *run], "calls": [*record, "--", *run],
                 "returns": [*record, "--returns", "--", *run]}
        loads = {form: [] for form in forms}
        wholes = {form: [] for form in forms}
        for _ in range(rounds):
            for form, command in forms.items():
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                wholes[form].append(1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
                with open(out) as file:
                    took = json.load(file)
                loads[form].append({**{load: 1e3 * took[load] for load in took}, "all": 1e3 * sum(took.values())})
    print(f"{'load':<12}{'plain':>9}" + "".join(f"{form:>12}" for form in list(forms)[1:]) + "   returns / cProfile")
    for load in loads["plain"][0]:
        middle = {form: statistics.median(took[load] for took in loads[form]) for form in forms}
        more = {form: middle[form] - middle["plain"] for form in forms}
        print(f"{load:<12}{middle['plain']:>9.1f}" + "".join(f"{more[form]:>+12.1f}" for form in list(forms)[1:]) +
              f"{100 * more['returns'] / more['cProfile']:>13.0f} %")
    whole = {form: statistics.median(wholes[form]) for form in forms}
    print(f"{'processes':<12}{whole['plain']:>9.1f}" + "".join(f"{whole[form] - whole['plain']:>+12.1f}" for form in list(forms)[1:]))


main()
