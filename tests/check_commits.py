#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_commits.py [ROOT] - subjects of commits: `room: what it does now`, at most 72 characters; a body where more than a few lines change.

Commits since this rule has a script, which is the first that contains this file. Exit code 77 (skipped) where there is no history.
"""
import re
import subprocess
import sys

SUBJECT_MAX = 72
# The most lines, added and removed, of a change that its subject explains.
TRIVIAL_LINES = 10


def git(*arguments):
    return subprocess.run(["git", "-C", sys.argv[1] if len(sys.argv) > 1 else ".", *arguments], capture_output=True, text=True).stdout


first = git("log", "--format=%h", "--diff-filter=A", "--", "tests/check_commits.py").split()
if not first:
    print("no history of this file")
    sys.exit(77)
problems, count = [], 0
for record in git("log", "--no-merges", "--shortstat", "--format=%x00%h%x01%s%x01%b%x01", f"{first[-1]}..HEAD").split("\0")[1:]:
    commit, subject, body, changes = record.split("\1")
    count += 1
    lines = sum(int(n) for n in re.findall(r"(\d+) (?:insertion|deletion)", changes))
    if len(subject) > SUBJECT_MAX:
        problems.append(f"{commit}: a subject of {len(subject)} characters: {SUBJECT_MAX} are the most")
    if not re.match(r"[\w./, -]+: \S", subject):
        problems.append(f"{commit}: the subject is not `room: what it does now`")
    if not body.strip() and lines > TRIVIAL_LINES:
        problems.append(f"{commit}: {lines} lines change, and no body says why")
print("\n".join(problems) or f"{count} commits, all in order")
sys.exit(1 if problems else 0)
