#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    A part of a capture can be given from its end as well, a time means the same moment whatever was removed
#         before it, and calls open where a part begins are in every view of it from there on.
# Method  Each part is compared with the lines of the whole; segments are removed from a copy as by --keep.
build=$1
. "$(dirname "$0")/lib.sh"

cat >ticks.c <<'EOT'
#include <stdlib.h>
#include <time.h>
__attribute__((noinline)) void tick(int i) { __asm__ volatile("" ::"r"(i)); }
__attribute__((noinline)) void tock(int i) { __asm__ volatile("" ::"r"(i)); }
int main(int argc, char **argv)
{
	const struct timespec pause = {0, 10000000};
	for (int i = 0; i < atoi(argv[1]); i++) {
		tick(i);
		if (i % 10000 == 0)
			tock(i);
	}
	for (int i = 0; i < 30; i++) {
		nanosleep(&pause, NULL);
		tick(i);
	}
	return 0;
}
EOT
${CC:-cc} -O2 -g -fpatchable-function-entry=9 ticks.c -o ticks || fail "no program"
# Rings large enough that no wait for space is among the events.
expect 0 "$tw" record --on-full block --ring 16M --rotate 64K -t 'ticks:{tick,tock}' -o a.tw -- ./ticks "$(rounds 1000000 1500000)"
line=$(cat err)
"$tw" print --format json a.tw >all 2>/dev/null || fail "print"

# The last ones.
for count in 1 7 1000; do
	"$tw" print --format json --tail $count a.tw >part 2>err || fail "--tail $count"
	tail -n $count all | cmp -s - part || fail "--tail $count is not the end"
done
"$tw" print --format json --tail 3 -t ticks:tock a.tw >part || fail "--tail of a function"
grep '"function":"tock"' all | tail -n 3 | cmp -s - part || fail "--tail 3 -t ticks:tock"
expect 0 "$tw" report --json --tail 100 a.tw
is "$(json 'd["events"]')" 100
expect 0 "$tw" report --json --tail 9000000 a.tw
is "$(json 'd["events"]')" "$(wc -l <all)"
expect 2 "$tw" print --tail some a.tw
"$tw" record -q -o - -t ticks:tick -- ./ticks 100 2>/dev/null | "$tw" print --format json --tail 4 - >part || fail "--tail of a stream"
is "$(wc -l <part)" 4 "lines of a stream's end"

# A negative --from counts back from the end.
expect 0 "$tw" report --json --from -105ms a.tw
few=$(json 'd["events"]')
"$tw" print --format json --from -105ms a.tw >part || fail "--from -105ms"
tail -n 1000 all >last
python3 -I -S - "$few" <<'EOT' || fail "not the last 105 ms"
import json, sys
all = [json.loads(line)["ns"] for line in open("last")]
assert all[0] < all[-1] - 105000000
part = [json.loads(line)["ns"] for line in open("part")]
wanted = [ns for ns in all if ns >= all[-1] - 105000000]
assert part == wanted and len(part) == int(sys.argv[1]) and 1 <= len(part) <= 12, (len(part), len(wanted))
EOT
expect 2 "$tw" print --from -x a.tw
says 'such as 1.5, 200ms, -2s or 17:03:12'

# Times do not change when the oldest segments are removed.
[ "$(find a.tw -name 'segment-*.tws' | wc -l)" -ge 4 ] || fail "too few segments to remove some"
cp -r a.tw b.tw
rm b.tw/segment-000001.tws b.tw/segment-000002.tws
"$tw" print --format json --tail 5 b.tw >part 2>/dev/null
tail -n 5 all | python3 -c '
import json, sys
a = [json.loads(line)["ns"] for line in sys.stdin]
b = [json.loads(line)["ns"] for line in open("part")]
assert len(a) == len(b) == 5 and all(abs(x - y) < 2000 for x, y in zip(a, b)), (a, b)' || fail "times moved"
half=$(tail -n 15 all | head -n 1 | python3 -c 'import json, sys; print(json.loads(sys.stdin.readline())["ns"])')
for name in a b; do
	code=0
	"$tw" report --json --from "$((half - 5000000))ns" $name.tw >out 2>/dev/null || code=$?
	is "$(json 'd["events"]')" 15 "--from an offset in $name"
done

# record and info agree.
expect 0 "$tw" info a.tw
python3 - "$line" <<'EOT' || fail "record says '$line'"
import re, sys
unit = {"s": 1, "ms": 1e-3, "us": 1e-6}
said = re.search(r" in ([0-9.]+) (\w+) \(", sys.argv[1])
info = re.search(r"^time +([0-9.]+) (\w+),", open("out").read(), re.M)
a, b = (float(m.group(1)) * unit[m.group(2)] for m in (said, info))
assert abs(a - b) <= 0.01 * b, (a, b)
EOT

# A call that is open where a part begins has its time from there on, and is not counted in it; all views agree.
cat >long.c <<'EOC'
#include <time.h>
__attribute__((noinline)) static void nap(int ms)
{
	nanosleep(&(struct timespec){0, ms * 1000000}, 0);
	__asm__ volatile("");
}
__attribute__((noinline)) static void work(void)
{
	for (int i = 0; i < 4; i++)
		nap(10);
	__asm__ volatile("");
}
__attribute__((noinline)) static void outer(void)
{
	nap(40);
	work();
	nap(40);
	__asm__ volatile("");
}
int main(void)
{
	nap(5);
	outer();
	nap(5);
	return 0;
}
EOC
${CC:-cc} -O2 -g -fpatchable-function-entry=9 long.c -o long || fail "no program"
expect 0 "$tw" record -q --returns -t 'long:_' -o long.tw -- ./long
python3 - "$tw" <<'EOT' || fail "views of a part do not agree"
import collections, json, re, subprocess, sys
def view(*arguments):
    run = subprocess.run([sys.argv[1], *arguments, "long.tw"], capture_output=True, text=True)
    assert run.returncode == 0, (arguments, run.stderr)
    return run.stdout
UNIT = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
def look(*part):
    report = json.loads(view("report", "--json", "--top", "0", *part))
    rows = {row["function"]: row for row in report["by_function"]}
    assert report["unmatched"]["returns"] == 0 and report["unmatched"]["calls"] == 0, report["unmatched"]
    text = view("report", *part)
    assert "no call in the capture" not in text, text
    count = report["unmatched"]["before"]
    assert ("open at the beginning of this part" in text) == (count > 0), text
    assert sum(row["before"] for row in rows.values()) == count
    # Flame: the sums of own time.
    own = collections.Counter()
    for line in view("flame", "--folded", *part).splitlines():
        chain, ns = line.rsplit(" ", 1)
        own[re.sub(".*:|/.*", "", chain.split(";")[-1])] += int(ns)
    for name, row in rows.items():
        assert abs(own[name] - row["self"] * 1e9) < 2, (part, name, own[name], row)
    # The timeline: slices, and those that began before.
    slices = [e for e in json.loads(view("print", "--format", "chrome", *part))["traceEvents"] if e["ph"] == "X" and e.get("cat") != "own_time"]
    assert all(e["dur"] >= 0 for e in slices)
    assert sum("before_ns" in e.get("args", {}) for e in slices) == count
    for name, row in rows.items():
        mine = [e for e in slices if e["name"].split("/")[0].endswith(":" + name)]
        assert len(mine) == row["calls"] + row["before"], (part, name, len(mine), row)
        took = sum(e["dur"] * 1e3 - e.get("args", {}).get("own_ns", 0) for e in mine)
        # Of slices that begin with the part an inner one begins 1 ns after the outer one.
        assert abs(took - row["total"] * 1e9) < 2 * len(mine) + 1 + 4 * row["before"], (part, name, took, row)
    # The tree: the same number that began before, and the same times with the digits shown.
    tree = view("print", "--tree", *part)
    assert tree.count("(called ") == count and "no call seen" not in tree, tree
    shown = collections.Counter()
    for number, unit, rest in re.findall(r"^\s*[0-9]+\.[0-9]{9}  [ >?]\s*([0-9.]+) (ns|us|ms|s)  \|(.*)$", tree, re.M):
        shown[re.search(r"long:(\w+)", rest).group(1)] += float(number) * UNIT[unit]
    for name, row in rows.items():
        assert abs(shown[name] - row["total"] * 1e9) <= 0.02 * row["total"] * 1e9 + 200, (part, name, shown[name], row)
    return rows
whole = look()
slices = [(e["name"], e["ts"] * 1000) for e in json.loads(view("print", "--format", "chrome"))["traceEvents"] if e["ph"] == "X"]
begin, naps = dict(slices), [(name, ts) for name, ts in slices if name.split("/")[0] == "long:nap"]
work = begin["long:work"] if "long:work" in begin else begin["long:work/0"]
# Five milliseconds within the first nap of work(), which has ten or more.
inside = int(min(ts for name, ts in naps if ts > work)) + 5000000
rows = look("--from", "%dns" % inside)
assert rows["main"]["before"] == rows["outer"]["before"] == rows["work"]["before"] == 1 and rows["work"]["calls"] == 0, rows
assert 0.025 < rows["work"]["total"] < whole["work"]["total"], rows["work"]
assert rows["main"]["returned"] == 0 and rows["nap"]["calls"] == 5, rows
# A part without any event lies within calls.
rows = look("--from", "%dns" % (inside - 1000000), "--to", "%dns" % (inside + 1000000))
assert {n: (r["calls"], r["before"]) for n, r in rows.items()} == {n: (0, 1) for n in ("main", "outer", "work", "nap")}, rows
assert all(abs(r["total"] - 0.002) < 1e-6 for r in rows.values()), rows
look("--tail", "3")
page = view("flame", "--from", "%dns" % (inside - 1000000), "--to", "%dns" % (inside + 1000000))
assert "0 events in 2 ms, a part of the capture" in page and "open at the beginning of this part: 4." in page, page[page.index('"notes"'):]
EOT
