# SPDX-License-Identifier: Apache-2.0
"""sqlite.py - SQLite with every function traced, by the tracers that can: cases of peers.py.

The same source is compiled once for each tracer as that one needs it. The program's answer is the untraced one's in each run. ltrace, which stops the
program at each call, has a short script.
"""
import json
import os
import re
import subprocess

from tracers import FAST, Lttng, Program, Refused, bpftrace_run, bytes_of, lines_of, need, of_children, sample, why_refused

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SOURCE = os.path.join(ROOT, "build/bench-native")
LONG, SHORT = "SQLite", "SQLite, short"
SQL = """create table t(a integer primary key, b text, c integer);
create index tc on t(c);
with recursive n(i) as (select 1 union all select i + 1 from n where i < {rows}) insert into t select i, 'row ' || i || hex(i * 7919), (i * 7919) % 10007 from n;
select count(*), sum(length(b)), max(c) from t where c between 100 and 5000 and b like '%7%';
select c % 97, count(*) from t group by 1 order by 2 desc, 1 limit 3;
update t set b = b || 'x' where a % 3 = 1;
delete from t where a % 5 = 0;
select count(*), sum(length(b)) from t;
"""
# The kernel takes a tenth of a second for each function with a uprobe, and minutes for all: the uprobes are on these.
FEW = "sqlite3VdbeMem*"
ROWS = {LONG: 12000, SHORT: 60}


class Sqlite:
    """The program as each tracer needs it, its scripts, and its answers."""

    def __init__(self, bed):
        self.bed, self.answers, self.scripts, self.calls = bed, {}, {}, {}
        for case, rows in ROWS.items():
            self.scripts[case] = bed.path(f"{rows}.sql")
            with open(self.scripts[case], "w") as file:
                file.write(SQL.format(rows=max(20, round(rows * min(1, bed.share)))))

    def build(self, name, *flags):
        path = os.path.join(SOURCE, f"sqlite_peers.{name}")
        work = os.path.join(ROOT, "bench/native/sqlite_work.c")
        fetched = os.path.join(SOURCE, "sqlite")
        if not os.path.exists(path) or os.path.getmtime(path) < os.path.getmtime(work):
            done = subprocess.run([os.path.join(ROOT, "bench/native/fetch_sqlite.sh"), fetched], capture_output=True, text=True)
            if done.returncode:
                raise Refused("SQLite's source is not here: " + done.stderr.strip()[-200:])
            self.bed.run(["gcc", "-O2", "-g", *flags, "-DSQLITE_THREADSAFE=0", "-DSQLITE_OMIT_LOAD_EXTENSION", "-I", fetched, "-o", path, work,
                          os.path.join(fetched, "sqlite3.c"), "-lm"])
        return path

    def run(self, case, command, environment=None):
        """The program's run under a tracer's command, and the standard error of both."""
        before = of_children()
        with open(self.scripts[case]) as script:
            done = self.bed.run([*command, "times"], environment, stdin=script)
        self.check(case, done.stdout)
        return Program(done.stdout, of_children() - before), done

    def check(self, case, text):
        found = re.search(r"^[0-9a-f]{16}$", text, re.M)
        if not found or self.answers.setdefault(case, found[0]) != found[0]:
            raise Refused(f"SQLite answers {found and found[0]} under it, not {self.answers.get(case)}")


def untraced(bed, sqlite):
    program = sqlite.build("plain")
    for case in ROWS:
        yield case, lambda case=case: sample(sqlite.run(case, [program])[0], 0, 0, 0)


def tracewheel(bed, sqlite, returns):
    program = sqlite.build("plain")

    def measure(case):
        capture = bed.fresh("sqlite.tw")
        ran, _ = sqlite.run(case, [bed.tw, "record", "-q", "--local", *(["--returns"] if returns else []), "-o", capture, "--", program])
        report = json.loads(bed.run([bed.tw, "report", "--json", capture]).stdout)
        # The program does the same in each run, recorded with returns or without.
        seen, lost = report["calls"], sum(report["lost"].values())
        if sqlite.calls.setdefault(case, seen + lost) != seen + lost:
            raise Refused(f"{seen:,} calls recorded and {lost:,} lost, and {sqlite.calls[case]:,} in another run")
        return sample(ran, seen, lost, bytes_of(capture))

    for case in ROWS:
        yield case, lambda case=case: measure(case)


def uftrace(bed, sqlite, name, flags, options):
    need("uftrace")
    program = sqlite.build(name, *flags)

    def measure():
        data = bed.fresh("uftrace")
        ran, done = sqlite.run(LONG, ["uftrace", "record", "--no-pager", "--no-libcall", "--no-event", "-d", data, *options, program])
        text = bed.run(["uftrace", "report", "--no-pager", "-d", data, "-f", "call"]).stdout
        lost = re.search(r"LOST\s+(\d+)\s+records", done.stderr)
        return sample(ran, sum(map(int, re.findall(r"^\s*(\d+)\s+\S+$", text, re.M))), (int(lost[1]) + 1) // 2 if lost else 0, bytes_of(data))

    yield LONG, measure


def lttng(bed, sqlite):
    tracer = Lttng(bed)
    program = sqlite.build("instrumented", "-finstrument-functions")

    def measure():
        with open(bed.path("script.sh"), "w") as file:
            file.write(f"exec env LD_PRELOAD={FAST} {program} times <{sqlite.scripts[LONG]}\n")
        done, read, lost, others, size = tracer.measure(["sh", bed.path("script.sh")], ["lttng_ust_cyg_profile_fast:*"])
        sqlite.check(LONG, done.stdout)
        ran = Program(done.stdout, 0)
        ran.others_ns = others
        return sample(ran, read // 2, lost // 2, size)

    yield LONG, measure


def ltrace(bed, sqlite):
    need("ltrace")
    program = sqlite.build("plain")

    def measure():
        output = bed.fresh("ltrace.out")
        ran, _ = sqlite.run(SHORT, ["ltrace", "-o", output, "-L", "-x", "*@MAIN", program])
        # A call that makes others has a second line, "<... NAME resumed>", with its return.
        return sample(ran, lines_of(output, "("), 0, bytes_of(output))

    yield SHORT, measure


def bpftrace(bed, sqlite):
    need("bpftrace")
    program = sqlite.build("plain")

    def measure():
        with open(bed.path("script.sh"), "w") as file:
            file.write(f"exec {program} times <{sqlite.scripts[LONG]}\n")
        text, cpu, output, lost = bpftrace_run(bed, f"uprobe:{program}:{FEW} {{ @ = count(); }}", ["/bin/sh", bed.path("script.sh")])
        sqlite.check(LONG, text)
        found = re.search(r"@: (\d+)", open(output).read())
        return sample(Program(text, cpu), int(found[1]) if found else 0, lost, 0)

    yield LONG, measure


def perf(bed, sqlite):
    need("perf")
    program = sqlite.build("plain")

    def undo():
        bed.run(["perf", "probe", "-q", "-d", "probe_sqlite_peers:*"], may_fail=True)

    undo()
    bed.undo.append(undo)
    done = bed.run(["perf", "probe", "-q", "--max-probes", "100000", "-x", program, "--no-inlines", "--add", FEW], may_fail=True)
    if done.returncode:
        raise Refused("the kernel refuses its probes: " + why_refused(done.stderr))

    def measure():
        data = bed.fresh("perf.data")
        ran, _ = sqlite.run(LONG, ["perf", "record", "-q", "-m", "4M", "-o", data, "-e", "probe_sqlite_peers:*", program])
        text = bed.run(["perf", "script", "--show-lost-events", "-F", "comm,event", "-i", data]).stdout
        lost = sum(map(int, re.findall(r"PERF_RECORD_LOST\S*\s+(?:lost )?(\d+)", text)))
        return sample(ran, text.count("probe_sqlite_peers:"), lost, bytes_of(data))

    yield LONG, measure


TRACERS = [("untraced", untraced), ("tracewheel, calls", lambda bed, sqlite: tracewheel(bed, sqlite, False)), ("tracewheel", lambda bed, sqlite: tracewheel(bed, sqlite, True)),
           ("LTTng-UST", lttng), ("uftrace, -pg", lambda bed, sqlite: uftrace(bed, sqlite, "pg", ["-pg"], [])),
           ("uftrace, patched", lambda bed, sqlite: uftrace(bed, sqlite, "nops", ["-fpatchable-function-entry=5", "-Wl,-z,max-page-size=0x10000"], ["-P", "."])),
           ("ltrace", ltrace), ("bpftrace, counted", bpftrace), ("perf uprobe", perf)]
