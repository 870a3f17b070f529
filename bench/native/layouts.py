#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
layouts.py - the cost of entry sleds while no session traces, separated from the effect of the linker's placement of functions.

	./run bench native layouts [SECONDS]

Question  How much slower is SQLite with sleds compiled in, averaged over orders of its functions?  With the same
	  instructions one order is some percent faster than another, so one build beside one other tells little.
Method	  One assembly without sleds, one with, of which forms are made: no NOP at all (what the option changes beside the
	  NOPs), one long NOP (compact), other splits.  Each in six random orders of its functions, the same orders for
	  all.  All of them are in one program, which runs the same SQL in each by turns, once to warm up and once
	  timed: all of them are measured under the same load.
Unit	  times the plain build of the same order in the same turn: median over the turns, mean over the orders and its
	  standard error; lowest and highest order.
"""
import os
import random
import re
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
BUILT = os.path.join(HERE, "../../build/bench-native")
WORK = os.path.join(BUILT, "layouts")
ORDERS = 6
NOPS = {1: "0x90", 2: "0x66,0x90", 5: "0x0f,0x1f,0x44,0,0", 9: "0x66,0x0f,0x1f,0x84,0,0,0,0,0"}
# name, description, bytes before the entry, NOPs after it
FORMS = [
    ("none", "the option's own effects, no NOP", 0, []),
    ("loose", "=9 as gcc leaves it", 0, [1] * 9),
    ("nine", "=9 compact", 0, [9]),
    ("split", "=16,11 compact", 11, [5]),
    ("two", "=18,16 compact (two bytes: no space for a call)", 16, [2]),
]


def run(*command):
    subprocess.run(command, check=True)


def assembly(name, *flags):
    path = os.path.join(WORK, name + ".s")
    if not os.path.exists(path):
        run("gcc", "-O2", "-ffunction-sections", *flags, "-DSQLITE_THREADSAFE=0", "-DSQLITE_OMIT_LOAD_EXTENSION",
            "-S", "-o", path + ".new", os.path.join(BUILT, "sqlite/sqlite3.c"))
        os.rename(path + ".new", path)
    with open(path, encoding="utf-8") as file:
        return file.read().split("\n")


def make_form(lines, prefix, nops):
    """The sleds of gcc's assembly in another form; without their table, which is not used here."""
    out, i = [], 0
    while i < len(lines):
        if "__patchable_function_entries" not in lines[i]:
            out.append(lines[i])
            i += 1
            continue
        i += 5  # the section, its alignment, the entry, the section of the function, the label
        while lines[i] == "\tnop":
            i += 1
        out += ["\t.byte " + NOPS[bytes_] for bytes_ in nops]
        before = len(out) - 1
        while not re.match(r"\t\.p2align|\t\.section\t\.text", out[before]):
            before -= 1
        if prefix:
            out.insert(before + 1, f"\t.skip {prefix},0x90")
    return out


def assemble(name, lines):
    path = os.path.join(WORK, name)
    with open(path + ".form.s", "w", encoding="utf-8") as file:
        file.write("\n".join(lines))
    run("as", "-o", path + ".o", path + ".form.s")
    os.remove(path + ".form.s")


def write_orders(lines):
    sections = sorted({m.group(1) for m in (re.match(r"\t\.section\t(\.text\.[\w.]+)", l) for l in lines) if m})
    for order in range(ORDERS):
        random.Random(order + 1).shuffle(sections)
        with open(os.path.join(WORK, f"order.{order}"), "w", encoding="utf-8") as file:
            file.write("SECTIONS { .text.all : { " + " ".join(f"*({s})" for s in sections) + " *(.text .text.*) } }\n")


def link(names):
    objects = []
    for name in names:
        for order in range(ORDERS):
            entry = f"turn_{name}_{order}"
            target = os.path.join(WORK, entry + ".o")
            run("gcc", "-O2", "-DTURN=" + entry, "-I" + os.path.join(BUILT, "sqlite"), "-c", "-o", target + ".1",
                os.path.join(HERE, "layouts_turn.c"))
            run("ld", "-r", "-T", os.path.join(WORK, f"order.{order}"), "-o", target + ".2", target + ".1",
                os.path.join(WORK, name + ".o"))
            run("objcopy", "--keep-global-symbol=" + entry, target + ".2", target)
            os.remove(target + ".1")
            os.remove(target + ".2")
            objects.append(target)
    entries = [f"turn_{name}_{order}" for order in range(ORDERS) for name in names]
    with open(os.path.join(WORK, "table.h"), "w", encoding="utf-8") as file:
        file.write("".join(f"unsigned long {e}(void);\n" for e in entries))
        file.write(f"#define FORMS {len(names)}\n#define ORDERS {ORDERS}\n")
        file.write("static unsigned long (*const turns[ORDERS][FORMS])(void) = {" + ", ".join(entries) + "};\n")
    run("gcc", "-O2", "-w", "-I" + WORK, "-o", os.path.join(WORK, "layouts"), os.path.join(HERE, "layouts_main.c"),
        *objects, "-lm")


def main():
    seconds = sys.argv[1] if len(sys.argv) > 1 else "60"
    os.makedirs(WORK, exist_ok=True)
    run(os.path.join(HERE, "fetch_sqlite.sh"), os.path.join(BUILT, "sqlite"))
    print("== compiling SQLite twice, linking it in six orders", flush=True)
    plain, sled = assembly("plain"), assembly("sled", "-fpatchable-function-entry=9")
    assemble("plain", plain)
    write_orders(plain)
    for name, _, prefix, nops in FORMS:
        assemble(name, make_form(sled, prefix, nops))
    link(["plain"] + [form[0] for form in FORMS])
    out = subprocess.run([os.path.join(WORK, "layouts"), seconds], check=True, capture_output=True, text=True).stdout
    rows = [[int(word) for word in line.split()] for line in out.splitlines()]
    print(f"== SQLite, not armed, times plain: {len(rows) // ORDERS} turns in each of {ORDERS} orders")
    for i, form in enumerate(FORMS):
        means = [statistics.median(row[i + 2] / row[1] for row in rows if row[0] == order) for order in range(ORDERS)]
        print(f"   {form[1]:48} x {statistics.mean(means):.3f} +- {statistics.stdev(means) / ORDERS ** 0.5:.3f}"
              f"  ({min(means):.3f}-{max(means):.3f})")


main()
