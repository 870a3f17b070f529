# SPDX-License-Identifier: Apache-2.0
"""tracers.py - the tracers of native programs that peers.py measures, each by its public commands.

A tracer is a function of a Bed that yields its cases: (case, calls, prepare, measure).  measure() runs the case once, and says how many events
the tracer's own reader finds, how many its own counter says are lost, and how many bytes lie on the disk.  Refused says why a tracer cannot
be used here: it is not installed, or the kernel does not let it.
"""
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TRACING = "/sys/kernel/tracing"
CALL, WORDS, PAIR, SYSTEM = "call", "two words", "call and return", "system call"
MODES = {CALL: "none", WORDS: "two", PAIR: "two", SYSTEM: "system"}
# Debian's package of each command.
PACKAGES = {"uftrace": "uftrace", "lttng": "lttng-tools", "lttng-sessiond": "lttng-tools", "babeltrace2": "babeltrace2", "ltrace": "ltrace", "strace": "strace",
            "perf": "linux-perf", "bpftrace": "bpftrace", "erl": "erlang-base"}


class Refused(Exception):
    """A tracer that cannot be measured here, and why."""


def need(*commands):
    for command in commands:
        if not shutil.which(command):
            raise Refused(f"{command} is not installed: apt-get install {PACKAGES.get(command, command)}")


def why_refused(text):
    """What the kernel's interfaces say of a probe that failed: the file or capability that is missing."""
    effective = int(re.search(r"CapEff:\s*(\w+)", open("/proc/self/status").read())[1], 16)
    # bpftrace also warns of a limit that it does not need.
    said = next((line.strip() for line in text.splitlines() if line.strip() and "RLIMIT_MEMLOCK" not in line), "it failed without a word")
    reasons = []
    if not effective >> 21 & 1:
        reasons.append("this process has no CAP_SYS_ADMIN")
    for name in ("uprobe_events", "events/syscalls"):
        path = os.path.join(TRACING, name)
        if not os.access(path, os.R_OK | (os.W_OK if name == "uprobe_events" else 0)):
            reasons.append(f"{path} is not there, or cannot be used")
    if not effective >> 38 & 1 and not effective >> 21 & 1:
        level = open("/proc/sys/kernel/perf_event_paranoid").read().strip()
        reasons.append(f"/proc/sys/kernel/perf_event_paranoid is {level}, and it has no CAP_PERFMON")
    return "; ".join([said, *reasons])


def bytes_of(path):
    if os.path.isfile(path):
        return os.path.getsize(path)
    return sum(os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(path) for name in names)


def of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round((used.ru_utime + used.ru_stime) * 1e9)


class Program:
    """What a run of the traced program was: calls made, calls of its loop, ns of its processor time and of the clock; the ns of all others."""

    def __init__(self, text, cpu_of_all):
        found = re.findall(r"^(\d+) (\d+) (\d+) (\d+)$", text, re.M)
        if len(found) != 1:
            raise Refused(f"the traced program did not end as it should: {text.strip()[-200:]!r}")
        self.made, self.calls, self.cpu_ns, self.wall_ns = map(int, found[0])
        self.others_ns = max(0, cpu_of_all - self.cpu_ns)


class Bed:
    """The folder of one run, and what all tracers need of it."""

    def __init__(self, build, folder, share):
        self.tw = os.path.join(build, "bin/tracewheel")
        self.folder = folder
        self.share = share
        self.programs = {}
        self.daemons, self.undo = {}, []

    def path(self, name):
        return os.path.join(self.folder, name)

    def calls(self, most):
        return max(500, round(most * self.share))

    def build(self, name, *flags, source="calls.c", libraries=()):
        """The program, compiled as its tracer needs it."""
        if name not in self.programs:
            made = subprocess.run(["gcc", "-O2", "-g", "-I", HERE, *flags, "-o", self.path(name), os.path.join(HERE, source), *libraries],
                                  capture_output=True, text=True)
            if made.returncode:
                raise Refused(f"its program cannot be built: {next((line for line in made.stderr.splitlines() if 'error' in line), made.stderr)[:200]}")
            self.programs[name] = self.path(name)
        return self.programs[name]

    def run(self, command, environment=None, may_fail=False, **options):
        """Output of a command that must end well, standard error apart."""
        done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300, errors="replace",
                              env={**os.environ, "LC_ALL": "C", **(environment or {})}, **options)
        if done.returncode and not may_fail:
            raise Refused(f"{os.path.basename(command[0])} fails with {done.returncode}: {(done.stderr.strip() or done.stdout.strip())[-300:]}")
        return done

    def program(self, command, environment=None):
        before = of_children()
        done = self.run(command, environment)
        return Program(done.stdout, of_children() - before), done

    def fresh(self, name):
        path = self.path(name)
        shutil.rmtree(path, ignore_errors=True)
        if os.path.isfile(path):
            os.remove(path)
        return path

    def close(self):
        for undo in reversed(self.undo):
            undo()


def sample(program, events, lost, size):
    return {"made": program.made, "calls": program.calls, "cpu_ns": program.cpu_ns, "wall_ns": program.wall_ns, "others_ns": program.others_ns,
            "recorded": events, "lost": lost, "bytes": size}


def lines_of(path, part):
    with open(path, errors="replace") as file:
        return sum(part in line for line in file)


def untraced(bed):
    program = bed.build("calls")
    for case, most in {CALL: 20_000_000, WORDS: 20_000_000, SYSTEM: 1_000_000}.items():
        def measure(mode=MODES[case], calls=bed.calls(most)):
            return sample(bed.program([program, mode, str(calls)])[0], 0, 0, 0)
        yield case, measure


def clock(bed):
    program = bed.build("calls")
    yield CALL, lambda: sample(bed.program([program, "clock", str(bed.calls(5_000_000))])[0], 0, 0, 0)


def tracewheel(bed):
    program = bed.build("calls")
    ways = {CALL: (["-t", "calls:none"], 8_000_000, "none"), WORDS: (["--args", "-t", "calls:two"], 8_000_000, "two"),
            PAIR: (["--returns", "-t", "calls:two"], 5_000_000, "two"), SYSTEM: (["--syscalls", "-t", "libc:getppid"], 500_000, "getppid")}

    def measure(case):
        options, most, name = ways[case]
        capture = bed.fresh("calls.tw")
        ran, _ = bed.program([bed.tw, "record", "-q", "-o", capture, *options, "--", program, MODES[case], str(bed.calls(most))])
        report = json.loads(bed.run([bed.tw, "report", "--json", capture]).stdout)
        calls = sum(row["calls"] for row in report["by_function"] if row["function"] == name)
        return sample(ran, calls, sum(report["lost"].values()), bytes_of(capture))

    for case in ways:
        yield case, lambda case=case: measure(case)


def uftrace_measure(bed, program, calls, *options):
    data = bed.fresh("uftrace")
    ran, done = bed.program(["uftrace", "record", "--no-pager", "--no-libcall", "--no-event", "-d", data, *options, program, "two", str(calls)])
    text = bed.run(["uftrace", "report", "--no-pager", "-d", data, "-f", "call"]).stdout
    found = re.search(r"(\d+)\s+two$", text, re.M)
    lost = re.search(r"LOST\s+(\d+)\s+records", done.stderr + done.stdout)
    # A call and its return are two records.
    return sample(ran, int(found[1]) if found else 0, (int(lost[1]) + 1) // 2 if lost else 0, bytes_of(data))


def uftrace_compiled(bed):
    need("uftrace")
    program = bed.build("calls.pg", "-pg")
    yield WORDS, lambda: uftrace_measure(bed, program, bed.calls(1_500_000), "-A", "two@arg1/i32,arg2/i32")
    yield PAIR, lambda: uftrace_measure(bed, program, bed.calls(2_000_000))


def uftrace_patched(bed):
    need("uftrace")
    # uftrace 0.13 writes 16 bytes past the end of the text segment: this layout leaves space for them.
    program = bed.build("calls.nops", "-fpatchable-function-entry=5", "-Wl,-z,max-page-size=0x10000")
    yield PAIR, lambda: uftrace_measure(bed, program, bed.calls(2_000_000), "-P", "^two$")


class Lttng:
    """A session daemon of our own, unless one is there, and sessions that wait for their reader as ours do."""

    SESSION = "tracewheel-peers"

    def __init__(self, bed):
        need("lttng", "lttng-sessiond", "babeltrace2")
        self.bed, self.daemon = bed, bed.daemons.get("lttng")
        if bed.run(["lttng", "--no-sessiond", "list"], may_fail=True).returncode == 0:
            return
        self.daemon = subprocess.Popen(["lttng-sessiond", "--no-kernel"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                       env={**os.environ, "LTTNG_UST_ALLOW_BLOCKING": "1"})
        bed.daemons["lttng"] = self.daemon
        bed.undo.append(self.end)
        for _ in range(100):
            if bed.run(["lttng", "--no-sessiond", "list"], may_fail=True).returncode == 0:
                return
            time.sleep(0.1)
        raise Refused("lttng-sessiond does not answer")

    def end(self):
        self.daemon.send_signal(signal.SIGTERM)
        self.daemon.wait(20)

    def cpu_ns(self):
        """Processor time of the daemon, and of its children, which consume."""
        total = 0
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if self.daemon and self.daemon.pid in (int(pid), int(fields[1])):
                total += int(fields[11]) + int(fields[12])
        return total * 1_000_000_000 // os.sysconf("SC_CLK_TCK")

    def measure(self, command, events, environment=None):
        """The program's run, the events that babeltrace2 reads, those that LTTng says are discarded, and bytes."""
        data = self.bed.fresh("lttng")
        self.bed.run(["lttng", "destroy", self.SESSION], may_fail=True)
        self.bed.run(["lttng", "create", self.SESSION, "--output", data])
        try:
            self.bed.run(["lttng", "enable-channel", "-u", "-s", self.SESSION, "--subbuf-size", "1M", "--num-subbuf", "8", "--blocking-timeout", "inf", "c"])
            for event in events:
                self.bed.run(["lttng", "enable-event", "-u", "-s", self.SESSION, "-c", "c", event])
            self.bed.run(["lttng", "start", self.SESSION])
            before = self.cpu_ns()
            done = self.bed.run(command, {"LTTNG_UST_ALLOW_BLOCKING": "1", **(environment or {})})
            self.bed.run(["lttng", "stop", self.SESSION])
            others = self.cpu_ns() - before
            listed = self.bed.run(["lttng", "--mi", "xml", "list", self.SESSION]).stdout
            lost = sum(map(int, re.findall(r"<discarded_events>(\d+)<", listed)))
        finally:
            self.bed.run(["lttng", "destroy", self.SESSION], may_fail=True)
        read = self.bed.run(["babeltrace2", data, "--component", "sink.utils.counter"]).stdout
        # It also says how many there are so far; the last is the whole.
        found = re.findall(r"([\d,]+) Event messages", read)
        return done, int(found[-1].replace(",", "")) if found else 0, lost, others, bytes_of(data)


FAST = "liblttng-ust-cyg-profile-fast.so"


def lttng(bed):
    tracer = Lttng(bed)
    points = bed.build("calls.lttng", "-DLTTNG", libraries=["-llttng-ust", "-ldl"])
    made = bed.build("calls.instrumented", "-finstrument-functions")

    def measure(program, case, most, records, events, environment=None):
        done, read, lost, others, size = tracer.measure([program, MODES[case], str(bed.calls(most))], events, environment)
        ran = Program(done.stdout, 0)
        ran.others_ns = others
        return sample(ran, read // records, lost // records, size)

    yield CALL, lambda: measure(points, CALL, 2_000_000, 1, ["calls:none"])
    yield WORDS, lambda: measure(points, WORDS, 2_000_000, 1, ["calls:two"])
    yield PAIR, lambda: measure(made, PAIR, 1_000_000, 2, ["lttng_ust_cyg_profile_fast:*"], {"LD_PRELOAD": FAST})


def ltrace(bed):
    need("ltrace")
    program = bed.build("calls")
    prototypes = bed.path("ltrace.conf")
    with open(prototypes, "w") as file:
        file.write("void none();\nint two(int,int);\n")

    def measure(case, options, part):
        output = bed.fresh("ltrace.out")
        ran, _ = bed.program(["ltrace", "-F", prototypes, "-o", output, *options, program, MODES[case], str(bed.calls(8_000))])
        return sample(ran, lines_of(output, part), 0, bytes_of(output))

    yield PAIR, lambda: measure(PAIR, ["-L", "-x", "two"], "two(")
    yield SYSTEM, lambda: measure(SYSTEM, ["-L", "-S"], "getppid")


def strace(bed):
    need("strace")
    program = bed.build("calls")

    def measure():
        output = bed.fresh("strace.out")
        ran, _ = bed.program(["strace", "-f", "-ttt", "-T", "-o", output, "-e", "trace=getppid", program, "system", str(bed.calls(20_000))])
        return sample(ran, lines_of(output, "getppid("), 0, bytes_of(output))

    yield SYSTEM, measure


def perf(bed):
    need("perf")
    program = bed.build("calls.perf")

    def undo():
        bed.run(["perf", "probe", "-q", "-d", "tw_peers:*"], may_fail=True)

    undo()
    bed.undo.append(undo)
    for probe in ("tw_peers:none=none", "tw_peers:two=two a=%di:s32 b=%si:s32", "tw_peers:back=two%return"):
        done = bed.run(["perf", "probe", "-q", "-x", program, "--add", probe], may_fail=True)
        if done.returncode:
            raise Refused("the kernel refuses its probe: " + why_refused(done.stderr))

    def measure(case, events, most):
        data = bed.fresh("perf.data")
        select = [word for event in events for word in ("-e", event)]
        ran, _ = bed.program(["perf", "record", "-q", "-m", "8M", "-o", data, *select, program, MODES[case], str(bed.calls(most))])
        text = bed.run(["perf", "script", "--show-lost-events", "-F", "comm,event", "-i", data]).stdout
        lost = sum(map(int, re.findall(r"PERF_RECORD_LOST\S*\s+(?:lost )?(\d+)", text)))
        read = sum(text.count(event + ":") for event in events)
        return sample(ran, read // len(events), lost // len(events), bytes_of(data))

    yield CALL, lambda: measure(CALL, ["tw_peers:none"], 200_000)
    yield WORDS, lambda: measure(WORDS, ["tw_peers:two"], 200_000)
    yield PAIR, lambda: measure(PAIR, ["tw_peers:two", "tw_peers:back__return"], 100_000)
    if os.path.exists(f"{TRACING}/events/syscalls"):
        yield SYSTEM, lambda: measure(SYSTEM, ["syscalls:sys_enter_getppid", "syscalls:sys_exit_getppid"], 200_000)


def bpftrace_run(bed, script, command):
    """Runs it, and gives the program's run, what bpftrace wrote, and the events that it says are lost."""
    output = bed.fresh("bpftrace.out")
    before = of_children()
    done = bed.run(["bpftrace", "-q", "-o", output, "-e", script, "-c", " ".join(command)], {"BPFTRACE_PERF_RB_PAGES": "4096", "BPFTRACE_MAX_PROBES": "100000"}, may_fail=True)
    if done.returncode or not done.stdout.strip():
        raise Refused("the kernel refuses its probe: " + why_refused(done.stderr or done.stdout))
    lost = sum(map(int, re.findall(r"[Ll]ost (\d+) events", done.stderr + done.stdout)))
    return done.stdout, of_children() - before, output, lost


def bpftrace_counts(bed):
    need("bpftrace")
    program = bed.build("calls")

    def measure():
        text, cpu, output, lost = bpftrace_run(bed, f"uprobe:{program}:none {{ @ = count(); }}", [program, "none", str(bed.calls(200_000))])
        found = re.search(r"@: (\d+)", open(output).read())
        return sample(Program(text, cpu), int(found[1]) if found else 0, lost, 0)

    yield CALL, measure


def bpftrace_prints(bed):
    need("bpftrace")
    program = bed.build("calls")
    call = f"uprobe:{program}:%s {{ printf(\"%%llu c\\n\", nsecs); }}"
    scripts = {CALL: (call % "none", 100_000), WORDS: (f"uprobe:{program}:two {{ printf(\"%llu c %d %d\\n\", nsecs, arg0, arg1); }}", 100_000),
               PAIR: (f"{call % 'two'} uretprobe:{program}:two {{ printf(\"%llu r %d\\n\", nsecs, retval); }}", 50_000)}

    def measure(case):
        script, most = scripts[case]
        text, cpu, output, lost = bpftrace_run(bed, script, [program, MODES[case], str(bed.calls(most))])
        each = 2 if case == PAIR else 1
        read = lines_of(output, " c") + (lines_of(output, " r") if each == 2 else 0)
        return sample(Program(text, cpu), read // each, lost // each, bytes_of(output))

    for case in scripts:
        yield case, lambda case=case: measure(case)


TRACERS = [("untraced", untraced), ("clock read", clock), ("tracewheel", tracewheel), ("LTTng-UST", lttng), ("uftrace, -pg", uftrace_compiled),
           ("uftrace, patched", uftrace_patched), ("ltrace", ltrace), ("strace", strace), ("perf uprobe", perf), ("bpftrace, counted", bpftrace_counts),
           ("bpftrace, printed", bpftrace_prints)]
