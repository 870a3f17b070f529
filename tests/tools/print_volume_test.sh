#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Every format of `print`, and the folded stacks, show each event once, also if the output exceeds a buffer of 256
#         KiB; JSON stays valid.
# Method  A program calls functions without a result so often that each format is more than a megabyte. Lines, events and
#         arguments are counted and compared with the program's own numbers.
build=$1
. "$(dirname "$0")/lib.sh"
calls=20000

cat >volume.c <<'C'
#include <stdlib.h>
__attribute__((noipa)) void silent(int number) { __asm__ volatile("" : : "r"(number)); }
__attribute__((noipa)) int answers(int number) { return number; }
__attribute__((noipa)) void outer(int number) { silent(number); answers(number); }
int main(int argc, char **argv)
{
	for (int i = 0, count = argc > 1 ? atoi(argv[1]) : 1; i < count; i++)
		outer(i);
}
C
gcc -O1 -g -fpatchable-function-entry=9 -o volume volume.c || fail "the compiler"
expect 0 "$tw" record -q --on-full block --returns --args -o v.tw -t volume:silent -t volume:answers -t volume:outer -- ./volume "$calls"
expect 0 "$tw" info --json v.tw
events=$(json 'd["events"] if not any(d["lost"].values()) else "lost some"')
is "$events" $((6 * calls)) "events"

big() {
	bytes=$(stat -c %s out)
	[ "$bytes" -gt 1000000 ] || fail "only $bytes bytes of $1: that proves nothing"
}

expect 0 "$tw" print v.tw
big text
is "$(wc -l <out)" "$events" "lines of text"
is "$(grep -c ' call volume:silent/1 (number = [0-9]*)$' out)" "$calls" "calls of silent"
is "$(grep -c ' return_from volume:silent/1$' out)" "$calls" "returns of silent"
is "$(grep -c ' return_from volume:answers/1 -> [0-9]*$' out)" "$calls" "returns of answers"
awk '{ if ($1 < last) { print "backwards: " $0; bad = 1 } last = $1 } END { exit bad }' out || fail "time runs backwards"

expect 0 "$tw" print --format json v.tw
big JSON
python3 - "$calls" <<'EOT' || fail "the events of JSON"
import collections, json, sys
calls = int(sys.argv[1])
seen = collections.defaultdict(list)
for line in open("out"):
    event = json.loads(line)
    seen[event["kind"], event["function"]].append(event.get("value") if event["kind"] == "return_from" else event["args"][0])
numbers = list(range(calls))
for function in ("silent", "answers", "outer"):
    assert seen["call", function] == numbers, function
    assert seen["return_from", function] == (numbers if function == "answers" else [None] * calls), function
assert len(seen) == 6
EOT

expect 0 "$tw" print --format erlang v.tw
big "Erlang's terms"
is "$(grep -c '^{trace.*}\.$' out)" "$events" "terms"
is "$(wc -l <out)" "$events" "lines of terms"
is "$(grep -c ',call,{volume,silent,\[[0-9]*\]}' out)" "$calls" "calls of silent"

expect 0 "$tw" print --tree v.tw
big "the tree"
is "$(wc -l <out)" $((4 * calls)) "lines of the tree"
is "$(grep -c 'volume:silent(number = [0-9]*)$' out)" "$calls" "calls of silent in the tree"

expect 0 "$tw" print --format chrome v.tw
big "the timeline"
python3 - "$calls" <<'EOT' || fail "the slices of the timeline"
import collections, json, sys
names = collections.Counter(e["name"] for e in json.load(open("out"))["traceEvents"] if e["ph"] == "X" and e.get("cat") != "own_time")
assert names == {"volume:%s/1" % f: int(sys.argv[1]) for f in ("silent", "answers", "outer")}, names
EOT

expect 0 "$tw" flame --folded v.tw
is "$(sed 's/ [0-9]*$//' out | sort | tr '\n' ' ')" "volume:outer/1 volume:outer/1;volume:answers/1 volume:outer/1;volume:silent/1 " "folded stacks"
sum=$(awk '{ sum += $NF } END { print sum }' out)
expect 0 "$tw" report --json --top 0 v.tw
is "$(json 'round(sum(f["self"] for f in d["by_function"]) * 1e9)')" "$sum" "folded time"
is "$(json 'sum(f["calls"] for f in d["by_function"])')" $((3 * calls)) "calls of the report"
