#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    What a browser draws of the pages of `flame`, `report --html`, `why-late` and `seq` is what it should be. On the flame graph's: the table
#         is sorted by each of its columns, the search takes regular expressions, a function is shown with all its callers above and its callees
#         below, and a part by thread and time, all of it by keys as well; it can be read at 400 pixels and in the dark. It has a bounded
#         number of frames, and says so.
# Method  One browser runs all pages, each with a script, most of a random tree of calls, in which everything is recursive; figures are computed again
#         from the folded stacks and `report --json`. What the pages' data are is compared by the tests of the commands.
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
for page in "deep.html", "all.html":
    data = json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', open(page).read(), re.S).group(1))
    nodes = [data["nodes"][i:i + 5] for i in range(0, len(data["nodes"]), 5)]
    print(sum(n[1] >= 0 for n in nodes) <= 20000, len(nodes) <= 40000, sum(n[2] for n in nodes), float(re.search(r"less than (\S+) %", data["notes"][0]["text"]).group(1)) > 0.01)
P
page() { # FILE COMMAND...
	expect 0 "$tw" "${@:2}"
	mv out "$1"
}
page deep.html flame deep.tw
page all.html flame --least 0 deep.tw
is "$(python3 -I -S count.py)" 'True True 24000 True
False True 24000 False' "the frames of a page, and of --least 0"

needs_browser
"$build/tests/tools_whylate_test" captures "$work" || fail "no captures of messages"
"$build/tests/tools_seq_test" captures "$work" || fail "no captures of requests"
make_sides 1
record_lk
expect 0 "$tw" record -q -t 'libc:_' -o plain.tw -- ls /
page random.html flame --least 0 random.tw
page calls.html flame calls.tw
page plain.html flame plain.tw
page diff.html flame --diff old1.tw app1.tw
page lk.html report --html lk.tw
page late.html why-late --html chain.tw
expect 0 "$tw" record -q --ports --follow-fork -o ports.tw -- sh -c 'cat /etc/passwd | wc -l >lines'
page ports.html report --html ports.tw
expect 0 "$tw" record -q --memory -o memory.tw -- sort /etc/passwd
page memory.html flame --memory=allocated memory.tw
expect 0 "$tw" report --memory --json memory.tw
allocated=$(json 'd["calls"]')
expect 0 "$tw" seq --label '{order,17}' --html order.html shop.tw

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
add_page table random.html
# A part: of one thread, and of a stretch of time.
cat >try.js <<'J'
	const total = name => frame(name).ariaLabel.replace(/.*total (.*), self .*/, '$1');
	const sums = () => [...by('table').tBodies[0].rows].map(row => row.cells[5].textContent.slice(1).trim() + ' ' + row.cells[1].textContent).sort().join(', ');
	say('all', by('who').options.length, by('strip').children.length, by('part').hidden);
	by('who').value = 3;
	by('who').dispatchEvent(new Event('change'));
	say(by('who').selectedOptions[0].textContent);
	for (const [id, value] of [['from', 10], ['to', 20]]) {
		by(id).value = value;
		by(id).dispatchEvent(new Event('input'));
	}
	say('in', document.querySelectorAll('#strip .in').length, by('reset').disabled);
	say(sums());
	document.querySelector('[aria-label="callers and callees of app:bind"]').click();
	say('bind', document.querySelector('.middle').ariaLabel.replace(/.*total (.*), self .*/, '$1') === column(0)[column(5).findIndex(name => name.endsWith('app:bind'))]);
	press('Escape');
	say('whole', document.querySelectorAll('#strip .in').length, by('who').value === '', by('reset').disabled);
J
add_page part random.html
# 400 pixels, dark: nothing is wider than the window but what scrolls by itself; text can be read on what is behind it.
cat >try.js <<'J'
	say('width', innerWidth <= 400, document.documentElement.scrollWidth <= innerWidth);
	say('dark', light(getComputedStyle(document.body).backgroundColor) < 0.05);
	const texts = [...document.querySelectorAll('p, h1, h2, th button, td, td button, .f, #bar button:enabled, dt, dd, #legend span')].filter(e => e.textContent && e.offsetParent);
	const poor = texts.filter(e => contrast(e) < 4.5);
	say('contrast', texts.length > 30, poor.length, poor.slice(0, 3).map(e => e.outerHTML + contrast(e)).join(' '));
J
width=400 is_dark=1 add_page dark calls.html
# Names that do not fit: without types and scopes, or their beginning.
sed 's/"app:step\/1"/"app:space::deep::step_of_it(std::map<int, char>)\/1"/; s/"app:loop"/"app:at_first_and_the_very_last_one"/' calls.html >long.html
cat >try.js <<'J'
	const texts = frames().map(f => f.textContent);
	say('of C++', texts.some(text => /^(deep::)?step_of_it$/.test(text)));
	say('a beginning', texts.some(text => /^at_[a-z_]*…$/.test(text)));
	say('empty', texts.filter(text => text === '…').length);
J
add_page long long.html
cat >try.js <<'J'
	say(frame('app:step/1').ariaLabel);
	say(document.querySelectorAll('.f.hit').length, document.body.textContent.includes('1 frame, 2.53 % of the time'), document.querySelectorAll('img').length);
J
add_page find calls.html '#find=bind'
cat >try.js <<'J'
	say(document.querySelectorAll('[role="treeitem"]').length > 5);
J
add_page plain plain.html
# Longer own times are red, shorter ones blue, chance is grey.
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
add_page diff diff.html
cat >try.js <<'J'
	say([...document.querySelectorAll('#nav a')].map(a => a.textContent).join(', '));
	say('links', [...document.querySelectorAll('#nav a')].every(a => document.querySelector(a.getAttribute('href'))));
	say('width', innerWidth, document.documentElement.scrollWidth <= innerWidth);
	const texts = [...document.querySelectorAll('p, h1, h2, summary, th button, td, a')].filter(e => e.textContent && e.offsetParent);
	say('contrast', texts.length > 50, texts.filter(e => contrast(e) < 4.5).length);
	const slow = document.querySelectorAll('#slowest-calls details');
	say('slowest', slow.length, document.getElementById('slowest-calls').textContent.includes('waited for mutex lk:table_lock'));
	say('locks', document.getElementById('locks').textContent.includes('mutex lk:table_lock'));
	say('durations', document.querySelectorAll('#durations .bar').length >= document.querySelectorAll('#durations details').length);
	const head = document.querySelector('#threads th'), calls = () => [...document.querySelectorAll('#threads tbody tr')].map(row => Number(row.cells[0].textContent));
	head.firstChild.click();
	const down = calls();
	head.firstChild.click();
	say('sorted', down.join() === [...down].sort((a, b) => b - a).join(), calls().join() === [...down].sort((a, b) => a - b).join(), head.ariaSort);
J
width=400 is_dark=1 add_page report lk.html
cat >try.js <<'J'
	const rows = [...document.querySelectorAll('#ports tbody tr')].map(row => [...row.cells].map(cell => cell.textContent));
	say('width', innerWidth, document.documentElement.scrollWidth <= innerWidth);
	say('ports', rows.some(row => /\/etc\/passwd \(/.test(row[7]) && row[0] === '1' && /^[0-9.]+ (B|KiB)$/.test(row[4]) && row[5] === '-'));
J
width=400 add_page ports ports.html
cat >try.js <<'J'
	say('bytes', by('time').textContent, by('tip').textContent.includes('MiB') || by('tip').textContent.includes('KiB'), heads().map(head => head.textContent.replace(/ .*/, '')).join());
	say('allocated', by('tip').textContent.match(/calls that allocated\s*([0-9,]+)/)?.[1].replace(/,/g, ''));
	say('frame', frames().every(f => !/ (ns|ms|µs|s)\b/.test(f.ariaLabel)) && frames().length > 5);
J
add_page memory memory.html
# The receiver ran, was ready, ran, was blocked, was ready and ran: six pieces; the one that blocked it was ready and ran.
cat >try.js <<'J'
	const late = document.querySelectorAll('article');
	say('messages', late.length, late[0].textContent.includes('1. 8.00 µs to <0.45.0> p2'));
	say('lane', late[0].querySelector('[aria-label="<0.45.0> p2: ran 2.00 µs, ready 1.09 µs, blocked 4.91 µs"]') !== null);
	say('pieces', late[0].querySelectorAll('rect.d1, rect.d2, rect.d3').length);
J
add_page late late.html
# {price,book}: from a1, the second lane, in the row of its send to a2, the third, in that of its receive, after the other
# message was sent and received.
cat >try.js <<'J'
	say('messages and prints', document.querySelectorAll('g.hop').length, 'lifelines', document.querySelectorAll('.life').length);
	const line = document.querySelector('[aria-label="<0.41.0> a1 sends {price,book} to <0.42.0> a2, received after 1.00 µs"] line');
	say(...['x1', 'y1', 'x2', 'y2'].map(name => line.getAttribute(name)));
J
add_page order order.html
draw_pages

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
python3 -I -S expected.py "$tw" >expected || fail "expected.py"
total=$(sed -n 's/^middle //p' expected)
sed -i "s/^middle.*/middle/" expected
grep -q "^middle app:bind, [0-9]* calls, total $(python3 -c "print(f'{$total / 1e6:#.3g}')") ms," table.said || fail "middle: $(grep middle table.said)"
sed 's/^middle.*/middle/' table.said | diff expected - >&2 || fail "the page says otherwise"
cat >part.py <<'P'
import json, re, subprocess, sys
tw = sys.argv[1]
data = json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', open("random.html").read(), re.S).group(1))["parts"]
at = lambda piece: f"{data['from'] + piece * data['slice']}ns"
part = subprocess.run([tw, "report", "--json", "--top", "0", "--thread", data["threads"][3].split()[0], "--from", at(10), "--to", at(20), "random.tw"], stdout=subprocess.PIPE, check=True, text=True).stdout
def time(ns):
    return f"{ns / 1e6:#.3g}".rstrip(".") + " ms" if ns >= 999.5e3 else f"{ns / 1e3:#.3g}".rstrip(".") + " µs" if ns >= 999.5 else f"{round(ns)} ns"
print(f"all {len(data['threads']) + 1} 64 false\n{data['threads'][3]}\nin 10 false")
print(", ".join(sorted(f"{row['name'].removesuffix('/_')} {time(row['self'] * 1e9)}" for row in json.loads(part)["by_function"])))
print("bind true\nwhole 64 true true")
P
python3 -I -S part.py "$tw" | diff - part.said >&2 || fail "the page of a part says otherwise"
said dark 'width true true' 'dark true' 'contrast true 0 '
said long 'of C++ true' 'a beginning true' 'empty 0'
said find 'app:step/1, 8 calls, total 4.60 µs, self 3.60 µs, with losses or missing returns in them' '1 true 0'
said plain true
said diff 'parse red' 'only true' 'calls of parse red' 'calls of render grey' 'calls of only blue' 'first app:parse 4 rows' "by calls +1,000 −1,000" 'true false'
said report 'Threads, Durations, Slowest calls, Locks' 'links true' 'width 400 true' 'contrast true 0' 'slowest 10 true' 'locks true' 'durations true' \
	'sorted true true ascending'
said ports 'width 400 true' 'ports true'
said memory 'bytes by bytes true total,self,calls,function' "allocated $allocated" 'frame true'
said late 'messages 3 true' 'lane true' 'pieces 8'
said order 'messages and prints 8 lifelines 4' '370 90 550 162'
