#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""truth.py BUILD [--seconds N] [--self-test] [SEED...] - is every number that a view shows true?

Goal: for random programs, every view of every way of recording agrees with the program's own account.
Method: random programs (program.py) note each call of theirs; each is recorded in every mode below; every view is parsed back
(views.py) and compared with the notes (check.py): counts, order and nesting exactly, times by enclosure, sums to the nanosecond
between views.  --self-test is the negative control: outputs are changed as the defects that this found would change them, and
each change must be noticed.  A seed that fails is printed with the folder that holds the program and the capture.
"""
import argparse
import os
import shutil
import sys
import tempfile
import time

import check
import views
from check import Mode
from program import Program

BLOCK = ["--on-full", "block"]
# Programs of the short form make fewer calls; as many more rounds overflow the smallest ring as well.
IS_LONG = bool(os.environ.get("TW_TEST_LONG"))
CALLS, ROUNDS = (4000, ("TRUTH_ROUNDS", "6")) if IS_LONG else (400, ("TRUTH_ROUNDS", "20"))
LEAVE, FORK, TIMER = ("TRUTH_LEAVE", "1"), ("TRUTH_FORK", "1"), ("TRUTH_TIMER", "200")
MODES = [
    Mode("returns", ["--returns", *BLOCK]),
    Mode("typed", ["--returns", "--args", *BLOCK]),
    Mode("raw", ["--returns", "--args=raw", *BLOCK]),
    Mode("exceptions", ["--exceptions", *BLOCK], words=[LEAVE]),
    Mode("return_to", ["--exceptions", "--return-to", *BLOCK], words=[LEAVE]),
    Mode("unwatched", ["--exceptions", *BLOCK], words=[LEAVE], more=check.UNWATCHED),
    Mode("unseen", ["--returns", *BLOCK], words=[LEAVE]),
    Mode("calls", BLOCK, returns=False),
    Mode("stack", ["--stack", "4", *BLOCK], returns=False),
    Mode("rotated", ["--returns", "--rotate", "64K", *BLOCK]),
    Mode("timed", ["--returns", "--segment-time", "10ms", *BLOCK]),
    Mode("kept", ["--returns", "--rotate", "64K", "--keep", "2", "--args=raw", *BLOCK], lossless=False, newest=True),
    Mode("followed", ["--returns", "--follow-fork", *BLOCK], words=[FORK]),
    Mode("handlers", ["--returns", *BLOCK], words=[TIMER]),
    Mode("everything", ["--exceptions", "--args", "--follow-fork", "--segment-time", "10ms", *BLOCK], words=[LEAVE, FORK, TIMER]),
    Mode("slots", ["--returns", "--global", *BLOCK], modules=("slots",), patterns=["libslots:slots_*"]),
    Mode("sleds", ["--returns", "--local", *BLOCK], modules=("prog", "plug", "left")),
    Mode("guarded", []),
    Mode("default", ["--returns"], lossless=False, words=[TIMER]),
    Mode("newest", ["--returns", "--on-full", "overwrite", "--ring", "64K"], lossless=False, newest=True,
         words=[ROUNDS]),
    Mode("waits", ["--returns", "--ring", "64K", *BLOCK], words=[ROUNDS], pauses=2),
    Mode("small", ["--returns", "--on-full", "drop", "--ring", "64K"], lossless=False, words=[ROUNDS], pauses=1),
]


def record(tw, program, mode, capture):
    options = [word for pattern in mode.patterns for word in ("-t", pattern)]
    shutil.rmtree(capture, ignore_errors=True)
    code = program.run([tw, "record", "-q", "--force", "-o", capture, *options, *mode.options, "--", "./prog"], mode.words, mode.pauses)
    if code != 7:
        raise views.Untrue("the program ended with %d under record, not with 7" % code)


def one(tw, seed, folder, modes, calls, is_sample=False):
    program, real = Program(seed, folder, calls=calls), views.output
    program.build(tw)
    if program.run(["./prog"]) != 7:
        raise RuntimeError("seed %d: the program itself fails" % seed)
    events = lost = 0
    for turn, mode in enumerate(modes):
        if mode.name == "guarded":
            mode = guarded(program)
        mode.turn = turn if is_sample else None
        capture = os.path.join(folder, mode.name + ".tw")
        try:
            record(tw, program, mode, capture)
            views.output = views.remembered(real)
            made, gone = check.check_capture(tw, capture, mode, program.truth(), program.handled())
        except views.Untrue as error:
            raise views.Untrue("seed %d, %s: %s\n  %s record %s" % (seed, mode.name, error, tw, " ".join(mode.options))) from None
        finally:
            views.output = real
        events, lost = events + made, lost + gone
        shutil.rmtree(capture, ignore_errors=True)
    return events, lost


def guarded(program):
    """A guard on the first argument; functions without one are left out: their register holds arbitrary values."""
    shaped = [f for f in program.functions if f.shape != "bare" and f not in program.chain and f not in program.handlers]
    names = {f.number for f in shaped}
    return Mode("guarded", ["--returns", "--when", "$1 > 2", *BLOCK], when=lambda f, a: f.number in names and a > 2,
                patterns=["%s:%s" % (check.OBJECTS[f.module], f.name) for f in shaped])


# The effects of defects on a view's output: each must be noticed.
def twice(text):
    lines = text.splitlines(True)
    at = next(n for n in range(len(lines) // 2, len(lines)) if "own_time" not in lines[n])
    return "".join(lines[:at] + lines[at:at + 1] + lines[at:])


def without(text):
    lines = text.splitlines(True)
    at = next(n for n in range(len(lines) // 2, len(lines)) if "own_time" not in lines[n] and ("call" in lines[n] or ":" in lines[n]))
    return "".join(lines[:at] + lines[at + 1:])


def swapped(text):
    lines = text.splitlines(True)
    for at in range(len(lines) // 2, len(lines) - 1):
        if '"call"' in lines[at] + lines[at + 1] and lines[at] != lines[at + 1]:
            break
    return "".join(lines[:at] + [lines[at + 1], lines[at]] + lines[at + 2:])


def doubled_first_number(member):
    def change(text):
        line = next(l for l in text.splitlines() if '"%s":' % member in l and "own_time" not in l)
        at = text.index(line) + line.index('"%s":' % member) + len(member) + 3
        end = at
        while text[end] not in ",}":
            end += 1
        return text[:at] + repr(float(text[at:end]) * 2 + 1) + text[end:]
    return change


def self_nested(text):
    """A path of the folded stacks below another one, as a call whose end was missed."""
    lines = text.splitlines(True)
    first = lines[0].rsplit(" ", 1)[0]
    return "".join([first + ";" + lines[-1]] + lines[:-1])


CONTROLS = [
    (("print", "--format", "json"), twice), (("print", "--format", "json"), without), (("print", "--format", "json"), swapped),
    (("print",), twice), (("print",), without),
    (("print", "--format", "erlang"), twice), (("print", "--format", "erlang"), without),
    (("print", "--tree"), twice), (("print", "--tree"), without),
    (("print", "--format", "chrome"), doubled_first_number("dur")),
    (("flame", "--folded"), self_nested), (("flame", "--folded"), without),
    (("report", "--json"), doubled_first_number("total")), (("report", "--json"), doubled_first_number("self")),
    (("report", "--json"), doubled_first_number("calls")), (("report", "--json"), doubled_first_number("max")),
    (("info", "--json"), doubled_first_number("events")), (("info", "--json"), doubled_first_number("full")),
]


def self_test(tw, folder):
    program = Program(1, folder, calls=3000 if IS_LONG else 400)
    program.build(tw)
    mode, capture = MODES[0], os.path.join(folder, "control.tw")
    record(tw, program, mode, capture)
    truth = program.truth()
    check.check_capture(tw, capture, mode, truth, {})
    real, missed = views.remembered(views.output), 0
    for command, change in CONTROLS:
        def changed(binary, *arguments, command=command, change=change, **more):
            text = real(binary, *arguments, **more)
            flags = tuple(a for a in arguments if a != capture and a not in ("--top", "0", "--least", "--setups"))
            return change(text) if flags == command else text
        views.output = changed
        try:
            check.check_capture(tw, capture, mode, truth, {})
            missed += 1
            print("not noticed: %s of `%s`" % (change.__name__, " ".join(command)))
        except (views.Untrue, KeyError, ValueError, IndexError):
            pass
        finally:
            views.output = real
    # And the account itself: a program that made one call more.
    thread = next(iter(truth))
    truth[thread] = truth[thread][:2] + truth[thread]
    try:
        check.check_capture(tw, capture, mode, truth, {})
        missed += 1
        print("not noticed: a call that is not in the capture")
    except views.Untrue:
        pass
    print("%d of %d changes noticed" % (len(CONTROLS) + 1 - missed, len(CONTROLS) + 1))
    return missed == 0


def main():
    parser = argparse.ArgumentParser(description="Is every number that a view shows true?")
    parser.add_argument("build", help="folder of the built programs")
    parser.add_argument("seeds", type=int, nargs="*", help="which programs; by default as many as the time allows, from a random one")
    parser.add_argument("--seconds", type=float, default=60 if IS_LONG else 1)
    parser.add_argument("--calls", type=int, default=CALLS, help="about so many in each program")
    parser.add_argument("--mode", action="append", help="only this way of recording")
    parser.add_argument("--self-test", action="store_true", help="the negative controls")
    options = parser.parse_intermixed_args()
    tw = os.path.realpath(os.path.join(options.build, "bin", "tracewheel"))
    modes = [m for m in MODES if not options.mode or m.name in options.mode]
    folder = tempfile.mkdtemp(prefix="tracewheel-truth.")
    end = time.monotonic() + options.seconds
    seed = int.from_bytes(os.urandom(3), "big")
    programs = events = lost = 0
    try:
        if options.self_test:
            passed = self_test(tw, folder)
            shutil.rmtree(folder, ignore_errors=True)
            return 0 if passed else 1
        given = list(options.seeds)
        while given[programs:] if options.seeds else time.monotonic() < end or not programs:
            number = given[programs] if given else seed + programs
            # The program of a number, or the way of recording, is looked at in all ways, to find what a sample has shown.
            made, gone = one(tw, number, os.path.join(folder, str(number)), modes, options.calls, not IS_LONG and not given and not options.mode)
            programs, events, lost = programs + 1, events + made, lost + gone
            shutil.rmtree(os.path.join(folder, str(number)), ignore_errors=True)
    except views.Untrue as error:
        print("UNTRUE: %s\n  the program and its capture are in %s" % (error, folder))
        return 1
    print("%d programs, %d events, %d told as lost: every view is true (first seed %d)" % (programs, events, lost, (options.seeds or [seed])[0]))
    shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
