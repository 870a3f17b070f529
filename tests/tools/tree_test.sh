#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    print --tree shows when each call began, as --from takes it; equal leaves that follow each other are one line, with their number and
#         the sum of their times, and no others are; lines fit a terminal, and lose arguments before names.
# Method  A program with two threads, loops of equal and of different calls, and depth. A model makes the same lines from all events.
build=$1
. "$(dirname "$0")/lib.sh"
cat >app.c <<'C'
#include <pthread.h>
#define KEPT __attribute__((noinline))
KEPT int leaf(int a) { __asm__ volatile("" : "+r"(a)); return a / 1000; }
KEPT int counts(void) { static _Thread_local int n; return n++ / 3; }
KEPT int deep(int n) { int sum = n ? deep(n - 1) : 0; return sum + leaf(7); }
KEPT int a_function_whose_name_takes_half_of_the_width(const char *path, const char *other) { __asm__ volatile("" : "+r"(path), "+r"(other)); return 12345; }
KEPT int work(void)
{
	int sum = 0;
	for (int i = 0; i < 1200; i++)
		sum += leaf(3);
	for (int i = 0; i < 4; i++)
		sum += leaf(3) + leaf(4);
	for (int i = 0; i < 9; i++)
		sum += counts();
	sum += deep(40);
	for (int i = 0; i < 3; i++)
		sum += a_function_whose_name_takes_half_of_the_width("/usr/share/a/file/with/a/name/that/is/long", "/etc/another/one/of/this/kind");
	return sum;
}
static void *run(void *unused) { work(); return unused; }
int main(void)
{
	pthread_t thread;
	pthread_create(&thread, 0, run, 0);
	work();
	return pthread_join(thread, 0);
}
C
gcc -g -w -O1 -fno-optimize-sibling-calls -fpatchable-function-entry=9 -pthread -o app app.c || fail gcc
expect 0 "$tw" record -q --force --returns --args --on-full block -t app:_ -o a.tw -- ./app
expect 0 "$tw" print --format json --setups a.tw
cp out events.json
expect 0 "$tw" print --tree a.tw
cat >model.py <<'P'
import collections, json, re
UNIT = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
# By thread: [depth, name, its arguments and value, times, begin, sum] of leaves in the order of their last ends, without those
# that follow equal ones.
want, waiting, stacks = collections.defaultdict(list), {}, collections.defaultdict(list)
setups = collections.Counter()
for line in open("events.json"):
    e = json.loads(line)
    stack = stacks[e.get("thread")]
    if e["kind"] == "call":
        stack.append([e, True])
        if len(stack) > 1:
            if stack[-2][1]:
                waiting.pop(e["thread"], None)
            stack[-2][1] = False
    elif e["kind"] == "own_time":
        setups[e["thread"]] += e["own_ns"]
    elif e["kind"] == "return_from":
        call, is_leaf = stack.pop()
        if not is_leaf:
            waiting.pop(e["thread"], None)
            continue
        key = (len(stack), call["function"], str(call.get("args", call.get("arguments"))), str(e.get("value")))
        last = waiting.get(e["thread"])
        if last and last[0] == key:
            last[1] += 1
            last[3] += e["ns"] - call["ns"]
        else:
            waiting[e["thread"]] = row = [key, 1, call["ns"], e["ns"] - call["ns"]]
            want[e["thread"]].append(row)
have = collections.defaultdict(list)
begins = collections.Counter()
for line in open("out"):
    found = re.match(r"(\d+)\.(\d{9})  (.{9})  (\d+) .*?  \|( *)(?:\[(\d+)\] )?(.*)$", line)
    assert found, line
    seconds, rest, time, thread, indent, depth, text = found.groups()
    begin = int(seconds) * 10**9 + int(rest)
    begins[begin, int(thread)] += 1
    if text.startswith("}") or text.endswith("{"):
        continue
    times = re.search(r"  x ([\d,]+)$", text)
    number, unit = time.split()
    have[int(thread)].append([int(depth) if depth else len(indent) // 2 - 1, re.match(r"app:(\w+)\(", text)[1],
                              int(times[1].replace(",", "")) if times else 1, begin, float(number) * UNIT[unit]])
assert len(want) == 2 and want.keys() == have.keys(), (want.keys(), have.keys())
for thread, rows in want.items():
    short = [[key[0], key[1], times, begin] for key, times, begin, ns in rows]
    mine = [row[:4] for row in have[thread]]
    assert short == mine, next(pair for pair in zip(short, mine) if pair[0] != pair[1])
    for row, (_, _, _, ns) in zip(have[thread], rows):
        assert (ns - setups[thread]) * 0.99 - 1 <= row[4] <= ns * 1.01 + 1, (row, ns)
    numbers = [times for key, times, _, _ in rows if key[1] == "leaf"]
    assert numbers[0] in (1200, 1201) and sum(numbers) == 1200 + 8 + 41, numbers[:20]
    assert [times for key, times, _, _ in rows if key[1] == "counts"] == [3, 3, 3]
# Every call's begin stands there: twice where its end has a line.
calls = {(e["ns"], e["thread"]) for e in map(json.loads, open("events.json")) if e["kind"] == "call"}
assert set(begins) <= calls
P
python3 model.py || fail "the tree is not the model's"
shows 'app:leaf(a = 3) = 0  x 1,20[01]$'
# A time that was copied shows that call first.
begin=$(awk '/app:a_function_whose/ { print $1; exit }' out)
expect 0 "$tw" print --from "$begin" --limit 1 a.tw
shows ' call *app:a_function_whose'
# A call that is open at the beginning of a part shows its own beginning too.
begin=$("$tw" print --tree a.tw | awk '/app:main/ { print $1; exit }')
expect 0 "$tw" print --tree --from 0.0001 a.tw
[ "$(awk '/app:main/ { print $1 }' out | sort -u)" = "$begin" ] || fail "the time of main"

for columns in 80 100 120; do
	COLUMNS=$columns expect 0 "$tw" print --tree a.tw
	awk -v most="$columns" 'length > most { print; bad = 1 } END { exit bad }' out || fail "lines wider than $columns columns"
	shows ' app:leaf(a = 3) = 0  x 1,20[01]$'
	shows '\[40\] '
done
shows ' app:a_function_whose_name_takes_half_.*\.\.\.) = 12345  x 3$'
expect 0 "$tw" print --tree a.tw
shows ' app:a_function_whose_name_takes_half_of_the_width(path = "/usr/share/a/file/with/a/name/that/is/long", other = "/etc/.*") = 12345  x 3$'

# Without returns calls are leaves without times.
expect 0 "$tw" record -q --force -t app:_ -o n.tw -- ./app
expect 0 "$tw" print --tree n.tw
shows '^0\.[0-9]\{9\}  *[0-9]* app  *|  app:leaf()  x 1,2[0-9]*$'
echo PASS
