#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_memory_order.py [--self-test] [ROOT] - is every atomic that orders something as docs/memory-order.md says?

A *side* is the comment `PAIR room.label: ORDER` and the first atomic of base/atomic.h (or of examples/actors/sync.h) within
5 lines behind it; in an assembly file the comment alone. ORDER is `release`, `acquire`, `acquire and release`, `acq_rel`,
`seq_cst`, `release fence` or `acquire fence`: what the side needs. Held are:

1 The atomic has the order that the comment needs, or a stronger one.
2 Each label has a comment that says release and one that says acquire; what the atomic gives beyond that does not count. For each
  of the two, a comment names the function of the other side (`acquire in NAME()`), its own where two threads meet in one line.
  Where the program's machine code or the kernel is the other side, the row begins the column with "the program's own" or
  "the kernel's".
3 Each label has one row `| room.label | releases | acquires | ... |` in the document, and each row a label. If a column of the row
  says `seq_cst`, the sides of that column are seq_cst; if a comment says it, the row does.
4 A function that a comment names (`acquire in NAME()`, `as in NAME()`) has that label in its body.
5 So has a function that a row names in its columns of sides, and a file there has the label.

6 Every atomic, also one that orders nothing, has a comment with PAIR, RELAXED or PROGRESS within 5 lines before it.

--self-test weakens each side in turn, in a copy in memory, and expects to be told: to relaxed, from seq_cst to acq_rel, a
fence left out, and the name of the other side's function changed; the comments of one side of a label left out, or their names;
each name in a row changed; and each comment of an atomic left out that has no other near it.  One in four of these mistakes is tried, or
all with TW_TEST_LONG (./run test --long).
"""
import itertools
import os
import pathlib
import re
import sys
from collections import defaultdict

FOLDERS = ["base", "term", "progress", "ringbuf", "match", "symbols", "breakpoints", "pipeline", "plan",
           "session", "agent", "views", "tools", "erlang", "bench", "include", "examples"]
LABEL = r"[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*"
ATOMIC = re.compile(r"(?<!#define )\b(tw_(?:load|store|exchange|cas|fetch_add|fetch_sub|fetch_or|fetch_and|fence)(?:_plain)?"
                    r"|load|store|exchange)_(relaxed|acquire|release|acq_rel|seq_cst)\(")
TAG = re.compile(r"\b(PAIR|RELAXED|PROGRESS)\b")
COMMENT = re.compile(r"/\*.*?\*/", re.S)
SIDE = re.compile(rf"\bPAIR ({LABEL}(?:, {LABEL})*): (.*?)(?=\bPAIR |$)")
NEEDED = re.compile(r"(acquire and release|acq_rel|acquire|release|seq_cst)\b( fence\b)?")
MENTION = re.compile(rf"\bPAIR ({LABEL})")
FUNCTION = re.compile(r"^[A-Za-z_][^\n;{}]*?(?:\n[^\n;{}]*?)*?\b(\w+)\([^;{}]*\)\n\{\n(.*?)^\}", re.M | re.S)
# FUNCTION(name, ...) { } and TW_BENCH(name, ...) { }, and a comment above #define NAME(...).
MACRO_FUNCTION = re.compile(r"^[A-Z_]+\((\w+)[^;{}]*\)\n\{\n(.*?)^\}", re.M | re.S)
MACRO = re.compile(r"(/\*(?:(?!\*/).)*\*/)\n#define (\w+)\(", re.S)
ATTRIBUTE = re.compile(r"__attribute__\(\((?:[^()]|\([^()]*\))*\)\)\s*")
PARTNER = re.compile(r"\b(\w+)\(\)")
PLACE = re.compile(r"`([\w/]+\.[chS])`")
ROW = re.compile(rf"^\| *`?({LABEL})`? *\|([^|]*)\|([^|]*)\|")
NEAR_LINES = 5
GIVES = {"relaxed": set(), "acquire": {"acquire"}, "release": {"release"}, "acq_rel": {"acquire", "release"},
         "seq_cst": {"acquire", "release", "seq_cst"}}
NEEDS = {"acquire": {"acquire"}, "release": {"release"}, "acquire and release": {"acquire", "release"},
         "acq_rel": {"acquire", "release"}, "seq_cst": {"acquire", "release", "seq_cst"}}


def sides_in(comment):
    """Yields (labels, words) of each side in a comment."""
    if "PAIR " in comment:
        for found in SIDE.finditer(re.sub(r"\s*\n\s*\*?\s*", " ", comment[2:-2])):
            yield found[1].split(", "), found[2]


class Side:
    def __init__(self, where, label, needed, order, text, comment_at, span):
        self.where, self.label, self.needed, self.order = where, label, needed, order
        self.text, self.comment_at, self.span = text, comment_at, span  # the words; offsets of the comment and of the atomic


class File:
    """The contents of one file: its sides, the labels it mentions, the functions' bodies, and problems found so far."""

    def __init__(self, name, text):
        self.name, self.sides, self.mentions, self.problems = name, [], {}, []
        self.bodies = defaultdict(list)
        for found in MENTION.finditer(text):
            self.mentions.setdefault(found[1], f"{name}:{text.count(chr(10), 0, found.start()) + 1}")
        for pattern in FUNCTION, MACRO_FUNCTION:
            for found in pattern.finditer(ATTRIBUTE.sub("", text)):
                self.bodies[found[1]].append(found[2])
        for found in MACRO.finditer(text):
            self.bodies[found[2]].append(found[1])
        for comment in COMMENT.finditer(text):
            for labels, words in sides_in(comment[0]):
                self.add(name, text, comment, labels, words)
        if not name.endswith(".S"):
            self.add_untagged(name, text)

    def add_untagged(self, name, text):
        tags = [text.count("\n", 0, comment.end()) for comment in COMMENT.finditer(text) if TAG.search(comment[0])]
        for atomic in ATOMIC.finditer(text):
            line = text.count("\n", 0, atomic.start())
            if not any(0 <= line - tag <= NEAR_LINES for tag in tags):
                self.problems.append(f"{name}:{line + 1}: {atomic[0]}) has no comment with PAIR, RELAXED or PROGRESS within "
                                     f"{NEAR_LINES} lines before it")

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
            self.sides.append(Side(where, label, needed[1], order, words, comment.start(), span))


def rows_of(text):
    return {found[1]: (number, found[2], found[3])
            for number, line in enumerate(text.split("\n"), 1) if (found := ROW.match(line))}


def has_label(bodies, label):
    return any(re.search(rf"PAIR [^:]*\b{re.escape(label)}\b", body) for body in bodies)


def has_side(bodies, label, kind):
    """Whether a function has a side of the label that says `kind`."""
    for body in bodies:
        for comment in COMMENT.finditer(body):
            for labels, words in sides_in(comment[0]):
                needed = NEEDED.match(words)
                if label in labels and needed and kind in NEEDS[needed[1]]:
                    return True
    return False


def is_outside(column):
    """Whether a side of a row is no code of the tree."""
    return column.strip().startswith(("the program's own", "the kernel's"))


def problems_of_sides(sides, bodies, label, where, row):
    """Each label has both sides, in words, and each side names the other."""
    for kind, other, column in ("release", "acquire", 1), ("acquire", "release", 2):
        own = [side for side in sides if kind in NEEDS[side.needed]]
        there = ", ".join(side.where for side in sides) or "none"
        if row and is_outside(row[column]):
            continue
        if not own:
            yield (f"{where}: PAIR {label} has no side that {kind}s (sides: {there}); put "
                   f"`PAIR {label}: {kind}; {other} in NAME()` above the atomic of the other side as well")
        elif row and is_outside(row[3 - column]):
            continue
        elif not any(has_side(bodies[name], label, other) for side in own for name in PARTNER.findall(side.text)):
            yield (f"{own[0].where}: PAIR {label}: no comment that says {kind} names a function of the other side; write "
                   f"`PAIR {label}: {kind}; {other} in NAME()`")


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
        problems += problems_of_sides(sides[label], bodies, label, mentions[label], rows.get(label))
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
            name_at = text.find(partner[0], side.comment_at)
            yield f"{side.where}: another partner", text[:name_at] + "another_" + text[name_at:]


def without_comments(texts, files):
    """Yields (what, name, text): a comment with a tag made a comment without one, where no other tag is near its atomic."""
    for name, text in texts.items():
        if name.endswith(".S"):
            continue
        comments = [comment for comment in COMMENT.finditer(text) if TAG.search(comment[0])]
        ends = [text.count("\n", 0, comment.end()) for comment in comments]
        for comment, end in zip(comments, ends):
            atomic = ATOMIC.search(text, comment.end())
            line = text.count("\n", 0, atomic.start()) if atomic else 0
            others = [other for other in ends if other != end and 0 <= line - other <= NEAR_LINES]
            if atomic and line - end <= NEAR_LINES and not others:
                untagged = TAG.sub("NOTHING", comment[0])
                yield f"{name}:{end + 1}: no tag", name, text[:comment.start()] + untagged + text[comment.end():]


def one_sided(texts, files):
    """Yields (what, {name: text}): for each label the comments of one side left out, or without the other side's name."""
    labels = sorted({side.label for file in files.values() for side in file.sides})
    for label in labels:
        for kind in "release", "acquire":
            pair = re.compile(rf"PAIR (?=[^:]*\b{re.escape(label)}\b)")
            for what, change in (("left out", lambda comment, pair=pair: pair.sub("RELAXED ", comment)),
                                 ("without names", lambda comment: comment.replace("()", ""))):
                changed = {}
                for name, file in files.items():
                    if not any(side.label == label and kind in NEEDS[side.needed] for side in file.sides):
                        continue

                    def one(found):
                        own = [words for names, words in sides_in(found[0]) if label in names]
                        is_of_kind = any(NEEDED.match(words) and kind in NEEDS[NEEDED.match(words)[1]] for words in own)
                        return change(found[0]) if is_of_kind else found[0]
                    changed[name] = COMMENT.sub(one, texts[name])
                if any(changed[name] != texts[name] for name in changed):
                    yield f"{label}: every comment that says {kind} {what}", changed


def sample(mistakes):
    return itertools.islice(mistakes, 0, None, 1 if os.environ.get("TW_TEST_LONG") else 4)


def self_test(texts, rows):
    files = {name: File(name, text) for name, text in texts.items()}
    tried, unseen = 0, []
    for name, file in files.items():
        others = [other for key, other in files.items() if key != name]
        for what, text in sample(mutants_of(texts[name], file)):
            tried += 1
            mutant = File(name, text)
            if not mutant.problems and not problems_of(others + [mutant], rows):
                unseen.append(what)
    for label, (number, *columns) in rows.items():
        for name in sample(PARTNER.findall(" ".join(columns)) + PLACE.findall(" ".join(columns))):
            tried += 1
            changed = {**rows, label: (number, *(column.replace(name, f"another_{name}") for column in columns))}
            if not problems_of(list(files.values()), changed):
                unseen.append(f"docs/memory-order.md:{number}: {label}: another {name}")
    for what, name, text in sample(without_comments(texts, files)):
        tried += 1
        if not File(name, text).problems:
            unseen.append(what)
    for what, changed in sample(one_sided(texts, files)):
        tried += 1
        mutants = [File(name, changed[name]) if name in changed else file for name, file in files.items()]
        if not problems_of(mutants, rows):
            unseen.append(what)
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
