#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""entries.py BUILD [--only REGEX] [--keep] [--self-test] - calls at entries of unmodified programs are those that callgrind counts.

Goal: of every function of a dozen stripped programs of Debian, and of their libraries, `record --local` sees each call once.
Method: each program runs once under valgrind's callgrind, which counts how often each instruction runs, and once recorded. For each
function of the plans (symbols/entry_plan.h), the calls recorded must be the executions of its first instruction, also where
both are 0. Functions that differ are counted by gdb's breakpoints, or recorded four times more: where the number of calls changes
from run to run, it says so. The bytes behind planted jumps are int3. The commands do the same in each run: one process, no time, no addresses
as keys, no randomness. libc and libgcc_s are left out: what they do depends on the processor, which valgrind changes, on addresses, and
on the start before counts begin. --self-test is the negative control: single counts are changed, and each change must be noticed.
"""
import argparse
import json
import os
import pathlib
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "common"))
from callgrind import read_executions  # noqa: E402

# name: (lines of bash that prepare files, the command). Commands run in the folder of these files.
PROGRAMS = {
    "sqlite3": (
        """cat >work.sql <<'S'
create table t(a integer primary key, b text, c);
with recursive n(i) as (select 1 union all select i+1 from n where i<2000) insert into t select i, 'row '||i, i*7%13 from n;
create index x on t(c,b);
select c, count(*), sum(length(b)), group_concat(substr(b,1,1)) from t group by c order by 2 desc, 1 limit 3;
select json_group_array(json_object('k', a)) from t where a < 20; select printf('%5.2f', sum(a*1.5)) from t;
create trigger u after delete on t begin update t set c = c+1 where a = old.a+1; end;
delete from t where a%3=0; select count(*) from t; pragma integrity_check; explain select * from t where b like 'row 1%';
S""",
        "sqlite3 :memory: '.read work.sql'"),
    "python3": (
        """cat >work.py <<'S'
words = ["w%d" % (i * 7919 % 997) for i in range(3000)]
def deep(n): return 0 if n == 0 else 1 + deep(n - 1)
class A:
    def __init__(self, x): self.x = x
    def __lt__(self, other): return self.x < other.x
print(deep(300), min(A(i * 31 % 17) for i in range(50)).x, sum(i * i for i in range(5000)))
try:
    raise ValueError("no")
except ValueError as error:
    print(error)
counts = {}
for word in words:
    counts[word] = counts.get(word, 0) + 1
print(sorted(words, key=len)[:3], len(counts), "%5.3f" % 1.5, " ".join(words).replace("w", "v").upper()[:9], 3 ** 200 % 1009)
print(bytes(range(65, 70)).decode(), "{:>8}|{!r}".format(3.25, "x"), [*map(str, filter(None, range(5)))], f"{2**70:,}", int("77", 8))
S
# The compiler has tables whose keys are addresses.
/usr/bin/python3 -c 'import py_compile; py_compile.compile("work.py", "work.pyc")'""",
        "/usr/bin/python3 -S -B work.pyc"),
    "git": (
        """git init -q . && git config user.email a@b && git config user.name n && git config gc.auto 0 && for i in $(seq 12); do seq $((i * 37)) >f$((i % 5)); git add . &&
GIT_COMMITTER_DATE="2020-01-01 00:00:$((i + 10))" GIT_AUTHOR_DATE="2020-01-01 00:00:$((i + 10))" git commit -qm "$i"; done""",
        "git --no-pager log -p --stat -M --graph"),
    "bash": (
        """seq 50 >in && cat >work.sh <<'S'
f() { local n=$1; [ "$n" -le 1 ] && { REPLY=1; return; }; f $((n - 1)); REPLY=$((REPLY * n)); }
declare -A map; for i in {1..300}; do f $((i % 10 + 1)); map[k$((i % 7))]+=$REPLY; done
for k in k0 k1 k6; do echo "${#map[$k]} ${map[$k]:0:10}"; done
while read -r line; do case $line in *7*) n=$((n + 1)) ;; esac; done <in; echo "$n"; trap 'echo bye' EXIT
printf '%05d %s\\n' 42 "${PATH//[a-z]/x}"; [[ abc123 =~ ([a-z]+)([0-9]+) ]] && echo "${BASH_REMATCH[2]}"; set -- a b c; shift; echo "$* ${*^^}"
S""",
        "/bin/bash --norc --noprofile work.sh"),
    "openssl": (
        "seq 20000 >in",
        # Without the processor's extensions: valgrind has others than the machine.
        "OPENSSL_ia32cap=0:0 OPENSSL_CONF=/dev/null openssl enc -aes-256-cbc -pbkdf2 -iter 200 -pass pass:x -S 0011223344556677 -in in -out out"),
    "xz": ("seq 30000 >in", "xz -T1 -9e -k -c --check=sha256 in"),
    "perl": (
        """cat >work.pl <<'S'
use strict; my %h; $h{$_ % 97} .= chr(65 + $_ % 26) for 1 .. 5000; print length(join "", map { $h{$_} } sort keys %h), "\\n";
sub fib { my $n = shift; $n < 2 ? $n : fib($n - 1) + fib($n - 2) } print fib(15), "\\n"; my $t = "abc " x 500; (my $u = $t) =~ s/(b)(c)/$2$1/g;
print substr($u, 0, 9), "\\n"; eval { die { code => 3 } }; print $@->{code}, "\\n"; print join(",", map { sprintf "%x", $_ } sort { $b <=> $a } 1 .. 9), "\\n";
local $_ = "x=1;y=2"; my %o = /(\\w)=(\\d)/g; print join("", map { "$_$o{$_}" } sort keys %o), "\\n";
S""",
        "PERL_HASH_SEED=0 PERL_PERTURB_KEYS=0 perl work.pl"),
    "mawk": (
        "seq 4000 >in",
        """mawk '{ s[$1 % 17] += $1; if (match($0, /7[0-9]/)) n++; gsub(/1/, "one"); t = t substr($0, 1, 1) } END { for (i = 0; i < 17; i++) printf "%d %s\\n", s[i], length(t); print n, toupper("x"), split("a b c", p), sqrt(2) }' in"""),
    "tclsh": (
        """cat >work.tcl <<'S'
proc fib {n} { if {$n < 2} { return $n }; expr {[fib [expr {$n - 1}]] + [fib [expr {$n - 2}]]} }
puts [fib 14]; set l {}; for {set i 0} {$i < 400} {incr i} { lappend l [expr {$i * 7919 % 1009}] }; puts [lrange [lsort -integer $l] 0 3]
puts [regsub -all {(a)(b)} [string repeat ab 50] {\\2\\1}]; puts [format %5.2f 1.5]; catch { error no } e; puts $e; puts [string toupper [join [split a,b ,] -]]
S""",
        "tclsh work.tcl"),
    "as": ("echo 'int f(int a) { return a * 3; } double g(double d) { return f((int)d) + d; }' >work.c && gcc -O2 -S work.c -o work.s", "as work.s -o work.o"),
    "ld": ("echo 'int f(int a) { return a * 3; } double g(double d) { return f((int)d) + d; }' >work.c && gcc -O2 -fPIC -c work.c -o work.o", "ld -shared work.o -o work.so"),
    "curl": ("seq 3000 >in", "curl -q -s --max-time 60 file://$PWD/in"),
    "make": (
        """{ echo 'all: $(addprefix t,$(shell_none) 1 2 3)'; for i in $(seq 200); do echo "t$i: t$((i + 1))"; echo "	@: \\$(subst 1,2,\\$@) \\$(words \\$(filter-out 3,1 2 3 4))"; done; echo 't201:'; } >Makefile""",
        "make -n -r all"),
    "cmake": (
        """cat >work.cmake <<'S'
set(l "")
foreach(i RANGE 300)
list(APPEND l "x${i}")
math(EXPR s "${i} * 3")
endforeach()
list(SORT l)
string(REGEX REPLACE "x([0-9])" "\\\\1y" r "${l}")
string(LENGTH "${r}" n)
message(STATUS "${n} ${s}")
function(f n)
if(n GREATER 0)
math(EXPR m "${n} - 1")
f(${m})
endif()
endfunction()
f(40)
string(JSON v GET [[{"a":[1,2,{"b":"c"}]}]] a 2 b)
message(STATUS "${v}")
string(MD5 h "${r}")
message(STATUS "${h}")
S""",
        "cmake -P work.cmake"),
}

# Makes the program under valgrind begin as the recorded one does: without valgrind's variables, and with counts that begin at the
# same place, because the functions that ld.so calls for other libraries come before any preloaded library's.
BEGIN = r"""
#include <stdlib.h>
#include <string.h>
#include <valgrind/callgrind.h>
extern char **environ;
__attribute__((constructor)) static void begin(void)
{
	static const char *const added[] = {"GLIBCPP_FORCE_NEW=", "GLIBCXX_FORCE_NEW=", "LD_PRELOAD=", "LD_LIBRARY_PATH="};
	for (size_t i = 0; RUNNING_ON_VALGRIND && i < sizeof added / sizeof *added; i++)
		for (char **at = environ; *at; at++)
			if (!strncmp(*at, added[i], strlen(added[i])))
				for (char **to = at--; (*to = to[1]); to++)
					;
	CALLGRIND_ZERO_STATS;
}
"""
LEFT_OUT = ("libc", "libgcc_s", "libgmp")
ROW = struct.Struct("<IIIIIHBBBBBBBB2x")


class Wrong(Exception):
    pass


def read_plan(path):
    """The rows of a plan: (value, refusal, names), and its build-id."""
    plan = path.read_bytes()
    build_id_bytes, row_count, rows, name_count, names = struct.unpack_from("<IIIII", plan, 64)
    strings = struct.unpack_from("<I", plan, 100)[0]
    offsets = struct.unpack_from("<%dI" % name_count, plan, names)
    found = []
    for i in range(row_count):
        value, _, first, _, _, count, refusal, *_ = ROW.unpack_from(plan, rows + i * ROW.size)
        spelt = []
        for offset in offsets[first:first + count]:
            start = strings + offset
            spelt.append(plan[start:plan.index(b"\0", start)].decode())
        found.append((value, refusal, spelt))
    return plan[32:32 + build_id_bytes].hex(), found


def build_id_of(path):
    notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True).stdout
    found = re.search(r"Build ID: ([0-9a-f]+)", notes)
    return found[1] if found else None


def compare(plans, executed, recorded):
    """Yields what differs; then the number of functions called and of calls."""
    functions = calls = 0
    for path, counts in executed.items():
        if module_of(path) in LEFT_OUT:
            continue
        build_id = build_id_of(path) if os.path.exists(path) else None
        # Functions that share a name are compared together: versions of one function.
        groups = {}
        for value, refusal, names in plans.get(build_id, []):
            if refusal:
                continue
            found = {"values": [], "names": set()}
            for known in names or ["sub_%x" % value]:
                found = groups.setdefault(known, found)
                found["names"].add(known)
            found["values"].append(value)
        for group in {id(group): group for group in groups.values()}.values():
            seen = sum(recorded.pop((path, known), 0) for known in group["names"])
            ran = sum(counts.get(value, 0) for value in group["values"])
            functions += seen > 0
            calls += seen
            if seen != ran:
                yield path, group["values"], min(group["names"]), seen, ran, group["names"]
    for (path, name), seen in recorded.items():
        yield path, [], name, seen, 0, {name}
    yield functions, calls


def confirmed(wrong, words, work, environment):
    """Those of the differences that are valgrind's: breakpoints of gdb are hit as often as was recorded, without valgrind.

    Python compares a few times less in valgrind's machine. Programs at fixed addresses only, whose addresses gdb knows before they run.
    """
    rows = [row for row in wrong if row[1] and read_type(row[0]) == 2]
    if not rows or len(rows) > 10 or not shutil.which("gdb"):
        return []
    lines = ["set startup-with-shell off", "unset environment LINES", "unset environment COLUMNS"]
    owned, last = [], 0
    for row in rows:
        owned.append(range(last + 1, last + 1 + len(row[1])))
        last += len(row[1])
        for value in row[1]:
            lines += ["break *%#x" % value, "ignore $bpnum 1000000000"]
    (work.parent / "ask").write_text("\n".join(lines + ["run", "info breakpoints"]) + "\n")
    said = run(["gdb", "-q", "-nx", "-batch", "-x", "../ask", "--args", *words], work, environment).decode(errors="replace")
    hits, number = {}, 0
    for line in said.splitlines():
        if re.match(r"\d+ +breakpoint", line):
            number = int(line.split()[0])
        found = re.search(r"already hit (\d+) time", line)
        if found:
            hits[number] = int(found[1])
    return [row for row, numbers in zip(rows, owned) if sum(hits.get(number, 0) for number in numbers) == row[3]]


def varying(wrong, record):
    """Those of the differences whose number of calls changes from one run to the next: it depends on addresses.

    Python's cache of methods has keys made of addresses, which the kernel chooses anew for each run and valgrind in a way of its own.
    """
    seen = [{row[3]} for row in wrong]
    for _ in range(4 if wrong else 0):
        recorded = record()
        for row, counts in zip(wrong, seen):
            counts.add(sum(recorded.get((row[0], name), 0) for name in row[5]))
    return [row for row, counts in zip(wrong, seen) if len(counts) > 1]


def read_type(path):
    """e_type of a file."""
    with open(path, "rb") as file:
        return struct.unpack_from("<H", file.read(64), 16)[0]


def run(words, folder, environment):
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise Wrong("%s: exit code %d\n%s" % (shlex.join(map(str, words)), done.returncode, done.stderr.decode(errors="replace")[-1000:]))
    return done.stdout


def one(tw, name, folder, tests):
    prepare, command = PROGRAMS[name]
    cache = folder / "cache"
    cache.mkdir()
    environment = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": str(folder), "LC_ALL": "C.UTF-8", "XDG_CACHE_HOME": str(cache),
                   "TRACEWHEEL_ENTRY_TRAPS": "1", "PYTHONHASHSEED": "0",
                   # libm chooses by the processor, and valgrind's is another one.
                   "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-FMA,-FMA4,-AVX2"}
    work = folder / "work"
    work.mkdir()
    run(["bash", "-c", prepare], work, environment)
    # Without a shell: its variable `_` would differ, and the program may look at each of them.
    words = shlex.split(command.replace("$PWD", str(work)))
    while "=" in words[0]:
        environment.__setitem__(*words.pop(0).split("=", 1))
    environment["PWD"] = str(work)  # which the script that Debian calls valgrind sets
    answer = run(words, work, environment)
    (folder / "begin.c").write_text(BEGIN)
    run(["gcc", "-O1", "-shared", "-fPIC", "-o", "begin.so", "begin.c"], folder, environment)
    run([*"valgrind -q --tool=callgrind --callgrind-out-file=../calls --dump-instr=yes --skip-plt=no".split(), *words], work,
        {**environment, "LD_PRELOAD": str(folder / "begin.so")})
    executed = read_executions(folder / "calls")
    paths = {}
    for path in executed:
        paths.setdefault(module_of(path), []).append(path)

    def record():
        """Calls by path and name."""
        again = run([tw, *"record -q --force --local --on-full block -t _:_ -N {libc,libgcc_s,libgmp}:_ -o ../a.tw --".split(), *words], work, environment)
        if answer != again:
            raise Wrong("recorded, it answered otherwise")
        report = json.loads(run([tw, "report", "--json", "-n", "0", "a.tw"], folder, environment))
        if sum(report["lost"].values()):
            raise Wrong("events were lost: %s" % report["lost"])
        found = {}
        for row in report["by_function"]:
            key = (paths.get(row["module"], [row["module"]])[0], row.get("linkage", row["function"]))
            found[key] = found.get(key, 0) + row["calls"]
        return found

    recorded = record()
    plans = dict(read_plan(path) for path in (cache / "tracewheel" / "plans").glob("*.plan"))
    *wrong, (functions, calls) = compare(plans, executed, dict(recorded))
    if not wrong:
        for number in range(tests):
            changed = dict(recorded)
            key = sorted(changed)[number * 7919 % len(changed)]
            changed[key] += 1 if number % 2 else -1
            if len(list(compare(plans, executed, changed))) == 1:
                raise Wrong("a changed count of %s was not noticed" % (key,))
    right = confirmed(wrong, words, work, environment)
    wrong = [row for row in wrong if row not in right]
    varied = varying(wrong, record)
    if len(varied) <= 5:  # more are not a cache's
        wrong = [row for row in wrong if row not in varied]
    print("   %-8s %6d functions called, %9d calls%s%s%s" % (
        name, functions, calls, ", %d functions counted by gdb" % len(right) if right else "",
        ", %d functions called a varying number of times" % len(varied) if varied else "", ": %d DIFFER" % len(wrong) if wrong else ""), flush=True)
    for path, values, function, seen, ran, _ in wrong[:40]:
        print("      %s:%s %s: %d calls recorded, %d executed" % (os.path.basename(path), function, [hex(value) for value in values], seen, ran))
    return not wrong


def module_of(path):
    """As views name an object: libfoo.so.1 is libfoo."""
    base = os.path.basename(path)
    return re.sub(r"\.so(\..*)?$", "", base)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    tw = os.path.join(os.path.realpath(options.build), "bin", "tracewheel")
    failed, played = 0, 0
    for name in PROGRAMS:
        if not re.search(options.only, name):
            continue
        folder = pathlib.Path(tempfile.mkdtemp(prefix="tracewheel-entries."))
        try:
            failed += not one(tw, name, folder, 20 if options.self_test else 0)
            played += 1
        except Wrong as wrong:
            print("   %-8s FAILED: %s" % (name, wrong))
            failed += 1
        finally:
            if options.keep:
                print("      " + str(folder))
            else:
                shutil.rmtree(folder, ignore_errors=True)
    print("entries: %d programs, %d with differences" % (played, failed))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
