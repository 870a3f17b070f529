#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""zoo.py BUILD [--ci] [--only REGEX] [--way NAME]... [--jobs N] [--list] - programs answer when recorded as they do alone.

Goal    A recorded program has the output, the exit code and, roughly, the time of one that is not, whichever way it is recorded;
        and events and losses together are the calls that a program counted itself.
Method  cases.ini says what is played and how. Each case runs alone first, twice, then once for each of its ways, in a
        fresh folder and a session of its own, of which nothing is left afterwards. --ci plays what `./run test` has installed, in one
        way each, with less of the same work, and alone once more only if something differs; with TW_TEST_LONG in a few ways and as
        else. The last line has the counts; what differs is printed with a command that plays it again.
"""
import argparse
import configparser
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

HERE = pathlib.Path(__file__).resolve().parent
COUNT_WAYS = {"count": "--on-full block --follow-fork -t {}", "count_drop": "--follow-fork -t {}"}
LIMIT_SECONDS = 60
# A recorded program may take so much longer than alone.
LIMIT_FACTOR = 40
# `trace` in a subshell (a pipe, a job) becomes the program, so that signals and exit codes are the program's.
PRELUDE = r"""
zoo=$ZOO_HERE edge=$ZOO_EDGE; read -ra options <<<"$ZOO_OPTIONS"; prefix=()
record() { prefix=("$ZOO_TW" record -q -o "$ZOO_CAPTURES/$BASHPID.$RANDOM.tw" "${options[@]}" --); }
as_is() { "$@"; }
as_user() { if [ "$(id -u)" = 0 ]; then chmod 777 . "$ZOO_CAPTURES"; setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; else "$@"; fi; }
trace() { [ -z "$ZOO_OPTIONS" ] || record; if [ "$BASHPID" = $$ ]; then "${prefix[@]}" "$@"; else exec "${prefix[@]}" "$@"; fi; }
trace_user() {
	[ -z "$ZOO_OPTIONS" ] || record
	if [ "$(id -u)" = 0 ]; then chmod 777 . "$ZOO_CAPTURES"; prefix=(setpriv --reuid=65534 --regid=65534 --clear-groups "${prefix[@]}"); fi
	if [ "$BASHPID" = $$ ]; then "${prefix[@]}" "$@"; else exec "${prefix[@]}" "$@"; fi
}
[ -z "$ZOO_OPTIONS" ] || record
"""


class Case:
    def __init__(self, name, section, ways):
        self.name = name
        self.needs = section.get("needs", "").split()
        self.normalise = section.get("normalise")
        self.count = section.get("count")
        self.slack = int(section.get("slack", "0"))
        self.each = int(section.get("each", "0"))
        self.root = section.get("root") == "1"
        self.build = section.get("build") or (name.split("/")[1] if name.startswith("edge/") else None)
        self.command = section.get("command") or f"trace $edge/{name.split('/')[1]}"
        self.ways = section.get("modes", " ".join(ways)).split()
        if self.count:
            self.ways += list(COUNT_WAYS)
        self.ci = section.get("ci", "").split()[0 if os.environ.get("TW_TEST_LONG") else -1:]

    def missing(self, edge):
        gone = [need for need in self.needs if not shutil.which(need, path="/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")]
        if self.root and os.getuid() != 0:
            gone.append("root")
        if self.build and not (edge / self.name.split("/")[1]).exists():
            gone.append("its program could not be built")
        return gone


def read_cases():
    parser = configparser.RawConfigParser(delimiters=("=",), comment_prefixes=("#",), strict=True, default_section="none")
    parser.optionxform = str
    # The parser takes indentation away, and Python's programs with it.
    for number, line in enumerate((HERE / "cases.ini").read_text().splitlines(), 1):
        if re.match(r"\t +\S", line):
            sys.exit(f"zoo: cases.ini:{number}: a line of a command may not be indented")
    parser.read(HERE / "cases.ini")
    ways, some = dict(parser["ways"]), dict(parser["ways of some"])
    names = [name for name in parser.sections() if name not in ("ways", "ways of some")]
    return [Case(name, parser[name], ways) for name in names], ways | some


def build_edge(cases, edge, is_short):
    """Programs of edge/, with the options that their first comment `/* gcc: ... */` or the case says. In the short form, they have no debugging information."""
    edge.mkdir(parents=True, exist_ok=True)
    own = HERE / "edge"
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", edge / "libedge.so", own / "libedge.c"], check=True)
    for case in cases:
        if not case.build:
            continue
        source, *options = case.build.split()
        text = (own / f"{source}.c").read_text()
        compiler = "musl-gcc" if "/* musl-gcc:" in text else "gcc"
        if options and options[0] == "clang":
            compiler, options = "clang", options[1:]
        said = re.search(r"/\* gcc: (.*?) \*/", text)
        links = [] if compiler == "musl-gcc" else ["-L", str(edge), "-ledge", f"-Wl,-rpath,{edge}"]
        if compiler == "clang":
            links.append("-Wl,-rpath," + str(pathlib.Path(subprocess.run(["clang", "-print-resource-dir"], capture_output=True, text=True,
                         check=False).stdout.strip()) / "lib" / "linux"))
        made = subprocess.run([compiler, "-D_GNU_SOURCE", "-O1", "-g0" if is_short else "-g", "-fno-builtin", "-w", "-o", edge / case.name.split("/")[1],
                               own / f"{source}.c", *options, *links, *(said[1].split() if said else [])], check=False,
                              capture_output=True, text=True) if shutil.which(compiler) else None
        if made and made.returncode:
            print(f"{case.name}: not built: {made.stderr.splitlines()[:2]}")


class Run:
    """One run of a case: what it printed, how it ended, how long it took, what it counted and what was recorded."""

    def __init__(self, case, options, context):
        self.counted = self.recorded = None
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="zoo.", dir=context.work))
        captures = self.folder / "captures"
        work = self.folder / "work"
        captures.mkdir()
        work.mkdir()
        for folder in (self.folder, captures, work):
            folder.chmod(0o755)
        environment = dict(os.environ, ZOO_HERE=str(HERE), ZOO_EDGE=str(context.edge), ZOO_TW=str(context.tw), ZOO_OPTIONS=options,
                           ZOO_CAPTURES=str(captures), EDGE_CALLS=str(self.folder / "calls"), LC_ALL="C", HOME=str(work),
                           XDG_CACHE_HOME=str(self.folder / "cache"),
                           PATH="/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
        if not context.is_short:
            environment["ZOO_LONG"] = "1"
        limit = context.limit
        began = time.monotonic()
        with open(self.folder / "out", "wb") as out, open(self.folder / "err", "wb") as err:
            process = subprocess.Popen(["bash", "-c", PRELUDE + case.command], cwd=work, env=environment, stdin=subprocess.DEVNULL,
                                       stdout=out, stderr=err, start_new_session=True)
            try:
                self.code = process.wait(timeout=limit)
            except subprocess.TimeoutExpired:
                self.code = f"not ended after {limit:.0f} s"
            self.seconds = time.monotonic() - began
            self.end_session(process.pid)
            process.wait()
        self.out = (self.folder / "out").read_bytes()
        self.err = (self.folder / "err").read_text(errors="replace")
        if case.normalise:
            self.out = subprocess.run(["sed", case.normalise], input=self.out, capture_output=True, check=True).stdout
        self.out = self.out.replace(str(self.folder).encode(), b"FOLDER")
        if (self.folder / "calls").exists():
            self.counted = int((self.folder / "calls").read_text() or 0)
        self.problems = []
        if options and not isinstance(self.code, str):
            self.read_captures(captures, context, case.each)
        shutil.rmtree(self.folder, ignore_errors=True)

    @staticmethod
    def end_session(session):
        """Ends what is left of the session, by the numbers of its processes."""
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and int((entry / "stat").read_text().rpartition(")")[2].split()[3]) == session:
                    os.kill(int(entry.name), signal.SIGKILL)
            except (OSError, IndexError, ValueError):
                pass

    def read_captures(self, captures, context, each):
        self.recorded = 0
        for capture in sorted(captures.iterdir()):
            told = subprocess.run([context.tw, "info", "--json", capture], capture_output=True, text=True, check=False)
            try:
                info = json.loads(told.stdout)
            except ValueError:
                self.problems.append(f"the capture cannot be read: {told.stderr.strip()[:200]}")
                continue
            lost = info["lost"] if isinstance(info["lost"], dict) else {}
            # Processes that were not traced have a number, and this many calls each.
            self.recorded += each * info.get("account", {}).get("missing", {}).get("processes", {}).get("places", 0)
            self.recorded += info["events"] + sum(n for n in lost.values() if isinstance(n, int))


class Context:
    def __init__(self, tw, edge, work, is_short):
        self.tw, self.edge, self.work, self.is_short, self.limit = tw, edge, work, is_short, LIMIT_SECONDS


def differ_alone(case, alone, again):
    return (f"{case.name}: two runs alone differ ({alone.code}, {again.code}): no case for the zoo\n"
            f"    {alone.out[-300:]!r}\n    {again.out[-300:]!r}")


def play(case, ways, context, wanted):
    """Plays a case alone and in the wanted ways. Returns (held, list of what differs)."""
    alone = Run(case, "", context)
    if isinstance(alone.code, str):
        return 0, [f"{case.name}: alone it has {alone.code}; not played\n{alone.err[-500:]}"]
    again = alone if context.is_short else Run(case, "", context)
    if (again.out, again.code) != (alone.out, alone.code):
        return 0, [differ_alone(case, alone, again)]
    held, wrong = 0, []
    for way in wanted:
        options = COUNT_WAYS[way].format(case.count) if way in COUNT_WAYS else ways[way]
        own = Context(context.tw, context.edge, context.work, context.is_short)
        own.limit = LIMIT_SECONDS + LIMIT_FACTOR * max(alone.seconds, again.seconds)
        run = Run(case, options, own)
        problems = list(run.problems)
        if run.code != alone.code:
            problems.append(f"exit code {run.code}, alone {alone.code}")
        if run.out != alone.out:
            problems.append(f"output {run.out[-300:]!r}\n        alone  {alone.out[-300:]!r}")
        if way in COUNT_WAYS and run.counted is not None and not run.counted - case.slack <= run.recorded <= run.counted:
            problems.append(f"{run.counted} calls, {run.recorded} events and losses")
        if problems:
            wrong.append(f"{case.name}, {way}: " + "\n        ".join(problems) +
                         f"\n        record {options}; stderr: {run.err[-300:].strip()!r}"
                         f"\n        again: {HERE}/zoo.py {context.build} --only '^{case.name}$' --way {way}")
        else:
            held += 1
    if wrong and again is alone:
        again = Run(case, "", context)
        if (again.out, again.code) != (alone.out, alone.code):
            wrong.append(differ_alone(case, alone, again))
    return held, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--ci", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--way", action="append")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true")
    asked = parser.parse_args()
    cases, ways = read_cases()
    cases = [case for case in cases if re.search(asked.only, case.name) and (case.ci or not asked.ci)]
    for way in asked.way or []:
        if way not in ways and way not in COUNT_WAYS:
            print(f"zoo: there is no way '{way}'; there are {' '.join([*ways, *COUNT_WAYS])}")
            return 2
    if asked.list:
        print("\n".join(f"{case.name}: {' '.join(case.ci if asked.ci else case.ways)}" for case in cases))
        return 0
    tw = pathlib.Path(asked.build).resolve() / "bin" / "tracewheel"
    if not tw.exists():
        print(f"zoo: there is no {tw}; build first")
        return 2
    work = pathlib.Path(tempfile.mkdtemp(prefix="tracewheel-zoo."))
    work.chmod(0o755)
    context = Context(tw, work / "edge", work, asked.ci and not os.environ.get("TW_TEST_LONG"))
    context.build = asked.build
    held, wrong, left_out, began = 0, [], 0, time.monotonic()
    try:
        build_edge(cases, context.edge, context.is_short)
        with ThreadPoolExecutor(max_workers=asked.jobs) as pool:
            jobs = []
            for case in cases:
                missing = case.missing(context.edge)
                wanted = [way for way in (case.ci if asked.ci else case.ways) if not asked.way or way in asked.way]
                if missing:
                    left_out += 1
                    print(f"{case.name}: left out, needs {' '.join(missing)}", flush=True)
                elif wanted:
                    jobs.append((case, pool.submit(play, case, ways, context, wanted)))
            for case, job in jobs:
                good, bad = job.result()
                held += good
                wrong += bad
                print(f"{case.name}: {good} of {good + len(bad)} hold", flush=True)
                for text in bad:
                    print("    " + text, flush=True)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(f"{held} of {held + len(wrong)} runs as alone, {left_out} cases left out, {time.monotonic() - began:.0f} s")
    return 1 if wrong else 0


sys.exit(main())
