#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    report --html is the whole report as one page without network: the flame graph, tables, histograms of durations, the slowest calls with
#         what they did, locks; messages where there are any. It can be read at 400 pixels and in the dark, and its tables are sorted by a click.
# Method  The page's data is compared with `report --json`, `report --locks --json` and `print --slowest`; a browser is asked for the sections.
build=$1
. "$(dirname "$0")/lib.sh"
"$build/tests/tools_report_test" captures "$work" || fail "no captures"
cat >lk.c <<'C'
#include <pthread.h>
#include <unistd.h>
pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
__attribute__((noinline)) void hold(int i)
{
	pthread_mutex_lock(&table_lock);
	usleep(1000);
	pthread_mutex_unlock(&table_lock);
}
__attribute__((noinline)) void *run(void *argument)
{
	for (int i = 0; i < 20; i++)
		hold(i);
	return argument;
}
int main(void)
{
	pthread_t threads[3];
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], 0, run, 0);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], 0);
	return 0;
}
C
gcc -w -O1 -fpatchable-function-entry=9 -o lk lk.c -lpthread || fail gcc
expect 0 "$tw" record -q --on-full block --locks --returns -t 'lk:_' -o lk.tw -- ./lk

cat >check.py <<'P'
import json, re, subprocess, sys
tw, path = sys.argv[1:]
def run(*words):
    return subprocess.run([tw, *words, path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
page = run("report", "--html")
data = json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.S).group(1))
assert page.count("</script>") == 3 and "<img" not in page and page.count("</body>") == 1, "markup"
assert not re.search(r'https?://|src=["\']|@import', page), "the network"
assert data["report"] == json.loads(run("report", "--json")), "the report"
graph = json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', run("flame"), re.S).group(1))
assert all(data[key] == graph[key] for key in graph), "the graph"
more, locks = data["more"], json.loads(run("report", "--locks", "--json", "--top", "50"))
for kind in ("locks", "conditions"):
    for lock in locks[kind]:
        lock["pairs"] = lock["pairs"][:5]
    assert more[kind] == locks[kind], kind
ports = json.loads(run("report", "--ports", "--json", "--top", "100"))
keys = ("ports", "port_count", "gaps", "calls_of_unseen_descriptors", "unfollowed_calls", "modules_with_pointers")
assert ({key: more.get(key) for key in keys} == {key: ports[key] for key in keys} if path == "ports.tw" else "ports" not in more), "ports"
assert path != "ports.tw" or any(row["what"].endswith("passwd") for row in ports["ports"])
slowest = [json.loads(line) for line in run("print", "--slowest", "10", "--format", "json").splitlines()]
for mine, call in zip(more["slowest"], slowest, strict=True):
    # Without what is small, and what that did.
    inside, left_out, above = [], 0, 1000
    for node in call["inside"]:
        if node["depth"] > above:
            continue
        is_small = node["total_ns"] < call["total_ns"] // 200
        left_out += node["calls"] if is_small else 0
        above = node["depth"] if is_small else 1000
        inside += [] if is_small else [node]
    assert mine == call | {"inside": inside, "left_out": left_out}, (mine["name"], mine["left_out"], left_out)
rows = {row["name"]: row for row in data["report"].get("by_function", [])}
for histogram in more["histograms"]:
    low, numbers = histogram["bars"][::2], histogram["bars"][1::2]
    row = rows.get(histogram["name"]) or rows.get(histogram["name"] + "/_")
    assert low == sorted(low) and all(n & (n - 1) == 0 for n in low) and min(numbers) > 0
    assert sum(numbers) == row["returned"], (histogram, row)
    assert low[0] <= row["min"] * 1e9 + 0.5 and (low[-1] <= row["max"] * 1e9 + 0.5 < 2 * max(low[-1], 1)), (histogram, row)
assert len(more["histograms"]) == min(20, sum(row.get("returned", 0) > 0 for row in rows.values()))
P
for capture in lk calls actors random; do
	python3 check.py "$tw" $capture.tw || fail "$capture.tw"
done
expect 0 "$tw" record -q -t 'libc:_' -o plain.tw -- ls /
python3 check.py "$tw" plain.tw || fail "plain.tw"
expect 0 "$tw" record -q --ports --follow-fork -o ports.tw -- sh -c 'cat /etc/passwd | wc -l >lines'
python3 check.py "$tw" ports.tw || fail "ports.tw"
expect 2 "$tw" report --html --json lk.tw
says 'the whole report'

needs_browser
expect 0 "$tw" report --html lk.tw
mv out lk.html
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
width=400 is_dark=1 try_page lk.html
said 'Threads, Durations, Slowest calls, Locks' 'links true' 'width 400 true' 'contrast true 0' 'slowest 10 true' 'locks true' 'durations true' \
	'sorted true true ascending'
expect 0 "$tw" report --html ports.tw
mv out ports.html
cat >try.js <<'J'
	const rows = [...document.querySelectorAll('#ports tbody tr')].map(row => [...row.cells].map(cell => cell.textContent));
	say('width', innerWidth, document.documentElement.scrollWidth <= innerWidth);
	say('ports', rows.some(row => /\/etc\/passwd \(/.test(row[7]) && row[0] === '1' && /^[0-9.]+ (B|KiB)$/.test(row[4]) && row[5] === '-'));
J
width=400 is_dark=1 try_page ports.html
said 'width 400 true' 'ports true'
