#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    report --html is the whole report as one page without network: the flame graph, tables, histograms of durations, the slowest calls with
#         what they did, locks; messages where there are any. How it is drawn is shown by pages_test.sh.
# Method  The page's data is compared with `report --json`, `report --locks --json` and `print --slowest`.
build=$1
. "$(dirname "$0")/lib.sh"
"$build/tests/tools_report_test" captures "$work" || fail "no captures"
record_lk

cat >check.py <<'P'
import json, re, subprocess, sys
tw = sys.argv[1]
def run(*words):
    return subprocess.run([tw, *words, path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
for path in sys.argv[2:]:
    print(path)
    page = run("report", "--html")
    data = json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.S).group(1))
    assert page.count("</script>") == 3 and "<img" not in page and page.count("</body>") == 1, "markup"
    assert not re.search(r'https?://|src=["\']|@import', page), "the network"
    assert data["report"] == json.loads(run("report", "--json")), "the report"
    graph = json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', run("flame"), re.S).group(1))
    assert all(data[key] == graph[key] for key in graph), "the graph"
    table = {data["names"][row[0]].removesuffix("/_"): row for row in data["functions"]}
    for row in data["report"].get("by_function", []):
        assert "tracer_ns" not in row or table[row["name"].removesuffix("/_")][6] == row["tracer_ns"], row
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
expect 0 "$tw" record -q -t 'libc:_' -o plain.tw -- ls /
expect 0 "$tw" record -q --ports --follow-fork -o ports.tw -- sh -c 'cat /etc/passwd | wc -l >lines'
expect 0 python3 -I -S check.py "$tw" lk.tw calls.tw actors.tw random.tw plain.tw ports.tw
expect 2 "$tw" report --html --json lk.tw
says 'the whole report'
