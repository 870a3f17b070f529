#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_public.py [ROOT] - do the public libraries show what include/tracewheel declares?

Each function and variable that a header declares stands in one of cmake/*.map, and each name there is declared, but for
those of nodes called *_PRIVATE. A library that shows less cannot be linked; what it shows more would have to be kept.
"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
problems, declared, shown = [], {}, {}
for path in sorted((root / "include/tracewheel").glob("*.h")):
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
    text = re.sub(r"^static inline.*?^}", "", text, flags=re.S | re.M)
    text = re.sub(r"^\s*#.*?(?<!\\)$", "", text, flags=re.S | re.M)
    functions = re.findall(r"^(?!typedef)[a-z][^;{}()]*?\b(tw_\w+)\(", text, re.M)
    for name in functions + re.findall(r"^extern [^;{}()]*?\b(tw_\w+);", text, re.M):
        declared.setdefault(name, path.name)
for path in sorted((root / "cmake").glob("*.map")):
    for node, body in re.findall(r"^([A-Z_.0-9]+) \{(.*?)\}", path.read_text(), re.S | re.M):
        names = re.findall(r"^\t(\w+);", body, re.M)
        if node.endswith("_PRIVATE"):
            continue
        if names != sorted(names):
            problems.append(f"cmake/{path.name}: the names are not sorted")
        for name in names:
            shown.setdefault(name, path.name)
problems += [f"include/tracewheel/{where}: {name}() is in no cmake/*.map: add it to that of its library"
             for name, where in declared.items() if name not in shown]
problems += [f"cmake/{where}: {name} is declared in no header of include/tracewheel"
             for name, where in shown.items() if name not in declared]
print("\n".join(problems) or f"{len(declared)} public names, all shown")
sys.exit(1 if problems else 0)
