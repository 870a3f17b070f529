#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    The flame graph is one page without network whatever functions are called; its frames and the folded stacks
#         agree with the report. What a browser draws of it is looked at by pages_test.sh.
build=$1
. "$(dirname "$0")/lib.sh"
"$build/tests/tools_report_test" captures "$work" || fail "no captures"

# Folded stacks: the sum of them is the self time of all functions.
expect 0 "$tw" flame --folded calls.tw
grep -q '^app:main/0;app:step/1;app:bind 1000$' out || fail "not the folded stack of bind"
sum=$(awk '{ sum += $NF } END { print sum }' out)
expect 0 "$tw" report --json --top 0 calls.tw
is "$(json 'round(sum(f["self"] for f in d["by_function"]) * 1e9)')" "$sum" "self time of all functions"
expect 0 "$tw" flame --folded --by-process actors.tw
grep -q '^<0.44.0> worker1;app:step/1 2400$' out || fail "time scheduled out counts as own time"

# The page: no data ends the element that contains it.
expect 0 "$tw" flame calls.tw
mv out calls.html
is "$(grep -c '</script>' calls.html)" 2 "ends of scripts"
! grep -q '<img' calls.html || fail "a function's name became markup"
! grep -qE 'https?://|src=["'\'']|@import' calls.html || fail "the page needs the network"
python3 -S - <<'EOT' || fail "the data is not what it should be"
import json, re
page = open("calls.html").read()
data = json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.S).group(1))
nodes = [data["nodes"][i:i + 5] for i in range(0, len(data["nodes"]), 5)]
assert data["hasTimes"] and len(nodes) == 18, nodes
assert any("onerror" in name for name in data["names"])
step = [n for n in nodes if n[1] >= 0 and data["names"][n[1]] == "app:step/1"]
assert step == [[2, step[0][1], 8, 4600, 3600]], step
EOT
expect 0 "$tw" flame --least 20 calls.tw
grep -q '"nodes":\[1,0,1,39500,22250,2,1,8,4600,3600,3,-2,11,1000,0,2,-3,13,3650,0\]' out || fail "small frames are not merged"
expect 2 "$tw" flame --least many calls.tw
says "percentage"
expect 0 "$tw" record -q -t 'libc:_' -o plain.tw -- ls /
expect 0 "$tw" flame plain.tw
grep -q '"hasTimes":false' out || fail "times without returns"
mv out plain.html
