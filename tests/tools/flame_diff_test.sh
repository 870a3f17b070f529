#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    flame --diff joins the stacks of two sides by name, as means where a side has several captures, also where the program has another
#         name, with the rule of report --diff for what may be chance. A page colours longer own times red, shorter ones blue, chance grey.
# Method  Folded stacks are joined again from those of each capture alone; a function with one stack has the chance of its row in
#         report --diff. A browser is asked for the colours.
build=$1
. "$(dirname "$0")/lib.sh"
make_sides 2

cat >check.py <<'P'
import json, re, subprocess, sys
tw, old, new = sys.argv[1:]
old, new = old.split(","), new.split(",")
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
check() { python3 check.py "$tw" "$@" || fail "check $*"; }
check old1.tw app1.tw
check old1.tw,old2.tw app1.tw,app2.tw
check old1.tw,old2.tw app1.tw

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

needs_browser
expect 0 "$tw" flame --diff old1.tw app1.tw
mv out diff.html
cat >try.js <<'J'
	const tone = f => { const [r, g, b] = getComputedStyle(f).backgroundColor.match(/[\d.]+/g).slice(0, 3).map(Number); return r > b * 1.05 ? 'red' : b > r * 1.2 ? 'blue' : 'grey'; };
	/* As wide as the page, however little time the function took. */
	const alone = name => { document.querySelector(`[aria-label="callers and callees of ${name}"]`).click(); return document.querySelector('.middle'); };
	say('parse', tone(alone('app:parse')));
	by('old').click();
	say('only', alone('app:only').ariaLabel.includes('calls 1,000, now 0'));
	by('calls').click();
	for (const name of ['parse', 'render', 'only']) say('calls of', name, tone(alone('app:' + name)));
	by('time').click();
	say('first', column(8)[0].slice(1).trim(), column(8).length, 'rows');
	heads()[5].firstChild.click();
	say('by calls', column(5).slice(0, 2).sort().join(' '));
	say(by('legend').textContent.includes('longer than before') && by('legend').textContent.includes('chance'), by('key-side').hidden);
J
try_page diff.html
said 'parse red' 'only true' 'calls of parse red' 'calls of render grey' 'calls of only blue' 'first app:parse 4 rows' "by calls +1,000 −1,000" 'true false'
