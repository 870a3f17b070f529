#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_semantics.py [ROOT] - does docs/semantics.md have a row for each line, and do the tests that it names exist?

A row is `| lines | OTP | here | tests |`: lines are numbers (`119, 120` or `185-194`); *here* begins with same, different, not
applicable, or later; tests are names of ctests or of scenarios (tests/semantics), with `:case` for one case of a file, or
`none: why`. Rows with same or different need one. The other way round, each scenario, and each case that is named after lines
(line_94_what, s_line_110_what), stands in the rows of its lines. A scenario is C (*_scenarios.c, with its answer in oracle/c.term)
or data (the other oracle/*.term); tests/semantics/README.md says why it is C. A scenario o_94_what is data of line 94, whose row names
semantics_play.
"""
import pathlib
import re
import sys

LINES = range(1, 261)
ROW = re.compile(r"^\| *(\d[\d, -]*) *\|(.*)\|$")
VERDICT = re.compile(r"(same|different|not applicable|later)\b")
CASE = re.compile(r"\bline_((?:\d+_)+)(?:to_(\d+)_)?")


def numbers(text):
    for part in text.replace(" ", "").split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def tests_of(root):
    """Returns {name of a ctest or scenario: its source text}."""
    tests = {}
    for folder, prefix in (("unit", ""), ("actors", "actors_"), ("tools", "tools_"), ("native", "")):
        for path in (root / "tests" / folder).glob("*_test.*"):
            tests[prefix + path.stem.removesuffix("_test")] = path.read_text()
    for path in (root / "tests").rglob("CMakeLists.txt"):
        for name in re.findall(r"add_test\(NAME ([a-z_0-9]+) ", path.read_text()):
            tests.setdefault(name, "")
    return tests


ANSWERS_OF_C = "c.term"


def scenarios_of(root):
    """Returns the names of scenarios that are played, with o_* and with repetitions, and of those with an answer."""
    folder = root / "tests" / "semantics"
    recorded, played = set(), []
    for path in (folder / "oracle").glob("*.term"):
        text = path.read_text()
        recorded |= set(re.findall(r"^\{(s_[a-z_0-9]+),", text, re.M))
        if path.name != ANSWERS_OF_C:
            played += re.findall(r"^\{(\w+),", text, re.M)
    for path in folder.glob("*_scenarios.c"):
        played += re.findall(r"\bSCENARIO\((s_[a-z_0-9]+)", path.read_text(), re.M)
    return played, recorded


def lines_of_case(name):
    match = CASE.search(name)
    if not match:
        return []
    lines = [int(number) for number in match.group(1).strip("_").split("_")]
    return list(range(lines[0], int(match.group(2)) + 1)) if match.group(2) else lines


class Check:
    def __init__(self, root):
        self.root = root
        self.document = (root / "docs" / "semantics.md").read_text()
        self.tests = tests_of(root)
        self.all_played, self.recorded = scenarios_of(root)
        self.played = {name for name in self.all_played if name.startswith("s_")}
        self.named = {}  # line: the tests of its row
        self.problems = []

    def problem(self, text):
        self.problems.append(text)

    def test(self, line, name):
        name, _, case = name.strip("` ").partition(":")
        if name in self.played:
            return
        if name not in self.tests:
            self.problem(f"line {line}: there is no test {name}")
        elif case and not re.search(rf"\b{re.escape(case.strip())}\b", self.tests[name]):
            self.problem(f"line {line}: {name} has no case {case.strip()}")

    def row(self, lines, cells):
        if len(cells) != 3:
            self.problem(f"line {lines[0]}: {len(cells) + 1} columns, not 4")
            return
        verdict = VERDICT.match(cells[1])
        names = [name.strip("` ") for name in cells[2].split(",") if name.strip()]
        if not verdict:
            self.problem(f"line {lines[0]}: neither same, different, not applicable nor later: {cells[1][:40]}")
        elif not names and verdict.group(1) in ("same", "different"):
            self.problem(f"line {lines[0]}: no test")
        for line in lines:
            if line in self.named:
                self.problem(f"line {line}: two rows")
            self.named[line] = names
        if not cells[2].startswith("none: "):
            for name in names:
                self.test(lines[0], name)

    def rows(self):
        for text in self.document.split("\n"):
            match = ROW.match(text)
            if match:
                cells = [cell.strip() for cell in match.group(2).split("|")]
                self.row(list(numbers(match.group(1).strip())), cells)
        for line in LINES:
            if line not in self.named:
                self.problem(f"line {line}: no row")

    def cases(self):
        """Each test named after a line is in that line's row."""
        found = [(name, lines_of_case(name)) for name in sorted(self.played)]
        for test, source in sorted(self.tests.items()):
            for case in re.findall(r"^static void (line_[a-z_0-9]+)\(", source, re.M):
                found.append((test, lines_of_case(case)))
        for name, lines in found:
            for line in lines:
                if not any(named.split(":")[0] == name for named in self.named.get(line, [])):
                    self.problem(f"line {line}: its row does not name {name}")

    def plays(self):
        """The row of a play's line names the test that plays it."""
        names = self.all_played
        played = {int(match.group(1)) for name in names if (match := re.match(r"o_(\d+)_", name))}
        for name in sorted({name for name in names if names.count(name) > 1}):
            self.problem(f"{name}: is played twice")
        for line in sorted(played):
            if "semantics_play" not in self.named.get(line, []):
                self.problem(f"line {line}: its row does not name semantics_play")

    def reasons(self):
        """Each scenario that is C stands in the README, with the reason why it is no data."""
        folder = self.root / "tests" / "semantics"
        names = set(re.findall(r"\bs_[a-z_0-9]+", (folder / "README.md").read_text()))
        in_c = {name for path in folder.glob("*_scenarios.c") for name in re.findall(r"SCENARIO\((\w+)", path.read_text())}
        for name in sorted(in_c - names):
            self.problem(f"{name}: is C, and tests/semantics/README.md does not say why")
        for name in sorted(names - in_c - {"s_line_N_what"} - {"s_line_"}):
            self.problem(f"{name}: tests/semantics/README.md has it among the scenarios that are C")

    def scenarios(self):
        everywhere = set(re.findall(r"\bs_[a-z_0-9]+", self.document))
        for name in sorted(self.played - everywhere):
            self.problem(f"{name}: no row names it")
        for name in sorted(self.played - self.recorded):
            self.problem(f"{name}: is played, but not recorded")
        for name in sorted(self.recorded - self.played - everywhere):
            self.problem(f"{name}: is recorded and not played, and the document does not say why")


def main():
    check = Check(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "."))
    check.rows()
    check.cases()
    check.plays()
    check.reasons()
    check.scenarios()
    for problem in check.problems:
        print(problem)
    print(f"{len(check.named)} lines, {len(check.played)} scenarios, {len(check.problems)} problems")
    return 1 if check.problems else 0


if __name__ == "__main__":
    sys.exit(main())
