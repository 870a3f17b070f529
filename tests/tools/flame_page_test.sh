#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    On the flame graph's page: the table is sorted by each of its columns, the search takes regular expressions, a function is shown with
#         all its callers above and its callees below, all of it by keys as well; it can be read at 400 pixels and in the dark. A page has a
#         bounded number of frames, and says so.
# Method  A browser runs the page of a random tree of calls, in which everything is recursive; figures are computed again from the folded
#         stacks and `report --json`.
build=$1
. "$(dirname "$0")/lib.sh"
"$build/tests/tools_report_test" captures "$work" || fail "no captures"

# However many stacks there are, a page has some 20,000 frames, all calls are in them, and the page says which are drawn together.
cat >deep.c <<'C'
#define F(n) __attribute__((noinline)) void f##n(int depth) { if (depth) f##n(depth - 1); __asm__ volatile(""); }
#define ALL(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12) F(13) F(14) F(15)
#define CALL(n) f##n(1499);
ALL(F)
int main(void) { ALL(CALL) return 0; }
C
gcc -w -O1 -fno-optimize-sibling-calls -fpatchable-function-entry=9 -o deep deep.c || fail gcc
expect 0 "$tw" record -q --on-full block --returns -t 'deep:f*' -o deep.tw -- ./deep
cat >count.py <<'P'
import json, re
data = json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', open("out").read(), re.S).group(1))
nodes = [data["nodes"][i:i + 5] for i in range(0, len(data["nodes"]), 5)]
print(sum(n[1] >= 0 for n in nodes) <= 20000, len(nodes) <= 40000, sum(n[2] for n in nodes), float(re.search(r"less than (\S+) %", data["notes"][0]["text"]).group(1)) > 0.01)
P
expect 0 "$tw" flame deep.tw
is "$(python3 count.py)" "True True 24000 True" "the frames of a page"
expect 0 "$tw" flame --least 0 deep.tw
is "$(python3 count.py)" "False True 24000 False" "the frames of --least 0"

needs_browser
expect 0 "$tw" flame --least 0 random.tw
mv out random.html
cat >try.js <<'J'
	const rows = () => frames().map(f => [parseInt(f.style.top), f]), middle = () => document.querySelector('.middle');
	const beside = step => rows().filter(([top]) => top === parseInt(middle().style.top) + 20 * step).map(([, f]) => f.ariaLabel.replace(/^(.*), \d+ calls, total (.*), self .*$/, '$2 $1'));
	/* The table, by each column and both ways. */
	for (let i = 0; i < heads().length; i++) {
		heads()[i].firstChild.click();
		say('sort', heads()[i].textContent, heads()[i].ariaSort, column(5)[0].slice(1).trim());
		heads()[i].firstChild.click();
		say('sort', heads()[i].textContent, heads()[i].ariaSort, column(5)[0].slice(1).trim());
	}
	/* Search. */
	type('app:(bind|loop)');
	say('plain', by('found').textContent);
	by('regex').click();
	say('regex', by('found').textContent.replace(/ frames.*/, ''), column(5).length, 'rows', document.querySelectorAll('.hit').length > 0);
	type('app:(');
	say('wrong', by('found').className, by('found').textContent.includes('Unterminated group'));
	press('Escape');
	say('none', by('search').value === '', by('found').textContent === '', column(5).length, 'rows');
	/* A function in the middle. */
	document.querySelector('[aria-label="callers and callees of app:bind"]').click();
	say('middle', middle().ariaLabel);
	for (const line of beside(-1).sort()) say('caller', line);
	for (const line of beside(1).sort()) say('callee', line);
	/* Keys. */
	press('ArrowUp');
	say('up', parseInt(document.activeElement.style.top) === parseInt(middle().style.top) - 20);
	press('ArrowDown');
	say('down', document.activeElement === middle());
	press('Escape');
	say('all', middle() === null, by('reset').disabled, document.activeElement.ariaLabel.startsWith('all,'));
	press('ArrowDown');
	const child = document.activeElement.ariaLabel;
	press('Enter');
	say('zoomed', document.querySelectorAll('.above').length, document.activeElement.ariaLabel === child, document.activeElement.style.width);
	press('s');
	say('s', child.startsWith(middle().ariaLabel.split(',')[0]), by('both').ariaPressed);
	press('Escape');
	press('c');
	say('c', by('calls').ariaPressed);
	press('x');
	say('x', by('regex').ariaPressed);
	document.activeElement.blur();
	press('/');
	say('/', document.activeElement === by('search'));
J
try_page random.html
cat >expected.py <<'P'
import json, subprocess, sys
tw = sys.argv[1]
def run(*words):
    return subprocess.run([tw, *words, "random.tw"], stdout=subprocess.PIPE, check=True, text=True).stdout
def time(ns):
    for least, unit, word in ((999.5e6, 1e9, "s"), (999.5e3, 1e6, "ms"), (999.5, 1e3, "µs")):
        if ns >= least:
            return f"{ns / unit:#.3g}".rstrip(".") + " " + word
    return f"{round(ns)} ns"
rows = json.loads(run("report", "--json", "--top", "0"))["by_function"]
for key in ("total", "self", "calls", "median", "p99", "name"):
    title = {"median": "p50", "name": "function"}.get(key, key)
    ordered = sorted(rows, key=lambda row: row["name"])
    for word, is_down in (("ascending", False), ("descending", True)) if key == "name" else (("descending", True), ("ascending", False)):
        first = (max if is_down else min)(ordered, key=lambda row: row[key])
        print("sort", title, word, first["name"].removesuffix("/_"))
print("plain nothing found")
stacks = [(line.rsplit(" ", 1)[0].split(";"), int(line.rsplit(" ", 1)[1])) for line in run("flame", "--folded").splitlines()]
nodes = {tuple(stack[:n]) for stack, _ in stacks for n in range(1, len(stack) + 1)}
print(f"regex {sum(node[-1] in ('app:bind', 'app:loop') for node in nodes):,} 2 rows true")
print("wrong warn true")
print("none true true 8 rows")
total, callers, callees = 0, {}, {}
for stack, own in stacks:
    if "app:bind" in stack:
        at = stack.index("app:bind")
        total += own
        for side, index in ((callers, at - 1), (callees, at + 1)):
            if 0 <= index < len(stack):
                side[stack[index]] = side.get(stack[index], 0) + own
bind = next(row for row in rows if row["name"].startswith("app:bind"))
assert abs(bind["total"] * 1e9 - total) < 1, (bind, total)
print("middle", total)
for word, side in (("caller", callers), ("callee", callees)):
    for line in sorted(f"{time(ns)} {name}" for name, ns in side.items()):
        print(word, line)
print("up true\ndown true\nall true true true\nzoomed 1 true 100%\ns true true\nc true\nx false\n/ true")
P
python3 expected.py "$tw" >expected || fail "expected.py"
total=$(sed -n 's/^middle //p' expected)
sed -i "s/^middle.*/middle/" expected
grep -q "^middle app:bind, [0-9]* calls, total $(python3 -c "print(f'{$total / 1e6:#.3g}')") ms," said || fail "middle: $(grep middle said)"
sed 's/^middle.*/middle/' said | diff expected - >&2 || fail "the page says otherwise"

# 400 pixels, dark: nothing is wider than the window but what scrolls by itself; text can be read on what is behind it.
expect 0 "$tw" flame calls.tw
mv out calls.html
cat >try.js <<'J'
	say('width', innerWidth <= 400, document.documentElement.scrollWidth <= innerWidth);
	say('dark', light(getComputedStyle(document.body).backgroundColor) < 0.05);
	const texts = [...document.querySelectorAll('p, h1, h2, th button, td, td button, .f, #bar button:enabled, dt, dd, #legend span')].filter(e => e.textContent && e.offsetParent);
	const poor = texts.filter(e => contrast(e) < 4.5);
	say('contrast', texts.length > 30, poor.length, poor.slice(0, 3).map(e => e.outerHTML + contrast(e)).join(' '));
J
width=400 is_dark=1 try_page calls.html
said 'width true true' 'dark true' 'contrast true 0 '
