#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_memory_order.py [--self-test] [ROOT] - is every atomic that orders something as docs/memory-order.md says?

A *side* is the comment `PAIR room.label: ORDER` and the first atomic of base/atomic.h (or of examples/actors/sync.h) within
5 lines behind it; in an assembly file the comment alone. ORDER is `release`, `acquire`, `acquire and release`, `acq_rel`,
`seq_cst`, `release fence` or `acquire fence`: what the side needs. Held are:

1 The atomic has the order that the comment needs, or a stronger one.
2 Each label has a side that releases and one that acquires; one atomic that does both may be both.
3 Each label has one row `| room.label | releases | acquires | ... |` in the document, and each row a label. If a column of the row
  says `seq_cst`, the sides of that column are seq_cst; if a comment says it, the row does.
4 A function that a comment names (`acquire in NAME()`, `as in NAME()`) has that label in its body.
5 So has a function that a row names in its columns of sides, and a file there has the label.

--self-test weakens each side in turn, in a copy in memory, and expects to be told: to relaxed, from seq_cst to acq_rel, a
fence or the whole comment left out, and the name of the other side's function changed; and each name in a row changed.
"""
import pathlib
import re
import sys
from collections import defaultdict

FOLDERS = ["base", "term", "progress", "ringbuf", "match", "symbols", "breakpoints", "pipeline", "session",
           "agent", "tools", "erlang", "bench", "include", "examples"]
LABEL = r"[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*"
ATOMIC = re.compile(r"\b(tw_\w+?|load|store|exchange)_(relaxed|acquire|release|acq_rel|seq_cst)\(")
COMMENT = re.compile(r"/\*.*?\*/", re.S)
SIDE = re.compile(rf"\bPAIR ({LABEL}(?:, {LABEL})*): (.*?)(?=\bPAIR |$)")
NEEDED = re.compile(r"(acquire and release|acq_rel|acquire|release|seq_cst)\b( fence\b)?")
MENTION = re.compile(rf"\bPAIR ({LABEL})")
FUNCTION = re.compile(r"^[A-Za-z_][^\n;{}]*?(?:\n[^\n;{}]*?)*?\b(\w+)\([^;{}]*\)\n\{\n(.*?)^\}", re.M | re.S)
ATTRIBUTE = re.compile(r"__attribute__\(\((?:[^()]|\([^()]*\))*\)\)\s*")
PARTNER = re.compile(r"\b(\w+)\(\)")
PLACE = re.compile(r"`([\w/]+\.[chS])`")
ROW = re.compile(rf"^\| *`?({LABEL})`? *\|([^|]*)\|([^|]*)\|")
NEAR_LINES = 5
GIVES = {"relaxed": set(), "acquire": {"acquire"}, "release": {"release"}, "acq_rel": {"acquire", "release"},
         "seq_cst": {"acquire", "release", "seq_cst"}}
NEEDS = {"acquire": {"acquire"}, "release": {"release"}, "acquire and release": {"acquire", "release"},
         "acq_rel": {"acquire", "release"}, "seq_cst": {"acquire", "release", "seq_cst"}}


class Side:
    def __init__(self, where, label, needed, order, text, span):
        self.where, self.label, self.needed, self.order = where, label, needed, order
        self.text, self.span = text, span  # of the comment's words; of the atomic in its file


class File:
    """The contents of one file: its sides, the labels it mentions, the functions' bodies, and problems found so far."""

    def __init__(self, name, text):
        self.name, self.sides, self.mentions, self.problems = name, [], {}, []
        self.bodies = defaultdict(list)
        for found in MENTION.finditer(text):
            self.mentions.setdefault(found[1], f"{name}:{text.count(chr(10), 0, found.start()) + 1}")
        for found in FUNCTION.finditer(ATTRIBUTE.sub("", text)):
            self.bodies[found[1]].append(found[2])
        for comment in COMMENT.finditer(text):
            if "PAIR " in comment[0]:
                words = re.sub(r"\s*\n\s*\*?\s*", " ", comment[0][2:-2])
                for found in SIDE.finditer(words):
                    self.add(name, text, comment, found[1].split(", "), found[2])

    def add(self, name, text, comment, labels, words):
        where = f"{name}:{text.count(chr(10), 0, comment.start()) + 1}"
        needed = NEEDED.match(words)
        if not needed:
            self.problems.append(f"{where}: PAIR {labels[0]}: says no order first; write `PAIR {labels[0]}: release; ...`, "
                                 "acquire, acquire and release, or seq_cst")
            return
        order, span = needed[1], None
        if not name.endswith(".S"):
            atomic = ATOMIC.search(text, comment.end())
            if not atomic or text.count("\n", comment.end(), atomic.start()) > NEAR_LINES:
                self.problems.append(f"{where}: PAIR {labels[0]}: no atomic of base/atomic.h follows within {NEAR_LINES} lines")
                return
            order, span = atomic[2], atomic.span()
            is_fence = atomic[1] == "tw_fence"
            if not NEEDS[needed[1]] <= GIVES[order] or is_fence != bool(needed[2]):
                self.problems.append(f"{where}: PAIR {labels[0]}: needs {needed[0]}, and {atomic[0]}) is "
                                     f"{order + ' fence' if is_fence else order}")
        for label in labels:
            self.sides.append(Side(where, label, needed[1], order, words, span))


def rows_of(text):
    return {found[1]: (number, found[2], found[3])
            for number, line in enumerate(text.split("\n"), 1) if (found := ROW.match(line))}


def has_label(bodies, label):
    return any(re.search(rf"PAIR [^:]*\b{re.escape(label)}\b", body) for body in bodies)


def problems_of_row(files, bodies, label, row):
    """The names in a row must exist, and have the label."""
    number, *columns = row
    for function in PARTNER.findall(" ".join(columns)):
        if not has_label(bodies[function], label):
            yield f"docs/memory-order.md:{number}: {label}: names {function}(), which has no PAIR {label}"
    for place in PLACE.findall(" ".join(columns)):
        if not any(label in file.mentions for file in files if f"/{file.name}".endswith(f"/{place}")):
            yield f"docs/memory-order.md:{number}: {label}: names {place}, which has no PAIR {label}"


def problems_of(files, rows):
    problems = [problem for file in files for problem in file.problems]
    sides, mentions, bodies = defaultdict(list), {}, defaultdict(list)
    for file in files:
        for side in file.sides:
            sides[side.label].append(side)
        for label, where in file.mentions.items():
            mentions.setdefault(label, where)
        for function, body in file.bodies.items():
            bodies[function] += body
    for label in sorted(mentions):
        for kind in ("release", "acquire"):
            if not any(kind in GIVES[side.order] for side in sides[label]):
                there = ", ".join(side.where for side in sides[label]) or "none"
                problems.append(f"{mentions[label]}: PAIR {label} has no side that {kind}s (sides: {there}); put "
                                f"`PAIR {label}: {kind}; ...` above the atomic of the other side as well")
        if label not in rows:
            problems.append(f"{mentions[label]}: PAIR {label} has no row in docs/memory-order.md; add\n"
                            f"    | `{label}` | WHO RELEASES | WHO ACQUIRES | WHAT BREAKS WITHOUT IT |")
            continue
        number, releases, acquires = rows[label]
        both = "all seq_cst" in releases + acquires
        for side in sides[label]:
            columns = [column for kind, column in (("release", releases), ("acquire", acquires)) if kind in NEEDS[side.needed]]
            if side.needed == "seq_cst" and "seq_cst" not in releases + acquires:
                problems.append(f"docs/memory-order.md:{number}: {label}: {side.where} needs seq_cst, and the row does not say so")
            elif side.order != "seq_cst" and (both or any("seq_cst" in column for column in columns)):
                problems.append(f"{side.where}: PAIR {label}: the row in docs/memory-order.md says seq_cst, this side is {side.order}")
            for function in PARTNER.findall(side.text):
                if function not in bodies:
                    problems.append(f"{side.where}: PAIR {label}: names {function}(), which is no function")
                elif not has_label(bodies[function], label):
                    problems.append(f"{side.where}: PAIR {label}: names {function}(), which has no PAIR {label}")
        problems += problems_of_row(files, bodies, label, rows[label])
    for label, (number, _, _) in sorted(rows.items()):
        if label not in mentions:
            problems.append(f"docs/memory-order.md:{number}: {label} is not in the sources any more: remove the row")
    return problems


def mutants_of(text, file):
    """Yields (what, text): each side of the file made weaker."""
    for side in file.sides:
        if not side.span:
            continue
        start, end = side.span
        atomic = text[start:end]
        yield f"{side.where}: {atomic} relaxed", text[:start] + atomic.replace(side.order + "(", "relaxed(") + text[end:]
        if side.needed == "seq_cst":
            yield f"{side.where}: {atomic} acq_rel", text[:start] + atomic.replace("seq_cst", "acq_rel") + text[end:]
        if "fence" in atomic:
            yield f"{side.where}: no fence", text[:start] + "(" + text[end:]
        partner = PARTNER.search(side.text)
        if partner:
            name_at = text.find(partner[0], text.rfind("PAIR ", 0, start))
            yield f"{side.where}: another partner", text[:name_at] + "another_" + text[name_at:]


def self_test(texts, rows):
    files = {name: File(name, text) for name, text in texts.items()}
    tried, unseen = 0, []
    for name, file in files.items():
        others = [other for key, other in files.items() if key != name]
        for what, text in mutants_of(texts[name], file):
            tried += 1
            mutant = File(name, text)
            if not mutant.problems and not problems_of(others + [mutant], rows):
                unseen.append(what)
    for label, (number, *columns) in rows.items():
        for name in PARTNER.findall(" ".join(columns)) + PLACE.findall(" ".join(columns)):
            tried += 1
            changed = {**rows, label: (number, *(column.replace(name, f"another_{name}") for column in columns))}
            if not problems_of(list(files.values()), changed):
                unseen.append(f"docs/memory-order.md:{number}: {label}: another {name}")
    print("\n".join(unseen) or f"{tried} sides made weaker and names changed, all noticed")
    return 1 if unseen or tried < 100 else 0


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--self-test"]
    root = pathlib.Path(arguments[0] if arguments else ".").resolve()
    texts = {str(path.relative_to(root)): path.read_text(errors="replace")
             for folder in FOLDERS for path in sorted((root / folder).rglob("*.[chS]")) if path.name != "atomic.h"}
    rows = rows_of((root / "docs" / "memory-order.md").read_text())
    if "--self-test" in sys.argv:
        return self_test(texts, rows)
    files = [File(name, text) for name, text in texts.items()]
    problems = problems_of(files, rows)
    count = len({label for file in files for label in file.mentions})
    print("\n".join(problems) or f"{count} pairs, each with two sides in the order of its row")
    return 1 if problems else 0


sys.exit(main())
