#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    flame --diff joins the stacks of two sides by name, as means where a side has several captures, also where the program has another
#         name, with the rule of report --diff for what may be chance.
# Method  Folded stacks are joined again from those of each capture alone; a function with one stack has the chance of its row in
#         report --diff. The colours of the page are looked at by pages_test.sh.
build=$1
. "$(dirname "$0")/lib.sh"
make_sides 2

cat >check.py <<'P'
import functools, json, re, subprocess, sys
tw = sys.argv[1]
@functools.cache
def run(*words):
    return subprocess.run([tw, *words], stdout=subprocess.PIPE, check=True, text=True).stdout
def plain(stack):
    return ";".join(re.sub("^(old|app):", ":", name) for name in stack.split(";"))
def sums(paths):
    total = {}
    for path in paths:
        for line in run("flame", "--folded", path).splitlines():
            stack, own = line.rsplit(" ", 1)
            total[plain(stack)] = total.get(plain(stack), 0) + int(own)
    return {stack: own // len(paths) for stack, own in total.items()}
for sides in sys.argv[2:]:
    old, new = (side.split(",") for side in sides.split())
    words = [word for path in old for word in ("--diff", path)] + new
    sides, joined = [sums(old), sums(new)], {}
    for line in run("flame", "--folded", *words).splitlines():
        stack, *own = line.rsplit(" ", 2)
        assert stack.startswith("app:"), "not the new name: " + line
        joined[plain(stack)] = [int(n) for n in own]
    names = set(sides[0]) | set(sides[1])
    assert joined == {stack: [side.get(stack, 0) for side in sides] for stack in names}, (joined, sides)

    data = json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', run("flame", "--least", "0", *words), re.S).group(1))
    rows = {row["name"].split("/")[0]: row for row in json.loads(run("report", "--json", "--top", "0", *[w for w in words]))["by_function"]}
    nodes = [data["nodes"][i:i + 9] for i in range(0, len(data["nodes"]), 9)]
    assert len(nodes) == len(rows) == 4
    for depth, name, calls, total, own, old_calls, old_total, old_own, noise in nodes:
        row = rows[data["names"][name]]
        for key, number in (("new_calls", calls), ("old_calls", old_calls)):
            assert row[key] == number, (key, row, number)
        for key, number in (("new_self", own), ("old_self", old_own), ("new_total", total), ("noise", noise)):
            assert round(row.get(key, -1e-9 if key == "noise" else 0) * 1e9) == number, (key, row, number)
    assert [f[1:] for f in data["functions"]] == [n[2:] for f in data["functions"] for n in nodes if n[1] == f[0]], data
P
expect 0 python3 -I -S check.py "$tw" "old1.tw app1.tw" "old1.tw,old2.tw app1.tw,app2.tw" "old1.tw,old2.tw app1.tw"

# What cannot be compared.
expect 2 "$tw" flame --diff old1.tw
says "which capture is compared with 'old1.tw'"
expect 2 "$tw" flame --diff old1.tw --by-process app1.tw
says 'processes of two runs'
expect 0 "$tw" record -q -t libc:malloc -o ls.tw -- ls /
expect 1 "$tw" flame --diff old1.tw ls.tw
says 'no function was called in both'
expect 1 "$tw" flame --folded --diff old1.tw none.tw
says none.tw
# Without returns calls are compared.
expect 0 "$tw" record -q --on-full block -t app:_ -o calls.tw -- ./app
expect 0 "$tw" flame --folded --diff old1.tw calls.tw
grep -q '^app:parse 0 4000$' out || fail "calls: $(cat out)"
# A capture and itself.
expect 0 "$tw" flame --folded --diff old1.tw old1.tw
is "$(awk '$2 != $3' out)$(wc -l <out)" 4 "a capture and itself"
# In a part nothing else is compared.
expect 0 "$tw" flame --folded --diff old1.tw -t '_:parse' app1.tw
is "$(cut -d' ' -f1 out)" app:parse "-t"
