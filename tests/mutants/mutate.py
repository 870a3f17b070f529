#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mutate.py [--seed N] [--seconds N] [--count N] [--only REGEX] - would the tests notice a small mistake?
mutate.py --try FILE - of these mistakes, one a line: file :: line :: changed line (`;`: left out; `before: LINE`: exchanged with
the statement above it); once_survived.txt is such a list

Goal    Each random small mistake in ringbuf, progress, breakpoints, pipeline and session is noticed by the quick tests.
Method  In a copy of the tree under build/mutate one line at a time is changed: an operator, a constant, a memory order, a
        condition turned round, a statement left out. The copy is built, and the unit tests of that room run, with
        a limit of time; check_memory_order.py checks it as well. A mutant that is noticed, or does not end where the sound
        program does, is killed. Survivors are printed with file, line and change. Mutants listed in equivalent.txt are not tried.

Ends with 1 when there are survivors. The same seed draws the same mutants of the same tree.
"""
import argparse
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed

ROOT = pathlib.Path(__file__).resolve().parents[2]
COPY = ROOT / "build" / "mutate" / ("tried" if "--try" in sys.argv else "tree")
SOUND = COPY.with_name(COPY.name + "-sound")
ROOMS = {
    # room: tests that are built and run, the quickest and nearest first
    "ringbuf": [r"ringbuf_", r"ring_(growth_)?step$", r"capture_(record|recover)$", r"session_(race|life|hit)$"],
    "progress": [r"progress_", r"session_(race|life|frame_race)$", r"tools_stress$"],
    "breakpoints": [r"breakpoints_", r"session_(change|counter|frame|memory|native)$", r"tools_stress$"],
    "pipeline": [r"(catalog|capture|pipeline)_", r"session_", r"tools_(print|report)$"],
    "session": [r"session_"],
}
HEADERS = ["ringbuf/ringbuf.h", "ringbuf/ringset.h", "pipeline/hit/hit.h", "breakpoints/returns.h", "progress/read_side.h"]
TEST_SECONDS = 60
SWAPS = [
    ("<=", ["<"]), (">=", [">"]), ("==", ["!="]), ("!=", ["=="]), ("&&", ["||"]), ("||", ["&&"]),
    ("<", ["<=", ">"]), (">", [">=", "<"]), ("+", ["-"]), ("-", ["+"]), ("|", ["&"]), ("&", ["|"]),
    ("<<", [">>"]), (">>", ["<<"]), ("+=", ["-="]), ("-=", ["+="]), ("++", ["--"]), ("--", ["++"]), ("|=", ["&="]), ("&=", ["|="]),
]
OPERATOR = re.compile(r"(?<=\s)(<=|>=|==|!=|&&|\|\||<<|>>|\+=|-=|\|=|&=|<|>|\+|-|\||&)(?=\s)|(?<=\w)(\+\+|--)(?=[;)\s])")
NUMBER = re.compile(r"(?<![\w.\"])(\d+)(?![\w.\"])")
ORDER = re.compile(r"\btw_\w+?_(acquire|release|acq_rel|seq_cst)\(")
WORD = re.compile(r"\b(true|false)\b")
CONDITION = re.compile(r"\b(if|while) \((?!.*[{(]\s*$)(.+)\)( \{)?$")
STATEMENT = re.compile(r"^\t+(?:[a-z_][\w.>\[\]-]*(?:\([^;]*\)|\s*[-+|&]?=[^=][^;]*|\+\+|--));$")
CALL = re.compile(r"^\t+[a-z_]\w*\(")  # two assignments are rarely in an order that matters
FREE = re.compile(r"^\t+free\(")  # a leak: for the address sanitizer, which checks at the end of each test
SKIPPED = re.compile(r"^\s*(#|\*|/\*|//)|TW_ASSERT|_Static_assert|__attribute__|__asm__|^\s*return;|case |default:|[\"']|TW_TSAN|for \(;;\)")


EXCHANGED = "before: "  # the statement is put before this one, which stands above it


class Mutant:
    def __init__(self, path, number, before, after):
        self.path, self.number, self.before, self.after = path, number, before, after

    def text(self):
        return f"{self.path}:{self.number}\n    - {self.before.strip()}\n    + {self.after.strip() or '(left out)'}"

    def apply(self, lines):
        if EXCHANGED in self.after:
            above = statement_above(lines, self.number)
            lines[above - 1], lines[self.number - 1] = lines[self.number - 1], lines[above - 1]
        else:
            lines[self.number - 1] = self.after


def statement_above(lines, number):
    """The number of the statement before this one in the same block, comments between them passed over; 0: there is none."""
    indent = re.match(r"\t*", lines[number - 1])[0]
    above = number - 1
    while above and re.match(rf"{indent}( \*|/\*)", lines[above - 1]):
        above -= 1
    line = lines[above - 1] if above else ""
    is_one = STATEMENT.match(line) and re.match(r"\t*", line)[0] == indent and not SKIPPED.search(line)
    # An `if` without braces, or a statement of several lines, ends above.
    return above if is_one and re.search(r"[;{}]$|\*/$|^$", lines[above - 2]) else 0


def changes(line):
    """All lines that this one can become; comments are left alone."""
    comment_at = line.find("/*")
    if comment_at >= 0:
        return [after + line[comment_at:] for after in changes(line[:comment_at].rstrip())]
    out = []
    for found in OPERATOR.finditer(line):
        for swap in dict(SWAPS)[found[0]]:
            out.append(line[:found.start()] + swap + line[found.end():])
    for found in NUMBER.finditer(line):
        out.append(line[:found.start()] + str(int(found[1]) + 1) + line[found.end():])
        if int(found[1]) > 0:
            out.append(line[:found.start()] + str(int(found[1]) - 1) + line[found.end():])
    for found in ORDER.finditer(line):
        out.append(line[:found.start()] + found[0].replace(found[1], "relaxed") + line[found.end():])
    for found in WORD.finditer(line):
        out.append(line[:found.start()] + ("false" if found[1] == "true" else "true") + line[found.end():])
    for found in CONDITION.finditer(line):
        if found[2].count("(") == found[2].count(")"):
            out.append(line[:found.start()] + f"{found[1]} (!({found[2]})){found[3] or ''}" + line[found.end():])
    if STATEMENT.match(line) and not FREE.match(line):
        out.append(re.match(r"\t+", line)[0] + ";")
    return out


def draw(random_source, only):
    """Every possible mutant of the tree, in random order: rooms in turn, so that each is covered."""
    rooms = {room: [] for room in ROOMS}
    for room, mutants in rooms.items():
        for path in sorted((COPY / room).rglob("*.[ch]")):
            name = str(path.relative_to(COPY))
            if (path.suffix == ".h" and name not in HEADERS) or not re.search(only, name):
                continue
            depth, lines = 0, path.read_text().split("\n")
            for number, line in enumerate(lines, 1):
                if line.startswith("}"):
                    depth = 0
                if depth and not SKIPPED.search(line) and not re.search(r"^\s*\*", line):
                    mutants += [Mutant(name, number, line, after) for after in changes(line)]
                    above = statement_above(lines, number) if STATEMENT.match(line) and CALL.match(line) else 0
                    if above and CALL.match(lines[above - 1]):
                        mutants.append(Mutant(name, number, line, EXCHANGED + lines[above - 1].strip()))
                if line == "{":
                    depth = 1
        random_source.shuffle(mutants)
    while any(rooms.values()):
        for mutants in rooms.values():
            if mutants:
                yield mutants.pop()


def run(command, seconds=None, cwd=COPY):
    """Exit code and output; None if it does not end. Processes that a mutant leaves running are killed with it."""
    process = subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
    try:
        told, _ = process.communicate(timeout=seconds)
        return process.returncode, told
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return None, "no end"


def natives():
    return re.findall(r"add_executable\((\w+)_test ", (COPY / "tests" / "native" / "CMakeLists.txt").read_text())


def tests_of(pattern):
    """Targets of the unit tests whose name matches, with those on native libraries and those that step."""
    paths = [*sorted((COPY / "tests" / "unit").glob("*_test.c")), *sorted((COPY / "tests" / "proof").glob("*_step_test.c"))]
    names = [path.name[:-len("_test.c")] for path in paths]
    return [f"{name}_test" for name in [*names, *natives()] if re.match(pattern, name)]


def run_test(name):
    """A program's verdict on a mutant: None if nothing is wrong, or if the program without it does not end either."""
    folder = "build/release/tests/native" if name[:-len("_test")] in natives() else "build/release/tests"
    code, _ = run([f"{folder}/{name}"], TEST_SECONDS)
    if code is None and run([str(SOUND / name)], TEST_SECONDS)[0] is None:
        return None
    return None if code in (0, 77) else f"{name[:-len('_test')]} ({'hangs' if code is None else f'exit {code}'})"


def keep_sound_tests():
    """A second name for each program of the sound tree: a link edit makes new files."""
    shutil.rmtree(SOUND, ignore_errors=True)
    SOUND.mkdir(parents=True)
    for program in (COPY / "build" / "release" / "tests").rglob("*_test"):
        if program.is_file():
            os.link(program, SOUND / program.name)


def stages(mutant):
    """Lists of tests: first those that have a word of the file's name, then those of its room; each once."""
    words = [word for word in pathlib.Path(mutant.path).stem.split("_") if len(word) > 3]
    seen = set()
    for pattern in ["|".join(f".*{word}" for word in words) or "$", *ROOMS[mutant.path.split("/", maxsplit=1)[0]]]:
        tests = [name for name in tests_of(pattern) if name not in seen]
        seen.update(tests)
        yield tests


def judge(mutant):
    """The test that noticed it; None: none did; "": it does not compile."""
    code, _ = run([sys.executable, "tests/check_memory_order.py", "."])
    if code:
        return "check_memory_order"
    for tests in stages(mutant):
        if not tests:
            continue
        code, told = run(["cmake", "--build", "--preset", "release", "--target", *tests], 900)
        if code:
            return "" if "error:" in told else f"the build: {told[-200:]}"
        with ThreadPoolExecutor(max_workers=2) as pool:
            jobs = [pool.submit(run_test, name) for name in tests]
            for job in as_completed(jobs):
                if job.result():
                    pool.shutdown(wait=True, cancel_futures=True)
                    return job.result()
    return None


def read_lines(path):
    """Lines `file :: before :: after :: reason`; without line numbers, which change."""
    out = {}
    for line in path.read_text().split("\n"):
        parts = [part.strip() for part in line.split(" :: ")]
        if len(parts) >= 3 and not line.startswith("#"):
            out[tuple(parts[:3])] = parts[3] if len(parts) > 3 else ""
    return out


def find(listed):
    """The listed mutants, wherever their lines are now."""
    for name, before, after in listed:
        lines = (COPY / name).read_text().split("\n")
        numbers = [number for number, line in enumerate(lines, 1) if line.strip() == before]
        if after.startswith(EXCHANGED):
            numbers = [number for number in numbers
                       if (above := statement_above(lines, number)) and lines[above - 1].strip() == after[len(EXCHANGED):]]
        if not numbers:
            print(f"gone      {name}: {before}", flush=True)
        for number in numbers:
            line = lines[number - 1]
            yield Mutant(name, number, line, line[:len(line) - len(line.lstrip())] + after)


def copy_tree():
    """Writes only files that differ, so that the next build is short; removes files that are gone."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    names = {name for name in listed if name and (ROOT / name).is_file()}
    for name in names:
        source, target = ROOT / name, COPY / name
        content = source.read_bytes()
        if not target.is_file() or target.read_bytes() != content:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            target.chmod(source.stat().st_mode & 0o777)
    for target in [path for path in COPY.rglob("*") if path.is_file()]:
        name = str(target.relative_to(COPY))
        if name not in names and not name.startswith("build/"):
            target.unlink()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--count", type=int, default=0, help="no more than so many that compile")
    parser.add_argument("--only", default="", help="files whose path has this")
    parser.add_argument("--try", dest="listed", type=pathlib.Path, help="a file of mutants, instead of those by chance")
    asked = parser.parse_args()
    os.nice(19)
    copy_tree()
    print(f"{asked.listed or f'seed {asked.seed}'}; building the copy in {COPY.relative_to(ROOT)}", flush=True)
    for command in (["cmake", "--preset", "release"], ["cmake", "--build", "--preset", "release"]):
        code, told = run(command)
        if code:
            print(told[-2000:])
            return 2
    code, told = run([sys.executable, "tests/check_memory_order.py", "."])
    if code:
        print(f"the tree itself is not right:\n{told}")
        return 2
    keep_sound_tests()
    known = {} if asked.listed else read_lines(ROOT / "tests" / "mutants" / "equivalent.txt")
    mutants = find(read_lines(asked.listed)) if asked.listed else draw(random.Random(asked.seed), asked.only)
    killed, survivors, explained, refused, ends = 0, [], [], 0, time.monotonic() + asked.seconds
    for mutant in mutants:
        if time.monotonic() > ends or (asked.count and killed + len(survivors) + len(explained) >= asked.count):
            break
        reason = known.get((mutant.path, mutant.before.strip(), mutant.after.strip()))
        if reason:
            explained.append(mutant)
            print(f"known     {mutant.path}:{mutant.number}: {reason}", flush=True)
            continue
        path = COPY / mutant.path
        text = path.read_text()
        lines = text.split("\n")
        mutant.apply(lines)
        path.write_text("\n".join(lines))
        try:
            by = judge(mutant)
        finally:
            path.write_text(text)
        if by == "":
            refused += 1
        elif by:
            killed += 1
            print(f"killed    {mutant.path}:{mutant.number} by {by}", flush=True)
        else:
            survivors.append(mutant)
            print(f"survivor  {mutant.text()}", flush=True)
    print(f"\n{killed} killed, {len(explained)} known to change nothing, {len(survivors)} survived, {refused} did not compile")
    for mutant in survivors:
        print(mutant.text())
    return 1 if survivors else 0


sys.exit(main())
