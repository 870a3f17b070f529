#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_format.py ROOT: every C and C++ file of the tree is as clang-format 14 leaves it.

Exit code 77 (skipped) without clang-format 14: other versions format the same text differently.
`clang-format -i FILE` mends a file.
"""
import pathlib
import re
import shutil
import subprocess
import sys

FOLDERS = "base term progress ringbuf match symbols breakpoints pipeline session agent plan views tools erlang include tests bench examples cmake"
SUFFIXES = {".c", ".h", ".cc"}


def find_formatter():
    for name in ("clang-format-14", "clang-format"):
        path = shutil.which(name)
        if path and re.search(r"version 14\.", subprocess.run([path, "--version"], capture_output=True, text=True).stdout):
            return path
    return None


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    formatter = find_formatter()
    if not formatter:
        print("skipped: there is no clang-format 14; Debian 12's package clang-format is that version")
        return 77
    files = [str(path) for folder in FOLDERS.split() for path in sorted((root / folder).rglob("*")) if path.suffix in SUFFIXES]
    done = subprocess.run([formatter, "--dry-run", "-Werror", *files], capture_output=True, text=True)
    places = sorted(set(re.findall(r"^(\S+?:\d+):\d+: error", done.stderr, re.M)))
    for place in places[:20]:
        print(f"{place}: differs from the format; clang-format -i mends it")
    print(f"{len(files)} files, {len(places)} places that differ")
    return 1 if done.returncode else 0


sys.exit(main())
