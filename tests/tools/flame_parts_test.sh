#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    The flame graph's page shows a part of a capture: of one thread or process, and of a stretch of time, with calls that are open at
#         its edges counted in it; the table too. Nothing of that is offered where there is nothing to choose.
# Method  The parts in the page are compared with the folded stacks of that thread and that time alone (--thread, --from, --to); what a
#         browser makes of them, by pages_test.sh.
build=$1
. "$(dirname "$0")/lib.sh"
"$build/tests/tools_report_test" captures "$work" || fail "no captures"

cat >check.py <<'P'
import json, re, subprocess, sys
tw, path, *more = sys.argv[1:]
def run(*words):
    return subprocess.run([tw, "flame", *more, *words, path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True).stdout
data = json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', run("--least", "0"), re.S).group(1))
parts, stacks, above, cells = data["parts"], [], [], []
for i in range(0, len(data["nodes"]), 5):
    depth, name, *sums = data["nodes"][i:i + 5]
    above = above[:depth - 1] + [data["names"][name]]
    stacks.append((";".join(above), sums))
words, node = iter(parts["cells"]), 0
for step in words:
    node += step
    for _ in range(next(words)):
        key, calls, own = next(words), next(words), next(words)
        cells.append((node, key // 2 // parts["slices"], key // 2 % parts["slices"], calls, own, next(words) if key % 2 else 0))
whole = {}
for node, _, _, calls, own, _ in cells:
    whole[node] = [a + b for a, b in zip(whole.get(node, [0, 0]), [calls, own])]
for node, (stack, (calls, _, own)) in enumerate(stacks):
    assert whole.get(node, [0, 0]) == [calls, own], (stack, calls, own, whole.get(node))
def same(words, is_in):
    mine, alone = {}, {}
    for node, thread, piece, _, own, _ in cells:
        if is_in(thread, piece):
            mine[stacks[node][0]] = mine.get(stacks[node][0], 0) + own
    for line in run("--folded", *words).splitlines():
        stack, own = line.rsplit(" ", 1)
        alone[stack] = alone.get(stack, 0) + int(own)
    mine = {stack: own for stack, own in mine.items() if own}
    assert mine == alone, (words, [(s, mine.get(s), alone.get(s)) for s in mine.keys() | alone if mine.get(s) != alone.get(s)][:3])
    return sum(mine.values())
count = parts["slices"]
at = lambda piece: f"{parts['from'] + piece * parts['slice']}ns"
for first, last in ((0, count), (0, 1), (3, 9), (count // 2, count), (count - 1, count)):
    same((["--from", at(first)] if first else []) + (["--to", at(last)] if last < count else []), lambda thread, piece: first <= piece < last)
for number, name in enumerate(parts["threads"]):
    same(["--thread", name.split()[0]], lambda thread, piece: thread == number)
same(["--thread", parts["threads"][0].split()[0], "--from", at(10), "--to", at(20)], lambda thread, piece: thread == 0 and 10 <= piece < 20)
P
python3 -I -S check.py "$tw" random.tw || fail "random.tw"
python3 -I -S check.py "$tw" random.tw --longer 1us || fail "random.tw, --longer"
# Another time than that of the whole capture.
python3 -I -S check.py "$tw" random.tw --from 2ms || fail "random.tw, --from"
# Losses: the sums of all parts are those of the whole; here also without returns.
expect 0 "$tw" flame calls.tw
grep -q '"parts":{"from":0,' out || fail "no parts"
expect 0 "$tw" flame --diff calls.tw calls.tw
! grep -q '"parts"' out || fail "parts of two captures"
