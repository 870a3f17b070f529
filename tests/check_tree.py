#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_tree.py [ROOT] - the rules of the house that a machine can see.

A licence line first in each source; each room knows only the rooms below it; views/ and those outside know include/tracewheel only,
and tools/ views/; folders of a room know each other only as listed; one door for atomics and for each outside library; a README in
each room; no file above 600 lines (tests: 800), no function above 60.
"""
import pathlib
import re
import sys

ROOMS = ["base", "term", "progress", "ringbuf", "match", "symbols", "breakpoints", "pipeline", "session", "agent", "plan", "views"]
STRANGERS = [{"progress", "ringbuf"}, {"progress", "match"}, {"ringbuf", "match"}]
# plan/ is in the command only, and knows files.
STRANGERS += [{"plan", other} for other in ROOMS if other not in ("plan", "symbols", "base")]
# The neighbours that each folder of a room may include. A file in the room's own folder may include all.
SEAMS = {
    "pipeline": {"format": set(), "hit": {"format", "thread"}, "thread": {"format", "hit"}, "producer": {"format", "thread"}, "live": {"format"}, "message": {"format"}, "codec": {"format"}, "block": {"format", "codec"},
                 "reader": {"format", "block"}, "recorder": {"format", "codec", "block", "reader"},
                 "combine": {"format", "codec", "block", "reader", "recorder"}, "follow": {"format", "block", "reader", "recorder"}},
    "session": {"seq": set()},
    "symbols": {"debug": set()},
    "views": {"output": set(), "names": {"output"}, "folds": {"output", "names"}, "ports": {"output", "names", "folds"}},
    "tools": {"common": set(), "record": {"common"}, "attach": {"common", "record"}, "top": {"common"}, "report": {"common"}, "print": {"common"}, "late": {"common"}, "convert": {"common"}, "seq": {"common"}, "merge": {"common"}, "stress": set(), "sql": set(), "python": {"common"}},
}
OUTSIDE = ["tools", "examples", "erlang", "fleet"]
# Folders that see include/tracewheel only, as any other tool could, and the rooms that each may include beside it.
SEES = {"tools": {"views"}, "examples": set(), "erlang": set(), "views": {"views"}, "fleet": {"views"}}
# Of tracewheel-stress, a program of its own: breaks steps of the rooms on purpose (--break), and plants its own entries.
# The room plan/ is in no library, because only the command has the decoder: one file of the tools sees it.
# Frames of stopped threads are for attaching only, and no part of libtracewheel-debug.
LOOKS_INSIDE = {"tools/stress/stress_break.c", "tools/stress/stress_entries.c", "tools/common/entries.c", "tools/attach/safe.c"}
# Macros and inline functions without symbols, of no room.
FOR_ALL = {"base/doorbell.h", "base/figure.h", "base/grow.h", "base/map.h", "base/range.h", "base/search.h", "base/worker.h"}
# The one way to open files that others have named, and the one decision whether a program can be traced.
FOR_ALL |= {"base/file.h", "base/program.h"}
# The one repair of system calls that a stop has ended: for holds, and for the one thread that the command stops.
FOR_ALL |= {"base/waited.h"}
LIBRARIES = {"Zydis": "plan", "lzma": "plan", "urcu": "progress", "lz4": "pipeline/block", "ck_": "base", "xxhash": "base", "gmp": "term",
             "elfutils": "symbols/debug", "gelf": "symbols/debug", "dwarf.h": "symbols/debug", "libiberty": "views/names", "libdeflate.h": "views/output", "ncurses": "tools/top",
             "erl_nif": "erlang", "sqlite3": "tools/sql", "curl": "fleet", "zstd": "fleet", "openssl": "fleet", "jansson": "fleet", "Python.h": "tools/python"}
# In these rooms files are opened by base/file.h, or by tw_sys_open_at() in a traced program: a pipe, a device or a file of holes may have
# any name that a capture, a process or another file gives. The exceptions, each with the files that it opens.
OPENERS = ["agent", "symbols", "plan", "views", "tools"]
OPENS = {
    "agent/entries.c": "plans of the command", "agent/written.c": "the process' own memory", "plan/cache.c": "plans of the command",
    "tools/attach/dormant.c": "procfs", "tools/attach/inject.c": "procfs, and our own library", "tools/attach/list.c": "procfs", "tools/attach/detach.c": "/dev/null", "tools/common/proc.c": "procfs",
    "tools/common/entries.c": "new files of the ring set", "tools/common/near.c": "the loader's configuration",
    "tools/convert/convert.c": "the user's argument", "tools/convert/ttb_read.c": "the user's argument, which may be a pipe",
    "tools/info.c": "the user's argument", "tools/match.c": "the user's argument, which may be a pipe", "tools/print/print_ctf.c": "the folder that it makes", "tools/python/module.c": "the user's argument", "tools/record/check.c": "the loader's configuration",
    "tools/record/children.c": "procfs", "tools/record/group_signals.c": "procfs", "tools/record/mapped.c": "procfs", "tools/record/sched.c": "procfs",
    "tools/seq/seq.c": "the user's argument", "tools/sql/sql.c": "the user's argument",
    "views/names/names.c": "the user's argument, which may be a pipe", "views/names/spool.c": "a new file without a name",
}
OPEN = re.compile(r"(?<![\w.>])(open|open64|openat|fopen)\s*\((?!struct )")
QUOTED = re.compile(r'^\s*#\s*include\s*"([\w./-]+)"')
ANGLED = re.compile(r"^\s*#\s*include\s*<([\w./-]+)>")
RAW_ATOMIC = re.compile(r"\batomic_(load|store|exchange|fetch|compare)\w*\s*\(|\b__atomic_\w+\s*\(|\b__sync_\w+\s*\(")
COMMENT = re.compile(r"^\s*(/\*|\*)")
LINES_MAX = 600


FUNCTION_LINES_MAX = 60
# Longer ones of tests, of earlier days, which may only become shorter: a function that fits is taken out of here.
LONGER = {
    "tests/unit/ringbuf_set_test.c": {"records_of_a_killed_member_are_kept": 64},
    "tests/unit/tools_report_test.c": {"random_calls": 63},
}


def check_functions(relative, lines):
    """Functions as clang-format lays them out: braces in the first column."""
    begin = name = None
    for number, line in enumerate(lines):
        found = re.match(r"[A-Za-z_].*?(\w+)\(", line)
        if found and begin is None:
            name = found[1]
        if line == "{":
            begin = number
        elif line.startswith("}") and begin is not None:
            length = number - begin - 1
            if length > LONGER.get(relative, {}).get(name, FUNCTION_LINES_MAX):
                yield begin, f"{name}() has {length} lines: {FUNCTION_LINES_MAX} are the most"
            begin = None


def path_is_c(relative):
    return relative.endswith((".c", ".h"))


def check_seam(folder, relative, quoted):
    own, target = relative.split("/"), quoted[1].split("/") if quoted else []
    if folder not in SEAMS or len(own) != 3 or len(target) != 3 or target[0] != folder or own[1] == target[1]:
        return
    if target[1] not in SEAMS[folder].get(own[1], set()):
        yield f"{folder}/{own[1]}/ must not know {folder}/{target[1]}/"


def check_file(folder, relative, lines):
    if not any("SPDX-License-Identifier: Apache-2.0" in line for line in lines[:3]):
        yield 1, "no SPDX line at the top"
    if len(lines) > (800 if folder == "tests" else LINES_MAX):
        yield 1, f"{len(lines)} lines: is this one thing?"
    if relative.endswith(".c"):
        yield from check_functions(relative, lines)
    for number, line in enumerate(lines, 1):
        quoted, angled = QUOTED.match(line), ANGLED.match(line)
        other = quoted[1].split("/")[0] if quoted and "/" in quoted[1] else None
        yield from ((number, text) for text in check_seam(folder, relative, quoted))
        if other in ROOMS and other != folder and folder in ROOMS:
            if ROOMS.index(other) > ROOMS.index(folder) or {other, folder} in STRANGERS:
                yield number, f"{folder}/ must not know {other}/"
        if folder in ROOMS and other in OUTSIDE + ["tests", "bench"]:
            yield number, f"{folder}/ must not know {other}/"
        is_inside = other in ROOMS and quoted[1] not in FOR_ALL and relative not in LOOKS_INSIDE
        if folder in SEES and is_inside and other not in SEES[folder]:
            yield number, f"{folder}/ sees include/tracewheel only, not {other}/"
        if angled and folder in ROOMS + OUTSIDE:
            for name, owner in LIBRARIES.items():
                if angled[1].startswith(name) and not relative.startswith(owner + "/"):
                    yield number, f"<{angled[1]}> is seen from {folder}/; its one place is {owner}/"
        if folder in OPENERS and path_is_c(relative) and relative not in OPENS and OPEN.search(line) and not COMMENT.match(line):
            yield number, "files are opened through base/file.h"
        if folder in ROOMS and relative != "base/atomic.h" and RAW_ATOMIC.search(line):
            yield number, "atomics go through base/atomic.h"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    problems, count = [], 0
    for folder in ROOMS + OUTSIDE + ["tests", "bench", "include"]:
        paths = sorted(p for p in (root / folder).rglob("*") if p.suffix in {".c", ".h", ".S", ".cc", ".py", ".sh"})
        if folder != "include" and any(p.suffix != ".h" for p in paths) and not (root / folder / "README.md").is_file():
            problems.append(f"{folder}/: no README.md with input, output and threads")
        problems += [f"{folder}/{name}/: no README.md" for name in SEAMS.get(folder, {})
                     if not (root / folder / name / "README.md").is_file()]
        for path in paths:
            count += 1
            relative = str(path.relative_to(root))
            lines = path.read_text(errors="replace").split("\n")
            problems += [f"{relative}:{number}: {text}" for number, text in check_file(folder, relative, lines)]
    print("\n".join(problems) or f"{count} files, all in order")
    return 1 if problems else 0


sys.exit(main())
