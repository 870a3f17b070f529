# SPDX-License-Identifier: Apache-2.0
"""views.py - parses every view of a capture back into numbers.

Each parser returns what its view says in its own terms; check.py compares.  A name is MODULE:FUNCTION without arity and
arguments, as all views have it in common.
"""
import collections
import functools
import json
import re
import subprocess


class Untrue(Exception):
    """A view contradicts the account, or cannot be parsed."""


def output(tw, *arguments, codes=(0,)):
    done = subprocess.run([tw, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode not in codes:
        raise Untrue("%s ended with %d: %s" % (" ".join(arguments), done.returncode, done.stderr.decode(errors="replace")[:300]))
    return done.stdout.decode("utf-8")


def remembered(run):
    """Like output(), `run`, for captures that do not change: each command is run once."""
    texts = {}

    def once(tw, *arguments, codes=(0,)):
        key = (tw, arguments, codes)
        if key not in texts:
            texts[key] = run(tw, *arguments, codes=codes)
        return texts[key]
    return once


@functools.lru_cache(maxsize=4096)
def plain(name):
    """MODULE:FUNCTION of a name as views print it."""
    return re.sub(r"(\(.*)?(/(\d+|_))?$", "", name, count=1).strip()


def print_json(text):
    """A list of dicts, one an event; lines that are no JSON are an error."""
    lines = text.splitlines()
    try:
        # In half of the time of one by one.
        events = json.loads("[%s]" % ",".join(lines))
        if len(events) == len(lines):
            return events
    except ValueError:
        pass
    events = []
    for number, line in enumerate(lines, 1):
        try:
            events.append(json.loads(line))
        except ValueError as error:
            raise Untrue("print --format json, line %d is no JSON: %s" % (number, error)) from None
    return events


TEXT = re.compile(r"^\s*([\d.]+)\s+(\d+)(?:\s+\S+)*?\s+(call|return_from|exception_from)\s+(\S+?:[^ (]+)")


def print_text(text):
    """[(seconds as text, thread, kind, name)] of calls and their ends."""
    events = []
    for line in text.splitlines():
        if re.search(r"\s(call|return_from|exception_from) \S+:", line):
            found = TEXT.match(line)
            if not found:
                raise Untrue("print: a line that cannot be read: %r" % line)
            events.append((found[1], int(found[2]), found[3], plain(found[4])))
    return events


ERLANG = re.compile(r"^\{trace(?:_ts)?,.*?,(call|return_from|exception_from),\{('[^']*'|\w+),('[^']*'|\w+),")


def print_erlang(text):
    """[(kind, name)] in order."""
    events = []
    for line in text.splitlines():
        found = ERLANG.match(line)
        if found:
            events.append((found[1], plain("%s:%s" % (found[2].strip("'"), found[3].strip("'")))))
        elif line.startswith("{trace") and re.search(r",(call|return_from|exception_from),\{", line):
            raise Untrue("print --format erlang: a line that cannot be read: %r" % line)
    return events


# Calls too deep for a line show their depth: [11] f()
TREE = re.compile(r"^(.*?)\|( *)(?:\[(\d+)\] )?(.*)$")


def print_tree(text):
    """{label of a thread: [("enter" | "leave", name)]}; the ends of open calls are missing. Equal leaves are one line: f()  x 9."""
    threads = {}
    open_calls = {}
    for line in text.splitlines():
        found = TREE.match(line)
        if not found:
            continue
        label = re.sub(r"^\s*\d+\.\d{9}\s*([?>]?\s*[\d.]+ (ns|us|ms|s)\b)?\s*", "", found[1]).strip()
        what = found[4]
        items, calls = threads.setdefault(label, []), open_calls.setdefault(label, [])
        depth = int(found[3]) + 1 if found[3] else len(found[2]) // 2
        if what.startswith("}"):
            if not calls:
                raise Untrue("print --tree: an end without a call: %r" % line)
            name, level = calls.pop()
            said = what.rsplit("  ", 1)[-1] if "  " in what else name
            if level != depth or plain(said) not in (name, "}"):
                raise Untrue("print --tree: %r ends %s at depth %d" % (line, name, level))
            items.append(("leave", name))
        elif re.match(r"^\S+:\S", what):
            if depth != len(calls) + 1:
                raise Untrue("print --tree: %r is at depth %d, and %d calls are open" % (line, depth, len(calls)))
            name = plain(re.match(r"^([^ (]+)", what)[1])
            if what.endswith("{"):
                items.append(("enter", name))
                calls.append((name, depth))
            else:
                times = re.search(r"  x ([\d,]+)$", what)
                items += [("enter", name), ("leave", name)] * (int(times[1].replace(",", "")) if times else 1)
    return threads


def print_chrome(text):
    """([(tid, ts in ns, dur in ns, name)] of the complete slices that are functions, the same of all slices by (pid, tid))."""
    try:
        data = json.loads(text)
    except ValueError as error:
        raise Untrue("print --format chrome is no JSON: %s" % error) from None
    slices, tracks = [], collections.defaultdict(list)
    for event in data["traceEvents"] if isinstance(data, dict) else data:
        if event["ph"] != "X":
            continue
        slice = (event["tid"], round(event["ts"] * 1000), round(event["dur"] * 1000), plain(event["name"]))
        tracks[event["pid"], event["tid"]].append(slice)
        if re.match(r"^(prog|libslots|libplug|libleft):", event["name"]):
            slices.append(slice)
    return slices, tracks


def check_nesting(tracks):
    """
    Slices nest for readers that take the first of the file for the outer one if two begin at one time, and for those that take the
    longer one.
    """
    for track, slices in tracks.items():
        in_order = sorted(enumerate(slices), key=lambda s: (s[1][1], s[0]))
        by_length = sorted(enumerate(slices), key=lambda s: (s[1][1], -s[1][2]))
        for items in in_order, by_length:
            ends = []
            for _, (_, ts, dur, name) in items:
                while ends and ends[-1] <= ts:
                    ends.pop()
                if ends and ts + dur > ends[-1]:
                    raise Untrue("print --format chrome: %s of track %s ends after the slice around it" % (name, track))
                ends.append(ts + dur)


def folded(text):
    """{(names from the root): self ns or calls}"""
    paths = {}
    for line in text.splitlines():
        path, number = line.rsplit(" ", 1)
        names = tuple(plain(name) for name in path.split(";"))
        names = tuple(name for name in names if re.match(r"^(prog|libslots|libplug|libleft):", name))
        paths[names] = paths.get(names, 0) + int(number)
    return paths
