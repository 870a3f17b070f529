#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Profiles for pprof and callgrind have the calls and own times of the report, by function and by caller, and their
#         readers take them without a word.
# Method  callgrind_annotate sums up the one, protoc decodes the other, and `go tool pprof` sums it up with --long; all are compared with `report --json` of the same
#         capture, and stacks with `flame --folded`.
build=$1
. "$(dirname "$0")/lib.sh"
tests=$(realpath "$common/../tools")
"$build/tests/tools_report_test" captures "$work" || fail "no captures"
cat >calls.c <<'C'
#include <stdlib.h>
__attribute__((noinline)) int leaf(int i) { __asm__ volatile("" : "+r"(i)); return i; }
__attribute__((noinline)) int down(int i) { int below = i ? down(i - 1) : leaf(0); __asm__ volatile("" : "+r"(below)); return below + leaf(i); }
int main(void)
{
	int sum = 0;
	for (int i = 0; i < 50; i++)
		sum += down(i % 5);
	exit(sum < 0);
}
C
${CC:-cc} -O1 -fpatchable-function-entry=9 calls.c -o calls || fail "no program"
expect 0 "$tw" record -q --returns -t 'calls:_' -o own.tw -- ./calls
expect 0 "$tw" record -q -t 'calls:_' -o plain.tw -- ./calls
expect 0 "$tw" record -q --stack 4 -t 'calls:_' -o stacks.tw -- ./calls

cat >compare.py <<'P'
import collections, json, re, subprocess, sys
name, proto = sys.argv[1:3]
report = json.load(open("report"))
want = {f["name"].removesuffix("/_"): (f["calls"], round(f.get("self", 0) * 1e9)) for f in report["by_function"]}
has_times = any(ns for _, ns in want.values())

def differ(what, got):
    got = {f: v for f, v in got.items() if any(v)}
    assert {f: v if has_times else v[0] for f, v in got.items()} == {f: v if has_times else v[0] for f, v in want.items()}, (what, got, want)

# callgrind: sums that its own reader makes, and nothing that it warns of.
ran = subprocess.run(["callgrind_annotate", "--threshold=100", name + ".callgrind"], capture_output=True, text=True)
assert ran.returncode == 0 and not ran.stderr, ran.stderr[:300]
got = {}
for line in ran.stdout.splitlines():
    numbers = re.match(r"\s*([0-9,]+) \([ 0-9.]+%\)\s+(?:([0-9,]+) \([ 0-9.]+%\)|(\.))?\s*\?\?\?:(.*)", line)
    if numbers:
        first, second = (int(n.replace(",", "")) if n else 0 for n in numbers.group(1, 2))
        got[numbers[4]] = (second, first) if has_times else (first, 0)
differ("callgrind", got)

# pprof
folder = proto.rsplit("/", 1)[0]
text = subprocess.run(["protoc", "--proto_path=" + folder, "--decode=Profile", proto], input=open(name + ".pprof", "rb").read(), capture_output=True, check=True).stdout.decode()
assert not re.search(r"^ *[0-9]+[: ]", text, re.M), "an unknown field"
parts = collections.defaultdict(list)
for key, body in re.findall(r"^(\w+) \{\n(.*?)^\}", text, re.M | re.S):
    parts[key].append([(k, int(v)) for k, v in re.findall(r"(\w+): (-?\d+)", body)])
strings = [re.sub(r"\\(['\"\\])", r"\1", string) for string in re.findall(r'^string_table: "(.*)"$', text, re.M)]
assert strings[0] == ""
types = [tuple(strings[v] for _, v in t) for t in parts["sample_type"]]
assert types == ([("calls", "count"), ("time", "nanoseconds")] if has_times else [("calls", "count")]), types
assert strings[int(re.search(r"^default_sample_type: (\d+)", text, re.M)[1])] == types[-1][0]
functions = {dict(f)["id"]: strings[dict(f)["name"]] for f in parts["function"]}
places = {dict(l)["id"]: functions[dict(l)["function_id"]] for l in parts["location"]}
got, stacks = collections.Counter(), collections.Counter()
times = collections.Counter()
for sample in parts["sample"]:
    stack = [places[v] for k, v in sample if k == "location_id"]
    values = [v for k, v in sample if k == "value"]
    assert len(values) == len(types)
    got[stack[0]] += values[0]
    times[stack[0]] += values[1] if has_times else 0
    stacks[";".join(reversed(stack))] += values[-1]
differ("pprof", {f: (got[f], times[f]) for f in set(got) | set(times)})
folded = collections.Counter()
for line in open("folded"):
    stack, count = line.rsplit(" ", 1)
    folded[stack] += int(count)
assert {s: n for s, n in stacks.items() if n} == dict(folded), (stacks, folded)
print(len(stacks), sum(got.values()))

# The program that people read them with, in the long form.
def go_pprof(index, unit):
    command = ["go", "tool", "pprof", "-top", "-nodecount=1000000", "-nodefraction=0", "-edgefraction=0", "-sample_index=" + index, "-unit=" + unit, name + ".pprof"]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    rows = re.findall(r"^ *(\d+)[a-z]* +[\d.e-]+% +[\d.e-]+% +(\d+)[a-z]* +[\d.e-]+% +(.*)$", ran.stdout, re.M)
    assert rows and len(rows) == len(ran.stdout.split("cum%\n")[1].splitlines()), ran.stdout
    return {function: int(flat) for flat, _, function in rows}
if len(sys.argv) > 3:
    found = go_pprof("calls", "count"), go_pprof("time", "ns") if has_times else {}
    # It shows names without parameters, and without what is in angle brackets.
    of_names = lambda all: {re.sub(r"\(.*\)|<.*>", "", f): v for f, v in all.items()}
    assert len(of_names(want)) == len(want)
    want = of_names(want)
    differ("go tool pprof", {f: (found[0].get(f, 0), found[1].get(f, 0)) for f in set(found[0]) | set(found[1])})
P
go=
if [ -n "${TW_TEST_LONG:-}" ]; then
	export HOME=$work
	command -v go >/dev/null && go=go || echo "no go here: its pprof was not asked" >&2
fi
for name in random own plain stacks; do
	expect 0 "$tw" convert -q --to callgrind $name.tw -o $name.callgrind
	expect 0 "$tw" convert -q --to pprof $name.tw -o $name.pprof
	"$tw" report --json --top 0 $name.tw >report || fail "report"
	"$tw" flame --folded $name.tw >folded 2>err || fail "flame"
	expect 0 "$tw" convert -q --to folded $name.tw -o $name.folded
	cmp -s folded $name.folded || fail "convert --to folded differs from flame --folded"
	if command -v protoc >/dev/null && command -v callgrind_annotate >/dev/null; then
		python3 compare.py $name "$tests/profile.proto" $go >numbers || fail "$name: not the numbers of the report"
	fi
done
grep -qx 'cmd: ./calls' own.callgrind || fail "the program is not named"
# main calls down, down itself and leaf.
is "$(grep -c '^cfn=' own.callgrind)" 3 "edges: $(cat own.callgrind)"
# The comparison notices a call too many.
if command -v protoc >/dev/null && command -v callgrind_annotate >/dev/null; then
	"$tw" report --json --top 0 own.tw >report && "$tw" flame --folded own.tw >folded 2>err || fail "own.tw"
	python3 compare.py own "$tests/profile.proto" >numbers || fail "own.tw again"
	sed -i 's/ 200$/ 201/' own.callgrind
	! python3 compare.py own "$tests/profile.proto" >/dev/null 2>&1 || fail "not noticed"
fi
