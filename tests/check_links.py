#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_links.py BUILD - each room needs the rooms below it only.

check_tree.py sees what is included, this what the linker sees: each symbol of ours that a room's archive leaves undefined must be defined
by a room that CMakeLists.txt names below it, or by one below that (BUILD/rooms.txt, made there). Finally the uppermost room alone is
tried, for which the check must fail.
"""
import pathlib
import re
import subprocess
import sys


def symbols(archive):
    """The names that an archive defines, and those that it uses: a dict from each to the object file."""
    defined, used, member = set(), {}, ""
    for line in subprocess.run(["nm", "-g", archive], capture_output=True, text=True, check=True).stdout.split("\n"):
        words = line.split()
        if line.endswith(":"):
            member = line[:-1]
        elif len(words) == 2 and words[0] == "U":
            used[words[1]] = member
        elif len(words) == 3:
            defined.add(words[2])
    return defined, {name: member for name, member in used.items() if name not in defined}


def all_below(rooms, room):
    below = set(rooms[room])
    return below.union(*(all_below(rooms, other) for other in below))


def check(rooms, tables, room, below):
    there = set().union(*(tables[other][0] for other in below))
    for name, member in sorted(tables[room][1].items()):
        owners = [other for other in rooms if name in tables[other][0]]
        if name not in there and (owners or re.match(r"_*tw_", name)):
            yield f"{room}/ needs {' or '.join(owners) + '/' if owners else 'a file of no room'}: {name} in {member}"


def main():
    build = pathlib.Path(sys.argv[1])
    rooms = {}
    for line in (build / "rooms.txt").read_text().splitlines():
        name, _, below = line.partition(":")
        rooms[name] = below.split()
    tables = {room: symbols(build / f"lib/libtw_{room}.a") for room in rooms}
    problems = [text for room in rooms for text in check(rooms, tables, room, all_below(rooms, room))]
    if not list(check(rooms, tables, "session", [])):
        problems.append("session/ alone needs no other room: this check sees nothing")
    print("\n".join(problems) or f"{len(rooms)} rooms need those below them only")
    return 1 if problems else 0


sys.exit(main())
