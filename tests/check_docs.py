#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_docs.py [ROOT] - do documents and comments name what is there?

1 Each link of a document leads to a file, and each anchor to a heading of it.
2 Each path in `backquotes` of a document, and each document that a comment names, is there: paths from the root of the tree or
  from the document's own folder or include/tracewheel, file names alone anywhere in that folder or below.
3 Each document of docs/ stands in docs/README.md, and the index names no other.
4 Each tw_ and TW_ name of a document is one of the code; in tw_callN the N is any number, in tw_tool_NAME
  the NAME any name.
5 Each decision has a number of its own, which its title begins with.
6 README.md names each command of the command line, and CHANGELOG.md begins with the version of CMakeLists.txt.
7 docs/format.md has each kind of event with its number, and docs/json.md the members of its terms.
8 In comments of the product no sentence begins with What, Who or Where, unless it is a question.
9 The README of a folder of the product names each of its .c files: the file, its header, or a pattern as `seq_*.c`.
"""
import fnmatch
import pathlib
import re
import subprocess
import sys

root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
SOURCES = (".c", ".h", ".S", ".cc", ".py", ".sh", ".cmake", ".pml", ".md", ".awk", ".erl", ".txt")
SKIPPED = ("build/", ".git/", "tests/golden/", "tests/fuzz/corpus/")
# Names that a program creates, a user owns, or an example invents.
NOT_OURS = re.compile(r"^(/|~|\.\.?$|_|app|build/|bin/|lib/|share/|urcu/)|NAME|WHAT|ROOM|\bwhat_|[*{}<>$ ,:]|\.\.\.")
PATH = re.compile(r"^[\w./+-]+\.(?:c|h|S|cc|py|sh|cmake|pml|md|awk|erl|ini|map|html|term)$|^[\w.-]+(?:/[\w.-]+)*/$")


def anchor_of(heading):
    text = re.sub(r"[`*]|\[([^]]*)\]\([^)]*\)", lambda found: found[1] or "", heading.strip())
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def without_code(text):
    return re.sub(r"^```.*?^```", lambda found: "\n" * found[0].count("\n"), text, flags=re.S | re.M)


def anchors(path):
    return {anchor_of(found) for found in re.findall(r"^#+ (.*)$", without_code(path.read_text()), re.M)}


def files():
    try:
        listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=root, capture_output=True, text=True,
                                check=True).stdout.split("\n")
    except (OSError, subprocess.CalledProcessError):
        listed = [str(path.relative_to(root)) for path in root.rglob("*")]
    return sorted(name for name in listed if name and not name.startswith(SKIPPED) and (root / name).is_file())


def is_there(name, folder, names):
    wanted = name.rstrip("/")
    if any((root / place / wanted).exists() for place in ("", folder, "include", "include/tracewheel", "docs")):
        return True
    # A name alone, or with the last folders before it, means the one file of that name in the folder or below.
    below = f"{folder}/" if folder else ""
    return any(other == wanted or (other.startswith(below) and other.endswith("/" + wanted)) for other in names)


def check_links(name, text, problems):
    here = root / name
    for found in re.finditer(r"\[[^]]*\]\(([^)\s]+)\)", text):
        target, _, anchor = found[1].partition("#")
        line = text.count("\n", 0, found.start()) + 1
        if re.match(r"[a-z]+:", found[1]):
            continue
        path = (here.parent / target) if target else here
        if not path.exists():
            problems.append(f"{name}:{line}: the link to {found[1]} leads nowhere")
        elif anchor and anchor not in anchors(path):
            problems.append(f"{name}:{line}: {path.name} has no heading #{anchor}")


CODE_NAME = re.compile(r"\b(?:tw|TW)_\w*\w\b(?<!_)")


def check_code_names(names, documents, problems):
    code = set()
    for name in names:
        if name.endswith((".c", ".h", ".S", ".cc", ".py", ".cmake", "CMakeLists.txt", ".map")) and name != "tests/check_docs.py":
            text = (root / name).read_text(errors="replace")
            code |= set(CODE_NAME.findall(re.sub(r"/\*.*?\*/", " ", text, flags=re.S)))
    check_comments(names, code, problems)
    families = {re.sub(r"\d+$", "N", name) for name in code}
    for name in documents:
        text = (root / name).read_text()
        for found in CODE_NAME.finditer(text):
            if found[0] not in code and found[0] not in families and not re.search(r"^tw_.*[A-Z]{2}", found[0]):
                problems.append(f"{name}:{text.count(chr(10), 0, found.start()) + 1}: the code has no {found[0]}")


def check_comments(names, code, problems):
    """Names of code, and of files of ours, in comments of the product."""
    for name in names:
        if not name.endswith((".c", ".h", ".S")) or name.startswith(("tests/", "bench/")):
            continue
        text = (root / name).read_text(errors="replace")
        for comment in re.finditer(r"/\*(.*?)\*/", text, re.S):
            for found in re.finditer(r"\b(?:tw|TW)_\w*\w\b(?<!_)|\b(?:tests|docs|tools|views|bench)/[\w/]+\.(?:sh|c|h|py|md)\b", comment[1]):
                is_there = found[0] in names if "/" in found[0] else found[0] in code or re.sub(r"N$", "", found[0]) in code
                if not is_there and not re.search(r"^tw_.*[A-Z]{2}|N$", found[0]) and not any(c.startswith(found[0]) for c in code):
                    line = text.count("\n", 0, comment.start() + 2 + found.start()) + 1
                    problems.append(f"{name}:{line}: there is no {found[0]}")
            for found in re.finditer(r"(?:\A[\s*-]*|[.!?](?:\s|\n[ \t]*\*)+)((?:What|Who|Whose|Whom|Where)\b.*?(?:[.?!](?=\s|$)|$))", comment[1], re.S):
                if not found[1].endswith("?"):
                    line = text.count("\n", 0, comment.start() + 2 + found.start(1)) + 1
                    problems.append(f"{name}:{line}: a sentence begins with {found[1].split()[0]}: its subject comes first")


def check_decisions(names, problems):
    index = (root / "docs/decisions/README.md").read_text()
    numbers = {}
    for name in names:
        found = re.fullmatch(r"docs/decisions/(\d{4})-.*\.md", name)
        if not found:
            continue
        if found[1] in numbers:
            problems.append(f"{name}: {numbers[found[1]]} has this number too")
        numbers[found[1]] = name
        if not (root / name).read_text().startswith(f"# {found[1]}: "):
            problems.append(f"{name}:1: the title does not begin with its number")
        title = (root / name).read_text().split("\n", 1)[0].removeprefix(f"# {found[1]}: ")
        if f"| [{found[1]}]({pathlib.PurePosixPath(name).name}) | {title} |" not in index:
            problems.append(f"docs/decisions/README.md: it lacks {found[1]}, or has another sentence than its title")


def check_readmes(names, problems):
    for name in names:
        path = pathlib.PurePosixPath(name)
        readme = root / path.parent / "README.md"
        if path.suffix != ".c" or name.startswith(("tests/", "bench/")) or not readme.is_file():
            continue
        words = set(re.findall(r"[\w*]+\.[ch]\b", readme.read_text()))
        if not any(fnmatch.fnmatchcase(other, word) for word in words for other in (path.name, path.stem + ".h")):
            problems.append(f"{path.parent}/README.md: it does not name {path.name}")


def check_kinds(problems):
    rows = re.findall(r'\bX\((\w+), (\d+), "(\w+)"(?:, \w+, ("\w+"|NULL), ("\w+"|NULL))?\)', (root / "include/tracewheel/kinds.h").read_text())
    formats, members = (root / "docs/format.md").read_text(), (root / "docs/json.md").read_text()
    for name, number, word, first, second in rows:
        shown = word if first else f"seq_{word}"
        if not re.search(rf"\b{number} ({shown}|{name.lower().replace('_', ' ')})\b", formats):
            problems.append(f"docs/format.md: there is no {number} {shown}")
        problems.extend(f"docs/json.md: there is no `{term}` of {shown}" for term in (first.strip('"'), second.strip('"'))
                        if term and term != "NULL" and f"`{term}`" not in members)


def main():
    names, problems = files(), []
    with_folders = set(names)
    for name in names:
        for parent in pathlib.PurePosixPath(name).parents:
            with_folders.add(str(parent))
    folders_of = {name: str(pathlib.PurePosixPath(name).parent).removesuffix(".").strip("/") for name in names}
    documents = [name for name in names if name.endswith(".md")]
    count = 0
    for name in documents:
        text = without_code((root / name).read_text())
        check_links(name, text, problems)
        for found in re.finditer(r"`([^`\n]+)`", text):
            if PATH.match(found[1]) and not NOT_OURS.search(found[1]):
                count += 1
                folder = "" if name.startswith("docs/") or "/" not in name else folders_of[name]
                if not is_there(found[1], folder, with_folders):
                    problems.append(f"{name}:{text.count(chr(10), 0, found.start()) + 1}: there is no {found[1]}")
    for name in names:
        if name in documents or not name.endswith(SOURCES) or name == "tests/check_docs.py":
            continue
        text = (root / name).read_text(errors="replace")
        for found in re.finditer(r"(?<![\w/.\"$%}-])((?:[\w-]+/)*[\w-]+\.md)\b(?!\")", text):
            count += 1
            if not NOT_OURS.search(found[1]) and not is_there(found[1], folders_of[name], with_folders):
                problems.append(f"{name}:{text.count(chr(10), 0, found.start()) + 1}: there is no {found[1]}")
    check_code_names(names, documents, problems)
    check_decisions(names, problems)
    check_kinds(problems)
    check_readmes(names, problems)
    index = set(re.findall(r"\]\(([\w/-]+\.md)\)", (root / "docs/README.md").read_text()))
    there = {name[5:] for name in documents if re.fullmatch(r"docs/[\w-]+\.md", name)} - {"README.md"}
    problems += [f"docs/README.md: {name} is not in the index" for name in sorted(there - index)]
    readme = (root / "README.md").read_text()
    problems += [f"README.md: tracewheel {command} is not in it"
                 for command in re.findall(r'^\t\{"(\w+)", "', (root / "tools/main.c").read_text(), re.M)
                 if f"tracewheel {command}" not in readme]
    version = re.search(r"project\(tracewheel VERSION ([\d.]+)", (root / "CMakeLists.txt").read_text())[1]
    first = re.search(r"^## (\S+)", (root / "CHANGELOG.md").read_text(), re.M)[1]
    if first != version:
        problems.append(f"CHANGELOG.md: begins with {first}, and the version is {version}")
    print("\n".join(problems) or f"{len(documents)} documents, {count} names of files: all there")
    return 1 if problems else 0


sys.exit(main())
