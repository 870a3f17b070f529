#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_memory_order.py [ROOT] - does every pair of atomics have two sides and a row in docs/memory-order.md?

A *side* is an atomic of base/atomic.h (or of examples/actors/sync.h) that orders something (acquire, release, acq_rel, seq_cst) with
the comment `PAIR room.label` at most 12 lines above it, or that comment in an assembly file. Each label
needs two sides (one atomic that acquires and releases may be both: it meets itself on other threads), and one row `| room.label | ... |` in the document; each row needs its sides.
"""
import pathlib
import re
import sys
from collections import defaultdict

FOLDERS = ["base", "term", "progress", "ringbuf", "match", "symbols", "breakpoints", "pipeline", "session",
           "agent", "tools", "erlang", "bench", "include", "examples"]
ORDERED = re.compile(r"\b(?:tw_\w+|load|store|exchange)_(acquire|release|acq_rel|seq_cst)\(")
PAIR = re.compile(r"\bPAIR ([a-z][a-z0-9_]*\.[a-z][a-z0-9_]*)")
ROW = re.compile(r"^\| *`?([a-z][a-z0-9_]*\.[a-z][a-z0-9_]*)`? *\|")
NEAR_LINES = 12


def sides_of(path):
    """Yields (label, line number, what stands there)."""
    lines = path.read_text(errors="replace").split("\n")
    pending = []  # labels of the last comment, and where
    for number, line in enumerate(lines, 1):
        found = PAIR.findall(line)
        if found:
            if path.suffix == ".S":
                for label in found:
                    yield label, number, line.strip()
            if pending and number - pending[0][1] > 3:
                pending = []
            pending += [(label, number) for label in found]
        elif path.name != "atomic.h" and ORDERED.search(line):
            for label, at in pending:
                if number - at <= NEAR_LINES:
                    yield label, number, line.strip()


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    document = root / "docs" / "memory-order.md"
    sides, mentioned = defaultdict(dict), {}
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.[chS]")):
            for label, number, text in sides_of(path):
                sides[label][f"{path.relative_to(root)}:{number}"] = text
            for number, line in enumerate(path.read_text(errors="replace").split("\n"), 1):
                for label in PAIR.findall(line):
                    mentioned.setdefault(label, f"{path.relative_to(root)}:{number}")
    rows = {}
    for number, line in enumerate(document.read_text().split("\n"), 1):
        match = ROW.match(line)
        if match:
            rows[match[1]] = number
    problems = []
    for label in sorted(mentioned):
        at = sides[label]
        is_both = any("_acq_rel(" in text or "_seq_cst(" in text for text in at.values())
        if len(at) < 2 and not is_both:
            there = ", ".join(at) or "none"
            problems.append(f"{mentioned[label]}: PAIR {label} has {len(at)} side(s) ({there}); put the comment "
                            f"`PAIR {label}` above the atomic of the other side as well")
        if label not in rows:
            problems.append(f"{mentioned[label]}: PAIR {label} has no row in docs/memory-order.md; add\n"
                            f"    | `{label}` | WHO RELEASES | WHO ACQUIRES | WHAT BREAKS WITHOUT IT |")
    for label, number in sorted(rows.items()):
        if label not in mentioned:
            problems.append(f"docs/memory-order.md:{number}: {label} is not in the sources any more: remove the row")
    print("\n".join(problems) or f"{len(mentioned)} pairs, each with two sides and a row")
    return 1 if problems else 0


sys.exit(main())
