#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_installed_links.py FOLDER - each link in the documents of an installation leads to a file of it."""
import pathlib
import re
import sys

folder, count = pathlib.Path(sys.argv[1]), 0
for document in sorted(folder.rglob("*.md")):
    for target in re.findall(r"\]\(([^()\s#]+)[#)]", document.read_text()):
        if "://" not in target:
            count += 1
            if not (document.parent / target).exists():
                sys.exit(f"{document}: leads to {target}, which is not installed")
if count < 300:
    sys.exit(f"{folder} has only {count} links: this check sees nothing")
