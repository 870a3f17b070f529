#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_controls.py [ROOT] - does each check of the sources find a mistake of each kind?

A copy of the sources gets all mistakes at once, and each check must report those that are its own. check_memory_order.py, check_ringset.py,
check_links.py and check_stack.py make their own mistakes.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
FOLDERS = "agent base breakpoints cmake docs erlang examples include match pipeline plan progress ringbuf session symbols term tests tools views".split()
LEFT_OUT = shutil.ignore_patterns("golden", "corpus", "*.term", "*.xz", "*.tw", "_build", "build")
END = None  # instead of a text: the mistake is added at the end
NOT_THERE = "tw" + "_no_such_name"  # a name of the code, were it whole here
LONG = "\nstatic void far_too_long(void)\n{\n" + "\t;\n" * 61 + "}\n"

# The check, a file, what is replaced in it by what, and a part of what the check says.
MISTAKES = [
    ("tree", "base/clock.c", "SPDX-License-Identifier", "No-License", "base/clock.c:1: no SPDX line"),
    ("tree", "term/copy.c", END, "\n" * 600, "term/copy.c:1: .* lines: is this one thing"),
    ("tree", "term/hash.c", END, LONG, r"term/hash.c:\d+: far_too_long\(\) has 61 lines"),
    ("tree", "ringbuf/crash.c", END, '#include "session/session.h"\n', "ringbuf/ must not know session/"),
    ("tree", "progress/grace.c", END, '#include "ringbuf/ringbuf.h"\n', "progress/ must not know ringbuf/"),
    ("tree", "pipeline/codec/generic.c", END, '#include "pipeline/block/block.h"\n', "pipeline/codec/ must not know pipeline/block/"),
    ("tree", "session/slot.c", END, '#include "tools/tool.h"\n', "session/ must not know tools/"),
    ("tree", "tools/cut.c", END, '#include "session/session.h"\n', "tools/ sees include/tracewheel only, not session/"),
    ("tree", "views/folds/gaps.c", END, "#include <sqlite3.h>\n", "its one place is tools/sql/"),
    ("tree", "symbols/elf.c", END, 'int opens(void) { return open("x", 0); }\n', "files are opened through base/file.h"),
    ("tree", "match/verify.c", END, "int x(_Atomic int *y) { return atomic_load(y); }\n", "atomics go through base/atomic.h"),
    ("tree", "pipeline/codec/README.md", None, None, "pipeline/codec/: no README.md"),
    ("docs", "docs/top.md", END, "[a](NO_NAME.md)\n", "the link to NO_NAME.md leads nowhere"),
    ("docs", "docs/attach.md", END, "[b](#no-such-heading)\n", "attach.md has no heading #no-such-heading"),
    ("docs", "docs/flight.md", END, "`tools/nothing.c`\n", "there is no tools/nothing.c"),
    ("docs", "docs/memory.md", END, f"`{NOT_THERE}()`\n", f"the code has no {NOT_THERE}"),
    ("docs", "term/walk.c", END, f"/* As {NOT_THERE}(). */\n", f"there is no {NOT_THERE}"),
    ("docs", "term/sink.c", END, "/* As in tests/unit/no_test.c. */\n", "there is no tests/unit/no_test.c"),
    ("docs", "term/etf.c", END, "/* Bytes. What is read is checked. */\n", "a sentence begins with What"),
    ("docs", "docs/decisions/0001-two-libraries.md", "# 0001: ", "# 1: ", "the title does not begin with its number"),
    ("docs", "docs/decisions/README.md", "calls are counted where", "calls are lost where", "it lacks 0044"),
    ("docs", "docs/README.md", "(top.md)", "(attach.md)", "top.md is not in the index"),
    ("docs", "README.md", "tracewheel recover", "tracewheel restore", "tracewheel recover is not in it"),
    ("docs", "CHANGELOG.md", "## ", "## 0.", "begins with"),
    ("docs", "include/tracewheel/kinds.h", 'X(SPAWN, ', 'X(NOTHING, 250, "nothing", CALL, NULL, NULL) X(SPAWN, ', "there is no 250 nothing"),
    ("docs", "base/README.md", "`checksum.c`", "a sum", "base/README.md: it does not name checksum.c"),
    ("public", "cmake/tracewheel.map", "\ttw_arena_fini;\n", "", r"tw_arena_fini\(\) is in no cmake"),
    ("public", "cmake/tracewheel.map", "\ttw_arena_init;\n", "\ttw_arena_inits;\n", "tw_arena_inits is declared in no header"),
    ("semantics", "docs/semantics.md", "| 2 | ", "| 1 | ", "."),
    ("format", "base/own_area.c", END, "int   badly_formatted ;\n", "base/own_area.c:.* differs"),
]
COMMITS = [("a subject without a room", "", "the subject is not"), ("room: " + "long " * 20, "", "72 are the most"), ("room: no reason", "", "no body says why")]


def make_mistakes(copy):
    for _, name, old, new, _ in MISTAKES:
        path = copy / name
        if new is None:
            path.unlink()
            continue
        text = path.read_text()
        if old is not END and old not in text:
            sys.exit(f"{name}: there is no {old!r} to replace")
        path.write_text(text + new if old is END else text.replace(old, new, 1))


def run(check, where):
    done = subprocess.run([sys.executable, str(root / f"tests/check_{check}.py"), str(where)], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def only(copy, names):
    """check_format takes long: it sees the files that have a mistake of its own, and its rules."""
    for name in names + [".clang-format"]:
        (copy / "few" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(copy / name, copy / "few" / name)
    return copy / "few"


def check_commits(where, problems):
    where.mkdir()
    git = ["git", "-C", str(where), "-c", "user.name=x", "-c", "user.email=x@localhost", "-c", "commit.gpgsign=false"]
    subprocess.run([*git, "init", "-q"], check=True)
    for number, (subject, body, _) in enumerate([("tests: a rule", "why", "")] + COMMITS):
        path = where / ("tests/check_commits.py" if not number else f"{number}.c")
        path.parent.mkdir(exist_ok=True)
        path.write_text("line\n" * 20)
        subprocess.run([*git, "add", "-A"], check=True)
        subprocess.run([*git, "commit", "-q", "-m", subject + "\n\n" + body], check=True)
    said = run("commits", where)[1]
    problems += [f"check_commits.py does not find: {wanted}" for _, _, wanted in COMMITS if wanted not in said]


def main():
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "tree"
        copy.mkdir()
        for name in FOLDERS:
            shutil.copytree(root / name, copy / name, ignore=LEFT_OUT, symlinks=True)
        for name in ("README.md", "CHANGELOG.md", "CMakeLists.txt", "CONTRIBUTING.md", ".clang-format"):
            shutil.copy(root / name, copy / name)
        make_mistakes(copy)
        for check in sorted({mistake[0] for mistake in MISTAKES}):
            code, said = run(check, only(copy, [m[1] for m in MISTAKES if m[0] == check]) if check == "format" else copy)
            if code == 77:
                continue
            problems += [f"check_{check}.py does not find: {name}: {wanted}" for own, name, _, _, wanted in MISTAKES
                         if own == check and (code != 1 or not re.search(wanted, said))]
        check_commits(pathlib.Path(folder) / "commits", problems)
    print("\n".join(problems) or f"{len(MISTAKES) + len(COMMITS)} mistakes, all found")
    return 1 if problems else 0


sys.exit(main())
