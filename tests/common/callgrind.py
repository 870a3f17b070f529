# SPDX-License-Identifier: Apache-2.0
"""callgrind.py - reads how often each instruction was executed, from a file of `callgrind --dump-instr=yes`."""
import re


def read_executions(path):
    """Executions of each instruction by the path of its object, from a file of callgrind.

    `ob=(N) NAME` begins an object; ADDRESS LINE COUNT is an instruction, +N and -N are relative, * repeats; the line behind
    `calls=` is the cost of a call, not of an instruction.
    """
    names, executed, at, ours, is_call = {}, {}, 0, None, False
    for line in open(path):
        first = line[0]
        if first in "0123456789+-*":
            words = line.split()
            word = words[0]
            at = at if word == "*" else at + int(word, 0) if first in "+-" else int(word, 0)
            if is_call:
                is_call = False
            elif ours is not None:
                ours[at] = ours.get(at, 0) + int(words[-1])
        elif line.startswith("calls="):
            is_call = True
        elif first in "oc":
            named = re.match(r"c?ob=\((\d+)\)(?: (.*))?", line)
            if named:
                if named[2]:
                    names[named[1]] = named[2]
                if first == "o":
                    ours = executed.setdefault(names[named[1]], {})
    return executed
