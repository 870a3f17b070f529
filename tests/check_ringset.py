#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_ringset.py [--self-test] [ROOT] - has the shared memory of a ring set changed without its version?

Command and traced program share memory; they are installed together, but a program that continues to run keeps
the old library. TW_RS_VERSION therefore stands for the declarations below, which both sides share: each version and the
sum of its declarations is a line of tests/ringset_versions. Comments and white space do not count.

--self-test: an enumerator more, a member more, a limit changed, and so on, must each be noticed.
"""
import hashlib
import pathlib
import re
import sys

PARTS = [
    ("ringbuf/ringset.h", r"^(/\* ---- in shared memory ---- \*/$.*?)^/\* ---- private"),
    ("ringbuf/held.h", r"^(/\* ---- in shared memory ---- \*/$.*?)^/\* ---- private"),
    ("ringbuf/trigger.h", r"^(/\* ---- in shared memory ---- \*/$.*?)^/\* ---- private"),
    ("ringbuf/crash.h", r"^(/\* ---- in shared memory ---- \*/$.*?)^/\* ---- private"),
    ("ringbuf/counts.h", r"^(/\* ---- in shared memory ---- \*/$.*?)^/\* ---- private"),
    ("ringbuf/ringbuf.h", r"^(/\* The head of every record\..*?)^/\*\n \* The producer's private half"),
    ("base/limits.h", r"^#define (TW_RS_(?:RINGS|IMAGE_RINGS|IMAGES|COUNT_ROWS|COUNT_BLOCKS)_MAX|TW_RS_COUNT_GROUP|TW_RS_DEFS_BYTES|TW_RS_CONFIG_BYTES|"
                      r"TW_RB_ALIGN_BYTES|TW_RB_BYTES_\w+|TW_RB_CHUNKS)\b(.*)$"),
    ("base/cacheline.h", r"^#define (TW_CACHELINE_BYTES|TW_PAGE_BYTES)(.*)$"),
]


def declarations(texts):
    """The declarations of all parts, one line."""
    found = []
    for path, pattern in PARTS:
        flags = re.M | re.S if ".*?" in pattern else re.M
        matches = re.findall(pattern, texts[path], flags)
        if not matches:
            sys.exit(f"check_ringset.py: {path} has no such part any more: {pattern}")
        found += [m if isinstance(m, str) else " ".join(m) for m in matches]
    bare = re.sub(r"/\*.*?\*/", " ", " ".join(found), flags=re.S)
    return re.sub(r"\s+", " ", re.sub(r"_Static_assert\(.*?\);", "", bare, flags=re.S))


def problem(texts, versions):
    """Why version and declarations do not belong together; None: they do."""
    version = re.search(r"^#define TW_RS_VERSION\s+(\d+)$", texts["ringbuf/ringset.h"], re.M).group(1)
    total = hashlib.sha256(declarations(texts).encode()).hexdigest()[:16]
    known = dict(line.split() for line in versions.split("\n") if line and line[0] != "#")
    if version not in known:
        return f"tests/ringset_versions has no version {version}: add the line '{version} {total}'"
    if int(version) != max(map(int, known)):
        return f"TW_RS_VERSION is {version}, and tests/ringset_versions has later ones"
    if known[version] != total:
        return ("the shared memory of a ring set has changed since version " + version + ": raise TW_RS_VERSION in "
                f"ringbuf/ringset.h, and add the line '{int(version) + 1} {total}' to tests/ringset_versions. "
                "(Where only a name has changed, replace the sum of the last line.)")
    return None


def self_test(texts, versions):
    changes = [
        ("ringbuf/ringset.h", "\tTW_RS_REFUSALS\n", "\tTW_RS_REFUSED_MORE,\n\tTW_RS_REFUSALS\n"),
        ("ringbuf/ringset.h", "\tuint32_t text_bytes;\n", "\tuint32_t text_bytes;\n\tuint32_t more;\n"),
        ("ringbuf/ringset.h", "\t_Atomic uint32_t next_lease;\n", "\t_Atomic uint64_t next_lease;\n"),
        ("ringbuf/ringset.h", "\tTW_RS_IMAGE_CLAIMED,", "\tTW_RS_IMAGE_MORE, TW_RS_IMAGE_CLAIMED,"),
        ("ringbuf/ringbuf.h", "\tTW_RB_LIVE, ", "\tTW_RB_MORE, TW_RB_LIVE, "),
        ("ringbuf/ringbuf.h", "\tuint64_t first_pos;", "\tuint64_t more, first_pos;"),
        ("ringbuf/ringbuf.h", "TW_RB_LOST_NO_RING, TW_RB_CAUSES", "TW_RB_LOST_NO_RING, TW_RB_MORE, TW_RB_CAUSES"),
        ("ringbuf/ringbuf.h", "(uint64_t)(id) << 32)", "(uint64_t)(id) << 40)"),
        ("base/limits.h", "#define TW_RS_IMAGES_MAX 8192", "#define TW_RS_IMAGES_MAX 4096"),
        ("base/limits.h", "#define TW_RS_DEFS_BYTES      (UINT64_C(32)", "#define TW_RS_DEFS_BYTES (UINT64_C(64)"),
        ("base/cacheline.h", "TW_CACHELINE_BYTES   128", "TW_CACHELINE_BYTES   64"),
        ("ringbuf/ringset.h", "\t_Atomic uint32_t delivery_wanted;", "\t_Atomic uint32_t more;"),
    ]
    missed = []
    for path, old, new in changes:
        if old not in texts[path]:
            sys.exit(f"check_ringset.py: {path} has no {old!r} any more")
        if not problem({**texts, path: texts[path].replace(old, new, 1)}, versions):
            missed.append(f"not noticed: {path}: {new!r}")
    same = texts["ringbuf/ringset.h"].replace("/* the table of images is full */", "/* full */").replace("\t", "  ")
    if problem({**texts, "ringbuf/ringset.h": same}, versions):
        missed.append("a comment is taken for a change")
    return missed


def main():
    arguments = [a for a in sys.argv[1:] if a != "--self-test"]
    root = pathlib.Path(arguments[0] if arguments else ".").resolve()
    texts = {path: (root / path).read_text() for path, _ in PARTS}
    versions = (root / "tests/ringset_versions").read_text()
    wrong = problem(texts, versions)
    problems = [wrong] if wrong else self_test(texts, versions) if "--self-test" in sys.argv else []
    print("\n".join(problems) or "the version of ring sets is that of their declarations")
    sys.exit(1 if problems else 0)


main()
